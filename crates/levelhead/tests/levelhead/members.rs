//! One of three directories whose disk is full or read-only: either an error explains it, or the
//! store runs without the directory. All acknowledged writes survive, with that directory and
//! without it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use faultfs::{Fails, FaultFs, Faults, Kind};
use levelhead::{DirectoryState, Durability, Error, Options, Store, repair};
use runtime::Rng;

use crate::failures::until;
use crate::scratch::{Scratch, by_threads, faulty, seeds, wanted};

/// Error numbers of the system.
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
/// Trials; `LEVELHEAD_ROUNDS` sets another number, `LEVELHEAD_SEED` runs one.
const TRIALS: u64 = 6;
/// Of this many puts, one waits until all before it are durable.
const TOGETHER: u64 = 20;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A fault of a directory's disk.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// The disk is full.
    Full,
    /// The disk refuses every change after `after` more writes.
    ReadOnly { after: u64 },
}

impl Trouble {
    fn draw(rng: &mut Rng) -> Self {
        match rng.below(2) {
            0 => Self::Full,
            _ => Self::ReadOnly { after: [0, 20, 300][rng.below(3) as usize] },
        }
    }

    fn faults(self) -> Faults {
        let fails = |kind, after, errno| Fails { kind, after, times: u64::MAX, errno };
        let fails = match self {
            // Blocks that the file already has can still be written.
            Self::Full => return Faults { room: Some(0), ..Faults::default() },
            Self::ReadOnly { after } => [Kind::Write, Kind::Sync, Kind::Discard, Kind::Name]
                .map(|kind| fails(kind, if kind == Kind::Write { after } else { 0 }, EROFS)),
        };
        Faults { fails: fails.to_vec(), ..Faults::default() }
    }
}

fn options() -> Options {
    // The paths of removed drives differ from the recorded ones.
    Options { durability: Durability::Group, degraded: true, ..by_threads() }
}

