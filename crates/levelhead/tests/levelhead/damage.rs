//! Truncated files, foreign files and full stores: errors with place and cause. (For flipped bytes
//! see `flips.rs`.)

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use levelhead::{Error, Store};

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
    let page = text.replace("page_bytes = 4096", "page_bytes = 4095");
    let (body, _) = text.split_at(text.rfind("# checksum").expect("it is the last line"));
    for (text, word) in [
        (page.as_str(), "its checksum is another"),
        (body, "ends before its checksum"),
        ("none", "LEVELHEAD"),
    ] {
        std::fs::write(&path, text).expect("it can be written");
        match Store::open(scratch.path(), &small()) {
            Err(error @ Error::Damaged { .. }) => {
                assert!(error.to_string().contains(word), "{error}");
            }
            other => panic!("{:?}", other.map(drop)),
        }
    }
    let later = body.replace("format = 2", "format = 9");
    let sealed = format!("{later}# checksum {:08x}\n", crc32c::crc32c(later.as_bytes()));
    std::fs::write(&path, sealed).expect("it can be written");
    match Store::open(scratch.path(), &small()) {
        Err(Error::Invalid(words)) => assert!(words.contains("format 9"), "{words}"),
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "room is made in the background")]
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
    // Garbage collection continues in the background.
    let mut refused = 0;
    while let Err(error) = store.put(b"again", b"there is room again") {
        assert!(matches!(error, Error::Full(_)), "{error}");
        refused += 1;
        assert!(refused < 6_000, "there is room");
        std::thread::sleep(Duration::from_millis(5));
    }
    for n in put / 2..put {
        assert_eq!(store.get(&key(n)).expect("it is there").as_deref(), Some(&big[..]));
    }
}
