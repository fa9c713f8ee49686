//! Several threads on one store.

use std::sync::Barrier;

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

/// Whoever makes a store removes what another one left half made, but not what another one is making.
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
