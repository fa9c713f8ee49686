//! Stores with inline values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use levelhead::{Durability, Error, Options, Store, repair};
use runtime::Rng;

use crate::scratch::{Scratch, small};

const INLINE: u32 = 700;

type Pairs = BTreeMap<Box<[u8]>, Vec<u8>>;

fn options() -> Options {
    Options { capacity_bytes: 128 << 20, inline_up_to: INLINE, ..small() }
}

/// Writes, overwrites and deletes some thousand pairs: keys of up to 255 bytes, values on both
/// sides of the inline limit.
fn fill(store: &Store, seed: u64) -> Pairs {
    let (mut rng, mut pairs) = (Rng::new(seed), Pairs::new());
    for round in 0..9_000_u32 {
        let n = rng.below(3_000);
        let mut key = format!("key {n:05}").into_bytes();
        if n.is_multiple_of(7) {
            key.resize(255, b'x');
        }
        if rng.chance(0.1) {
            store.delete(&key).expect("there is room");
            pairs.remove(key.as_slice());
            continue;
        }
        let lengths = [0, 1, 100, INLINE - 1, INLINE, INLINE + 1, 1_100, 5_000];
        let value = vec![round as u8; lengths[rng.below(lengths.len() as u64) as usize] as usize];
        store.put(&key, &value).expect("there is room");
        pairs.insert(key.into(), value);
    }
    pairs
}

fn check(store: &Store, pairs: &Pairs) {
    for (key, value) in pairs {
        assert_eq!(store.get(key).expect("it can be read").as_ref(), Some(value));
    }
    let all: Vec<_> = pairs.clone().into_iter().collect();
    let up: Result<Vec<_>, Error> = store.range(..).collect();
    assert_eq!(up.expect("it can be read"), all);
    let down: Result<Vec<_>, Error> = store.range(..).rev().collect();
    assert_eq!(down.expect("it can be read"), all.into_iter().rev().collect::<Vec<_>>());
    let keys: Result<Vec<_>, Error> = store.range(..).keys().collect();
    assert_eq!(keys.expect("it can be read"), pairs.keys().cloned().collect::<Vec<_>>());
}

fn goes_through_its_life(directories: &[PathBuf], beside: &Path, seed: u64) {
    let store = Store::open_over(directories, &options()).expect("it is made");
    let pairs = fill(&store, seed);
    check(&store, &pairs);
    store.settle();
    check(&store, &pairs);
    store.close().expect("it is made durable");
    // The store records its inline limit itself.
    let store = Store::open_over(directories, &small()).expect("it is there");
    check(&store, &pairs);
    store.compact().expect("there is room");
    check(&store, &pairs);
    let report = store.verify(|_| ()).expect("it can be read");
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!(report.pairs, pairs.len() as u64);
    store.checkpoint(beside, &options(), |_| ()).expect("there is room");
    drop(store);
    check(&Store::open(beside, &small()).expect("it is there"), &pairs);
}

#[test]
fn values_beside_their_keys_are_as_others() {
    for seed in 0..3 {
        let scratch = Scratch::new();
        let one = [scratch.path().join("one")];
        goes_through_its_life(&one, &scratch.path().join("beside"), seed);
    }
}

#[test]
fn over_several_directories_as_well() {
    let scratch = Scratch::new();
    goes_through_its_life(&scratch.directories(3), &scratch.path().join("beside"), 7);
}

#[test]
fn a_get_of_a_value_beside_its_key_reads_no_page_of_values() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path(), &options()).expect("it is made");
    for n in 0..5_000_u32 {
        store.put(format!("key {n:05}").as_bytes(), &[7; 100]).expect("there is room");
    }
    store.settle();
    let before = store.statistics().reads_per_get;
    for n in 0..5_000_u32 {
        let found = store.get(format!("key {n:05}").as_bytes()).expect("it can be read");
        assert_eq!(found, Some(vec![7; 100]));
    }
    let after = store.statistics().reads_per_get;
    let none = |reads: &[u64]| reads.first().copied().unwrap_or(0);
    // The index is in memory and has the values.
    assert_eq!(none(&after) - none(&before), 5_000, "{before:?}, then {after:?}");
}

#[test]
fn what_a_page_has_no_room_for_is_refused() {
    let scratch = Scratch::new();
    let options = Options { inline_up_to: 1_001, ..small() };
    let refused = Store::open(scratch.path(), &options).map(drop);
    assert!(
        matches!(&refused, Err(Error::Invalid(what)) if what.contains("inline_up_to is 1001")),
        "{refused:?}"
    );
}

/// Flips a byte in every page of a kind.
fn damage_all(directory: &Path, kind: u8) {
    let path = directory.join("data");
    let mut bytes = std::fs::read(&path).expect("it is there");
    let mut pages = 0;
    for page in bytes.chunks_mut(4096).filter(|page| page[22..24] == [kind, 5]) {
        page[1_000] ^= 0x11;
        pages += 1;
    }
    assert!(pages > 0, "no page of kind {kind}");
    std::fs::write(&path, bytes).expect("it can be written");
}

/// A flushed store with deleted, replaced and live inline values that no longer opens.
#[test]
fn values_beside_their_keys_are_saved_of_a_store_that_does_not_open() {
    const LOG: u8 = 7;
    const MANIFEST: u8 = 8;
    let scratch = Scratch::new();
    let [old, new] = ["old", "new"].map(|name| scratch.path().join(name));
    let store = Store::open(&old, &options()).expect("it is made");
    let key = |n: u32| format!("key {n:05}").into_bytes();
    for round in 0..3_u8 {
        for n in 0..4_000 {
            let value = [round; 300];
            store.put_with(&key(n), &value, Durability::None).expect("there is room");
        }
    }
    for n in (0..4_000).step_by(4) {
        store.delete_with(&key(n), Durability::None).expect("there is room");
    }
    store.settle();
    store.close().expect("it is made durable");
    let expected = |n: u32| (!n.is_multiple_of(4)).then(|| vec![2; 300]);
    let saved = |what: &str| {
        let _ = std::fs::remove_dir_all(&new);
        let report = repair(&[&old], &new, &options(), |_| ());
        let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
        (
            report.salvaged.expect("it does not open"),
            Store::open(&new, &options()).expect("it is whole"),
        )
    };
    // Without its `LEVELHEAD`, the index still has everything.
    std::fs::write(old.join("LEVELHEAD"), "nothing").expect("it can be written");
    let (salvaged, copy) = saved("no words");
    assert!(salvaged.doubts.is_empty() && salvaged.lost.is_empty(), "{salvaged:?}");
    for n in 0..4_000 {
        assert_eq!(copy.get(&key(n)).expect("it is whole"), expected(n), "key {n}");
    }
    drop(copy);
    // Without the index no key is lost, and each value is one that was written. The log is damaged,
    // too, because its old groups would tell which version is the newest.
    damage_all(&old, MANIFEST);
    damage_all(&old, LOG);
    let (salvaged, copy) = saved("no manifest and no log");
    assert!(salvaged.doubts.iter().any(|doubt| doubt.contains("beside them")), "{salvaged:?}");
    for n in 0..4_000 {
        let found = copy.get(&key(n)).expect("it is whole");
        let is_one = |value: &Vec<u8>| (0..3).any(|round| *value == [round; 300]);
        assert!(found.as_ref().is_some_and(is_one) || n.is_multiple_of(4), "key {n}: {found:?}");
    }
}
