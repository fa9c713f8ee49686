//! Manual compactions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use levelhead::{Durability, Options, Store};

use crate::scratch::{Scratch, open, small};

const KEYS: u32 = 20_000;

fn key(n: u32) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

/// Puts all keys several times, and deletes one in four.
fn overwrite(store: &Store, rounds: u8) {
    for round in 0..rounds {
        for n in 0..KEYS {
            // In a different order each time, so that no extent becomes garbage as a whole.
            let n = n.wrapping_mul([7_919, 7, 1_999, 33, 9_973][usize::from(round)]) % KEYS;
            let value = [round; 200];
            store.put_with(&key(n), &value, Durability::None).expect("there is room");
        }
    }
    for n in (0..KEYS).step_by(4) {
        store.delete_with(&key(n), Durability::None).expect("there is room");
    }
}

fn check(store: &Store, newest: u8) {
    for n in 0..KEYS {
        let found = store.get(&key(n)).expect("it can be read");
        let wanted = (n % 4 != 0).then(|| vec![newest; 200]);
        assert_eq!(found, wanted, "key {n}");
    }
}

#[test]
fn a_store_that_was_compacted_has_each_pair_once_and_gives_room_back() {
    let scratch = Scratch::new();
    let options = Options { capacity_bytes: 256 << 20, ..small() };
    let store = open(scratch.path(), &options);
    overwrite(&store, 5);
    store.settle();
    let before = store.inside();
    store.compact().expect("there is room");
    let after = store.inside();
    assert!(before.entries() > u64::from(KEYS) * 3 / 4, "{} entries", before.entries());
    assert_eq!((after.entries(), after.entries_above_last()), (u64::from(KEYS) * 3 / 4, 0));
    assert!(after.stats.gc_data_extents > before.stats.gc_data_extents, "nothing was collected");
    let (less, more) = (after.used_bytes, before.used_bytes);
    assert!(less < more, "{less} bytes are in use, {more} were");
    check(&store, 4);
    store.compact().expect("there is room");
    assert_eq!(
        store.inside().stats.gc_objects_moved,
        after.stats.gc_objects_moved,
        "once is enough"
    );
    store.close().expect("it can be made durable");
    let again = open(scratch.path(), &options);
    let found = again.inside();
    assert_eq!((found.entries(), found.entries_above_last()), (u64::from(KEYS) * 3 / 4, 0));
    check(&again, 4);
}

#[test]
fn it_ends_while_a_writer_goes_on_and_readers_do_too() {
    let scratch = Scratch::new();
    let options = Options { capacity_bytes: 256 << 20, ..small() };
    let store = open(scratch.path(), &options);
    overwrite(&store, 2);
    let snapshot = store.snapshot().expect("there is memory");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut writes = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                // New keys after all others, so that the store keeps growing.
                let name = format!("new {writes:09}");
                let value = [7; 200];
                match store.put_with(name.as_bytes(), &value, Durability::None) {
                    Ok(()) => writes += 1,
                    Err(levelhead::Error::Full(_)) => break,
                    Err(error) => panic!("{error}"),
                }
                if writes > 300_000 {
                    store
                        .delete_with(
                            format!("new {:09}", writes - 300_000).as_bytes(),
                            Durability::None,
                        )
                        .expect("it takes deletes");
                }
            }
            writes
        });
        let reader = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(store.get(&key(1)).expect("it can be read"), Some(vec![1; 200]));
            }
        });
        let compactions: Vec<_> = (0..2).map(|_| scope.spawn(|| store.compact())).collect();
        for compaction in compactions {
            compaction.join().expect("it does not panic").expect("there is room");
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(writer.join().expect("it does not panic") > 0);
        reader.join().expect("it does not panic");
    });
    if let Ok(found) = snapshot.get(&key(1)) {
        assert_eq!(found, Some(vec![1; 200]));
    }
    drop(snapshot);
    check(&store, 1);
}

#[test]
fn a_store_over_three_directories_is_compacted_too() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    let options = Options { capacity_bytes: 128 << 20, ..small() };
    let store = Store::open_over(&directories, &options).unwrap_or_else(|error| panic!("{error}"));
    overwrite(&store, 3);
    store.compact().expect("there is room");
    assert_eq!(store.inside().entries_above_last(), 0);
    check(&store, 2);
    store.compact().expect("nothing to do is no error");
}

#[test]
fn an_empty_store_is_compacted_at_once() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    store.compact().expect("there is nothing to do");
    assert_eq!(store.inside().entries(), 0);
}

/// A reader holds garbage that a store short of space would collect. Only a writer that needs the
/// space may take it from the reader.
#[test]
#[expect(clippy::disallowed_methods, reason = "a reader that is slow")]
fn who_reads_a_full_store_is_left_alone_until_somebody_writes() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    let key = |n: u32| n.to_be_bytes();
    let value = vec![7; 30_000];
    let put = (0..10_000).take_while(|n| store.put(&key(*n), &value).is_ok()).count() as u32;
    for n in (0..put).filter(|n| n % 3 == 0) {
        store.delete(&key(n)).expect("deletes are taken");
    }
    store.close().expect("it can be made durable");
    let store = open(scratch.path(), &small());
    let mut pairs = 0;
    for pair in store.range(..) {
        pair.unwrap_or_else(|error| panic!("pair {pairs}: {error}"));
        pairs += 1;
        // A slow reader: garbage collection runs in between.
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
    assert_eq!(pairs, put - put.div_ceil(3));
    // A writer still gets the space.
    let held = store.snapshot().expect("there is memory");
    assert!((0..200).any(|_| store.put(b"more", &value).is_ok() || {
        store.settle();
        std::thread::sleep(std::time::Duration::from_millis(20));
        false
    }));
    drop(held);
}
