//! Salvage of stores that no longer open, compared with a model of the acknowledged writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use levelhead::{Durability, Options, Report, Store, repair};
use runtime::Rng;

use crate::scratch::{Scratch, open, small};

const KEYS: u64 = 1_500;
const LOG: u8 = 7;
const MANIFEST: u8 = 8;

/// All values that were ever written to each key, oldest first; `None` is a delete.
type Model = BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>;

fn key(n: u64) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

/// Writes random puts and deletes. Most are flushed; the last ones are in the log, each in a group
/// of its own.
fn written(directories: &[PathBuf], options: &Options, seed: u64) -> Model {
    let store = Store::open_over(directories, options).expect("it can be made");
    let (mut model, rng) = (Model::new(), &mut Rng::new(seed));
    for write in 0..6_000_u64 {
        let key = key(rng.below(KEYS));
        let long = if rng.below(60) == 0 { 9_000 } else { 400 };
        let value = vec![rng.next_u64() as u8; rng.below(long) as usize];
        let value = [&write.to_le_bytes()[..], &value].concat();
        let is_delete = rng.below(4) == 0;
        let in_log = if write < 5_800 { Durability::None } else { Durability::Each };
        if write == 3_000 {
            store.settle();
        }
        if write == 5_800 {
            store.settle();
            store.sync().expect("it can be made durable");
        }
        let value = (!is_delete).then_some(value);
        match &value {
            Some(value) => store.put_with(&key, value, in_log).expect("there is room"),
            None => store.delete_with(&key, in_log).expect("there is room"),
        }
        model.entry(key).or_default().push(value);
    }
    store.close().expect("it can be made durable");
    model
}

/// A page of a journal: its offset, epoch, group and bytes.
struct JournalPage {
    at: u64,
    epoch: u32,
    group: u64,
    bytes: Vec<u8>,
}

/// Returns the pages of a journal by group, including the remains of earlier epochs.
fn all_of_journal(directory: &Path, kind: u8) -> Vec<JournalPage> {
    let file = data(directory);
    let mut bytes = vec![0; 4096];
    let mut pages = Vec::new();
    for at in (0..file.metadata().expect("it is there").len()).step_by(4096) {
        file.read_exact_at(&mut bytes, at).expect("it can be read");
        if bytes[22] == kind && bytes[23] == 5 {
            let epoch = u32::from_le_bytes(bytes[28..32].try_into().expect("four"));
            let group = u64::from_le_bytes(bytes[32..40].try_into().expect("eight"));
            pages.push(JournalPage { at, epoch, group, bytes: bytes.clone() });
        }
    }
    pages.sort_by_key(|page| page.group);
    pages
}

/// Returns the valid pages of a journal: those of the newest epoch.
fn journal(directory: &Path, kind: u8) -> Vec<JournalPage> {
    let mut pages = all_of_journal(directory, kind);
    let newest = pages.iter().map(|page| page.epoch).max().expect("there are some");
    pages.retain(|page| page.epoch == newest);
    pages
}

fn data(directory: &Path) -> File {
    let file = OpenOptions::new().read(true).write(true).open(directory.join("data"));
    file.expect("it is there")
}

fn flip(directory: &Path, at: u64) {
    let file = data(directory);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it can be read");
    file.write_all_at(&[byte[0] ^ 0x55], at).expect("it can be written");
}

/// Returns the report of a repair, and the saved pairs.
fn saved(directories: &[PathBuf], into: &Path, options: &Options) -> (Report, Model) {
    let report =
        repair(directories, into, options, |_| ()).unwrap_or_else(|error| panic!("{error}"));
    let store = open(into, &small());
    let pairs = store.range(..).map(|pair| pair.expect("it is whole"));
    let found: Model = pairs.map(|(key, value)| (key.into_vec(), vec![Some(value)])).collect();
    assert_eq!(report.pairs, found.len() as u64);
    (report, found)
}

/// Checks that all keys except `hit` have their newest value, and that every saved value was once
/// written. Returns the number of deleted keys that came back.
fn check(model: &Model, found: &Model, hit: &BTreeSet<Vec<u8>>, what: &str) -> usize {
    let mut back = 0;
    for (key, values) in found {
        let value = &values[0];
        let written = model.get(key).unwrap_or_else(|| panic!("{what}: nobody wrote {key:?}"));
        assert!(written.contains(value), "{what}: {key:?} never had that value");
        if hit.contains(key) {
            continue;
        }
        match written.last().expect("it was written") {
            None => back += 1,
            newest => assert!(newest == value, "{what}: an older value of {key:?}"),
        }
    }
    for (key, written) in model.iter().filter(|(key, _)| !hit.contains(*key)) {
        let is_live = written.last().expect("it was written").is_some();
        assert!(!is_live || found.contains_key(key), "{what}: {key:?} is lost");
    }
    back
}

