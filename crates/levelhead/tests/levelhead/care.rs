//! Verification of a store, checkpoints of a store in use, and repair of a damaged one.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use levelhead::{Durability, Error, Options, Store, Verified, repair};

use crate::scratch::{Scratch, open, small};

const PAIRS: u32 = 6_000;

fn key(n: u32) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 300]
}

fn filled(path: &Path) -> Store {
    let store = open(path, &small());
    for n in 0..PAIRS {
        store.put(&key(n), &value(n)).expect("there is room");
    }
    store.settle();
    store
}

/// Changes a byte of the value of a key, in each of its copies in the file.
fn damage(path: &Path, n: u32) -> u64 {
    let file = OpenOptions::new().read(true).write(true).open(path.join("data"));
    let file = file.expect("it is there");
    let mut bytes = vec![0; file.metadata().expect("it is there").len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("it can be read");
    let pair = [key(n), value(n)].concat();
    // The copies in the log and in the data pages.
    let places = (0..bytes.len() - pair.len()).filter(|at| bytes[*at..].starts_with(&pair));
    let places: Vec<u64> = places.map(|at| at as u64).collect();
    assert!(!places.is_empty());
    for at in &places {
        file.write_all_at(b"#", at + 100).expect("it can be written");
    }
    places[places.len() - 1]
}

#[test]
fn a_store_that_is_whole_is_verified() {
    let scratch = Scratch::new();
    let store = filled(scratch.path());
    store.delete(&key(7)).expect("there is room");
    let mut heard = Vec::new();
    let report = store.verify(|pairs| heard.push(pairs)).expect("it can be read");
    assert_eq!((report.pairs, report.bytes), (5_999, 5_999 * 306));
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let pairs = [1_000, 2_000, 3_000, 4_000, 5_000, 5_999];
    assert_eq!(heard, pairs.map(Verified::Pairs));
}

#[test]
fn damage_is_found_and_the_rest_is_saved() {
    let scratch = Scratch::new();
    let [old, new, other] = ["old", "new", "other"].map(|name| scratch.path().join(name));
    filled(&old).close().expect("it can be made durable");
    damage(&old, 2_000);
    let store = open(&old, &small());
    let report = store.verify(|_| ()).expect("it goes on");
    // A page has some dozen values. Adjacent damaged values are one finding, or several with the
    // same keys around them.
    assert!(!report.findings.is_empty() && report.pairs < u64::from(PAIRS));
    for finding in &report.findings {
        assert!(
            matches!(&finding.error, Error::Damaged { offset: Some(_), path, .. } if *path == old.join("data"))
        );
    }
    let lost = |n: u32| {
        let key = key(n);
        report.findings.iter().any(|finding| {
            finding.after.as_deref().is_none_or(|after| *key > *after)
                && finding.before.as_deref().is_none_or(|before| *key < *before)
        })
    };
    assert!(lost(2_000), "{:?}", report.findings);
    let refused = store.checkpoint(&other, &small(), |_| ()).expect_err("a copy has all pairs");
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    assert!(!Store::is_in(&[&other]).expect("it can be read"), "a part of a copy is none");
    drop(store);
    let saved = repair(&[&old], &new, &small(), |_| ()).expect("it goes on");
    assert_eq!(saved.pairs, report.pairs);
    let store = open(&new, &small());
    for n in 0..PAIRS {
        let found = store.get(&key(n)).expect("it is whole");
        if lost(n) {
            assert_eq!(found, None);
        } else {
            assert_eq!(found, Some(value(n)), "key {n}");
        }
    }
    assert!(store.verify(|_| ()).expect("it is whole").findings.is_empty());
}

#[test]
fn a_checkpoint_is_of_one_instant_and_a_store_by_itself() {
    let scratch = Scratch::new();
    let [old, new] = ["old", "new"].map(|name| scratch.path().join(name));
    let store = filled(&old);
    let mut wrote = 0;
    let report = store.checkpoint(&new, &small(), |pairs| {
        // Writes to keys before and after the position of the copy.
        for n in [0, PAIRS - 1, PAIRS + pairs as u32] {
            store.put(&key(n), b"later").expect("there is room");
            wrote += 1;
        }
    });
    assert_eq!(report.expect("it is whole").pairs, u64::from(PAIRS));
    assert!(wrote > 0);
    let copy = open(&new, &small());
    assert_eq!(copy.range(..).count(), PAIRS as usize);
    for n in (0..PAIRS).step_by(5).chain([PAIRS - 1]) {
        assert_eq!(copy.get(&key(n)).expect("it can be read"), Some(value(n)), "key {n}");
    }
    let again = store.checkpoint(&new, &small(), |_| ()).map(drop);
    assert!(matches!(again, Err(Error::Invalid(_))), "{again:?}");
}

#[test]
fn a_copy_that_was_not_finished_is_no_store() {
    let scratch = Scratch::new();
    let [old, new] = ["old", "new"].map(|name| scratch.path().join(name));
    let store = filled(&old);
    let mut others = None;
    let checkpoint = std::panic::AssertUnwindSafe(|| {
        store.checkpoint(&new, &small(), |_| {
            let opened = [
                store.checkpoint(&new, &small(), |_| ()).map(drop),
                Store::open(&new, &small()).map(drop),
            ];
            others = Some(opened);
            panic!("as the test wants");
        })
    });
    std::panic::catch_unwind(checkpoint).expect_err("it is ended half way");
    let are_refused = |others: [Result<(), Error>; 2]| {
        others.iter().all(|other| matches!(other, Err(Error::InUse(_))))
    };
    assert!(others.is_some_and(are_refused), "nobody else makes one there meanwhile");
    let missing = Options { create_if_missing: false, ..small() };
    let opened = Store::open(&new, &missing).map(drop);
    assert!(matches!(opened, Err(Error::Missing(_))), "{opened:?}");
    // The unfinished copy is not in the way.
    store.checkpoint(&new, &small(), |_| ()).expect("there is room");
    assert_eq!(open(&new, &missing).range(..).count(), PAIRS as usize);
}

/// Finds a full stripe of three members. Returns the member with the parity page, and the page's
/// offset.
fn parity_page(directories: &[PathBuf]) -> (usize, u64) {
    let files =
        directories.iter().map(|path| std::fs::read(path.join("data")).expect("it is there"));
    let files: Vec<Vec<u8>> = files.collect();
    let length = files[0].len();
    // Only data pages: pages of the index may have been replaced.
    let is_data = |page: &[u8]| page[22..24] == [2, 5];
    for at in (0..length).step_by(4096) {
        let pages: Vec<&[u8]> = files.iter().map(|file| &file[at..at + 4096]).collect();
        let parity: Vec<usize> = (0..3).filter(|n| !is_data(pages[*n])).collect();
        let is_of_both = |n: usize| pages[n][23] == 0 && pages[n].iter().any(|byte| *byte != 0);
        if let [parity] = parity[..]
            && is_of_both(parity)
        {
            return (parity, at as u64);
        }
    }
    panic!("no stripe is full");
}

fn flip_at(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it can be read");
    file.write_all_at(&[byte[0] ^ 0x10], at).expect("it can be written");
}

#[test]
fn parity_that_does_not_agree_is_found_and_not_mended() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    let options = Options { capacity_bytes: 128 << 20, ..small() };
    let reopen =
        || Store::open_over(&directories, &options).unwrap_or_else(|error| panic!("{error}"));
    let store = reopen();
    for n in 0..PAIRS {
        store.put(&key(n), &value(n)).expect("there is room");
    }
    store.settle();
    let mut heard = None;
    let report = store.verify(|verified| heard = Some(verified)).expect("it can be read");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(report.stripes > 5, "{} stripes", report.stripes);
    let is_last = |parts, all| parts == all && all > 0;
    assert!(matches!(heard, Some(Verified::Stripes { parts, all }) if is_last(parts, all)));
    store.close().expect("it can be made durable");
    let (parity, at) = parity_page(&directories);
    for (member, directory) in directories.iter().enumerate() {
        let path = directory.join("data");
        flip_at(&path, at + 1_000);
        let damaged = std::fs::read(&path).expect("it is there")[at as usize..][..4096].to_vec();
        let store = reopen();
        for _ in 0..2 {
            let report = store.verify(|_| ()).expect("it can be read");
            assert_eq!(report.pairs, u64::from(PAIRS), "no pair is lost");
            let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
            assert!(finding.is_redundancy);
            let Error::Damaged { path: found, offset, what } = &finding.error else {
                panic!("{}", finding.error)
            };
            assert_eq!((found, *offset), (&path, Some(at)), "{what}");
            assert_eq!(what.starts_with("parity"), member == parity, "{what}");
        }
        store.close().expect("it can be made durable");
        let now = std::fs::read(&path).expect("it is there")[at as usize..][..4096].to_vec();
        assert!(now == damaged, "it was changed");
        flip_at(&path, at + 1_000);
    }
    // Without one directory nothing can be compared, and the others have no damage.
    std::fs::remove_dir_all(&directories[1]).expect("it is ours");
    let report = reopen().verify(|_| ()).expect("it can be rebuilt");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(report.unchecked_stripes > 5, "{} stripes", report.unchecked_stripes);
}

