//! Missing directories, with names that the other directories know and names that they do not know;
//! and stores that are only read.

use std::fs;
use std::path::{Path, PathBuf};

use levelhead::{Batch, Error, Options, Store};

use crate::scratch::{Scratch, small};

const KEYS: u32 = 3_000;

fn key(n: u32) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

fn open(directories: &[PathBuf], options: &Options) -> Store {
    Store::open_over(directories, options).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(directories: &[PathBuf], options: &Options) -> String {
    match Store::open_over(directories, options) {
        Err(Error::Missing(words)) => words,
        other => panic!("{:?}", other.map(drop)),
    }
}

/// Puts all pairs; the last ones are only in the log.
fn fill(directories: &[PathBuf]) {
    let store = open(directories, &small());
    for n in 0..KEYS {
        store.put(&key(n), &[n as u8; 300]).expect("there is room");
    }
    store.close().expect("it can be made durable");
}

fn check(store: &Store) {
    for n in 0..KEYS {
        let found = store.get(&key(n)).unwrap_or_else(|error| panic!("key {n}: {error}"));
        assert_eq!(found, Some(vec![n as u8; 300]), "key {n}");
    }
}

fn contents(directories: &[PathBuf]) -> Vec<Vec<u8>> {
    let names = ["data", "LEVELHEAD"];
    let files = directories.iter().flat_map(|path| names.map(|name| path.join(name)));
    files.map(|file| fs::read(file).expect("it is there")).collect()
}

fn moved(from: &Path, to: &Path) {
    fs::rename(from, to).expect("both are ours");
}

#[test]
fn who_only_reads_without_a_directory_leaves_the_others_as_they_are() {
    let scratch = Scratch::new();
    let (directories, elsewhere) = (scratch.directories(3), scratch.path().join("elsewhere"));
    fill(&directories);
    moved(&directories[2], &elsewhere);
    assert_eq!(Store::lost_in(&directories), directories[2..]);
    let before = contents(&directories[..2]);
    let store = open(&directories, &Options { read_only: true, ..small() });
    check(&store);
    assert_eq!(store.range(..).count(), KEYS as usize);
    assert_eq!(store.verify(|_| ()).expect("it can be read").pairs, u64::from(KEYS));
    assert!(matches!(store.put(b"a", b"1"), Err(Error::Invalid(_))));
    let mut batch = Batch::new();
    batch.delete(b"a");
    assert!(matches!(store.write(&batch), Err(Error::Invalid(_))));
    assert!(matches!(store.compact(), Err(Error::Invalid(_))));
    store.settle();
    store.close().expect("there is nothing to make durable");
    assert!(contents(&directories[..2]) == before, "something was written");
    // So the directory that was away can still stand in for the next loss.
    moved(&elsewhere, &directories[2]);
    fs::remove_dir_all(&directories[1]).expect("it is ours");
    check(&open(&directories, &small()));
}

#[test]
fn a_store_that_is_only_read_is_not_written_to_and_not_made() {
    let scratch = Scratch::new();
    for members in [1, 3] {
        let directories: Vec<PathBuf> = (0..members)
            .map(|member| scratch.path().join(format!("{member} of {members}")))
            .collect();
        let read_only = Options { read_only: true, ..small() };
        assert!(refused(&directories, &read_only).contains("no store"));
        fill(&directories);
        let before = contents(&directories);
        let store = open(&directories, &read_only);
        check(&store);
        store.settle();
        drop(store);
        assert!(contents(&directories) == before, "something was written");
    }
}

#[test]
fn a_directory_that_does_not_exist_is_lost_only_by_a_name_that_the_others_know() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    fill(&directories);
    let before = contents(&directories);
    let mistyped = [&directories[..2], &[scratch.path().join("d9")]].concat();
    let words = refused(&mistyped, &small());
    assert!(words.contains("d9 does not exist: is the name right?"), "{words}");
    let meant = directories[2].display().to_string();
    assert!(words.contains(&meant) && words.contains("`degraded`"), "{words}");
    assert!(contents(&directories) == before && !mistyped[2].exists());
    // Another path to the same place is recognized.
    let elsewhere = scratch.path().join("elsewhere");
    moved(&directories[2], &elsewhere);
    let same = [&directories[..2], &[directories[0].join("../d2")]].concat();
    let store = open(&same, &small());
    assert_eq!(store.lost(), same[2..]);
    check(&store);
    drop(store);
    // With `degraded`, any name is accepted.
    let store = open(&mistyped, &Options { degraded: true, ..small() });
    assert_eq!(store.lost(), mistyped[2..]);
    check(&store);
}

#[test]
fn a_store_that_was_moved_goes_on_without_a_directory_by_its_new_name() {
    let scratch = Scratch::new();
    let place = |name: &str| -> Vec<PathBuf> {
        ["a", "b", "c"].map(|member| scratch.path().join(name).join(member)).to_vec()
    };
    let (old, new) = (place("old"), place("new"));
    fill(&old);
    moved(&scratch.path().join("old"), &scratch.path().join("new"));
    drop(open(&new, &small()));
    fs::remove_dir_all(&new[0]).expect("it is ours");
    check(&open(&new, &small()));
}

#[test]
fn too_many_that_are_away_are_named_and_so_is_what_to_do() {
    let scratch = Scratch::new();
    let (directories, elsewhere) = (scratch.directories(3), scratch.path().join("elsewhere"));
    fill(&directories);
    moved(&directories[2], &elsewhere);
    let store = open(&directories, &small());
    for n in 0..KEYS {
        store.put(&key(n), b"new").expect("it goes on");
    }
    store.close().expect("it can be made durable");
    moved(&elsewhere, &directories[2]);
    fs::remove_dir_all(&directories[1]).expect("it is ours");
    let words = refused(&directories, &small());
    let [_, gone, behind] =
        [0, 1, 2].map(|member: usize| directories[member].display().to_string());
    assert!(words.contains(&format!("{gone} is gone, {behind} lacks what")), "{words}");
    assert!(words.contains("bring back") && words.contains("`levelhead repair`"), "{words}");
}
