//! Ranges that are read alternately from both ends, over keys with versions and tombstones in many
//! levels: a flush follows every few writes.

use std::collections::BTreeMap;
use std::ops::Bound;

use levelhead::{Durability, Range, Snapshot, Store};
use runtime::Rng;

use crate::scratch::{Scratch, open, seeds, small, wanted};

/// Few keys, so that most have a tombstone above an older version.
const KEYS: u64 = 60;
/// Writes of a trial.
const WRITES: u64 = 600;
/// Trials; `LEVELHEAD_ROUNDS` sets another number.
const TRIALS: u64 = 6;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(n: u64) -> Vec<u8> {
    // Some keys are prefixes of others, such as `7` and `70`.
    n.to_string().into_bytes()
}

/// Returns two bounds in order.
fn bounds(rng: &mut Rng) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let mut keys = [key(rng.below(KEYS)), key(rng.below(KEYS))];
    keys.sort();
    let [low, high] = keys;
    match rng.below(4) {
        0 => (Bound::Unbounded, Bound::Excluded(high)),
        1 => (Bound::Included(low), Bound::Unbounded),
        2 => (Bound::Included(low), Bound::Included(high)),
        _ if low == high => (Bound::Unbounded, Bound::Unbounded),
        _ => (Bound::Excluded(low), Bound::Excluded(high)),
    }
}

/// Reads all pairs, from ends that `rng` chooses, and compares them with the map's.
fn check(make: impl Fn((Bound<&[u8]>, Bound<&[u8]>)) -> Range, map: &Map, rng: &mut Rng) {
    let (low, high) = bounds(rng);
    let slices = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
    let mut range = make(slices);
    let mut expected = map.range((low.clone(), high.clone()));
    // Steps in one direction: one pair, or more pairs than one fetch returns.
    let longest = [1, 3, 12][rng.below(3) as usize];
    loop {
        let is_back = rng.below(2) == 0;
        for _ in 0..=rng.below(longest) {
            let (found, wanted) = if is_back {
                (range.next_back(), expected.next_back())
            } else {
                (range.next(), expected.next())
            };
            let found = found.map(|pair| pair.expect("it can be read"));
            let wanted = wanted.map(|(key, value)| (key.clone().into(), value.clone()));
            assert_eq!(found, wanted, "{low:?} to {high:?}, from the end: {is_back}");
            if found.is_none() {
                return;
            }
        }
    }
}

/// Deletes consecutive keys, so that new tombstones cover all older versions.
fn delete_some(store: &Store, map: &mut Map, rng: &mut Rng) {
    let from = rng.below(KEYS);
    for n in from..(from + rng.below(20)).min(KEYS) {
        store.delete_with(&key(n), Durability::None).expect("there is room");
        map.remove(&key(n));
    }
}

fn trial(seed: u64) {
    let (scratch, rng, mut map) = (Scratch::new(), &mut Rng::derive(seed, "turns"), Map::new());
    let store = open(scratch.path(), &small());
    let mut held: Vec<(Snapshot, Map)> = Vec::new();
    for n in 0..WRITES {
        if rng.below(12) == 0 {
            delete_some(&store, &mut map, rng);
        } else {
            let (key, value) = (key(rng.below(KEYS)), n.to_be_bytes().to_vec());
            store.put_with(&key, &value, Durability::None).expect("there is room");
            map.insert(key, value);
        }
        if rng.below(8) == 0 {
            store.settle();
        }
        if rng.below(40) == 0 {
            held.push((store.snapshot().expect("there is memory"), map.clone()));
            if held.len() > 4 {
                held.remove(0);
            }
        }
        if rng.below(4) == 0 {
            check(|bounds| store.range(bounds), &map, rng);
        }
        for (snapshot, map) in &held {
            if rng.below(8) == 0 {
                check(|bounds| snapshot.range(bounds), map, rng);
            }
        }
    }
    assert!(store.statistics().flushes > WRITES / 20, "{}", store.statistics().flushes);
}

#[test]
fn ranges_change_their_direction_over_flushes_deletions_and_older_instants() {
    for seed in seeds(wanted("LEVELHEAD_ROUNDS").unwrap_or(TRIALS)) {
        println!(
            "LEVELHEAD_SEED={seed} cargo test -p levelhead --test levelhead -- --nocapture turns::"
        );
        trial(seed);
    }
}