/// Returns a long key, so that the index of some thousand keys exceeds the smallest memory.
fn long_key(n: u32) -> Vec<u8> {
    format!("{n:06}{}", "x".repeat(200)).into_bytes()
}

/// Returns the offsets of the index pages in a file. A walk reads those that are not in memory.
fn index_pages(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path.join("data")).expect("it is there");
    let is_one = |at: &usize| bytes[at + 22..at + 24] == [1, 5];
    (0..bytes.len()).step_by(4096).filter(is_one).map(|at| at as u64).collect()
}

#[test]
fn a_damaged_part_of_the_index_costs_its_own_keys_and_a_repair_finds_those_too() {
    const KEYS: u32 = 30_000;
    let scratch = Scratch::new();
    let [old, new] = ["old", "new"].map(|name| scratch.path().join(name));
    let options = Options {
        memory_bytes: 1 << 20,
        value_cache_bytes: 0,
        expected_key_bytes: 206,
        expected_value_bytes: 20,
        ..small()
    };
    let store = open(&old, &options);
    for n in 0..KEYS {
        store.put_with(&long_key(n), &n.to_le_bytes(), Durability::None).expect("there is room");
    }
    store.compact().expect("there is room");
    // Creates an upper level with keys inside the damaged part.
    for n in (0..KEYS).step_by(100) {
        store.put_with(&long_key(n), &n.to_le_bytes(), Durability::None).expect("there is room");
    }
    store.settle();
    store.close().expect("it can be made durable");
    let pages = index_pages(&old);
    let mut damaged = 0;
    for at in pages.iter().rev().step_by(pages.len() / 40) {
        flip_at(&old.join("data"), at + 500);
        let store = match Store::open(&old, &options) {
            Ok(store) => store,
            // The damaged part is kept in memory, so the store does not open.
            Err(error) => {
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
                flip_at(&old.join("data"), at + 500);
                continue;
            }
        };
        let report = store.verify(|_| ()).expect("it goes on");
        drop(store);
        if !report.findings.is_empty() {
            damaged += 1;
            let lost = u64::from(KEYS) - report.pairs;
            assert!((1..100).contains(&lost), "{lost} keys for a page");
            let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
            let key = |key: &Option<Box<[u8]>>| {
                key.as_ref()
                    .map(|key| String::from_utf8_lossy(&key[..6]).parse::<u64>().expect("a number"))
            };
            let (after, before) = (key(&finding.after), key(&finding.before));
            let between = before.unwrap_or(KEYS.into()) - after.map_or(0, |after| after + 1);
            assert_eq!(between, lost, "{after:?} to {before:?}");
            let _ = std::fs::remove_dir_all(&new);
            let saved = repair(&[&old], &new, &options, |_| ()).expect("it goes on");
            assert_eq!((saved.pairs, saved.rescued), (u64::from(KEYS), lost));
            let copy = open(&new, &options);
            for n in 0..KEYS {
                let found = copy.get(&long_key(n)).expect("it is whole");
                assert_eq!(found, Some(n.to_le_bytes().to_vec()), "key {n}");
            }
        }
        flip_at(&old.join("data"), at + 500);
        if damaged == 3 {
            return;
        }
    }
    panic!("{damaged} of {} pages of the index were in use and not in memory", pages.len());
}

