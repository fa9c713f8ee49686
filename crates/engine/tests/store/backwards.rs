//! Ascending and descending iterators, and snapshots, against an ordered map, with random bounds,
//! reversals and concurrent writes.
//!
//! A failure prints its seed: `LEVELHEAD_SEED=3 cargo test -p engine --test store backwards`;
//! `LEVELHEAD_TRIALS=200` runs more trials.

use std::collections::BTreeMap;

use engine::{
    Engine, EngineError, EngineIterator, EngineSnapshot, IteratorOptions, Options, Shape, Step,
    TableOptions, Value, WriteOptions,
};
use runtime::{Nanos, Rng, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::{COLUMNS, create, seeds};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Pair = (Vec<u8>, Vec<u8>);
type Memory = EngineIterator<MemoryMedium>;

/// Returns trees of all forms, with names for messages.
fn forms() -> Vec<(&'static str, Options)> {
    let ahead = IteratorOptions {
        index_prefetch: true,
        value_prefetch: 4,
        most_value_prefetch: 16,
        skip_budget: 5,
        kept_pages: 8,
        ..IteratorOptions::default()
    };
    let small = Options { memtable_bytes: 16 << 10, ..Options::pink() };
    let tables = TableOptions {
        table_bytes: 16 << 10,
        level_base_bytes: 64 << 10,
        ..TableOptions::default()
    };
    vec![
        ("pinned", Options { iterators: ahead, ..small.clone() }),
        ("nothing pinned", Options { pinned_levels: Some(0), ..small.clone() }),
        ("nothing pinned, read ahead", {
            Options { pinned_levels: Some(0), iterators: ahead, ..small.clone() }
        }),
        (
            "groups",
            Options {
                inline_up_to: 128,
                group_pages: 5,
                iterators: IteratorOptions { index_prefetch: true, ..small.iterators },
                pinned_levels: Some(1),
                ..small.clone()
            },
        ),
        ("columns", Options { pinned_levels: Some(0), columns: Some(COLUMNS), ..small.clone() }),
        (
            "columns, read ahead",
            Options { pinned_levels: Some(0), columns: Some(COLUMNS), iterators: ahead, ..small },
        ),
        ("tables", Options { memtable_bytes: 16 << 10, tables, ..Options::rocksdb() }),
    ]
}

fn key(rng: &mut Rng) -> Vec<u8> {
    let n = rng.below(700);
    let mut key = format!("{n:03}").into_bytes();
    match n % 9 {
        0 => key.truncate(1),
        1 => key.resize(255, b'x'),
        2 => key.resize(20, 0),
        _ => {}
    }
    key
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(30) {
        0 => 2_500,
        1 => 0,
        _ => rng.below(200),
    };
    (0..len).map(|_| rng.below(256) as u8).collect()
}

/// Returns a random bound, sometimes longer than all keys.
fn bound(rng: &mut Rng) -> Option<Vec<u8>> {
    let mut key = key(rng);
    match rng.below(4) {
        0 => return None,
        1 => key.push(0),
        _ => {}
    }
    Some(key)
}

/// Returns the pair of a command, which is repeated while it returns `Step::Again`.
async fn pair(iterator: &mut Memory, step: Result<Step, EngineError>) -> Option<Pair> {
    let mut step = step;
    loop {
        match step.expect("all is whole, and there is room for snapshots") {
            Step::Pair(key, value) => return Some((key.into(), value.to_bytes().to_vec())),
            Step::End => return None,
            Step::Again => step = iterator.next(0, Nanos::ZERO).await,
        }
    }
}

/// Returns the first pairs from a key on in ascending order, at most `most`.
async fn up(iterator: &mut Memory, from: &[u8], most: usize) -> Vec<Pair> {
    let step = iterator.seek(from, Nanos::ZERO).await;
    rest(iterator, step, most).await
}

/// Returns the last pairs before a key in descending order, at most `most`.
async fn down(iterator: &mut Memory, before: Option<&[u8]>, most: usize) -> Vec<Pair> {
    let step = iterator.seek_before(before, Nanos::ZERO).await;
    rest(iterator, step, most).await
}

async fn rest(iterator: &mut Memory, first: Result<Step, EngineError>, most: usize) -> Vec<Pair> {
    let (mut pairs, mut step) = (Vec::new(), first);
    while let Some(found) = pair(iterator, step).await {
        pairs.push(found);
        if pairs.len() == most {
            break;
        }
        step = iterator.next(pairs.len() as u32 % 3, Nanos::ZERO).await;
    }
    pairs
}

/// Moves an iterator with random bounds up and down.
async fn check_turns(snapshot: &EngineSnapshot<MemoryMedium>, map: &Map, rng: &mut Rng) {
    let (lower, upper) = (bound(rng), bound(rng));
    let made = snapshot.iterator(lower.as_deref(), upper.as_deref());
    let mut iterator = made.expect("there is memory");
    for _ in 0..4 {
        let longest = if rng.below(3) == 0 { 900 } else { 30 };
        let most = 1 + rng.below(longest) as usize;
        let is_below = |key: &[u8]| upper.as_ref().is_none_or(|upper| key < &upper[..]);
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        if rng.below(2) == 0 {
            let from = key(rng);
            let found = up(&mut iterator, &from, most).await;
            let expected = map.range(from.clone()..).take_while(|(key, _)| is_below(key));
            let expected: Vec<Pair> = expected.take(most).map(owned).collect();
            assert!(found == expected, "up from {from:?} to {upper:?}, {most}");
        } else {
            let before = bound(rng);
            let found = down(&mut iterator, before.as_deref(), most).await;
            let is_above = |key: &[u8]| lower.as_ref().is_none_or(|lower| key >= &lower[..]);
            let is_before = |key: &[u8]| before.as_ref().is_none_or(|before| key < &before[..]);
            let expected = map.iter().rev().filter(|(key, _)| is_below(key) && is_before(key));
            let expected: Vec<Pair> =
                expected.take_while(|(key, _)| is_above(key)).take(most).map(owned).collect();
            assert!(found == expected, "down from {before:?}, {lower:?}..{upper:?}, {most}");
        }
    }
}

async fn check_gets(snapshot: &EngineSnapshot<MemoryMedium>, map: &Map, rng: &mut Rng) {
    for _ in 0..30 {
        let key = key(rng);
        let found = snapshot.get(&key).await.expect("all is whole");
        let found = found.map(|value| value.to_bytes().to_vec());
        assert_eq!(found.as_ref(), map.get(&key), "{key:?}");
        let is_there = snapshot.exists(&key).await.expect("all is whole");
        assert_eq!(is_there, map.contains_key(&key), "{key:?}");
    }
}

async fn write(engine: &Engine<MemoryMedium>, map: &mut Map, rng: &mut Rng) {
    let key = key(rng);
    if rng.below(4) == 0 {
        let deleted = engine.delete(&key, WriteOptions::default(), Nanos::ZERO).await;
        deleted.expect("there is room");
        map.remove(&key);
    } else {
        let value = value(rng);
        let bytes = Value::from_bytes(&value);
        let put = engine.put(&key, bytes, WriteOptions::default(), Nanos::ZERO).await;
        put.expect("there is room");
        map.insert(key, value);
    }
}

/// Writes, and checks snapshots of different ages.
async fn trial(engine: Engine<MemoryMedium>, seed: u64) {
    let (rng, mut map) = (&mut Rng::derive(seed, "backwards"), Map::new());
    let mut snapshots = Vec::new();
    for round in 0..60 {
        for _ in 0..rng.below(120) {
            write(&engine, &mut map, rng).await;
        }
        if round % 20 == 19 {
            engine.flush().await;
            engine.settle().await;
        }
        snapshots.push((engine.snapshot().expect("there is memory"), map.clone()));
        if snapshots.len() > 4 {
            snapshots.remove(rng.below(4) as usize);
        }
        let at = rng.below(snapshots.len() as u64) as usize;
        let (snapshot, map) = &snapshots[at];
        check_turns(snapshot, map, rng).await;
        check_gets(snapshot, map, rng).await;
    }
    drop(snapshots);
    assert!(engine.snapshots().is_empty(), "nothing holds a snapshot any more");
}

#[test]
fn both_ways_agree_with_an_ordered_map() {
    for seed in seeds(3) {
        for (form, options) in forms() {
            println!("LEVELHEAD_SEED={seed} cargo test -p engine --test store backwards ({form})");
            let rt = Runtime::new(seed);
            let shape = Shape { extents: 120, ..SHAPE };
            let medium = MemoryMedium::new(&rt.handle(), &Cells::new(shape), None);
            let engine = create(&rt, &medium, &options);
            rt.block_on(trial(engine, seed));
        }
    }
}

/// Walks over a whole store. Returns its pairs, the maximum number of reads of a page, and all
/// reads.
fn walk(options: &Options, goes_down: bool, of_keys: bool) -> (Vec<Pair>, u32, u64) {
    let rt = Runtime::new(3);
    let shape = Shape { extents: 120, ..SHAPE };
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(shape), None);
    let engine = create(&rt, &medium, options);
    rt.block_on(async move {
        for n in 0..4_000_u32 {
            let key = n.wrapping_mul(1_999).wrapping_rem(4_000).to_be_bytes();
            let put =
                engine.put(&key, Value::from_bytes(&[7; 30]), WriteOptions::default(), Nanos::ZERO);
            put.await.expect("there is room");
        }
        engine.flush().await;
        engine.settle().await;
        let snapshot = engine.snapshot().expect("there is memory");
        let mut iterator = snapshot.iterator(None, None).expect("there is memory");
        if of_keys {
            iterator = iterator.of_keys();
        }
        medium.forget_reads();
        let pairs = if goes_down {
            down(&mut iterator, None, usize::MAX).await
        } else {
            up(&mut iterator, &[0], usize::MAX).await
        };
        let (most, all) = medium.reads();
        (pairs, most, all)
    })
}