fn copied(from: &[PathBuf], to: &[PathBuf]) {
    for (from, to) in from.iter().zip(to) {
        let _ = std::fs::remove_dir_all(to);
        std::fs::create_dir_all(to).expect("it can be made");
        for name in ["data", "LEVELHEAD"] {
            let copied = std::process::Command::new("cp")
                .arg("--sparse=always")
                .args([from.join(name), to.join(name)])
                .status();
            assert!(copied.expect("there is cp").success());
        }
    }
}

/// A store on one file, of which damaged copies are made.
struct One {
    scratch: Scratch,
    model: Model,
}

impl One {
    fn new() -> Self {
        let scratch = Scratch::new();
        let model = written(&[scratch.path().join("whole")], &small(), 5);
        Self { scratch, model }
    }

    /// Returns the pairs that a repair saves after `damage`.
    fn damaged(&self, damage: impl FnOnce(&Path)) -> (Report, Model) {
        let [whole, broken, new] =
            ["whole", "broken", "new"].map(|name| self.scratch.path().join(name));
        let _ = std::fs::remove_dir_all(&new);
        copied(std::slice::from_ref(&whole), std::slice::from_ref(&broken));
        damage(&broken);
        saved(&[broken], &new, &small())
    }
}

#[test]
fn a_damaged_page_of_the_log_costs_what_it_held_and_nothing_else() {
    let one = One::new();
    let pages = journal(&one.scratch.path().join("whole"), LOG);
    let last = pages.last().expect("there is a log").group;
    for back in [3, 40, 150] {
        let page =
            pages.iter().find(|page| page.group == last - back).expect("groups have no gaps");
        let length = u32::from_le_bytes(page.bytes[52..56].try_into().expect("four")) as usize;
        let hit = BTreeSet::from([page.bytes[56..56 + length].to_vec()]);
        let (report, found) = one.damaged(|path| flip(path, page.at + 60));
        let salvaged = report.salvaged.expect("it does not open");
        let what = format!("group {} of {last}", page.group);
        assert_eq!(check(&one.model, &found, &hit, &what), 0, "{what}: {:?}", salvaged.doubts);
        assert!(
            salvaged.doubts.len() == 1 && salvaged.doubts[0].contains("log"),
            "{:?}",
            salvaged.doubts
        );
        assert_eq!(salvaged.unsure, 0);
        let named = report.findings.iter().any(|finding| {
            matches!(&finding.error, levelhead::Error::Damaged { offset: Some(at), .. } if *at == page.at)
        });
        assert!(named, "{:?}", report.findings);
    }
}

#[test]
fn a_damaged_manifest_costs_no_pair() {
    let one = One::new();
    let pages = journal(&one.scratch.path().join("whole"), MANIFEST);
    let last = pages.last().expect("there is a manifest").group;
    assert!(last > 3, "{last} edits");
    for group in [0, 1, last / 2] {
        let page = pages.iter().find(|page| page.group == group).expect("groups have no gaps");
        let (report, found) = one.damaged(|path| flip(path, page.at + 70));
        let salvaged = report.salvaged.expect("it does not open");
        let what = format!("group {group} of the manifest, of {last}");
        let back = check(&one.model, &found, &BTreeSet::new(), &what);
        println!("{what}: {back} deleted keys are back; {:?}", salvaged.doubts);
        assert!(
            salvaged.doubts.iter().any(|doubt| doubt.contains("manifest")),
            "{:?}",
            salvaged.doubts
        );
        assert!(salvaged.lost.is_empty() && salvaged.older.is_empty());
    }
    // All pages of the manifest.
    let (report, found) = one.damaged(|path| pages.iter().for_each(|page| flip(path, page.at + 9)));
    check(&one.model, &found, &BTreeSet::new(), "no manifest");
    assert!(report.salvaged.expect("it does not open").unsure > 0);
}