/// A pair that cannot be read ends a range, so that missing pairs are not silently skipped.
#[test]
fn behind_damage_a_range_gives_nothing() {
    let scratch = Scratch::new();
    filled(scratch.path()).close().expect("it can be made durable");
    damage(scratch.path(), 2_000);
    let store = open(scratch.path(), &small());
    let snapshot = store.snapshot().expect("there is memory");
    let ranges: [(&str, &dyn Fn() -> levelhead::Range); 4] = [
        ("all", &|| store.range(..)),
        ("of a snapshot", &|| snapshot.range(..)),
        ("of a prefix", &|| store.prefix(b"00")),
        ("in bounds", &|| store.range(&key(1_500)[..]..&key(2_500)[..])),
    ];
    for (what, range) in ranges {
        for is_back in [false, true] {
            let mut range = range();
            let step = |range: &mut levelhead::Range| {
                if is_back { range.next_back() } else { range.next() }
            };
            let error = loop {
                match step(&mut range).unwrap_or_else(|| panic!("{what}: no word of damage")) {
                    Ok((key, value)) => {
                        let n: u32 = std::str::from_utf8(&key).expect("text").parse().expect("one");
                        assert_eq!(value, self::value(n), "{what}");
                        assert!(if is_back { n > 2_000 } else { n < 2_000 }, "{what}: {n}");
                    }
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Damaged { .. }), "{what}: {error}");
            for _ in 0..3 {
                assert!(range.next().is_none() && range.next_back().is_none(), "{what}");
            }
        }
    }
    // The index is intact.
    assert_eq!(store.range(..).keys().flatten().count(), PAIRS as usize);
}

