//! Compares the store with an ordered map: random writes, reads, ranges from both ends, and
//! snapshots, with the store closed and reopened.
//!
//! A failure first prints `LEVELHEAD_SEED=7 cargo test -p levelhead --test levelhead model` with
//! its seed. `LEVELHEAD_ROUNDS=50` sets the number of seeds.

use std::collections::BTreeMap;
use std::ops::Bound;

use levelhead::{Batch, Durability, Error, Io, Options, Range, Snapshot, Store};
use runtime::Rng;

use crate::scratch::{Scratch, open, small, wanted};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Page size and inline limit, in bytes.
const PAGES: [[u32; 2]; 4] = [[4 << 10, 0], [32 << 10, 8_168], [8 << 10, 200], [16 << 10, 0]];

fn key(rng: &mut Rng) -> Vec<u8> {
    // Few keys, so that most are written several times, of one byte to the maximum length.
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

/// Returns a random bound. Some are not valid keys: empty, or longer than keys are.
fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    let mut key = key(rng);
    match rng.below(20) {
        0 => key.clear(),
        1 => key.resize(300, b'x'),
        _ => {}
    }
    match rng.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

type Pairs = Vec<(Box<[u8]>, Vec<u8>)>;

/// Reads up to `most` pairs, each from an end that `rng` chooses, and compares them with the map's.
fn check_turns(mut range: Range, mut expected: Vec<(&[u8], &[u8])>, rng: &mut Rng, most: usize) {
    let only = [None, Some(false), Some(true)][rng.below(3) as usize];
    let (mut front, mut back) = (Pairs::new(), Pairs::new());
    for _ in 0..most {
        let is_back = only.unwrap_or(rng.below(2) == 0);
        let pair = if is_back { range.next_back() } else { range.next() };
        let Some(pair) = pair else {
            assert!(range.next().is_none() && range.next_back().is_none(), "it has ended");
            break;
        };
        if is_back { &mut back } else { &mut front }.push(pair.expect("it can be read"));
    }
    let wanted = most.min(expected.len());
    assert_eq!(front.len() + back.len(), wanted, "{only:?}");
    let borrowed = |pairs: &Pairs| -> Vec<(Vec<u8>, Vec<u8>)> {
        pairs.iter().map(|(key, value)| (key.to_vec(), value.clone())).collect()
    };
    let owned = |pairs: &[(&[u8], &[u8])]| -> Vec<(Vec<u8>, Vec<u8>)> {
        pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    };
    assert!(borrowed(&front) == owned(&expected[..front.len()]), "other pairs upwards");
    expected.reverse();
    assert!(borrowed(&back) == owned(&expected[..back.len()]), "other pairs downwards");
}

/// Checks that iterating the keys alone gives the keys of the pairs, from both ends.
fn check_keys<'a>(
    make: impl Fn((Bound<&'a [u8]>, Bound<&'a [u8]>)) -> Range,
    bounds: (Bound<&'a [u8]>, Bound<&'a [u8]>),
    expected: &[(&[u8], &[u8])],
) {
    let of = |keys: &mut dyn Iterator<Item = Result<Box<[u8]>, levelhead::Error>>| {
        keys.collect::<Result<Vec<_>, _>>().expect("they can be read")
    };
    let up: Vec<Box<[u8]>> = expected.iter().map(|(key, _)| Box::from(*key)).collect();
    assert!(of(&mut make(bounds).keys()) == up, "other keys upwards");
    let down: Vec<_> = up.into_iter().rev().collect();
    assert!(of(&mut make(bounds).keys().rev()) == down, "other keys downwards");
}

fn check_range(make: impl Fn((Bound<&[u8]>, Bound<&[u8]>)) -> Range, map: &Map, rng: &mut Rng) {
    let (lower, upper) = (bound(rng), bound(rng));
    let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
    let longest = if rng.below(4) == 0 { 4_000 } else { 700 };
    let most = rng.below(longest) as usize;
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
    let expected = map.iter().filter(|(key, _)| is_in(key));
    let expected: Vec<_> = expected.map(|(key, value)| (&key[..], &value[..])).collect();
    println!("{lower:?} to {upper:?}, {most}");
    check_keys(&make, bounds, &expected);
    check_turns(make(bounds), expected, rng, most);
}

fn check_all(store: &Store, map: &Map) {
    let all: Result<Vec<_>, _> = store.range(..).collect();
    let all = all.expect("it can be read");
    assert_eq!(all.len(), map.len());
    for ((key, value), (expected_key, expected)) in all.iter().zip(map) {
        assert_eq!((&key[..], value), (&expected_key[..], expected));
    }
}

