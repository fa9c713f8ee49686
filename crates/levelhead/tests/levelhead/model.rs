//! The store against an ordered map: random writes, reads and ranges, closed and opened again.

use std::collections::BTreeMap;
use std::ops::Bound;

use levelhead::{Batch, Durability, Error, Io, Options, Store};
use runtime::Rng;

use crate::scratch::{Scratch, open, small};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(rng: &mut Rng) -> Vec<u8> {
    // Few enough that most are written several times, with lengths from one byte to the longest.
    let n = rng.below(3_000);
    let mut key = format!("{n:04}").into_bytes();
    match n % 7 {
        0 => key.truncate(1),
        1 => key.resize(255, b'x'),
        _ => {}
    }
    key
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let length = match rng.below(50) {
        0 => 20_000,
        1 => 0,
        _ => rng.below(400) as usize,
    };
    (0..length).map(|_| rng.below(256) as u8).collect()
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key(rng)),
        _ => Bound::Included(key(rng)),
    }
}

fn check_range(store: &Store, map: &Map, rng: &mut Rng) {
    let (lower, upper) = (bound(rng), bound(rng));
    let slices = |bound: &Bound<Vec<u8>>| bound.clone();
    let (low, high) = (slices(&lower), slices(&upper));
    let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
    let most = rng.below(700) as usize;
    let found: Result<Vec<_>, Error> = store.range(bounds).take(most).collect();
    let found = found.expect("it can be read");
    let is_in = |key: &[u8]| {
        let above = match &lower {
            Bound::Included(lower) => key >= &lower[..],
            Bound::Excluded(lower) => key > &lower[..],
            Bound::Unbounded => true,
        };
        let below = match &upper {
            Bound::Included(upper) => key <= &upper[..],
            Bound::Excluded(upper) => key < &upper[..],
            Bound::Unbounded => true,
        };
        above && below
    };
    let expected = map.iter().filter(|(key, _)| is_in(key)).take(most);
    let expected: Vec<_> = expected.map(|(key, value)| (&key[..], &value[..])).collect();
    let found: Vec<_> = found.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    assert_eq!(found, expected, "{lower:?} to {upper:?}, {most}");
}

fn check_all(store: &Store, map: &Map) {
    let all: Result<Vec<_>, _> = store.range(..).collect();
    let all = all.expect("it can be read");
    assert_eq!(all.len(), map.len());
    for ((key, value), (expected_key, expected)) in all.iter().zip(map) {
        assert_eq!((&key[..], value), (&expected_key[..], expected));
    }
}

fn agrees(seed: u64, options: &Options) {
    let scratch = Scratch::new();
    let (rng, mut map) = (&mut Rng::derive(seed, "model"), Map::new());
    for _ in 0..4 {
        let store = open(scratch.path(), options);
        check_all(&store, &map);
        for _ in 0..4_000 {
            let key = key(rng);
            match rng.below(10) {
                0..6 => {
                    let value = value(rng);
                    store.put(&key, &value).expect("there is room");
                    map.insert(key, value);
                }
                6 => {
                    let mut batch = Batch::new();
                    for _ in 0..rng.below(20) {
                        let (key, value) = (self::key(rng), value(rng));
                        if rng.below(4) == 0 {
                            batch.delete(&key);
                            map.remove(&key);
                        } else {
                            batch.put(&key, &value);
                            map.insert(key, value);
                        }
                    }
                    store.write(&batch).expect("there is room");
                }
                7 => assert_eq!(store.get(&key).expect("it is there"), map.get(&key).cloned()),
                _ => {
                    store.delete(&key).expect("there is room");
                    map.remove(&key);
                }
            }
            if rng.below(200) == 0 {
                check_range(&store, &map, rng);
            }
        }
        check_all(&store, &map);
        store.close().expect("it can be made durable");
    }
}

#[test]
fn the_store_agrees_with_an_ordered_map() {
    for (seed, io) in (0..).zip([Io::Probe, Io::Threads]) {
        agrees(seed, &Options { io, ..small() });
    }
}

#[test]
fn a_range_reads_one_instant() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    let key = |n: u32| format!("{n:05}").into_bytes();
    for n in 0..2_000 {
        store.put(&key(n), b"old").expect("there is room");
    }
    let mut range = store.range(..);
    assert_eq!(&*range.next().expect("there are some").expect("it can be read").0, b"00000");
    for n in 0..2_000 {
        store.put(&key(n), b"new").expect("there is room");
        store.put(&key(n + 5_000), b"new").expect("there is room");
    }
    let rest: Result<Vec<_>, _> = range.collect();
    let rest = rest.expect("it can be read");
    assert_eq!(rest.len(), 1_999);
    assert!(rest.iter().all(|(_, value)| value == b"old"));
    assert_eq!(store.get(&key(1)).expect("it is there").as_deref(), Some(&b"new"[..]));
}

#[test]
fn what_no_store_takes_is_refused_in_words() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    let words = |outcome: Result<(), Error>| match outcome {
        Err(Error::Invalid(words)) => words,
        other => panic!("{other:?}"),
    };
    assert!(words(store.put(b"", b"x")).contains("1 to 255 bytes"));
    assert!(words(store.put(&[7; 256], b"x")).contains("256"));
    assert!(words(store.put(b"k", &vec![0; 64 << 20])).contains("takes up to"));
    assert!(words(store.get(b"").map(drop)).contains("1 to 255 bytes"));
    let outside: Vec<_> = store.range(&[9; 300][..]..&[9; 400][..]).collect();
    assert!(outside.is_empty());
    store.put_with(b"k", b"each", Durability::Each).expect("there is room");
    assert_eq!(store.get(b"k").expect("it is there").as_deref(), Some(&b"each"[..]));
    for (options, word) in [
        (Options { capacity_bytes: 1 << 20, ..small() }, "capacity_bytes"),
        (Options { memtable_bytes: 1, ..small() }, "memtable_bytes"),
    ] {
        let other = Scratch::new();
        let opened = Store::open(other.path(), &options).map(drop);
        assert!(words(opened).contains(word));
    }
}
