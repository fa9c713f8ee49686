//! Damaged, short and foreign files: an error that says where, or all of the truth, never a wrong answer and no panic.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use levelhead::{Error, Store};
use runtime::Rng;

use crate::scratch::{Scratch, open, small};

fn key(n: u32) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    (0..300).map(|i| (n + i) as u8).collect()
}

const PAIRS: u32 = 6_000;

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

/// Places of the file that have something in them.
fn used(file: &File) -> Vec<u64> {
    let blocks = file.metadata().expect("it is there").len() / 4096;
    let mut block = vec![0; 4096];
    let mut is_used = |n: &u64| {
        file.read_exact_at(&mut block, n * 4096).expect("it can be read");
        block.iter().any(|byte| *byte != 0)
    };
    (0..blocks).filter(|n| is_used(n)).collect()
}

/// Flips of the test below; `LEVELHEAD_FLIPS` asks for more.
const FLIPS: u32 = 30;

#[test]
fn a_flipped_byte_is_told_or_does_not_matter() {
    let scratch = Scratch::new();
    filled(scratch.path());
    let file = data(scratch.path());
    let used = used(&file);
    let rng = &mut Rng::derive(5, "flips");
    #[expect(clippy::disallowed_methods, reason = "how many flips a person wants")]
    let flips = std::env::var("LEVELHEAD_FLIPS").ok().and_then(|text| text.parse().ok());
    let (mut unopened, mut told) = (0, 0);
    for _ in 0..flips.unwrap_or(FLIPS) {
        let at = used[rng.below(used.len() as u64) as usize] * 4096 + rng.below(4096);
        // Opening writes: each flip begins with the same file.
        let copy = scratch.path().join("copy");
        std::fs::create_dir_all(&copy).expect("it can be made");
        for name in ["data", "LEVELHEAD"] {
            std::fs::copy(scratch.path().join(name), copy.join(name)).expect("it can be copied");
        }
        let file = data(&copy);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("it can be read");
        file.write_all_at(&[byte[0] ^ (1 + rng.below(255) as u8)], at).expect("it can be written");
        drop(file);
        match Store::open(&copy, &small()) {
            Err(Error::Damaged { path, .. }) => {
                assert!(path.starts_with(&copy));
                unopened += 1;
            }
            Err(other) => panic!("byte {at}: {other}"),
            Ok(store) => {
                for n in (0..PAIRS).step_by(7).chain(near(at)) {
                    match store.get(&key(n % PAIRS)) {
                        Ok(found) => {
                            assert_eq!(found, Some(value(n % PAIRS)), "byte {at}, key {n}");
                        }
                        Err(Error::Damaged { offset, .. }) => {
                            assert_eq!(offset.map(|offset| offset / 4096), Some(at / 4096));
                            told += 1;
                        }
                        Err(other) => panic!("byte {at}: {other}"),
                    }
                }
            }
        }
    }
    println!("{unopened} did not open, {told} gets were told");
}

/// Keys all over again, so that some are on the page that was hit.
fn near(at: u64) -> impl Iterator<Item = u32> {
    let first = (at / 300) as u32;
    (first..first + 40).chain((0..PAIRS).step_by(13))
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
    for (text, word) in [(format, "format 9"), (page, "contradict"), ("none".into(), "LEVELHEAD")] {
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