fn check_snapshot(snapshot: &Snapshot, map: &Map, rng: &mut Rng) {
    check_range(|bounds| snapshot.range(bounds), map, rng);
    for _ in 0..20 {
        let key = key(rng);
        assert_eq!(snapshot.get(&key).expect("it is kept").as_ref(), map.get(&key), "{key:?}");
        assert_eq!(snapshot.exists(&key).expect("it is kept"), map.contains_key(&key), "{key:?}");
    }
}

fn agrees(seed: u64, options: &Options) {
    let scratch = Scratch::new();
    let (rng, mut map) = (&mut Rng::derive(seed, "model"), Map::new());
    for _ in 0..4 {
        let store = open(scratch.path(), options);
        check_all(&store, &map);
        let mut held: Option<(Snapshot, Map)> = None;
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
                7 if rng.below(3) == 0 => {
                    let keys: Vec<_> = (0..rng.below(50)).map(|_| self::key(rng)).collect();
                    let expected: Vec<_> = keys.iter().map(|key| map.get(key).cloned()).collect();
                    assert_eq!(store.multi_get(&keys).expect("all is there"), expected);
                }
                7 => assert_eq!(store.get(&key).expect("it is there"), map.get(&key).cloned()),
                _ => {
                    store.delete(&key).expect("there is room");
                    map.remove(&key);
                }
            }
            if rng.below(200) == 0 {
                check_range(|bounds| store.range(bounds), &map, rng);
            }
            if rng.below(300) == 0 {
                held = Some((store.snapshot().expect("there is memory"), map.clone()));
            }
            if let Some((snapshot, map)) = &held
                && rng.below(100) == 0
            {
                check_snapshot(snapshot, map, rng);
            }
        }
        drop(held);
        check_all(&store, &map);
        store.close().expect("it can be made durable");
    }
}

#[test]
fn the_store_agrees_with_an_ordered_map() {
    let seeds = match wanted("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..wanted("LEVELHEAD_ROUNDS").unwrap_or(3),
    };
    for seed in seeds {
        println!("LEVELHEAD_SEED={seed} cargo test -p levelhead --test levelhead model");
        let io = if seed % 2 == 0 { Io::Probe } else { Io::Threads };
        let [page_bytes, inline_up_to] = PAGES[(seed / 2 % 4) as usize];
        agrees(seed, &Options { io, page_bytes, inline_up_to, ..small() });
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
        (Options { page_bytes: 0, ..small() }, "must be 4096, 8192"),
        (Options { page_bytes: 12 << 10, ..small() }, "must be 4096, 8192"),
        (Options { page_bytes: 64 << 10, ..small() }, "must be 4096, 8192"),
        (Options { page_bytes: 8 << 10, inline_up_to: 2_025, ..small() }, "must be 2024 at most"),
    ] {
        let other = Scratch::new();
        let opened = Store::open(other.path(), &options).map(drop);
        assert!(words(opened).contains(word));
    }
}

#[test]
fn a_snapshot_reads_one_instant_on_any_thread_until_it_is_dropped() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    let key = |n: u32| format!("{n:05}").into_bytes();
    for n in 0..3_000 {
        store.put(&key(n), &[b'a'; 500]).expect("there is room");
    }
    let before = store.snapshot().expect("there is memory");
    let again = before.clone();
    for n in 0..3_000 {
        if n % 2 == 0 {
            store.put(&key(n), &[b'b'; 500]).expect("there is room");
        } else {
            store.delete(&key(n)).expect("there is room");
        }
    }
    store.settle();
    std::thread::scope(|scope| {
        for part in 0..3 {
            let (before, again) = (&before, &again);
            scope.spawn(move || {
                for n in (part..3_000).step_by(3) {
                    let found = before.get(&key(n)).expect("it is kept");
                    assert_eq!(found.as_deref(), Some(&[b'a'; 500][..]));
                }
                let keys = again.range(..).rev().map(|pair| pair.expect("it is kept").0);
                assert!(keys.map(Vec::from).eq((0..3_000).rev().map(key)));
            });
        }
    });
    // A range keeps its instant by itself.
    let mut range = before.range(..);
    assert!(range.next_back().is_some());
    drop((before, again));
    assert_eq!(range.count(), 2_999);
    assert_eq!(store.range(..).count(), 1_500);
    assert_eq!(store.inside().snapshots, 0, "nothing is held any more");
}
