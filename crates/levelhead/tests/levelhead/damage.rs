//! Damaged, short and foreign files: an error that says where, or all of the truth, never a wrong answer and no panic.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use levelhead::{Durability, Error, Options, Store};
use runtime::Rng;

use crate::scratch::{Scratch, open, small, wanted};

fn key(n: u32) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    (0..300).map(|i| (n + i) as u8).collect()
}

const PAIRS: u32 = 6_000;
const LOGGED: u32 = 2_000;
/// Keys behind those of a store that are not there, or not any more.
const GONE: u32 = 500;

fn filled(path: &Path) {
    let store = open(path, &small());
    for n in 0..PAIRS {
        store.put(&key(n), &value(n)).expect("there is room");
    }
    store.settle();
    store.close().expect("it can be made durable");
}

fn data(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path.join("data")).expect("it is there")
}

/// What a file has in it: blocks that are not zeros, and how long it is.
struct Image {
    blocks: Vec<(u64, Vec<u8>)>,
    bytes: u64,
}

impl Image {
    fn of(file: &File) -> Self {
        let bytes = file.metadata().expect("it is there").len();
        let block = |n: u64| {
            let mut block = vec![0; 4096];
            file.read_exact_at(&mut block, n * 4096).expect("it can be read");
            (n * 4096, block)
        };
        let is_used = |(_, block): &(u64, Vec<u8>)| block.iter().any(|byte| *byte != 0);
        Self { blocks: (0..bytes / 4096).map(block).filter(is_used).collect(), bytes }
    }

    /// Makes a file this again.
    fn restore(&self, file: &File) {
        file.set_len(0).and_then(|()| file.set_len(self.bytes)).expect("it can be cut");
        for (offset, block) in &self.blocks {
            file.write_all_at(block, *offset).expect("it can be written");
        }
    }
}

/// Flips of a test below; `LEVELHEAD_FLIPS` asks for more.
const FLIPS: u32 = 30;

/// Flips a byte of a store's data again and again, and looks.
fn flip_data(label: &str, directory: &Path, pairs: u32) {
    let image = Image::of(&data(directory));
    let rng = &mut Rng::derive(5, label);
    let (mut unopened, mut told, mut unchanged) = (0, 0, 0);
    for _ in 0..wanted("LEVELHEAD_FLIPS").unwrap_or(FLIPS) {
        let (block, bytes) = &image.blocks[rng.below(image.blocks.len() as u64) as usize];
        let (within, by) = (rng.below(4096), 1 + rng.below(255) as u8);
        let at = block + within;
        // Opening writes: each flip begins with the same file.
        let file = data(directory);
        image.restore(&file);
        file.write_all_at(&[bytes[within as usize] ^ by], at).expect("it can be written");
        drop(file);
        let told_of_this = match Store::open(directory, &small()) {
            Err(Error::Damaged { path, .. }) => {
                assert!(path.starts_with(directory));
                unopened += 1;
                continue;
            }
            Err(other) => panic!("{label}, byte {at}: {other}"),
            Ok(store) => check_all(&store, pairs, &format!("{label}, byte {at} ^ {by}"), at),
        };
        told += u32::from(told_of_this);
        unchanged += u32::from(!told_of_this);
    }
    println!(
        "{label}: {unopened} did not open, {told} were told by gets, {unchanged} did not matter"
    );
}

/// Whether a get told of damage. None may give a wrong answer.
fn check_all(store: &Store, pairs: u32, what: &str, at: u64) -> bool {
    let mut is_told = false;
    for n in 0..pairs + GONE {
        let right = (n < pairs).then(|| value(n));
        match store.get(&key(n)) {
            Ok(found) => assert_eq!(found, right, "{what}, key {n}"),
            Err(Error::Damaged { offset, .. }) => {
                assert_eq!(offset.map(|offset| offset / 4096), Some(at / 4096), "{what}");
                is_told = true;
            }
            Err(other) => panic!("{what}: {other}"),
        }
    }
    is_told
}

#[test]
fn a_flipped_byte_is_told_or_does_not_matter() {
    let scratch = Scratch::new();
    filled(scratch.path());
    flip_data("all of it flushed", scratch.path(), PAIRS);
}

