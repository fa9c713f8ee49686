//! Copies of a store: permitted places, contents, and the untouched original.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use levelhead::{Error, Options, Store, repair};

use crate::scratch::{Scratch, small};

const KEYS: u32 = 800;

fn key(n: u32) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

fn open(directories: &[PathBuf], options: &Options) -> Store {
    Store::open_over(directories, options).unwrap_or_else(|error| panic!("{error}"))
}

fn fill(directories: &[PathBuf], options: &Options) {
    let store = open(directories, options);
    (0..KEYS).for_each(|n| store.put(&key(n), &[n as u8; 300]).expect("there is room"));
    store.close().expect("it can be made durable");
}

fn check(store: &Store) {
    for n in 0..KEYS {
        let found = store.get(&key(n)).unwrap_or_else(|error| panic!("key {n}: {error}"));
        assert_eq!(found, Some(vec![n as u8; 300]), "key {n}");
    }
}

/// Returns the contents of directories, by path.
fn contents(directories: &[PathBuf]) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in directories.iter().flat_map(|path| fs::read_dir(path).expect("it is there")) {
        let path = entry.expect("it can be read").path();
        let bytes = fs::read(&path).unwrap_or_default();
        all.push((path, bytes));
    }
    all.sort();
    all
}

#[test]
fn a_store_that_is_only_read_is_copied_and_left_as_it_is() {
    for members in [1, 3] {
        let scratch = Scratch::new();
        let (directories, copy) = (scratch.directories(members), scratch.path().join("copy"));
        fill(&directories, &small());
        let before = contents(&directories);
        // The same read-only options are used for the copy.
        let read_only = Options { read_only: true, ..small() };
        let store = open(&directories, &read_only);
        let report = store.checkpoint(&copy, &read_only, |_| ());
        let report = report.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.pairs, u64::from(KEYS));
        drop(store);
        check(&Store::open(&copy, &small()).expect("it is a store"));
        let saved = scratch.path().join("saved");
        let report = repair(&directories, &saved, &read_only, |_| ());
        assert_eq!(report.unwrap_or_else(|error| panic!("{error}")).pairs, u64::from(KEYS));
        check(&Store::open(&saved, &small()).expect("it is a store"));
        assert!(contents(&directories) == before, "something was written");
    }
}

fn is_refused<T>(made: Result<T, Error>, target: &Path) {
    match made.map(drop) {
        Err(Error::Invalid(words)) => assert!(words.contains("the store's own"), "{words}"),
        other => panic!("{}: {other:?}", target.display()),
    }
}

#[test]
fn a_copy_is_not_made_within_the_store() {
    let scratch = Scratch::new();
    let (directories, link) = (scratch.directories(3), scratch.path().join("link"));
    fill(&directories, &small());
    fs::remove_dir_all(&directories[2]).expect("it is ours");
    symlink(&directories[1], &link).expect("it can be made");
    let before = contents(&directories[..2]);
    let store = open(&directories, &Options { read_only: true, ..small() });
    let targets = directories.iter().chain([&link]).flat_map(|own| {
        [own.clone(), own.join("copy"), own.join("../d0/deep/copy"), own.join("a/b/c")]
    });
    for target in targets.collect::<Vec<_>>() {
        is_refused(store.checkpoint(&target, &small(), |_| ()), &target);
    }
    drop(store);
    for target in [&directories[0], &directories[2], &directories[2].join("copy")] {
        is_refused(repair(&directories, target, &small(), |_| ()), target);
    }
    assert!(!directories[2].exists(), "one that is lost was made");
    assert!(contents(&directories[..2]) == before, "something was written");
    // A directory whose name merely has the same prefix is permitted.
    let beside = scratch.path().join("d0 copy");
    repair(&directories, &beside, &small(), |_| ()).unwrap_or_else(|error| panic!("{error}"));
}

/// Its pages would be removed before they were read.
#[test]
fn what_is_left_of_an_unfinished_store_is_not_saved_to_itself() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("d");
    fill(std::slice::from_ref(&directory), &small());
    let identity = directory.join("LEVELHEAD");
    fs::write(&identity, "nothing").expect("it is ours");
    let before = contents(std::slice::from_ref(&directory));
    is_refused(repair(&[&directory], &directory, &small(), |_| ()), &directory);
    assert!(contents(std::slice::from_ref(&directory)) == before, "something was written");
}

#[test]
fn a_copy_holds_what_the_store_may_hold() {
    let any = Options { capacity_bytes: 0, ..small() };
    for (members, capacity, least) in [(1, 40, 40), (3, 16, 32), (1, 1, 16)] {
        let scratch = Scratch::new();
        let directories = scratch.directories(members);
        fill(&directories, &Options { capacity_bytes: capacity << 30, ..small() });
        let [copy, saved, salvaged] =
            ["copy", "saved", "salvaged"].map(|name| scratch.path().join(name));
        let store = open(&directories, &any);
        store.checkpoint(&copy, &any, |_| ()).unwrap_or_else(|error| panic!("{error}"));
        drop(store);
        repair(&directories, &saved, &any, |_| ()).unwrap_or_else(|error| panic!("{error}"));
        for directory in &directories {
            fs::remove_file(directory.join("LEVELHEAD")).expect("it is ours");
        }
        repair(&directories, &salvaged, &any, |_| ()).unwrap_or_else(|error| panic!("{error}"));
        for copy in [copy, saved, salvaged] {
            let copy = Store::open(&copy, &any).expect("it is a store");
            let has = copy.inside().capacity_bytes >> 30;
            assert_eq!(has, least, "of {members} times {capacity} GiB");
        }
    }
}

/// Options for creating the new store do not apply to the damaged one.
#[test]
fn a_store_is_saved_to_one_of_another_form_and_is_left_as_it_is() {
    let scratch = Scratch::new();
    let (directories, saved) = (scratch.directories(3), scratch.path().join("saved"));
    fill(&directories, &small());
    // One directory is lost.
    let lost = scratch.path().join("lost");
    fs::rename(&directories[2], &lost).expect("both are ours");
    let before = contents(&directories[..2]);
    let other = Options {
        page_bytes: 8 << 10,
        inline_up_to: 100,
        preallocate: true,
        replace_lost: true,
        ..small()
    };
    let report = repair(&directories, &saved, &other, |_| ());
    assert_eq!(report.unwrap_or_else(|error| panic!("{error}")).pairs, u64::from(KEYS));
    assert!(!directories[2].exists(), "nothing is made for it");
    assert!(contents(&directories[..2]) == before, "something was written");
    let says = fs::read_to_string(saved.join("LEVELHEAD")).expect("it is there");
    assert!(says.contains("page_bytes = 8192") && says.contains("inline_up_to = 100"), "{says}");
    check(&Store::open(&saved, &small()).expect("it is a store"));
    // A blank directory is not filled, either: it could have the last copy of some data.
    fs::rename(&lost, &directories[2]).expect("both are ours");
    let data = directories[2].join("data");
    let length = data.metadata().expect("it is there").len();
    let blank = fs::File::create(&data).and_then(|file| file.set_len(length));
    blank.expect("it is ours");
    let before = contents(&directories);
    let again = scratch.path().join("again");
    repair(&directories, &again, &small(), |_| ()).unwrap_or_else(|error| panic!("{error}"));
    assert!(contents(&directories) == before, "something was written");
}
