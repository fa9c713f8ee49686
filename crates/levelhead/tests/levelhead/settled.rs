//! Results and errors of handles, snapshots and options are distinguished by type, not only by
//! message.

use std::io::ErrorKind;
use std::time::Duration;

use levelhead::{Closed, Durability, Error, Options, Statistics, Store, WantOf};

use crate::scratch::{Scratch, open, small};

/// Pairs of 4,000 bytes: twice as many, plus background writes, do not fit in a small store.
const KEYS: u32 = 6_000;

#[test]
fn a_handle_that_is_closed_says_whether_it_was_the_last() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    let (other, snapshot) = (store.clone(), store.snapshot().expect("there is memory"));
    assert_eq!(store.close().expect("nothing fails"), Closed::Handle);
    assert!(matches!(Store::open(scratch.path(), &small()), Err(Error::InUse(_))));
    other.put(b"apple", b"red").expect("it is open");
    drop(snapshot);
    assert_eq!(other.close().expect("nothing fails"), Closed::Store);
    assert_eq!(open(scratch.path(), &small()).get(b"apple").ok().flatten(), Some(b"red".to_vec()));
}

#[test]
fn what_was_settled_when_a_store_was_made_is_not_passed_over() {
    for directories in [1, 3] {
        let scratch = Scratch::new();
        let paths = scratch.directories(directories);
        let made = Options { page_bytes: 8 << 10, inline_up_to: 100, ..small() };
        drop(Store::open_over(&paths, &made).unwrap_or_else(|error| panic!("{error}")));
        for (options, words) in [
            (Options { capacity_bytes: 1 << 42, ..made.clone() }, ["67108864", "checkpoint"]),
            (Options { page_bytes: 16 << 10, ..made.clone() }, ["page_bytes is 16384", "8192"]),
            (Options { inline_up_to: 99, ..made.clone() }, ["inline_up_to is 99", "with 100"]),
        ] {
            match Store::open_over(&paths, &options) {
                Err(Error::Invalid(said)) => {
                    assert!(words.iter().all(|word| said.contains(word)), "{said}");
                }
                other => panic!("{:?}", other.map(drop)),
            }
        }
        // The store's own values and the defaults are accepted.
        for options in [made, Options { memory_bytes: 16 << 20, ..Options::default() }] {
            drop(Store::open_over(&paths, &options).unwrap_or_else(|error| panic!("{error}")));
        }
    }
}

#[test]
fn statistics_say_how_near_a_snapshot_is_to_being_too_old_and_it_says_why_it_was() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    let value = [7; 4_000];
    let put = |n: u32| store.put_with(&(n % KEYS).to_be_bytes(), &value, Durability::None);
    for n in 0..KEYS {
        put(n).expect("there is room");
    }
    store.settle();
    let Statistics { oldest_snapshot, free_bytes: free, .. } = store.statistics();
    assert_eq!(oldest_snapshot, None);
    let before = store.snapshot().expect("there is memory");
    let (mut held, mut least_free, mut puts) = (0, u64::MAX, 0);
    loop {
        for _ in 0..50 {
            put(puts).expect("what snapshots hold is given up for it");
            puts += 1;
        }
        assert!(puts < 20 * KEYS, "it is kept in a store that has no room for it");
        if let Err(error) = before.get(&0_u32.to_be_bytes()) {
            let words = error.to_string();
            let Error::TooOld { age, for_want_of } = error else { panic!("{words}") };
            assert!(age > Duration::ZERO && for_want_of == WantOf::Space, "{words}");
            assert!(words.contains("out of space"), "{words}");
            break;
        }
        let statistics = store.statistics();
        assert_eq!(statistics.snapshots, 1);
        assert!(statistics.oldest_snapshot.is_some());
        assert!(statistics.snapshot_bytes <= statistics.most_snapshot_bytes);
        held = held.max(statistics.held_bytes);
        least_free = least_free.min(statistics.free_bytes);
    }
    assert!(held > 0, "it kept what was replaced");
    assert!(least_free < free, "{least_free} bytes were free of {free}");
}

#[test]
fn the_system_s_refusals_keep_their_kind() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("file"), b"").expect("it is ours");
    match Store::open(scratch.path().join("file/store"), &small()) {
        Err(Error::System { kind, what }) => {
            assert_eq!(kind, ErrorKind::NotADirectory);
            assert!(what.contains("file"), "{what}");
        }
        other => panic!("{:?}", other.map(drop)),
    }
}