fn open(directories: &[PathBuf]) -> Result<Store, Error> {
    Store::open_over(directories, &options())
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

/// Puts until one fails or all are done, and records those acknowledged as durable. Returns the
/// error.
fn put_some(store: &Store, map: &mut Map, from: u64, count: u64) -> Option<Error> {
    let mut waiting = Map::new();
    for n in from..from + count {
        let value = vec![n as u8; 700 + n as usize % 400];
        let is_last = n % TOGETHER == TOGETHER - 1;
        let durability = if is_last { Durability::Group } else { Durability::None };
        if let Err(error) = store.put_with(&key(n), &value, durability) {
            return Some(error);
        }
        waiting.insert(key(n), value);
        if is_last {
            map.append(&mut waiting);
        }
    }
    None
}

/// Checks that all acknowledged pairs exist.
fn check(store: &Store, map: &Map, when: &str) -> Result<(), String> {
    for (key, value) in map {
        match store.get(key) {
            Ok(found) if found.as_ref() == Some(value) => {}
            other => return Err(format!("{when}, {}: {other:.80?}", key.escape_ascii())),
        }
    }
    Ok(())
}

/// Returns the directories with one drive removed: its path does not exist.
fn without(directories: &[PathBuf], member: usize) -> Vec<PathBuf> {
    let mut others = directories.to_vec();
    others[member] = others[member].join("taken out");
    others
}

/// Draws a member and a fault, and checks the store during and after it.
fn one_trial(seed: u64, fs: &FaultFs) -> Result<String, String> {
    let rng = &mut Rng::derive(seed, "members");
    let (scratch, member, trouble) = (Scratch::new(), rng.below(3) as usize, Trouble::draw(rng));
    let mut directories = scratch.directories(3);
    directories[member] = fs.path().join("d");
    let mut map = Map::new();
    let opened = |directories: &[PathBuf], when: &str| {
        open(directories).map_err(|error| format!("{when}: {error}"))
    };
    let store = opened(&directories, "at first")?;
    let error = put_some(&store, &mut map, 0, rng.below(4_000));
    assert!(error.is_none(), "{error:?}");
    fs.set_faults(trouble.faults());
    let error = put_some(&store, &mut map, 10_000, 4_000);
    let mut story = format!("{trouble:?} of directory {member}: ");
    story += &error.map_or("writes went on".to_owned(), |error| format!("\"{error}\""));
    check(&store, &map, "in trouble")?;
    drop(store);
    match open(&directories) {
        Ok(store) => {
            check(&store, &map, "opened in trouble")?;
            put_some(&store, &mut map, 20_000, 500);
            check(&store, &map, "written in trouble")?;
        }
        Err(error) => {
            let names_it = error.to_string().contains(&directories[member].display().to_string());
            assert!(names_it && !matches!(error, Error::Damaged { .. }), "{error:?}");
            let _ = write!(story, ", then \"{error}\"");
        }
    }
    let store = opened(&without(&directories, member), "without it")?;
    check(&store, &map, "without it")?;
    if rng.below(2) == 0 {
        let error = put_some(&store, &mut map, 30_000, 500);
        error.map_or(Ok(()), |error| Err(format!("without it: {error}")))?;
    }
    drop(store);
    fs.set_faults(Faults::default());
    let store = opened(&directories, "when all is well")?;
    check(&store, &map, "when all is well")?;
    let error = put_some(&store, &mut map, 40_000, 500);
    error.map_or(Ok(()), |error| Err(format!("when all is well: {error}")))?;
    drop(store);
    // The member may not be complete yet. Then an error is correct, but a wrong value is not.
    let other = (member + 1) % 3;
    if let Ok(store) = open(&without(&directories, other)) {
        for (key, value) in &map {
            match store.get(key) {
                Ok(found) if found.as_ref() != Some(value) => {
                    return Err(format!("without another: {} is wrong", key.escape_ascii()));
                }
                _ => {}
            }
        }
    }
    Ok(story)
}

#[test]
fn one_of_three_may_be_full_or_take_no_writes() {
    for seed in seeds(wanted("LEVELHEAD_ROUNDS").unwrap_or(TRIALS)) {
        let Some(fs) = faulty(seed) else { return };
        match one_trial(seed, &fs) {
            Ok(story) => println!("{seed}: {story}"),
            Err(wrong) => panic!(
                "seed {seed}: {wrong}\nLEVELHEAD_SEED={seed} cargo test -p levelhead --test levelhead -- --nocapture one_of_three_may_be_full"
            ),
        }
    }
}

/// A store is created where one of the disks is full or read-only.
#[test]
fn a_store_is_not_made_where_one_of_three_is_full_or_takes_no_writes() {
    for (trouble, word) in [(ENOSPC, "o space"), (EROFS, "ead-only")] {
        let Some(fs) = faulty(1) else { return };
        let scratch = Scratch::new();
        let mut directories = scratch.directories(3);
        directories[2] = fs.path().to_owned();
        let kinds = [Kind::Write, Kind::Name].map(|kind| Fails {
            kind,
            after: 0,
            times: u64::MAX,
            errno: trouble,
        });
        fs.set_faults(Faults { fails: kinds.to_vec(), ..Faults::default() });
        let error = open(&directories).map(drop).expect_err("one cannot be made");
        assert!(error.to_string().contains(word), "{error}");
        fs.set_faults(Faults::default());
        let store = open(&directories).unwrap_or_else(|error| panic!("{error}"));
        store.put(b"key", b"value").expect("it is whole now");
    }
}

/// Checks that a store that cannot be written to can be opened for reading, and repaired into
/// another one.
fn check_is_read(directories: &[PathBuf], saved: &Path, map: &Map) {
    let store = Store::open_to_read(directories, &options());
    let store = store.unwrap_or_else(|error| panic!("{error}"));
    check(&store, map, "to be read").unwrap_or_else(|error| panic!("{error}"));
    store.put(b"key", b"value").expect_err("it takes none");
    let report = store.verify(|_| ()).unwrap_or_else(|error| panic!("{error}"));
    assert!(report.pairs == map.len() as u64 && report.findings.is_empty(), "{report:?}");
    drop(store);
    let report = repair(directories, saved, &by_threads(), |_| ());
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.pairs, map.len() as u64);
    assert!(report.salvaged.is_none() && report.findings.is_empty(), "{report:?}");
}