#[test]
fn what_levelhead_said_follows_from_the_pages() {
    let one = One::new();
    for (what, text) in
        [("missing", None), ("damaged", Some("format = 1\nid = 4")), ("noise", Some("\u{1}"))]
    {
        let (report, found) = one.damaged(|path| {
            let path = path.join("LEVELHEAD");
            match text {
                Some(text) => std::fs::write(path, text).expect("it can be written"),
                None => std::fs::remove_file(path).expect("it is there"),
            }
        });
        let salvaged = report.salvaged.expect("it does not open");
        assert_eq!(check(&one.model, &found, &BTreeSet::new(), what), 0, "{:?}", salvaged.doubts);
        assert!(
            salvaged.doubts.is_empty() && salvaged.unsure == 0,
            "{what}: {:?}",
            salvaged.doubts
        );
    }
}

#[test]
fn a_file_that_was_cut_gives_what_is_left_and_an_empty_directory_nothing() {
    let one = One::new();
    let (report, found) = one.damaged(|path| data(path).set_len(5 << 20).expect("it can be cut"));
    assert!(report.salvaged.is_some() && !found.is_empty());
    for (key, values) in &found {
        assert!(one.model[key].contains(&values[0]), "{key:?} never had that value");
    }
    let (nothing, new) = (one.scratch.path().join("nothing"), one.scratch.path().join("never"));
    std::fs::create_dir_all(&nothing).expect("it can be made");
    let refused = repair(&[nothing], &new, &small(), |_| ()).map(drop);
    assert!(matches!(refused, Err(levelhead::Error::Missing(_))), "{refused:?}");
    assert!(!new.exists(), "no store is made of nothing");
}

#[test]
fn a_store_over_three_directories_is_saved_too() {
    let scratch = Scratch::new();
    let [whole, broken] = ["whole", "broken"]
        .map(|name| (0..3).map(|n| scratch.path().join(format!("{name}{n}"))).collect::<Vec<_>>());
    let options = Options { capacity_bytes: 128 << 20, ..small() };
    let model = written(&whole, &options, 6);
    let save = |what: &str| {
        let new = scratch.path().join("new");
        let _ = std::fs::remove_dir_all(&new);
        let (report, found) = saved(&broken, &new, &options);
        (report, check(&model, &found, &BTreeSet::new(), what))
    };
    // The pages of the manifest, and the pages from which they would be rebuilt. Earlier epochs are
    // included, because they would be used without the newest checkpoint.
    let pages = whole.iter().flat_map(|path| all_of_journal(path, MANIFEST));
    let places: BTreeSet<u64> = pages.map(|page| page.at).collect();
    copied(&whole, &broken);
    // A different byte on each: if the same byte were flipped in two of three pages, the third page
    // rebuilt from them would be correct.
    for (member, path) in (0..).zip(&broken) {
        for at in &places {
            flip(path, at + 9 + member);
        }
    }
    let (report, back) = save("no manifest");
    let salvaged = report.salvaged.expect("it does not open");
    println!("no manifest on three: {back} deleted keys are back; {:?}", salvaged.doubts);
    assert!(!salvaged.doubts.is_empty());
    // The LEVELHEAD of all three, and of one.
    for gone in [3, 1] {
        copied(&whole, &broken);
        for path in &broken[..gone] {
            std::fs::write(path.join("LEVELHEAD"), "nothing").expect("it can be written");
        }
        let (report, back) = save("no words");
        let salvaged = report.salvaged.expect("it does not open");
        assert_eq!((back, salvaged.doubts.as_slice()), (0, &[][..]), "{gone} damaged");
    }
}

/// A store of one pair in a file of 16 GiB: reading its holes would take minutes.
#[test]
fn a_store_in_a_large_file_with_little_in_it_is_saved_at_once() {
    for (directories, page_bytes) in [(1, 4096), (3, 4096), (1, 16 << 10), (3, 32 << 10)] {
        let scratch = Scratch::new();
        let paths = scratch.directories(directories);
        let options = Options { capacity_bytes: 16 << 30, page_bytes, ..small() };
        let store = Store::open_over(&paths, &options).expect("it can be made");
        store.put(b"key", b"value").expect("there is room");
        store.close().expect("it can be made durable");
        for path in &paths {
            std::fs::remove_file(path.join("LEVELHEAD")).expect("it is there");
        }
        let (report, found) = saved(&paths, &scratch.path().join("new"), &small());
        let salvaged = report.salvaged.expect("it does not open");
        assert!(salvaged.doubts.is_empty(), "{:?}", salvaged.doubts);
        assert!(found.into_iter().eq([(b"key".to_vec(), vec![Some(b"value".to_vec())])]));
    }
}