#[test]
fn a_flipped_byte_of_the_log_is_told_or_does_not_matter() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    // Less than a memtable, in many groups.
    for n in 0..LOGGED {
        let durability = if n % 20 == 0 { Durability::Group } else { Durability::None };
        store.put_with(&key(n), &value(n), durability).expect("there is room");
    }
    store.close().expect("it can be made durable");
    flip_data("all of it in the log", scratch.path(), LOGGED);
}

/// Values beside their keys and apart from them, written over, deleted, compacted; and a log that goes round in room that it had before.
#[test]
fn a_flipped_byte_of_a_store_that_was_long_in_use_is_told_or_does_not_matter() {
    for inline_up_to in [0, 300] {
        let scratch = Scratch::new();
        let store = open(scratch.path(), &Options { inline_up_to, ..small() });
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
        flip_data(&format!("long in use, {inline_up_to} beside keys"), scratch.path(), PAIRS);
    }
}

#[test]
fn a_flipped_byte_of_a_directory_s_own_words_is_told_or_does_not_matter() {
    let scratch = Scratch::new();
    filled(scratch.path());
    let image = Image::of(&data(scratch.path()));
    let path = scratch.path().join("LEVELHEAD");
    let text = std::fs::read(&path).expect("it is there");
    let rng = &mut Rng::derive(6, "words");
    let (mut told, mut unchanged) = (0, 0);
    for _ in 0..wanted("LEVELHEAD_FLIPS").unwrap_or(FLIPS) {
        let (at, by) = (rng.below(text.len() as u64) as usize, 1 + rng.below(255) as u8);
        let mut flipped = text.clone();
        flipped[at] ^= by;
        std::fs::write(&path, &flipped).expect("it can be written");
        match Store::open(scratch.path(), &small()) {
            Err(Error::Damaged { path: said, .. }) => {
                assert_eq!(said, path);
                told += 1;
            }
            Err(other) => panic!("byte {at} ^ {by}: {other}"),
            Ok(store) => {
                assert!(!check_all(&store, PAIRS, &format!("byte {at} ^ {by}"), 0));
                unchanged += 1;
                drop(store);
                image.restore(&data(scratch.path()));
            }
        }
    }
    println!("what a directory says: {told} were told, {unchanged} did not matter");
}

#[test]
fn a_file_that_is_cut_short_is_told() {
    let scratch = Scratch::new();
    filled(scratch.path());
    data(scratch.path()).set_len(3 << 20).expect("it can be cut");
    match Store::open(scratch.path(), &small()) {
        Err(Error::Damaged { path, offset, what }) => {
            assert_eq!((path, offset), (scratch.path().join("data"), Some(3 << 20)));
            assert!(what.contains("ends here"), "{what}");
        }
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
fn a_directory_s_own_words_are_checked() {
    let scratch = Scratch::new();
    filled(scratch.path());
    let path = scratch.path().join("LEVELHEAD");
    let text = std::fs::read_to_string(&path).expect("it is there");
    let format = text.replace("format = 1", "format = 9");
    let page = text.replace("page_bytes = 4096", "page_bytes = 4095");
    for (text, word) in [(format, "format 9"), (page, "checksum"), ("none".into(), "LEVELHEAD")] {
        std::fs::write(&path, text).expect("it can be written");
        match Store::open(scratch.path(), &small()) {
            Err(error @ Error::Damaged { .. }) => {
                assert!(error.to_string().contains(word), "{error}");
            }
            other => panic!("{:?}", other.map(drop)),
        }
    }
}

#[test]
fn a_full_store_says_so_and_takes_deletes() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    let big = vec![7; 60_000];
    let mut put = 0;
    let full = loop {
        match store.put(&key(put), &big) {
            Ok(()) => put += 1,
            Err(error) => break error,
        }
        assert!(put < 2_000, "64 MiB hold no more");
    };
    assert!(matches!(full, Error::Full(_)), "{full}");
    for n in 0..put / 2 {
        store.delete(&key(n)).expect("deletes make room");
    }
    store.settle();
    store.put(b"again", b"there is room again").expect("there is room");
    for n in put / 2..put {
        assert_eq!(store.get(&key(n)).expect("it is there").as_deref(), Some(&big[..]));
    }
}
