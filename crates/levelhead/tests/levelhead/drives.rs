//! Stores on drives without file systems: loop devices, if this process may create them.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use levelhead::{Durability, Error, Options, Store, Windows};

use crate::scratch::{Scratch, small};

/// A loop device over a file, detached on drop.
struct Drive(PathBuf);

impl Drive {
    /// Creates a drive of `bytes` bytes. Returns `None`, with a message, if loop devices are not
    /// available.
    fn new(scratch: &Scratch, name: &str, bytes: u64) -> Option<Self> {
        let file = scratch.path().join(name);
        let made = OpenOptions::new().create(true).truncate(false).write(true).open(&file);
        made.and_then(|file| file.set_len(bytes)).expect("there is room");
        let losetup = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        let why = match losetup {
            Ok(done) if done.status.success() => {
                let path = String::from_utf8(done.stdout).expect("a path");
                return Some(Self(path.trim().into()));
            }
            Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        eprintln!("left out, because no loop device is to be had here: {why}");
        None
    }

    fn overwrite(&self, bytes: &[u8], at: u64) {
        let file = OpenOptions::new().write(true).open(&self.0).expect("it is ours");
        file.write_all_at(bytes, at).and_then(|()| file.sync_all()).expect("it takes writes");
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

fn put(store: &Store, keys: std::ops::Range<u32>) {
    for n in keys {
        store.put(&key(n), &[n as u8; 400]).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn check(store: &Store, keys: std::ops::Range<u32>) {
    for n in keys {
        let found = store.get(&key(n)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found, Some(vec![n as u8; 400]), "key {n}");
    }
}

fn open(paths: &[&Path], options: &Options) -> Store {
    Store::open_over(paths, options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_drive_is_a_place_for_a_store() {
    let scratch = Scratch::new();
    let Some(drive) = Drive::new(&scratch, "drive", 100 << 20) else { return };
    let path: &Path = &drive.0;
    assert!(matches!(Store::is_in(&[path]), Ok(false)));
    let all_of_it = Options { capacity_bytes: 1 << 40, ..small() };
    let store = open(&[path], &all_of_it);
    assert!(store.inside().capacity_bytes <= 100 << 20);
    put(&store, 0..8_000);
    match Store::open(path, &small()) {
        Err(Error::InUse(whose)) => assert_eq!(whose, path),
        other => panic!("{:?}", other.map(drop)),
    }
    store.settle();
    store.close().unwrap_or_else(|error| panic!("{error}"));
    assert!(path.exists() && matches!(Store::is_in(&[path]), Ok(true)));
    let store = open(&[path], &small());
    check(&store, 0..8_000);
    assert!(store.verify(|_| ()).expect("it can be read").findings.is_empty());
    drop(store);
    // The drive's identity has a checksum.
    drive.overwrite(b"7", 60);
    assert!(matches!(Store::open(path, &small()), Err(Error::Damaged { .. })));
}

#[test]
fn a_drive_that_has_something_on_it_is_not_touched() {
    let scratch = Scratch::new();
    let Some(drive) = Drive::new(&scratch, "drive", 80 << 20) else { return };
    // The position of ext4's superblock.
    drive.overwrite(b"precious", 1024);
    match Store::open(&drive.0, &small()) {
        Err(Error::Invalid(words)) => assert!(words.contains("something on it"), "{words}"),
        other => panic!("{:?}", other.map(drop)),
    }
    drive.overwrite(&[0; 8], 1024);
    drop(open(&[&drive.0], &small()));
    let Some(short) = Drive::new(&scratch, "short", 32 << 20) else { return };
    match Store::open(&short.0, &small()) {
        Err(Error::Invalid(words)) => assert!(words.contains("at least"), "{words}"),
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
fn a_fresh_drive_takes_the_place_of_a_lost_one_with_windows() {
    let scratch = Scratch::new();
    let drive = |name| Drive::new(&scratch, name, 80 << 20);
    let (Some(a), Some(b), Some(c)) = (drive("a"), drive("b"), drive("c")) else { return };
    let rails = Options { windows: Windows::Rails, ..small() };
    let store = open(&[&a.0, &b.0, &c.0], &rails);
    put(&store, 0..8_000);
    store.settle();
    put(&store, 8_000..9_000);
    store.close().unwrap_or_else(|error| panic!("{error}"));
    let Some(fresh) = drive("fresh") else { return };
    // A drive with other data is refused. A blank one is filled, and counts as a member the next
    // time.
    fresh.overwrite(b"precious", 70_000);
    let refused = Store::open_over(&[&a.0, &fresh.0, &c.0], &rails).map(drop);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    fresh.overwrite(&[0; 8], 70_000);
    let store = open(&[&a.0, &fresh.0, &c.0], &rails);
    check(&store, 0..9_000);
    put(&store, 9_000..12_000);
    store.put_with(b"last", b"one", Durability::Each).unwrap_or_else(|error| panic!("{error}"));
    store.close().unwrap_or_else(|error| panic!("{error}"));
    let store = open(&[&a.0, &fresh.0, &c.0], &small());
    check(&store, 0..12_000);
}
