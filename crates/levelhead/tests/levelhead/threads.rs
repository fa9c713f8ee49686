//! Several threads on one store.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use levelhead::{Durability, Error, Store};

use crate::scratch::{Scratch, open, small};

#[test]
fn threads_share_a_store() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..1_500_u32 {
                    let key = format!("{thread}-{n:06}");
                    let value = [thread as u8; 300];
                    let durability =
                        if n % 100 == 0 { Durability::Group } else { Durability::None };
                    store.put_with(key.as_bytes(), &value, durability).expect("there is room");
                    let back = format!("{thread}-{:06}", n / 2);
                    let found = store.get(back.as_bytes()).expect("it is there");
                    assert_eq!(found.as_deref(), Some(&value[..]), "{back}");
                }
            });
        }
        let store = store.clone();
        scope.spawn(move || {
            for _ in 0..20 {
                let mut last = Vec::new();
                for pair in store.range(..) {
                    let (key, value) = pair.expect("it can be read");
                    assert!(*key > last[..], "keys rise");
                    assert_eq!(value.len(), 300);
                    last = key.into();
                }
            }
        });
    });
    assert_eq!(store.range(..).count(), 6_000);
    store.settle();
    let statistics = store.statistics();
    assert_eq!((statistics.writes, statistics.gets_missing), (6_000, 0));
    assert!(statistics.flushes > 0, "{statistics:?}");
}

/// Returns a value that identifies its key and version. Several short ones fit in a page; a long
/// one takes two pages.
fn told(key: u32, version: u32) -> Vec<u8> {
    let words = if key.is_multiple_of(8) { 1_500 } else { 200 + key as usize % 100 };
    (0..words).flat_map(|word| (key ^ version << 16 ^ word as u32).to_le_bytes()).collect()
}

#[test]
fn readers_find_whole_values_while_extents_are_collected() {
    const KEYS: u32 = 4_000;
    const GETS: u64 = 30_000;
    for value_cache_bytes in [0, 1 << 20] {
        let scratch = Scratch::new();
        let options = levelhead::Options { value_cache_bytes, ..small() };
        let store = open(scratch.path(), &options);
        let put = |key: u32, version| {
            let put = store.put_with(&key.to_be_bytes(), &told(key, version), Durability::None);
            put.expect("there is room");
        };
        (0..KEYS).for_each(|key| put(key, 0));
        store.settle();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2_u64)
                .map(|reader| {
                    let store = &store;
                    scope.spawn(move || {
                        for n in 0..GETS {
                            let key = (runtime::mix64(n ^ reader << 32) % u64::from(KEYS)) as u32;
                            let found = store.get(&key.to_be_bytes()).expect("it can be read");
                            let found = found.expect("it is there");
                            let first = u32::from_le_bytes(found[..4].try_into().expect("four"));
                            assert!(found == told(key, (first ^ key) >> 16), "{key}: {first}");
                        }
                    })
                })
                .collect();
            // Overwrites a part of each extent, so that all extents are collected and reused
            // meanwhile.
            scope.spawn(|| {
                for n in 0_u64.. {
                    let key = (runtime::mix64(!n) % u64::from(KEYS / 2)) as u32;
                    put(key, 1 + (n % 1_000) as u32);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let ended: Vec<_> = readers.into_iter().map(ScopedJoinHandle::join).collect();
            is_over.store(true, Ordering::Relaxed);
            for reader in ended {
                reader.expect("it finds what it asks for");
            }
        });
        let statistics = store.statistics();
        let gets: u64 = statistics.reads_per_get.iter().sum();
        assert_eq!((statistics.gets_found, gets), (2 * GETS, 2 * GETS), "{statistics:?}");
        assert_eq!(statistics.value_cache_hits > 0, value_cache_bytes > 0, "{statistics:?}");
        store.close().expect("all is well");
    }
}

#[test]
fn who_panics_and_has_the_last_handle_closes_the_store() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    store.put_with(b"key", b"value", Durability::None).expect("there is room");
    let ranges = [store.range(..), store.range(..)];
    let panics = move || {
        let (_store, mut ranges) = (store, ranges);
        assert_eq!(ranges[0].by_ref().count(), 1);
        panic!("as the test wants");
    };
    std::thread::scope(|scope| scope.spawn(panics).join()).expect_err("it panics");
    let found = open(scratch.path(), &small()).get(b"key").expect("it can be read");
    assert_eq!(found.as_deref(), Some(&b"value"[..]));
}

/// The creator of a store removes the remains of an interrupted creation, but not the files of one
/// in progress.
#[test]
fn of_those_who_make_a_store_at_one_time_one_does() {
    const MAKERS: u8 = 4;
    let scratch = Scratch::new();
    for (members, round) in
        [1, 3].into_iter().flat_map(|members| (0..10).map(move |n| (members, n)))
    {
        let parent = scratch.path().join(format!("{members}-{round}"));
        let directories: Vec<_> = (0..members).map(|n| parent.join(format!("d{n}"))).collect();
        let (start, all) = (Barrier::new(MAKERS.into()), Barrier::new(MAKERS.into()));
        let make = |maker: u8| {
            start.wait();
            let opened = Store::open_over(&directories, &small());
            let put = opened.as_ref().map(|store| store.put_with(&[maker], b"", Durability::Group));
            all.wait();
            match put {
                Ok(put) => put.map(|()| Some(maker)),
                Err(Error::InUse(_)) => Ok(None),
                Err(other) => Err(other.clone()),
            }
        };
        let put: Vec<u8> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..MAKERS)
                .map(|maker| {
                    let make = &make;
                    scope.spawn(move || make(maker))
                })
                .collect();
            let done = makers.into_iter().map(|maker| maker.join().expect("it does not panic"));
            done.filter_map(|put| put.unwrap_or_else(|error| panic!("{error:?}"))).collect()
        });
        let store = Store::open_over(&directories, &small()).expect("it is there");
        let found: Vec<u8> =
            store.range(..).keys().map(|key| key.expect("it is whole")[0]).collect();
        assert_eq!((put.len(), &found), (1, &put), "over {members}, round {round}");
    }
}
