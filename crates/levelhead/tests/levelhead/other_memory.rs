//! Stores that are opened with other memory sizes than at creation: the new sizes are respected, or
//! refused with an error.

use std::path::Path;

use levelhead::{Durability, Error, Options, Store};

use crate::scratch::{Scratch, open, small};

const KEYS: u32 = 150_000;

fn key(n: u32) -> Vec<u8> {
    format!("key {n:020}").into_bytes()
}

fn with_memory(mib: u64) -> Options {
    Options {
        capacity_bytes: 0,
        memory_bytes: mib << 20,
        value_cache_bytes: 0,
        expected_key_bytes: 24,
        expected_value_bytes: 100,
        ..small()
    }
}

fn put(store: &Store, keys: impl Iterator<Item = u32>, value: u8) {
    for n in keys {
        store.put_with(&key(n), &[value; 9], Durability::None).expect("there is room");
    }
}

/// Opens the store and writes to it. Returns the number of segments that it may keep in memory.
fn live(path: &Path, mib: u64, value: u8) -> u64 {
    let options = with_memory(mib);
    let store = open(path, &options);
    put(&store, (0..KEYS).step_by(7), value);
    store.settle();
    // Levels that no longer fit in memory were written out after opening.
    let memory = store.inside().memory;
    assert!(memory.index_bytes() <= options.memory_bytes, "{mib} MiB: {memory:?}");
    for n in (0..KEYS).step_by(7 * 50) {
        assert_eq!(store.get(&key(n)).expect("it is whole"), Some(vec![value; 9]), "key {n}");
    }
    assert_eq!(store.range(..).keys().count(), KEYS as usize);
    let levels = store.inside().levels.into_iter();
    let pinned = levels.filter(|level| level.is_pinned).map(|level| level.capacity_segments).sum();
    store.close().expect("it can be made durable");
    pinned
}

#[test]
fn a_store_heeds_the_memory_that_it_is_opened_with() {
    for made_with in [1, 64] {
        let scratch = Scratch::new();
        let made = Options { capacity_bytes: 256 << 20, ..with_memory(made_with) };
        let store = open(scratch.path(), &made);
        put(&store, 0..KEYS, 1);
        store.close().expect("it can be made durable");
        let lives = [(1, 2), (64, 3), (2, 4), (64, 5)];
        let pinned = lives.map(|(mib, value)| live(scratch.path(), mib, value));
        println!("made with {made_with} MiB: {pinned:?} segments may be in memory with {lives:?}");
        let [one, many, two, again] = pinned;
        assert!(4 * one < many && 4 * two < again && one < two, "{pinned:?}");
    }
}

#[test]
fn memtables_that_a_store_has_no_room_for_are_refused() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    store.put(b"apple", b"red").expect("there is room");
    store.close().expect("it can be made durable");
    for memtable_bytes in [32 << 20, 1 << 30] {
        match Store::open(scratch.path(), &Options { memtable_bytes, ..small() }) {
            Err(Error::Invalid(words)) => assert!(words.contains("memtable_bytes"), "{words}"),
            other => panic!("{memtable_bytes}: {:?}", other.map(drop)),
        }
    }
    let store = open(scratch.path(), &small());
    assert_eq!(store.get(b"apple").expect("it is whole").as_deref(), Some(&b"red"[..]));
}
