//! One changed byte in a store's files: errors report the place, results are correct, and repair
//! saves only values that once existed. Nothing panics or hangs.
//!
//! Each flip has a number, by which it can be repeated:
//! `LEVELHEAD_SEED=17 cargo test -p levelhead --test levelhead -- --nocapture a_flipped_byte`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use levelhead::{Durability, Error, Options, Store, repair};
use runtime::Rng;

use crate::scratch::{Scratch, open, seeds, small, wanted};

/// Flips for each kind of page in a test; `LEVELHEAD_FLIPS` sets another number.
const FLIPS: u64 = 6;
/// The page size of the stores here, in bytes.
const PAGE: u64 = 4096;
const PAIRS: u32 = 6_000;
const LOGGED: u32 = 2_000;
/// Keys after those of a store that do not exist, or were deleted.
const GONE: u32 = 500;

fn key(n: u32) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    (0..300).map(|i| (n + i) as u8).collect()
}

fn data(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path.join("data")).expect("it is there")
}

/// The contents of a file: its blocks that are not zero, and its length in bytes.
struct Image {
    blocks: Vec<(u64, Vec<u8>)>,
    bytes: u64,
}

impl Image {
    fn of(file: &File) -> Self {
        let bytes = file.metadata().expect("it is there").len();
        let block = |n: u64| {
            let mut block = vec![0; PAGE as usize];
            file.read_exact_at(&mut block, n * PAGE).expect("it can be read");
            (n * PAGE, block)
        };
        let is_used = |(_, block): &(u64, Vec<u8>)| block.iter().any(|byte| *byte != 0);
        Self { blocks: (0..bytes / PAGE).map(block).filter(is_used).collect(), bytes }
    }

    /// Restores a file to this image.
    fn restore(&self, file: &File) {
        file.set_len(0).and_then(|()| file.set_len(self.bytes)).expect("it can be cut");
        for (offset, block) in &self.blocks {
            file.write_all_at(block, *offset).expect("it can be written");
        }
    }

    /// Returns the blocks by kind of page.
    fn kinds(&self) -> BTreeMap<&'static str, Vec<usize>> {
        let mut kinds = BTreeMap::<_, Vec<_>>::new();
        for (n, (_, block)) in self.blocks.iter().enumerate() {
            kinds.entry(kind(block)).or_default().push(n);
        }
        kinds
    }
}

/// Returns the kind of a page, from its header (docs/format.md).
fn kind(block: &[u8]) -> &'static str {
    match block[22] {
        _ if block[4..8] == *b"LHvo" => "header of a member",
        1 => "segment of the index",
        2 => "values",
        5 => "filler",
        7 => "log",
        8 => "manifest",
        _ => "parity and others",
    }
}

/// The outcomes of flips.
#[derive(Default)]
struct Counts {
    unopened: u64,
    saved: u64,
    told: u64,
    unchanged: u64,
}

/// A store whose bytes are flipped.
struct Target<'a> {
    label: &'a str,
    directories: &'a [PathBuf],
    /// The member whose file is changed.
    member: usize,
    pairs: u32,
    /// Whether no key ever had another value.
    is_written_once: bool,
}

