//! Growth of a store's files, when it is opened with a larger `capacity_bytes`.

use std::fs;
use std::path::{Path, PathBuf};

use faultfs::{Fails, FaultFs, Faults, Kind};
use levelhead::{Durability, Error, Options, Store, repair};

use crate::scratch::{Scratch, by_threads, faulty, wanted};

const EIO: i32 = 5;
const LARGER: u64 = 104 << 20;
/// More modifying requests and syncs than the growth of a store over several directories makes.
const REQUESTS: u64 = 90;
/// Power cuts and failures are tested at every 13th request; `LEVELHEAD_EVERY` sets another
/// interval.
const EVERY: u64 = 13;

fn larger() -> Options {
    Options { capacity_bytes: LARGER, ..by_threads() }
}

fn as_it_is() -> Options {
    Options { capacity_bytes: 0, ..by_threads() }
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

/// Values of several lengths, some longer than a page.
fn value(n: u64) -> Vec<u8> {
    vec![n as u8; [400, 1_000, 9_000][n as usize % 3]]
}

/// Puts pairs `from..most`, or until the store is full. Returns the number of pairs.
fn fill(store: &Store, from: u64, most: u64) -> u64 {
    for n in from..most {
        match store.put_with(&key(n), &value(n), Durability::None) {
            Ok(()) => {}
            Err(Error::Full(_)) => return n,
            Err(error) => panic!("{n}: {error}"),
        }
    }
    most
}

fn check(store: &Store, pairs: u64, what: &str) {
    let found = store.range(..).map(|pair| pair.unwrap_or_else(|error| panic!("{what}: {error}")));
    let mut expected = 0;
    for (found, n) in found.zip(0..) {
        assert_eq!((found.0.to_vec(), found.1), (key(n), value(n)), "{what}: {n}");
        expected = n + 1;
    }
    assert_eq!(expected, pairs, "{what}");
}

fn opened(paths: &[PathBuf], options: &Options) -> Store {
    Store::open_over(paths, options).unwrap_or_else(|error| panic!("{error}"))
}

fn lengths(paths: &[PathBuf]) -> Vec<u64> {
    let length = |path: &PathBuf| fs::metadata(path.join("data")).expect("it is there").len();
    paths.iter().map(length).collect()
}

#[test]
fn a_full_store_takes_more_once_it_is_opened_with_more() {
    for directories in [1, 3] {
        let scratch = Scratch::new();
        let paths = scratch.directories(directories);
        let store = opened(&paths, &by_threads());
        let first = fill(&store, 0, u64::MAX);
        store.close().expect("it can be made durable");
        // A smaller capacity or 0 changes nothing.
        drop(opened(&paths, &as_it_is()));
        assert_eq!(lengths(&paths), vec![64 << 20; directories]);

        let store = opened(&paths, &larger());
        assert_eq!(lengths(&paths), vec![LARGER; directories]);
        check(&store, first, "just grown");
        let second = fill(&store, first, u64::MAX);
        println!("{directories} directories: {first} pairs, and then {second}");
        assert!(second > first * 3 / 2, "{second} pairs fit, {first} did before");
        // Garbage is collected in old and new extents.
        let kept = second * 2 / 3;
        for n in kept..second {
            store.delete_with(&key(n), Durability::None).expect("deletes are taken");
        }
        store.settle();
        assert_eq!(fill(&store, 0, kept), kept, "there is room to write all once more");
        check(&store, kept, "full and collected");
        store.close().expect("it can be made durable");
        for options in [as_it_is(), by_threads(), larger()] {
            check(&opened(&paths, &options), kept, "opened again");
            assert_eq!(lengths(&paths), vec![LARGER; directories]);
        }
        // Without LEVELHEAD, the pages show how far the files may grow.
        for path in &paths {
            fs::remove_file(path.join("LEVELHEAD")).expect("it is there");
        }
        let saved = scratch.path().join("saved");
        let report = repair(&paths, &saved, &Options::default(), |_| ()).expect("all is there");
        assert_eq!(report.pairs, kept, "{report:?}");
        check(&opened(&[saved], &as_it_is()), kept, "saved");
    }
}

#[test]
fn what_cannot_grow_is_told_and_nothing_is_changed() {
    let scratch = Scratch::new();
    let paths = scratch.directories(3);
    let store = opened(&paths, &by_threads());
    let pairs = fill(&store, 0, 2_000);
    store.close().expect("it can be made durable");
    let refused = |options: &Options, words: &str| match Store::open_over(&paths, options) {
        Err(Error::Invalid(said)) => assert!(said.contains(words), "{said}"),
        other => panic!("{:?}", other.map(drop)),
    };
    refused(
        &Options { capacity_bytes: 1 << 42, ..by_threads() },
        "can grow to 549755813888 at most",
    );
    // Opened read-only, the store does not grow.
    check(&opened(&paths, &Options { read_only: true, ..larger() }), pairs, "read only");
    let aside = scratch.path().join("aside");
    fs::rename(&paths[1], &aside).expect("it is there");
    refused(&larger(), "is lost");
    fs::rename(&aside, &paths[1]).expect("it is there");
    let file = fs::OpenOptions::new().write(true).open(paths[2].join("data")).expect("it is there");
    file.set_len(63 << 20).expect("it is ours");
    match Store::open_over(&paths, &larger()) {
        Err(Error::Damaged { offset: Some(at), .. }) => assert_eq!(at, 63 << 20),
        other => panic!("{:?}", other.map(drop)),
    }
    assert_eq!(lengths(&paths), [64 << 20, 64 << 20, 63 << 20]);
}

/// Creates a store with some pairs in three directories on one drive.
fn on_one_drive(seed: u64) -> Option<(FaultFs, Vec<PathBuf>, u64)> {
    let drive = faulty(seed)?;
    let paths: Vec<_> = (0..3).map(|n| drive.path().join(format!("d{n}"))).collect();
    let store = opened(&paths, &by_threads());
    let pairs = fill(&store, 0, 900);
    store.close().expect("it can be made durable");
    Some((drive, paths, pairs))
}

/// Checks that the store opens, has its pairs, and grows as requested.
fn check_grown(paths: &[PathBuf], pairs: u64, what: &str) {
    check(&opened(paths, &as_it_is()), pairs, what);
    let store = opened(paths, &larger());
    check(&store, pairs, what);
    let more = fill(&store, pairs, pairs + 20);
    store.close().expect("it can be made durable");
    check(&opened(paths, &as_it_is()), more, what);
    assert_eq!(lengths(paths), [LARGER; 3], "{what}");
}

#[test]
fn power_may_fail_while_a_store_grows() {
    let every = wanted("LEVELHEAD_EVERY").unwrap_or(EVERY) as usize;
    for request in (0..REQUESTS).step_by(every) {
        let Some((drive, paths, pairs)) = on_one_drive(request) else { return };
        drive.cut_after(request);
        let is_open = Store::open_over(&paths, &larger()).map(drop).is_ok();
        if !drive.is_off() {
            drive.cut();
        }
        drive.power_on();
        check_grown(&paths, pairs, &format!("power failed at request {request}, open: {is_open}"));
    }
}

#[test]
fn each_request_may_fail_while_a_store_grows() {
    let every = wanted("LEVELHEAD_EVERY").unwrap_or(EVERY) as usize;
    for kind in [Kind::Write, Kind::Sync, Kind::Name] {
        for after in (0..REQUESTS / 2).step_by(every) {
            let Some((drive, paths, pairs)) = on_one_drive(after) else { return };
            for times in [1, u64::MAX] {
                let fails = vec![Fails { kind, after, times, errno: EIO }];
                drive.set_faults(Faults { fails, ..Faults::default() });
                drop(Store::open_over(&paths, &larger()));
                drive.set_faults(Faults::default());
                let what = format!("{kind:?} {after}, {times} times");
                check(&opened(&paths, &as_it_is()), pairs, &what);
            }
            check_grown(&paths, pairs, &format!("{kind:?} {after}"));
        }
    }
}

#[test]
fn a_directory_that_does_not_know_yet_is_told() {
    let scratch = Scratch::new();
    let paths = scratch.directories(3);
    let store = opened(&paths, &by_threads());
    let pairs = fill(&store, 0, 900);
    store.close().expect("it can be made durable");
    let says = |path: &Path| fs::read(path.join("LEVELHEAD")).expect("it is there");
    let before = says(&paths[1]);
    drop(opened(&paths, &larger()));
    fs::write(paths[1].join("LEVELHEAD"), &before).expect("it is ours");
    check(&opened(&paths, &as_it_is()), pairs, "one says less");
    assert_ne!(says(&paths[1]), before, "it says what the others do");
}

/// A length that was not synced lasts only until the power fails, so opening must sync it before a
/// directory records it.
#[test]
fn a_file_whose_growth_failed_at_its_sync_is_as_long_as_is_said_of_it() {
    for cut in 1..20 {
        let Some(fs) = faulty(cut) else { return };
        let directory = fs.path().join("d");
        drop(Store::open(&directory, &by_threads()).unwrap_or_else(|error| panic!("{error}")));
        let fails = Fails { kind: Kind::Sync, after: 0, times: 1, errno: EIO };
        fs.set_faults(Faults { fails: vec![fails], ..Faults::default() });
        Store::open(&directory, &larger()).map(drop).expect_err("the length cannot be synced");
        fs.set_faults(Faults::default());
        fs.cut_after(cut);
        drop(Store::open(&directory, &larger()));
        fs.cut();
        fs.power_on();
        Store::open(&directory, &as_it_is()).unwrap_or_else(|error| panic!("{cut}: {error}"));
    }
}