/// A store on a full disk can be saved to another disk.
#[test]
fn a_full_disk_is_told_with_its_name_and_is_no_damage() {
    let Some(fs) = faulty(1) else { return };
    let (scratch, mut map) = (Scratch::new(), Map::new());
    let store = Store::open(fs.path(), &options()).unwrap_or_else(|error| panic!("{error}"));
    assert!(put_some(&store, &mut map, 0, 1_000).is_none());
    drop(store);
    // Every write to its file fails, including those to allocated blocks.
    let fails = vec![Fails { kind: Kind::Write, after: 0, times: u64::MAX, errno: ENOSPC }];
    fs.set_faults(Faults { fails, ..Faults::default() });
    let error = Store::open(fs.path(), &options()).map(drop).expect_err("there is no room");
    let words = error.to_string();
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert!(words.contains(&fs.path().display().to_string()), "{words}");
    check_is_read(&[fs.path().to_owned()], &scratch.path().join("saved"), &map);
    // Other causes may show only on the first write.
    let fails = |kind| Fails { kind, after: 0, times: u64::MAX, errno: EROFS };
    let fails = [Kind::Write, Kind::Sync].map(fails).to_vec();
    fs.set_faults(Faults { fails, ..Faults::default() });
    check_is_read(&[fs.path().to_owned()], &scratch.path().join("saved too"), &map);
}

/// A checkpoint to a full disk and a put to a full disk return errors that name the file.
#[test]
fn what_a_full_disk_ends_is_told_with_its_file() {
    let Some(fs) = faulty(1) else { return };
    let (scratch, mut map) = (Scratch::new(), Map::new());
    let store = Store::open(scratch.path(), &options()).unwrap_or_else(|error| panic!("{error}"));
    assert!(put_some(&store, &mut map, 0, 4_000).is_none());
    let (copy, other) = (fs.path().join("copy"), fs.path().join("other"));
    let second = Store::open(&other, &options()).unwrap_or_else(|error| panic!("{error}"));
    fs.set_faults(Faults { room: Some(0), ..Faults::default() });
    let error = put_some(&second, &mut Map::new(), 0, 40_000).expect("there is no room");
    assert!(error.to_string().contains(&other.join("data").display().to_string()), "{error}");
    let error = store.checkpoint(&copy, &by_threads(), |_| ()).expect_err("there is no room");
    assert!(error.to_string().contains(&copy.display().to_string()), "{error}");
}

/// A directory that is mounted a second time, read-only.
struct ReadOnly(PathBuf);