impl Target<'_> {
    /// Flips one byte at a time and checks the store.
    fn flip(&self) {
        let images: Vec<Image> =
            self.directories.iter().map(|path| Image::of(&data(path))).collect();
        for (kind, blocks) in images[self.member].kinds() {
            let mut counts = Counts::default();
            let flips = wanted("LEVELHEAD_FLIPS").unwrap_or(FLIPS);
            for number in seeds(flips) {
                let rng = &mut Rng::derive(number, &format!("{}, {kind}", self.label));
                let block = blocks[rng.below(blocks.len() as u64) as usize];
                let (within, by) = (rng.below(PAGE), 1 + rng.below(255) as u8);
                let (start, bytes) = &images[self.member].blocks[block];
                let at = start + within;
                // Opening a store writes to it, so each flip starts from the same files.
                for (path, image) in self.directories.iter().zip(&images) {
                    image.restore(&data(path));
                }
                let flipped = [bytes[within as usize] ^ by];
                let file = data(&self.directories[self.member]);
                file.write_all_at(&flipped, at).expect("it can be written");
                drop(file);
                let what = format!("{}, {kind}, flip {number}: byte {at} ^ {by}", self.label);
                self.look(&what, at, &mut counts);
            }
            let Counts { unopened, saved, told, unchanged } = counts;
            println!(
                "{}, {kind}: {unopened} did not open ({saved} pairs saved of each), {told} were told by gets, {unchanged} did not matter",
                self.label
            );
        }
    }

    fn look(&self, what: &str, at: u64, counts: &mut Counts) {
        match Store::open_over(self.directories, &small()) {
            Err(Error::Damaged { path, .. }) => {
                assert!(self.directories.iter().any(|directory| path.starts_with(directory)));
                let saved = self.save(what);
                counts.saved = if counts.unopened == 0 { saved } else { counts.saved.min(saved) };
                counts.unopened += 1;
            }
            Err(other) => panic!("{what}: {other}"),
            Ok(store) if check_all(&store, self.pairs, what, self.only(at)) => counts.told += 1,
            Ok(_) => counts.unchanged += 1,
        }
    }

    /// Returns the offset that errors must report. With several directories the damage is rebuilt
    /// from the others, and no error is required.
    fn only(&self, at: u64) -> Option<u64> {
        (self.directories.len() == 1).then_some(at)
    }

    /// Repairs the store and checks that each saved value once existed. Returns the number of saved
    /// pairs.
    fn save(&self, what: &str) -> u64 {
        let into = self.directories[0].with_extension("saved");
        let _ = fs::remove_dir_all(&into);
        let report = repair(self.directories, &into, &small(), |_| ());
        let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
        let store = open(&into, &small());
        for pair in store.range(..) {
            let (found, saved) = pair.unwrap_or_else(|error| panic!("{what}: {error}"));
            let is_right = |n: u32| key(n) == *found && value(n) == *saved;
            assert!(!self.is_written_once || (0..self.pairs).any(is_right), "{what}: {found:?}");
        }
        // One byte can cost a page; in the log, some hundred pairs may follow in that page's
        // groups.
        assert!(report.pairs > u64::from(self.pairs) / 2, "{what}: {} were saved", report.pairs);
        drop(store);
        let _ = fs::remove_dir_all(&into);
        report.pairs
    }
}

/// Returns whether a get reported damage. Checks that no get returns a wrong value.
fn check_all(store: &Store, pairs: u32, what: &str, at: Option<u64>) -> bool {
    let mut is_told = false;
    for n in 0..pairs + GONE {
        let right = (n < pairs).then(|| value(n));
        match store.get(&key(n)) {
            Ok(found) => assert_eq!(found, right, "{what}, key {n}"),
            Err(Error::Damaged { offset, .. }) => {
                assert_eq!(offset.map(|offset| offset / PAGE), at.map(|at| at / PAGE), "{what}");
                is_told = true;
            }
            Err(other) => panic!("{what}: {other}"),
        }
    }
    is_told
}

/// Flips bytes of a store in one directory.
fn flip(label: &str, directory: &Path, pairs: u32, is_written_once: bool) {
    let directories = &[directory.to_owned()];
    Target { label, directories, member: 0, pairs, is_written_once }.flip();
}

fn fill(store: &Store) {
    (0..PAIRS).for_each(|n| store.put(&key(n), &value(n)).expect("there is room"));
    store.settle();
}

