//! Tests of the data layer on a real store.

use std::ops::Bound;
use std::path::PathBuf;

use levelhead::{Durability, Store};

use super::access::Access;
use super::count::Count;
use super::database::Database;
use super::keys::Space;
use super::overlay::Direction;
use super::records::Kind;
use super::sorted_sets::AddOptions;
use super::sweep::{Sweeper, Swept};
use crate::clock::{Clock, Hand};

/// Keys or members: many times the size of a sweep step.
const MANY: u64 = 12_000;

/// A store in a temporary directory.
struct Stand {
    directory: PathBuf,
    store: Option<Store>,
    options: levelhead::Options,
    hand: Hand,
    clock: Clock,
}

impl Stand {
    fn new(name: &str) -> Self {
        let options = levelhead::Options {
            capacity_bytes: 512 << 20,
            memory_bytes: 32 << 20,
            // Large enough that nothing is compacted: tombstones stay.
            memtable_bytes: 16 << 20,
            ..levelhead::Options::default()
        };
        Self::with(name, options)
    }

    fn with(name: &str, options: levelhead::Options) -> Self {
        let directory = format!("levelhead-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        let _ = std::fs::remove_dir_all(&directory);
        let (clock, hand) = Clock::by_hand(1_000_000);
        let mut stand = Self { directory, store: None, options, hand, clock };
        stand.open();
        stand
    }

    fn open(&mut self) {
        self.store = None;
        self.store = Some(Store::open(&self.directory, &self.options).expect("it is ours"));
    }

    fn store(&self) -> Store {
        self.store.clone().expect("it is open")
    }

    fn database(&self) -> Database {
        let opened = Database::open(self.store(), self.clock.clone(), Durability::None);
        opened.expect("it is ours")
    }

    /// Returns the tombstones that ranges have stepped over since the store was opened.
    fn stepped_over(&self) -> u64 {
        self.store().inside().stats.iterators.skipped
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.store = None;
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Adds a sorted set with `MANY` members.
fn add_members(access: &Access<'_>, key: &[u8]) {
    let names: Vec<String> = (0..MANY).map(|number| format!("m{number:07}")).collect();
    for names in names.chunks(1_000) {
        let pairs: Vec<_> = names.iter().map(|name| (1.0, name.as_bytes())).collect();
        access.add(key, &pairs, AddOptions::default()).expect("there is room");
    }
}

/// Runs up to `most` sweep steps. Returns the totals, and whether nothing is left.
fn sweep(sweeper: &mut Sweeper, database: &Database, most: u64) -> (Swept, bool) {
    let mut all = Swept::default();
    for _ in 0..most {
        let (swept, outcome) = sweeper.step(database);
        outcome.expect("the store is whole");
        all.expired += swept.expired;
        all.parts += swept.parts;
        if !swept.is_unfinished {
            return (all, true);
        }
    }
    (all, false)
}

fn names(access: &Access<'_>) -> usize {
    let names = access.names((Bound::Unbounded, Bound::Unbounded)).expect("it is whole");
    names.inspect(|name| assert!(name.is_ok(), "it is whole")).count()
}

/// Each step continues after the previous one: the work is linear in the number of parts. After a
/// restart the sweep continues with the remaining parts.
#[test]
fn a_dropped_collection_is_swept_in_one_pass() {
    let mut stand = Stand::new("dropped");
    let database = stand.database();
    let access = database.access();
    add_members(&access, b"z");
    add_members(&access, b"y");
    assert_eq!(access.delete(&[b"z"]).expect("it is there"), 1);
    let mut sweeper = Sweeper::default();
    let (some, is_all) = sweep(&mut sweeper, &database, 30);
    assert!(!is_all && some.parts > 0 && some.parts < 2 * MANY);
    let (rest, is_all) = sweep(&mut sweeper, &database, MANY);
    assert!(is_all && some.parts + rest.parts == 2 * MANY);
    assert!(stand.stepped_over() < MANY / 10, "{} in one pass", stand.stepped_over());
    // A collection dropped later is found, although notes after it in order were swept before.
    assert_eq!(access.delete(&[b"y"]).expect("it is there"), 1);
    let (some, is_all) = sweep(&mut sweeper, &database, 30);
    assert!(!is_all && some.parts > 0);
    drop(database);
    stand.open();
    let before = stand.stepped_over();
    let database = stand.database();
    let (rest, is_all) = sweep(&mut Sweeper::default(), &database, MANY);
    assert!(is_all && some.parts + rest.parts == 2 * MANY);
    let stepped_over = stand.stepped_over() - before;
    assert!(stepped_over < 5 * MANY, "{stepped_over} after a restart");
}

#[test]
fn what_expires_together_is_swept_in_one_pass() {
    let stand = Stand::new("expired");
    let database = stand.database();
    let access = database.access();
    for number in 0..MANY {
        let mut batch = super::batch::Batch::default();
        let (key, at) = (format!("k{number:07}"), access.now + 1_000);
        access.put_string(&mut batch, key.as_bytes(), b"v", Some(at)).expect("it is short");
        access.write(batch).expect("there is room");
    }
    stand.hand.advance_ms(2_000);
    let mut sweeper = Sweeper::default();
    let (some, is_all) = sweep(&mut sweeper, &database, 20);
    assert!(!is_all && some.expired > 0);
    let (rest, is_all) = sweep(&mut sweeper, &database, MANY);
    assert!(is_all && some.expired + rest.expired == MANY);
    // Further sweeps, and walks over keys, step over few tombstones.
    for _ in 0..20 {
        assert_eq!(sweep(&mut sweeper, &database, 1), (Swept::default(), true));
    }
    assert!(stand.stepped_over() < MANY / 10, "{} in one pass", stand.stepped_over());
    assert_eq!(names(&database.access()), 0);
    assert!(stand.stepped_over() < 2 * MANY, "{} for names", stand.stepped_over());
}

/// An expiry before the sweep position, after the clock was set back.
#[test]
fn what_is_to_expire_earlier_than_what_was_swept_does() {
    let stand = Stand::new("earlier");
    let database = stand.database();
    let mut sweeper = Sweeper::default();
    assert_eq!(sweep(&mut sweeper, &database, 1), (Swept::default(), true));
    stand.hand.set_ms(500_000);
    let access = database.access();
    let mut batch = super::batch::Batch::default();
    access.put_string(&mut batch, b"k", b"v", Some(600_000)).expect("it is short");
    access.write(batch).expect("there is room");
    assert_eq!(access.set_fields(b"h", &[(b"f", b"v")]).expect("there is room"), 1);
    assert!(access.expire(b"h", |_| Some(Some(600_001))).expect("it is there"));
    assert_eq!(sweep(&mut sweeper, &database, 1), (Swept::default(), true));
    stand.hand.set_ms(600_001);
    assert_eq!(names(&database.access()), 0, "they are gone for readers at once");
    let (swept, is_all) = sweep(&mut sweeper, &database, 3);
    assert_eq!((swept.expired, swept.parts, is_all), (2, 1, true));
    assert_eq!(database.access().length(b"h", Kind::Hash), Ok(0));
    assert_eq!(database.count(), 0);
}

/// Expired keys are never drawn, nor keys that a transaction has removed; a few live keys among
/// many other records are found.
#[test]
fn random_names_are_those_of_keys_that_are_there() {
    let stand = Stand::new("random");
    let database = stand.database();
    let access = database.access();
    let drawn_of = |access: &Access<'_>| {
        let seeds = std::cell::Cell::new(0);
        let random = || runtime::mix64(seeds.replace(seeds.get() + 1));
        let draw = |_| access.random_name(&random).expect("it is whole");
        (0..100).filter_map(draw).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(drawn_of(&access).is_empty());
    add_members(&access, b"z");
    for (key, at) in [("a", None), ("b", Some(access.now + 10)), ("c", None)] {
        let mut batch = super::batch::Batch::default();
        access.put_string(&mut batch, key.as_bytes(), b"v", at).expect("it is short");
        access.write(batch).expect("there is room");
    }
    assert_eq!(drawn_of(&access), [b"a", b"b", b"c", b"z"].map(|key| key.to_vec()).into());
    stand.hand.advance_ms(10);
    let access = database.access();
    assert_eq!(drawn_of(&access), [b"a", b"c", b"z"].map(|key| key.to_vec()).into());
    let transaction = database.transaction();
    assert_eq!(transaction.delete(&[b"a", b"z"]).expect("they are there"), 2);
    assert_eq!(drawn_of(&transaction), [b"c".to_vec()].into());
    for number in 0..1_000 {
        let mut batch = super::batch::Batch::default();
        let key = format!("a common prefix:{number}");
        access.put_string(&mut batch, key.as_bytes(), b"v", None).expect("it is short");
        access.write(batch).expect("there is room");
    }
    // Too few draws to hit all keys, but the draws must not repeat a few keys.
    assert!(drawn_of(&access).len() > 60);
}

/// All keys and their expiry notes are removed; the sweeper removes the parts of collections, and
/// nothing remains.
#[test]
fn nothing_is_left_of_all_keys() {
    let stand = Stand::new("flushed");
    let database = stand.database();
    let access = database.access();
    add_members(&access, b"z");
    access.set_fields(b"h", &[(b"f", b"v")]).expect("there is room");
    assert!(access.expire(b"h", |_| Some(Some(access.now + 5_000))).expect("it is there"));
    // Several steps of keys, some of which expire.
    for number in 0..3_000_u64 {
        let mut batch = super::batch::Batch::default();
        let at = number.is_multiple_of(3).then_some(access.now + 5_000);
        access
            .put_string(&mut batch, format!("k{number}").as_bytes(), b"v", at)
            .expect("it is short");
        access.write(batch).expect("there is room");
    }
    assert_eq!(database.count(), 3_002);
    access.remove_all().expect("it is whole");
    assert_eq!((database.count(), names(&access)), (0, 0));
    let in_store = |space: Space| {
        let (from, to) = super::keys::all(space);
        access.names_between(&from, &to).count()
    };
    for space in [Space::String, Space::Head, Space::Expiry] {
        assert_eq!(in_store(space), 0, "{space:?}");
    }
    let (swept, is_all) = sweep(&mut Sweeper::default(), &database, MANY);
    assert_eq!((swept.expired, swept.parts, is_all), (0, 2 * MANY + 1, true));
    for space in [Space::Field, Space::Member, Space::Score, Space::Dropped] {
        assert_eq!(in_store(space), 0, "{space:?}");
    }
}

/// A walk over tombstones is cut short like a walk over keys.
#[test]
fn deletions_are_steps() {
    let stand = Stand::new("deletions");
    let database = stand.database();
    let access = database.access();
    for number in 0..5_000 {
        let mut batch = super::batch::Batch::default();
        let key = format!("k{number:04}");
        access.put_string(&mut batch, key.as_bytes(), b"v", None).expect("it is short");
        access.write(batch).expect("there is room");
    }
    access.remove_all().expect("it is whole");
    let walk = |may_go_far| {
        let before = stand.stepped_over();
        access.steps.begin(may_go_far);
        let mut all = access.names((Bound::Unbounded, Bound::Unbounded)).expect("it is whole");
        let is_whole = all.all(|name| name.is_ok());
        (is_whole, access.steps.are_cut_short(), stand.stepped_over() - before)
    };
    let (is_whole, is_cut_short, stepped_over) = walk(false);
    assert!(!is_whole && is_cut_short && stepped_over < 1_500, "{stepped_over}");
    assert_eq!(walk(true), (true, false, 5_000));
}

fn put(access: &Access<'_>, key: &str) {
    let mut batch = super::batch::Batch::default();
    access.put_string(&mut batch, key.as_bytes(), b"v", None).expect("it is short");
    access.write(batch).expect("there is room");
}

/// Before the count is complete, and if it never completes, no partial count is returned.
#[test]
fn uncounted_keys_are_walked_over() {
    let mut stand = Stand::new("uncounted");
    let database = stand.database();
    let access = database.access();
    (0..500).for_each(|number| put(&access, &format!("k{number}")));
    assert_eq!(access.set_fields(b"h", &[(b"f", b"v")]), Ok(1));
    assert_eq!(access.count(), Ok(501));
    drop(database);
    // The server was not closed cleanly.
    stand.open();
    let database = stand.database();
    let count = Count::begin(&database).expect("there is room");
    let access = database.access();
    assert_eq!(access.count(), Ok(501));
    assert_eq!(access.delete(&[b"k1", b"h"]), Ok(2));
    put(&access, "new");
    assert_eq!(access.count(), Ok(500));
    access.steps.begin(false);
    assert!(access.count().is_err() && access.steps.are_cut_short(), "it goes far");
    access.steps.begin(true);
    let transaction = database.transaction();
    assert_eq!(transaction.delete(&[b"k2", b"k3"]), Ok(2));
    assert_eq!((transaction.count(), access.count()), (Ok(498), Ok(500)));
    let count = count.expect("it was not closed");
    count.run(&database, &|| false).expect("it is whole");
    access.steps.begin(false);
    assert_eq!((access.count(), transaction.count()), (Ok(500), Ok(498)));
}

/// A store that needs the space drops the instant of a walk. The walk continues after the last key,
/// in both directions.
#[test]
fn a_walk_whose_instant_is_dropped_continues() {
    let options = levelhead::Options {
        capacity_bytes: 64 << 20,
        memtable_bytes: 1 << 20,
        ..levelhead::Options::default()
    };
    let stand = Stand::with("dropped-instant", options);
    let database = stand.database();
    let access = database.access();
    add_members(&access, b"z");
    let (from, to) = super::keys::all(Space::Member);
    let names = |direction| access.walk_names_between(&from, &to, direction);
    let all: Vec<_> = names(Direction::Up).map(|name| name.expect("it is whole").0).collect();
    let store = stand.store();
    // Two versions of all of it do not fit.
    let overwrite = |number: u32| {
        let key = format!("~{}", number % 6_000);
        store.put(key.as_bytes(), &[0; 4_000]).expect("there is room");
    };
    (0..6_000).for_each(overwrite);
    for direction in [Direction::Up, Direction::Down] {
        // Fetches are of at most 256 keys: most are left to read.
        let mut walk = names(direction);
        let mut walked = vec![walk.next().expect("there are members").expect("it is whole").0];
        let instant = store.snapshot().expect("there is room");
        let is_kept = || !matches!(instant.get(b"a"), Err(levelhead::Error::TooOld { .. }));
        let writes = (0..64_000).find(|number: &u32| {
            overwrite(*number);
            number.is_multiple_of(64) && !is_kept()
        });
        assert!(writes.is_some(), "{direction:?}: the instant was never dropped");
        walked.extend(walk.map(|name| name.expect("it continues").0));
        if direction == Direction::Down {
            walked.reverse();
        }
        assert!(walked == all, "{direction:?}: {} of {}", walked.len(), all.len());
    }
}

/// If a snapshot is lost, the count restarts and is right despite concurrent writes.
#[test]
fn keys_are_counted_anew_while_others_write() {
    let stand = Stand::new("anew");
    let database = stand.database();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let ordering = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        for part in 0..3_u32 {
            let (database, is_over) = (&database, &is_over);
            let write = move || {
                for number in (0..u32::MAX).take_while(|_| !is_over.load(ordering)) {
                    let access = database.access();
                    let key = format!("k{part}:{}", number % 500);
                    match number % 7 {
                        0..=3 => put(&access, &key),
                        4 => drop(access.set_fields(key.as_bytes(), &[(b"f", b"v")])),
                        5 => drop(access.delete(&[key.as_bytes(), b"k0:1", b"k1:1"])),
                        _ => drop(access.rename(
                            key.as_bytes(),
                            b"k2:7",
                            super::rename::Replace::Always,
                        )),
                    }
                }
            };
            std::thread::Builder::new().spawn_scoped(scope, write).expect("a thread");
        }
        for _ in 0..20 {
            let count = Count::begin_anew(&database).expect("there is room");
            count.run(&database, &|| false).expect("it is whole");
        }
        is_over.store(true, ordering);
    });
    assert_eq!(database.count(), names(&database.access()) as u64);
}

/// One unreadable key does not stop the sweep of the others. It is not reported as absent, and goes
/// once the key is overwritten.
#[test]
fn what_cannot_be_read_is_passed_by_the_sweep_and_stays() {
    let stand = Stand::new("unreadable");
    let database = stand.database();
    let access = database.access();
    for number in 0..1_000 {
        let mut batch = super::batch::Batch::default();
        let key = format!("k{number:04}");
        access.put_string(&mut batch, key.as_bytes(), b"v", Some(access.now + 10)).expect("short");
        access.write(batch).expect("there is room");
    }
    // Not a valid record.
    stand.store().put(&super::keys::string(b"k0100"), &[7]).expect("there is room");
    stand.hand.advance_ms(10);
    let access = database.access();
    let mut sweeper = Sweeper::default();
    let (swept, is_all) = sweep(&mut sweeper, &database, 100);
    assert_eq!((swept.expired, is_all, database.count()), (999, true, 1));
    let told = |access: &Access<'_>| {
        let mut names = access.names((Bound::Unbounded, Bound::Unbounded)).expect("notes are");
        names.any(|name| name.is_err_and(|fault| fault.message().contains("damaged")))
    };
    assert!(told(&access) && access.look(b"k0100").is_err());
    // Later keys are swept, without a walk over all tombstones.
    let before = stand.stepped_over();
    let mut batch = super::batch::Batch::default();
    access.put_string(&mut batch, b"later", b"v", Some(access.now + 10)).expect("short");
    access.write(batch).expect("there is room");
    stand.hand.advance_ms(10);
    let (swept, is_all) = sweep(&mut sweeper, &database, 100);
    assert_eq!((swept.expired, is_all, database.count()), (1, true, 1));
    assert!(stand.stepped_over() - before < 100 && told(&database.access()));
    // The key is overwritten, with another expiry.
    let access = database.access();
    let mut batch = super::batch::Batch::default();
    access.put_string(&mut batch, b"k0100", b"v", Some(access.now + 10)).expect("short");
    access.write(batch).expect("there is room");
    stand.hand.advance_ms(10);
    assert!(!told(&database.access()));
    let (swept, is_all) = sweep(&mut sweeper, &database, 100);
    assert_eq!((swept.expired, is_all, database.count()), (1, true, 0));
    // The outdated note is retried now and then.
    let notes = || {
        let (from, to) = super::keys::all(Space::Expiry);
        database.access().names_between(&from, &to).count()
    };
    assert_eq!(notes(), 1);
    (0..1_000).for_each(|_| assert!(sweep(&mut sweeper, &database, 100).1));
    assert_eq!((notes(), database.count()), (0, 0));
}
