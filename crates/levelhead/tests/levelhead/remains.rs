//! Repair of stores over three directories that do not open: because the headers of two are
//! damaged, or because a file is truncated, belongs to another store, or cannot be read.

use std::fs;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use faultfs::{Fails, Faults, Kind};
use levelhead::{Error, Options, Report, Store, repair};

use crate::failing::{mend, three};
use crate::scratch::{Scratch, by_threads, small};

const KEYS: u32 = 3_000;
const EIO: i32 = 5;
/// The extent size of a store of 64 MiB, in bytes. On each of several files, each extent starts
/// with a header.
const EXTENT: u64 = 1 << 20;

fn key(n: u32) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 400 + n as usize % 300]
}

/// Puts all pairs; the last ones are only in the log.
fn fill(directories: &[PathBuf], options: &Options) {
    let store = Store::open_over(directories, options).expect("it can be made");
    (0..KEYS).for_each(|n| store.put(&key(n), &value(n)).expect("there is room"));
    store.settle();
    (KEYS - 300..KEYS).for_each(|n| store.put(&key(n), &value(n)).expect("there is room"));
    store.close().expect("it can be made durable");
}

fn filled(scratch: &Scratch) -> Vec<PathBuf> {
    let directories = scratch.directories(3);
    fill(&directories, &small());
    directories
}

/// Repairs the store and checks that all pairs are saved.
fn save(directories: &[PathBuf], into: &Path) -> Report {
    let report = repair(directories, into, &small(), |_| ());
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.pairs, u64::from(KEYS), "{:?}", report.salvaged);
    let store = Store::open(into, &small()).expect("it is a store");
    for n in 0..KEYS {
        assert_eq!(store.get(&key(n)).expect("it is whole"), Some(value(n)), "key {n}");
    }
    report
}

fn error_of(directories: &[PathBuf]) -> Error {
    Store::open_over(directories, &small()).map(drop).expect_err("it does not open")
}

/// Destroys the header of each extent of a file, and nothing else.
fn spoil_headers(data: &Path) {
    let file = fs::OpenOptions::new().write(true).open(data).expect("it is there");
    let bytes = file.metadata().expect("it is there").len();
    for at in (0..bytes).step_by(EXTENT as usize) {
        file.write_all_at(&[0xa5; 512], at).expect("it is ours");
    }
}

/// The contents of extents are not recorded anywhere, but no page is damaged.
#[test]
fn pages_are_saved_that_lie_where_nothing_says_what_they_are() {
    let scratch = Scratch::new();
    let directories = filled(&scratch);
    for (number, spoiled) in directories.iter().enumerate() {
        spoil_headers(&spoiled.join("data"));
        let saved = scratch.path().join(format!("saved {number}"));
        assert_eq!(save(&directories, &saved).salvaged.is_some(), number > 0, "{number}");
    }
}

#[test]
fn of_a_file_that_was_cut_the_others_have_all() {
    for is_nameless in [false, true] {
        let scratch = Scratch::new();
        let directories = filled(&scratch);
        let file = fs::OpenOptions::new().write(true).open(directories[0].join("data"));
        file.and_then(|file| file.set_len(3 * EXTENT)).expect("it is ours");
        if is_nameless {
            for directory in &directories {
                fs::remove_file(directory.join("LEVELHEAD")).expect("it is ours");
            }
        } else {
            let words = error_of(&directories).to_string();
            let way_out = format!("move {} away", directories[0].display());
            assert!(words.contains("the file ends here") && words.contains(&way_out), "{words}");
        }
        save(&directories, &scratch.path().join("saved"));
    }
}

#[test]
fn one_directory_with_pages_of_another_store_is_named_and_done_without() {
    let scratch = Scratch::new();
    let directories = filled(&scratch);
    let others: Vec<PathBuf> = (0..3).map(|n| scratch.path().join(format!("other {n}"))).collect();
    fill(&others, &small());
    fs::copy(others[1].join("data"), directories[1].join("data")).expect("both are ours");
    match error_of(&directories) {
        Error::Damaged { path, what, .. } => {
            assert_eq!(path, directories[1].join("data"));
            let way_out = format!("move {} away", directories[1].display());
            assert!(what.contains("another store") && what.contains(&way_out), "{what}");
        }
        other => panic!("{other:?}"),
    }
    save(&directories, &scratch.path().join("saved"));
}

