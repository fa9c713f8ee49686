//! Windows on three directories: reads meanwhile, writes that do not wait, and the end of windows.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use levelhead::{Durability, Error, Options, Store, WindowState, WindowStatistics, Windows};

use crate::scratch::{Scratch, faulty, small, timed};

fn rails() -> Options {
    Options { windows: Windows::Rails, ..small() }
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 300 + n as usize % 500]
}

fn open(directories: &[PathBuf], options: &Options) -> Store {
    Store::open_over(directories, options).unwrap_or_else(|error| panic!("{error}"))
}

fn statistics(store: &Store) -> WindowStatistics {
    store.statistics().windows.expect("there are windows")
}

/// Polls the windows until the condition holds.
fn wait_until(store: &Store, is_so: impl Fn(&WindowStatistics) -> bool) -> WindowStatistics {
    for _ in 0..60_000 {
        let now = statistics(store);
        if is_so(&now) {
            return now;
        }
        std::thread::park_timeout(Duration::from_micros(500));
    }
    panic!("it never comes to that: {:?}", statistics(store));
}

fn are_quiet(windows: &WindowStatistics) -> bool {
    windows.members.iter().all(|member| *member == WindowState::Adt)
}

fn put(store: &Store, keys: std::ops::Range<u32>, durability: Durability) {
    for n in keys {
        store.put_with(&key(n), &value(n), durability).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn check(store: &Store, keys: std::ops::Range<u32>, what: &str) {
    for n in keys {
        let found = store.get(&key(n)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found.as_deref() == Some(&value(n)[..]), "{what}: key {n}");
    }
}

#[test]
fn what_is_written_is_read_from_the_others_or_from_the_cache() {
    let scratch = Scratch::new();
    let store = open(&scratch.directories(3), &rails());
    put(&store, 0..4_000, Durability::Interval);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                check(&store, 0..1_000, "beside a writer");
            }
        });
        put(&store, 4_000..20_000, Durability::Interval);
        store.settle();
        is_over.store(true, Ordering::Relaxed);
    });
    let windows = statistics(&store);
    assert!(windows.slots >= 3 && windows.most_cached_bytes > 0, "{windows:?}");
    assert!(windows.direct_reads > 0 && windows.rebuilt_reads > 0, "{windows:?}");
    assert_eq!((windows.busy_reads, windows.writes_in_dtwin), (0, 0), "{windows:?}");
    let outside = |member: &&WindowState| **member != WindowState::Adt;
    assert!(windows.members.iter().filter(outside).count() <= 1, "{windows:?}");
    check(&store, 0..20_000, "at the end");
}

/// If they waited for slots, each write would take one slot of every member.
#[test]
fn writes_that_are_durable_wait_for_no_slot() {
    let scratch = Scratch::new();
    let store = open(&scratch.directories(3), &rails());
    let before = wait_until(&store, are_quiet);
    put(&store, 0..30, Durability::Each);
    put(&store, 30..60, Durability::Group);
    let after = statistics(&store);
    assert!(after.slots - before.slots < 30, "{before:?}\n{after:?}");
    assert!(after.journal_writes >= before.journal_writes + 3 * 30, "{after:?}");
}

#[test]
fn a_store_may_be_closed_in_any_part_of_a_slot_and_go_on_without_windows() {
    use WindowState::{And, Lockdown, Udt, Und};
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    for (round, part) in (0..).zip([Some(And), Some(Und), Some(Udt), Some(Lockdown), None]) {
        let store = open(&directories, &rails());
        put(&store, round * 3_000..(round + 1) * 3_000, Durability::None);
        // Short parts may pass unobserved.
        for _ in 0..200 {
            let members = statistics(&store).members;
            if part.is_none_or(|part| members.contains(&part)) {
                break;
            }
        }
        let (closed, took) = timed(|| store.close());
        closed.unwrap_or_else(|error| panic!("{error}"));
        assert!(took < Duration::from_secs(30), "{took:?}");
        let windows = [Windows::Off, Windows::Rails][round as usize % 2];
        let store = open(&directories, &Options { windows, ..small() });
        check(&store, 0..(round + 1) * 3_000, &format!("closed in {part:?}"));
    }
}

#[test]
fn a_member_that_is_lost_is_passed_over() {
    let scratch = Scratch::new();
    let Some(fs) = faulty(1) else { return };
    let mut directories = scratch.directories(2);
    directories.insert(1, fs.path().join("store"));
    let store = open(&directories, &rails());
    put(&store, 0..5_000, Durability::Interval);
    store.sync().expect("it can be made durable");
    // All requests to it fail from now on.
    fs.cut();
    put(&store, 5_000..12_000, Durability::Interval);
    store.settle();
    check(&store, 0..12_000, "without one");
    let windows = statistics(&store);
    assert_eq!(windows.members[1], WindowState::Lost, "{windows:?}");
    let slots = windows.slots;
    put(&store, 12_000..14_000, Durability::Interval);
    store.settle();
    let windows = statistics(&store);
    assert!(windows.slots > slots, "the others go on: {windows:?}");
    store.close().unwrap_or_else(|error| panic!("{error}"));
    // The member returns with its old data, and is brought up to date while windows run.
    fs.power_on();
    let store = open(&directories, &rails());
    check(&store, 0..14_000, "with all again");
    put(&store, 14_000..16_000, Durability::Interval);
    check(&store, 0..16_000, "at the end");
}

#[test]
fn windows_take_three_directories_and_drives_that_have_them() {
    let scratch = Scratch::new();
    match Store::open(scratch.path(), &rails()) {
        Err(Error::Invalid(words)) => assert!(words.contains("three directories"), "{words}"),
        other => panic!("{:?}", other.map(drop)),
    }
    let directories = scratch.directories(3);
    let store = open(&directories, &Options { windows: Windows::Plm, ..small() });
    put(&store, 0..3_000, Durability::Interval);
    store.settle();
    check(&store, 0..3_000, "without windows");
    let statistics = store.statistics();
    assert_eq!(statistics.windows, None);
    let words = statistics.troubles.join("\n");
    assert!(words.contains("no windows"), "{words}");
}