impl ReadOnly {
    /// Returns `None`, with a message, without the rights to mount.
    fn new(scratch: &Scratch, of: &Path) -> Option<Self> {
        let name = of.file_name().expect("it has a name").to_string_lossy();
        let path = scratch.path().join(format!("read-only {name}"));
        fs::create_dir(&path).expect("there is room");
        let run = |words: &[&str]| {
            let mounted = Command::new("mount").args(words).arg(&path).status();
            mounted.is_ok_and(|status| status.success())
        };
        let of = of.to_str().expect("a path of letters");
        if !run(&["--bind", of]) {
            eprintln!("left out, because nothing can be mounted here");
            return None;
        }
        let mounted = Self(path.clone());
        assert!(run(&["-o", "remount,bind,ro"]));
        Some(mounted)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Creates a store with some pairs in three directories.
fn with_pairs(scratch: &Scratch, map: &mut Map) -> Vec<PathBuf> {
    let directories = scratch.directories(3);
    let store = open(&directories).unwrap_or_else(|error| panic!("{error}"));
    assert!(put_some(&store, map, 0, 2_000).is_none());
    directories
}

fn states(store: &Store) -> Vec<DirectoryState> {
    store.directories().into_iter().map(|(_, state)| state).collect()
}

#[test]
fn a_store_goes_on_without_a_directory_on_a_read_only_file_system() {
    use DirectoryState::{Behind, Lost, Whole};
    let (scratch, mut map) = (Scratch::new(), Map::new());
    let directories = with_pairs(&scratch, &mut map);
    let Some(mounted) = ReadOnly::new(&scratch, &directories[1]) else { return };
    let with_it = vec![directories[0].clone(), mounted.0.clone(), directories[2].clone()];
    assert_eq!(Store::lost_in(&with_it), with_it[1..2]);
    check_is_read(&with_it, &scratch.path().join("saved"), &map);
    let alone = Store::open(&mounted.0, &by_threads()).map(drop).expect_err("it is one of three");
    assert!(alone.to_string().contains("over 3 directories"), "{alone}");
    for from in [5_000, 6_000] {
        let store = open(&with_it).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (store.lost(), states(&store)),
            (vec![mounted.0.clone()], vec![Whole, Lost, Whole])
        );
        assert!(put_some(&store, &mut map, from, 1_500).is_none());
        check(&store, &map, "without it").unwrap_or_else(|error| panic!("{error}"));
    }
    // The read-only directory lacks these writes. Only the others record that.
    let error = open(&without(&with_it, 0)).map(drop).expect_err("two are missing");
    assert!(matches!(error, Error::ReadOnly(_)), "{error:?}");
    let store = open(&directories).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(states(&store), [Whole, Behind, Whole]);
    check(&store, &map, "with leave to write").unwrap_or_else(|error| panic!("{error}"));
    until(|| (states(&store) == [Whole; 3]).then_some(()));
    check(&store, &map, "filled").unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn two_directories_on_read_only_file_systems_are_told_and_can_be_read() {
    let (scratch, mut map) = (Scratch::new(), Map::new());
    let directories = with_pairs(&scratch, &mut map);
    let mounted = [1, 2].map(|member: usize| ReadOnly::new(&scratch, &directories[member]));
    let [Some(one), Some(two)] = mounted else { return };
    let with_them = vec![directories[0].clone(), one.0.clone(), two.0.clone()];
    let before = fs::read(directories[0].join("data")).expect("it is there");
    let error = open(&with_them).map(drop).expect_err("too few take writes");
    let words = error.to_string();
    assert!(words.contains("Read-only") && words.contains("read-only d1/data"), "{words}");
    assert!(matches!(error, Error::ReadOnly(_)), "{error:?}");
    check_is_read(&with_them, &scratch.path().join("saved"), &map);
    let after = fs::read(directories[0].join("data")).expect("it is there");
    assert!(before == after, "nothing was changed");
}

#[test]
fn directories_say_how_they_are() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    let named = |store: &Store| {
        let all = store.directories().into_iter();
        all.map(|(path, state)| (path, state.name())).collect::<Vec<_>>()
    };
    let store = open(&directories).unwrap_or_else(|error| panic!("{error}"));
    let all = |of: [&'static str; 3]| directories.iter().cloned().zip(of).collect::<Vec<_>>();
    assert_eq!(named(&store), all(["whole"; 3]));
    drop(store);
    fs::remove_dir_all(&directories[1]).expect("it is ours");
    let read_only = Options { read_only: true, ..options() };
    let store = Store::open_over(&directories, &read_only).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(named(&store), all(["whole", "lost", "whole"]));
}

#[test]
fn one_that_was_away_and_is_whole_again_stands_in_for_any_other() {
    let (scratch, mut map) = (Scratch::new(), Map::new());
    let directories = with_pairs(&scratch, &mut map);
    for (round, away) in [1, 0, 2].into_iter().enumerate() {
        let store = open(&without(&directories, away)).unwrap_or_else(|error| panic!("{error}"));
        // Many extents are written, compacted, and partly free again.
        assert!(put_some(&store, &mut map, 3_000 + round as u64 * 500, 1_500).is_none());
        drop(store);
        let store = open(&directories).unwrap_or_else(|error| panic!("{error}"));
        until(|| (states(&store) == [DirectoryState::Whole; 3]).then_some(()));
        drop(store);
        for lost in 0..3 {
            let read_only = Options { read_only: true, ..options() };
            let when = format!("{away} was away, and {lost} is lost");
            let store = Store::open_over(&without(&directories, lost), &read_only);
            let store = store.unwrap_or_else(|error| panic!("{when}: {error}"));
            check(&store, &map, &when).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