#[test]
fn going_down_reads_each_page_of_the_index_once() {
    for (form, options) in forms().into_iter().filter(|(_, options)| options.columns.is_none()) {
        // All values are inline, so that only index pages are read.
        let iterators = IteratorOptions { readahead_bytes: 0, ..options.iterators };
        let options = Options { inline_up_to: u32::MAX, iterators, ..options };
        let (pairs, most_up, all_up) = walk(&options, false, false);
        let (mut down, most_down, all_down) = walk(&options, true, false);
        down.reverse();
        assert!(pairs.len() == 4_000 && down == pairs, "{form}");
        println!("{form}: {all_up} reads up, {all_down} down");
        assert!(most_up <= 1 && most_down <= 1, "{form}: a page read {most_up}, {most_down} times");
        assert!(all_down <= all_up + 1, "{form}: {all_up} reads up, {all_down} down");
    }
}

#[test]
fn keys_alone_read_no_page_of_values() {
    for (form, options) in forms().into_iter().filter(|(_, options)| options.inline_up_to == 0) {
        for goes_down in [false, true] {
            let (pairs, _, all) = walk(&options, goes_down, false);
            let (keys, _, of_index) = walk(&options, goes_down, true);
            let empty = |(key, _): &Pair| (key.clone(), Vec::new());
            assert!(keys == pairs.iter().map(empty).collect::<Vec<_>>(), "{form}: other keys");
            // 4,000 objects of some 60 bytes are in the value log, in pages of 1 KiB, and not in
            // key order.
            assert!(of_index + 200 < all, "{form}: {of_index} reads for keys, {all} for pairs");
            let is_pinned = options.pinned_levels.is_none();
            assert!(!is_pinned || of_index == 0, "{form}: {of_index} reads, and all is in memory");
        }
    }
}