/// Writes after a repair survive the next recovery. The files are copied in the state in which a
/// kill would leave them.
#[test]
fn what_is_put_after_a_repair_outlives_a_kill() {
    let scratch = Scratch::new();
    let [old, new, killed] = ["old", "new", "killed"].map(|name| scratch.path().join(name));
    filled(&old).close().expect("it can be made durable");
    damage(&old, 2_000);
    let saved = repair(&[&old], &new, &small(), |_| ()).expect("it goes on").pairs;
    let mut more = 0;
    for round in 0..3 {
        let store = open(&new, &small());
        for n in 0..200 {
            let n = PAIRS + round * 200 + n;
            store.put_with(&key(n), &value(n), Durability::Each).expect("there is room");
            more += 1;
        }
        std::fs::create_dir_all(&killed).expect("it can be made");
        for entry in std::fs::read_dir(&new).expect("it is there") {
            let entry = entry.expect("it can be read");
            std::fs::copy(entry.path(), killed.join(entry.file_name())).expect("there is room");
        }
        drop(store);
        std::fs::remove_dir_all(&new).expect("it is ours");
        std::fs::rename(&killed, &new).expect("it is ours");
        let store = open(&new, &small());
        for n in PAIRS..PAIRS + more {
            assert_eq!(store.get(&key(n)).expect("it is whole"), Some(value(n)), "{round}: {n}");
        }
        let there = store.range(..).inspect(|pair| assert!(pair.is_ok(), "it is whole")).count();
        assert_eq!(there as u64, saved + u64::from(more), "round {round}");
    }
}
