//! Directories that were replaced, by nothing, by an older copy or in part: they are filled, and stand in for another one then.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use levelhead::{DirectoryState, Error, Options, Store};

use crate::everything::pause;
use crate::scratch::{Scratch, small};

fn key(n: u32) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

fn open(directories: &[PathBuf], options: &Options) -> Store {
    Store::open_over(directories, options).unwrap_or_else(|error| panic!("{error}"))
}

/// A life of the store, in which keys get a new value.
fn live(directories: &[PathBuf], value: u8) {
    let store = open(directories, &small());
    (0..500).for_each(|n| store.put(&key(n), &[value; 300]).expect("there is room"));
    store.close().expect("it can be made durable");
}

fn check(store: &Store, value: u8) {
    for n in 0..500 {
        let found = store.get(&key(n)).unwrap_or_else(|error| panic!("key {n}: {error}"));
        assert_eq!(found, Some(vec![value; 300]), "key {n}");
    }
}

/// The store is open until all of its directories have all.
fn fill(directories: &[PathBuf], options: &Options) {
    let store = open(directories, options);
    let is_whole = |(_, state): &(PathBuf, DirectoryState)| *state == DirectoryState::Whole;
    for _ in 0..6_000 {
        if store.directories().iter().all(is_whole) {
            let report = store.verify(|_| ()).expect("it can be read");
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            return store.close().map(drop).expect("it can be made durable");
        }
        pause(Duration::from_millis(5));
    }
    panic!("it is not filled within half a minute: {:?}", store.directories());
}

/// Any directory may be lost.
fn check_without_each(directories: &[PathBuf], value: u8) {
    for directory in directories {
        let aside = directory.with_extension("aside");
        fs::rename(directory, &aside).expect("both are ours");
        check(&open(directories, &Options { read_only: true, ..small() }), value);
        fs::rename(&aside, directory).expect("both are ours");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it is ours");
    for name in ["data", "LEVELHEAD"] {
        fs::copy(from.join(name), to.join(name)).expect("both are ours");
    }
}

#[test]
fn an_older_copy_of_a_directory_is_filled_before_it_stands_in_for_another_one() {
    for lives in 1..4 {
        let scratch = Scratch::new();
        let directories = scratch.directories(3);
        live(&directories, 0);
        let aside = scratch.path().join("copy");
        copy(&directories[2], &aside);
        (1..=lives).for_each(|value| live(&directories, value));
        fs::remove_dir_all(&directories[2]).expect("it is ours");
        fs::rename(&aside, &directories[2]).expect("both are ours");
        fill(&directories, &small());
        live(&directories, 9);
        check_without_each(&directories, 9);
    }
}

#[test]
fn a_directory_that_is_lost_is_made_anew_where_that_is_asked_for() {
    let replaces = Options { replace_lost: true, ..small() };
    for is_emptied in [false, true] {
        let scratch = Scratch::new();
        let directories = scratch.directories(3);
        live(&directories, 1);
        fs::remove_dir_all(&directories[1]).expect("it is ours");
        if is_emptied {
            fs::create_dir(&directories[1]).expect("it is ours");
        }
        live(&directories, 2);
        assert_eq!(Store::lost_in(&directories), directories[1..2], "nobody asked for it");
        fill(&directories, &replaces);
        live(&directories, 3);
        check_without_each(&directories, 3);
        // There is nothing to replace any more.
        fill(&directories, &replaces);
        // Of two that are lost nothing can be made.
        directories[1..].iter().for_each(|it| fs::remove_dir_all(it).expect("it is ours"));
        let refused = Store::open_over(&directories, &replaces);
        assert!(matches!(refused, Err(Error::Missing(_))), "{:?}", refused.map(drop));
        assert!(!directories[1].exists(), "nothing was made");
    }
}

#[test]
fn what_a_directory_is_is_written_again_beside_its_pages() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    live(&directories, 1);
    let identity = directories[0].join("LEVELHEAD");
    let before = fs::read(&identity).expect("it is there");
    fs::remove_file(&identity).expect("it is ours");
    live(&directories, 2);
    assert_eq!(fs::read(&identity).expect("it is there again"), before);
    check_without_each(&directories, 2);
    // What is somebody else's is not touched.
    fs::remove_file(&identity).expect("it is ours");
    fs::copy(directories[1].join("data"), directories[0].join("data")).expect("both are ours");
    let others = fs::read(directories[0].join("data")).expect("it is there");
    match Store::open_over(&directories, &small()) {
        Err(Error::Invalid(words)) => assert!(words.contains("move it away"), "{words}"),
        other => panic!("{:?}", other.map(drop)),
    }
    assert!(fs::read(directories[0].join("data")).expect("it is there") == others);
}

#[test]
fn one_directory_that_is_damaged_is_named_with_what_to_do() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    live(&directories, 1);
    for (name, damaged) in [("LEVELHEAD", "x"), ("LEVELHEAD", ""), ("data", ""), ("data", "x")] {
        let path = directories[0].join(name);
        let before = fs::read(&path).expect("it is there");
        fs::write(&path, damaged).expect("it is ours");
        match Store::open_over(&directories, &small()) {
            Err(Error::Damaged { what, .. }) => {
                let way_out = format!("move {} away", directories[0].display());
                assert!(what.contains(&way_out), "{name}: {what}");
            }
            other => panic!("{name}: {:?}", other.map(drop)),
        }
        let aside = scratch.path().join("aside");
        fs::rename(&directories[0], &aside).expect("both are ours");
        check(&open(&directories, &Options { read_only: true, ..small() }), 1);
        fs::rename(&aside, &directories[0]).expect("both are ours");
        fs::write(&path, before).expect("it is ours");
    }
    check(&open(&directories, &small()), 1);
}
