//! Directories that were replaced by nothing, by an older copy or in part: they are filled, and can
//! then stand in for another one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use faultfs::{Fails, Faults, Kind};
use levelhead::{DirectoryState, Error, Options, Store};

use crate::everything::pause;
use crate::scratch::{Scratch, by_threads, faulty, small};

/// The error number of a full disk.
const ENOSPC: i32 = 28;

fn key(n: u32) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

fn open(directories: &[PathBuf], options: &Options) -> Store {
    Store::open_over(directories, options).unwrap_or_else(|error| panic!("{error}"))
}

/// One run of the store, in which all keys get a new value.
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

/// Keeps the store open until all of its directories are complete.
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

/// Checks that any one directory may be lost.
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
        // Nothing is left to replace.
        fill(&directories, &replaces);
        // With two lost directories nothing can be recreated.
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
    // A file of another store is not touched.
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

fn refused(directories: &[PathBuf], options: &Options) -> Error {
    Store::open_over(directories, options).map(drop).expect_err("it is refused")
}

/// A store whose second directory is lost.
fn without_one(scratch: &Scratch) -> Vec<PathBuf> {
    let directories = scratch.directories(3);
    live(&directories, 1);
    fs::remove_dir_all(&directories[1]).expect("it is ours");
    directories
}

fn replaces() -> Options {
    Options { replace_lost: true, ..small() }
}

#[test]
fn nothing_is_made_for_a_store_that_somebody_has() {
    let scratch = Scratch::new();
    let directories = without_one(&scratch);
    let store = open(&directories, &small());
    assert!(matches!(refused(&directories, &replaces()), Error::InUse(_)));
    assert!(!directories[1].exists(), "it was made");
    drop(store);
    // A directory that has lost its LEVELHEAD is not written to, either.
    fill(&directories, &replaces());
    fs::remove_file(directories[0].join("LEVELHEAD")).expect("it is ours");
    let store = open(&directories, &Options { read_only: true, ..small() });
    assert!(matches!(refused(&directories, &small()), Error::InUse(_)));
    assert!(!directories[0].join("LEVELHEAD").exists(), "it was written");
    drop(store);
    fill(&directories, &small());
    check_without_each(&directories, 1);
}

#[test]
fn a_name_that_nobody_knows_is_not_made_anew() {
    let scratch = Scratch::new();
    let mut directories = scratch.directories(3);
    live(&directories, 1);
    let mistyped = scratch.path().join("d9");
    let meant = std::mem::replace(&mut directories[1], mistyped.clone());
    match refused(&directories, &replaces()) {
        Error::Missing(words) => assert!(words.contains("is the name right?"), "{words}"),
        other => panic!("{other:?}"),
    }
    assert!(!mistyped.exists(), "it was made");
    // It is recreated if `degraded` is set, too. An empty existing directory, such as a new disk,
    // is used as well.
    fill(&directories, &Options { degraded: true, ..replaces() });
    directories[1] = scratch.path().join("new disk");
    fs::create_dir(&directories[1]).expect("it is ours");
    fill(&directories, &replaces());
    check_without_each(&directories, 1);
    directories[1] = meant;
    fill(&directories, &small());
    check_without_each(&directories, 1);
}

#[test]
fn what_is_in_the_place_of_a_lost_file_stays() {
    let scratch = Scratch::new();
    let directories = without_one(&scratch);
    let (identity, data) = (directories[1].join("LEVELHEAD"), directories[1].join("data"));
    // Another program's files, also under the names of the store's temporary files.
    let (others, elsewhere) =
        (scratch.path().join("another's"), scratch.path().join("not mounted"));
    fs::write(&others, "text").expect("it is ours");
    fs::create_dir_all(directories[1].join("lost+found")).expect("it is ours");
    for part in [".data.part", ".LEVELHEAD.part"] {
        symlink(&others, directories[1].join(part)).expect("it is ours");
    }
    fill(&directories, &replaces());
    assert_eq!(fs::read_to_string(&others).expect("it is there"), "text");
    assert!(directories[1].join("lost+found").is_dir());
    // A link to a disk that is not mounted, with a LEVELHEAD beside it and without.
    for is_named in [true, false] {
        fs::remove_file(&data).expect("it is ours");
        symlink(&elsewhere, &data).expect("it is ours");
        if !is_named {
            fs::remove_file(&identity).expect("it is ours");
        }
        match refused(&directories, &replaces()) {
            Error::Invalid(words) => assert!(words.contains("move it away"), "{words}"),
            other => panic!("{other:?}"),
        }
        assert!(data.is_symlink() && identity.exists() == is_named, "it was made anew");
    }
    check(&open(&directories, &Options { read_only: true, ..small() }), 1);
}

#[test]
fn replacing_and_only_reading_are_not_asked_for_at_once() {
    let scratch = Scratch::new();
    let directories = without_one(&scratch);
    let both = Options { read_only: true, ..replaces() };
    assert!(matches!(refused(&directories, &both), Error::Invalid(_)));
    // Opening for reading ignores `replace_lost`.
    let store = Store::open_to_read(&directories, &replaces());
    check(&store.unwrap_or_else(|error| panic!("{error}")), 1);
    assert!(!directories[1].exists(), "it was made");
}

#[test]
fn a_directory_that_was_half_made_is_made() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    live(&directories, 1);
    let identity = fs::read(directories[1].join("LEVELHEAD")).expect("it is there");
    let all = ["LEVELHEAD", ".LEVELHEAD.part", ".data.part"];
    for (value, made) in
        (2..).zip([&all[..0], &all[..1], &all[1..2], &all[2..], &all[..], &all[1..]])
    {
        fs::remove_dir_all(&directories[1]).expect("it is ours");
        fs::create_dir(&directories[1]).expect("it is ours");
        for name in made {
            let half = if *name == "LEVELHEAD" { &identity[..] } else { b"# A Level" };
            fs::write(directories[1].join(name), half).expect("it is ours");
        }
        // Without `replace_lost` the store runs without the directory.
        live(&directories, value);
        assert!(!directories[1].join("data").exists(), "{made:?}");
        fill(&directories, &replaces());
        check_without_each(&directories, value);
    }
}

#[test]
fn a_directory_is_made_anew_once_its_disk_has_room() {
    let Some(fs) = faulty(1) else { return };
    let scratch = Scratch::new();
    let mut directories = scratch.directories(3);
    directories[1] = fs.path().join("d");
    let (usual, replaces) = (by_threads(), Options { replace_lost: true, ..by_threads() });
    // A store in one directory has no other directories to restore from: it would be empty.
    Store::open(&directories[0], &replaces).map(drop).expect_err("nothing to make it from");
    let store = open(&directories, &usual);
    (0..500).for_each(|n| store.put(&key(n), &[1; 300]).expect("there is room"));
    store.close().expect("it can be made durable");
    fs::remove_dir_all(&directories[1]).expect("it is ours");
    for kind in [Kind::Write, Kind::Sync, Kind::Name] {
        for after in 0..4 {
            let fails = vec![Fails { kind, after, times: u64::MAX, errno: ENOSPC }];
            fs.set_faults(Faults { fails, ..Faults::default() });
            let opened = Store::open_over(&directories, &replaces);
            if let Err(error) = &opened {
                let words = error.to_string();
                let is_named = words.contains(&fs.path().display().to_string());
                assert!(matches!(error, Error::Full(_)) && is_named, "{error:?}");
            }
            drop(opened);
            fs.set_faults(Faults::default());
            check(&open(&directories, &Options { read_only: true, ..by_threads() }), 1);
        }
    }
    fill(&directories, &replaces);
    check_without_each(&directories, 1);
}