#[test]
fn files_in_another_order_than_their_directories_are_told_so() {
    let scratch = Scratch::new();
    let directories = filled(&scratch);
    let [one, two, aside] =
        [directories[1].join("data"), directories[2].join("data"), scratch.path().join("aside")];
    for (from, to) in [(&one, &aside), (&two, &one), (&aside, &two)] {
        fs::rename(from, to).expect("both are ours");
    }
    for error in [
        error_of(&directories),
        repair(&directories, scratch.path().join("saved"), &small(), |_| ())
            .map(drop)
            .expect_err("the order is wrong"),
    ] {
        let words = error.to_string();
        let names = format!("{} is number 3", one.display());
        assert!(matches!(error, Error::Invalid(_)) && words.contains(&names), "{words}");
    }
}

#[test]
fn one_directory_whose_file_cannot_be_opened_is_done_without() {
    let scratch = Scratch::new();
    let directories = filled(&scratch);
    let data = directories[1].join("data");
    fs::remove_file(&data).and_then(|()| fs::create_dir(&data)).expect("it is ours");
    error_of(&directories);
    save(&directories, &scratch.path().join("saved"));
}

#[test]
fn one_directory_whose_disk_fails_is_done_without() {
    let Some((drives, directories)) = three() else { return };
    fill(&directories, &by_threads());
    let scratch = Scratch::new();
    for member in 0..3 {
        let fails = vec![Fails { kind: Kind::Read, after: 0, times: u64::MAX, errno: EIO }];
        drives[member].set_faults(Faults { fails, ..Faults::default() });
        let saved = scratch.path().join(format!("saved {member}"));
        let report = repair(&directories, &saved, &by_threads(), |_| ());
        mend(&drives);
        assert_eq!(report.unwrap_or_else(|error| panic!("{error}")).pairs, u64::from(KEYS));
    }
}

#[test]
fn what_several_directories_lack_is_blamed_on_none_of_them() {
    let scratch = Scratch::new();
    let directories = filled(&scratch);
    // All pages of the manifest, and the pages from which they would be rebuilt.
    let is_manifest = |page: &[u8]| page[22..24] == [8, 5];
    let files: Vec<Vec<u8>> = directories
        .iter()
        .map(|directory| fs::read(directory.join("data")).expect("it is there"))
        .collect();
    let places: Vec<usize> = (0..files[0].len())
        .step_by(4096)
        .filter(|at| files.iter().any(|file| is_manifest(&file[*at..])))
        .collect();
    assert!(!places.is_empty());
    for (member, directory) in directories.iter().enumerate() {
        let file = fs::OpenOptions::new().write(true).open(directory.join("data"));
        let file = file.expect("it is there");
        for at in &places {
            let flipped = [files[member][at + 60 + member] ^ 1];
            file.write_all_at(&flipped, (at + 60 + member) as u64).expect("it is ours");
        }
    }
    let words = error_of(&directories).to_string();
    assert!(!words.contains("away"), "{words}");
}

/// A panic in the progress callback ends the reader's thread and releases the files.
#[test]
fn what_was_begun_ends_with_a_panic_of_the_caller() {
    let scratch = Scratch::new();
    for members in [1, 3] {
        let directories: Vec<PathBuf> =
            (0..members).map(|n| scratch.path().join(format!("{n} of {members}"))).collect();
        fill(&directories, &small());
        let store = Store::open_over(&directories, &small()).expect("it is whole");
        let panics = |call: &dyn Fn()| catch_unwind(AssertUnwindSafe(call)).expect_err("it panics");
        panics(&|| drop(store.verify(|_| panic!("as the test wants"))));
        let copy = scratch.path().join(format!("copy of {members}"));
        panics(&|| drop(store.checkpoint(&copy, &small(), |_| panic!("as the test wants"))));
        assert_eq!(store.inside().snapshots, 0, "an instant is held for nobody");
        drop(store);
        for name in ["saved", "salvaged"] {
            let saved = scratch.path().join(format!("{name} of {members}"));
            panics(&|| drop(repair(&directories, &saved, &small(), |_| panic!("as it wants"))));
            save(&directories, &saved);
            // Lets the next repair use the pages alone.
            for directory in &directories {
                fs::write(directory.join("LEVELHEAD"), "nothing").expect("it is ours");
            }
        }
    }
}