#[test]
fn a_flipped_byte_is_told_or_does_not_matter() {
    let scratch = Scratch::new();
    let [old, copy] = ["old", "copy"].map(|name| scratch.path().join(name));
    let store = open(&old, &small());
    fill(&store);
    store.checkpoint(&copy, &small(), |_| ()).expect("there is room");
    store.close().expect("it can be made durable");
    flip("all of it flushed", &old, PAIRS, true);
    flip("a checkpoint", &copy, PAIRS, true);
}

#[test]
fn a_flipped_byte_of_the_log_is_told_or_does_not_matter() {
    let scratch = Scratch::new();
    let path = scratch.path().join("store");
    let store = open(&path, &small());
    // Less than a memtable, in many log groups.
    for n in 0..LOGGED {
        let durability = if n % 20 == 0 { Durability::Group } else { Durability::None };
        store.put_with(&key(n), &value(n), durability).expect("there is room");
    }
    store.close().expect("it can be made durable");
    flip("all of it in the log", &path, LOGGED, true);
}

/// A store with inline and separate values that were overwritten, deleted and compacted, and a log
/// that reuses its space.
#[test]
fn a_flipped_byte_of_a_store_that_was_long_in_use_is_told_or_does_not_matter() {
    for inline_up_to in [0, 300] {
        let scratch = Scratch::new();
        let path = scratch.path().join("store");
        let store = open(&path, &Options { inline_up_to, ..small() });
        for round in (0..4).rev() {
            for n in 0..PAIRS + GONE {
                let old = [&value(n)[..], &[round; 200]].concat();
                let value = if round == 0 { value(n) } else { old };
                store.put(&key(n), &value).expect("there is room");
            }
            store.compact().expect("there is room");
        }
        (PAIRS..PAIRS + GONE).for_each(|n| store.delete(&key(n)).expect("there is room"));
        store.settle();
        (0..PAIRS).step_by(7).for_each(|n| store.put(&key(n), &value(n)).expect("there is room"));
        store.close().expect("it can be made durable");
        flip(&format!("long in use, {inline_up_to} beside keys"), &path, PAIRS, false);
    }
}

/// The other directories have the damaged data: an error is not required, but no result may be
/// wrong.
#[test]
fn a_flipped_byte_of_one_of_three_directories_does_not_matter() {
    let scratch = Scratch::new();
    let directories = &scratch.directories(3)[..];
    let store = Store::open_over(directories, &small()).unwrap_or_else(|error| panic!("{error}"));
    fill(&store);
    (0..PAIRS).step_by(7).for_each(|n| store.put(&key(n), &value(n)).expect("there is room"));
    store.close().expect("it can be made durable");
    let label = "one of three directories";
    Target { label, directories, member: 1, pairs: PAIRS, is_written_once: true }.flip();
}

#[test]
fn a_flipped_byte_of_a_directory_s_own_words_is_told_or_does_not_matter() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    fill(&store);
    store.close().expect("it can be made durable");
    let image = Image::of(&data(scratch.path()));
    let path = scratch.path().join("LEVELHEAD");
    let text = fs::read(&path).expect("it is there");
    let (mut told, mut unchanged) = (0, 0);
    for number in seeds(wanted("LEVELHEAD_FLIPS").unwrap_or(5 * FLIPS)) {
        let rng = &mut Rng::derive(number, "words");
        let (at, by) = (rng.below(text.len() as u64) as usize, 1 + rng.below(255) as u8);
        let mut flipped = text.clone();
        flipped[at] ^= by;
        fs::write(&path, &flipped).expect("it can be written");
        let what = format!("flip {number}: byte {at} ^ {by}");
        match Store::open(scratch.path(), &small()) {
            Err(Error::Damaged { path: said, .. }) => {
                assert_eq!(said, path);
                told += 1;
            }
            Err(other) => panic!("{what}: {other}"),
            Ok(store) => {
                assert!(!check_all(&store, PAIRS, &what, None));
                unchanged += 1;
                drop(store);
                image.restore(&data(scratch.path()));
            }
        }
    }
    println!("what a directory says: {told} were told, {unchanged} did not matter");
}
