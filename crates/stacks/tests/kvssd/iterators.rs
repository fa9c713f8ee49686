//! Results of iterator commands: snapshots, positions, handles, batches, skipping.

use std::cell::Cell;
use std::rc::Rc;

use engine::{IteratorOptions, Value};
use runtime::Nanos;
use stacks::kvssd::{DriveOptions, KvDrive, Status, StoreMode};

use crate::harness::{Machine, small_device, small_options, tree, tree_of};
use crate::script::{Script, case};

/// Small options with these iterators; no level is in memory.
pub(crate) fn with_iterators(iterators: IteratorOptions) -> DriveOptions {
    let mut options = small_options();
    let tree = tree_of(&mut options);
    (tree.iterators, tree.pinned_levels) = (iterators, Some(0));
    options
}

pub(crate) const PLAIN: IteratorOptions = IteratorOptions {
    index_prefetch: false,
    value_prefetch: 0,
    most_value_prefetch: 0,
    skip_budget: 1024,
    buffer_bytes: 16 << 10,
    first_buffer_bytes: 0,
    kept_pages: 0,
    cached_pairs: 0,
    readahead_bytes: 0,
};

/// Returns all kinds of read-ahead: none of them may change a result.
pub(crate) fn ways_of_reading() -> impl Iterator<Item = IteratorOptions> {
    let ahead = [(false, 0), (true, 0), (false, 3), (true, 3), (false, 8), (true, 8)];
    let ahead = ahead.into_iter().map(|(index_prefetch, value_prefetch)| IteratorOptions {
        index_prefetch,
        value_prefetch,
        ..PLAIN
    });
    let growing = |one| IteratorOptions { most_value_prefetch: 5, kept_pages: 6, ..one };
    ahead.flat_map(move |one| {
        let along = IteratorOptions { readahead_bytes: 64 << 10, ..one };
        [one, along, IteratorOptions { cached_pairs: 4, ..growing(one) }]
    })
}

fn in_every_way(text: &str) {
    for iterators in ways_of_reading() {
        let mut options = with_iterators(iterators);
        case(&options, text);
        let tree = tree_of(&mut options);
        (tree.page_cache_bytes, tree.value_cache_bytes) = (3 << 10, 3 << 10);
        case(&options, text);
        let tree = tree_of(&mut options);
        (tree.value_cache_bytes, tree.value_pages_up_to) = (16 << 10, 1_000);
        case(&options, text);
    }
}

#[test]
fn a_snapshot_is_of_the_moment_of_create() {
    in_every_way(
        "put a 1
         put b 2
         put d 4
         create old
         put a 9
         put c 3
         delete b
         create new
         seek old a  => a=1
         next old    => b=2
         next old    => d=4
         next old    => EndOfRange
         seek new a  => a=9
         next new    => c=3
         next new    => d=4
         put d 5
         seek old c  => d=4
         seek new d  => d=4",
    );
}

#[test]
fn a_snapshot_outlives_flushes_compactions_and_collections() {
    in_every_way(
        "put a 1
         put b 2
         settle
         put c 3
         put d 4
         create old ~
         put b 8
         delete c
         put d 9
         churn
         seek old a  => a=1
         next old    => b=2
         next old    => c=3
         churn
         create new ~
         next old    => d=4
         next old    => EndOfRange
         seek old b  => b=2
         many old 9 99 => c=3 d=4 end
         destroy old
         seek new a  => a=1
         next new    => b=8
         next new    => d=9
         next new    => EndOfRange",
    );
}

#[test]
fn seek_goes_to_the_first_key_at_or_after_its_target() {
    in_every_way(
        "create x
         seek x a    => EndOfRange
         next x      => EndOfRange
         put b 2
         put bb 22
         put d 4
         create x
         next x      => NotPositioned
         many x 3 99 => NotPositioned
         seek x a    => b=2
         seek x b    => b=2
         seek x b~   => d=4
         seek x ba   => bb=22
         seek x e    => EndOfRange
         next x      => EndOfRange
         seek x d    => d=4
         next x      => EndOfRange
         next x      => EndOfRange
         seek x -    => InvalidKeySize
         seek x long => InvalidKeySize
         seek x b    => b=2",
    );
}

#[test]
fn an_upper_bound_is_exclusive() {
    in_every_way(
        "put a 1
         put b 2
         put c 3
         create x b
         seek x a    => a=1
         next x      => EndOfRange
         seek x b    => EndOfRange
         seek x c    => EndOfRange
         create y c
         seek y a    => a=1
         many y 9 99 => b=2 end
         create z long => InvalidKeySize
         create z -  => InvalidKeySize",
    );
}

#[test]
fn a_stale_handle_is_refused_also_when_its_slot_is_used_again() {
    case(
        &DriveOptions { iterators: 2, ..with_iterators(PLAIN) },
        "put a 1
         create x
         create y
         create z    => TooManyIterators
         destroy x
         seek x a    => InvalidIterator
         destroy x   => InvalidIterator
         create z
         next x      => InvalidIterator
         many x 1 9  => InvalidIterator
         seek z a    => a=1
         reset
         next z      => InvalidIterator
         seek y a    => InvalidIterator
         create x
         create y
         seek x a    => a=1",
    );
}

#[test]
fn a_power_cut_ends_iterators_and_what_they_held() {
    let script = Script::new(&with_iterators(PLAIN)).run(
        "put a 1
         settle
         create x
         seek x a    => a=1
         churn
         cut
         next x      => InvalidIterator
         create y
         next x      => InvalidIterator
         next y      => NotPositioned
         destroy y
         churn",
    );
    let engine = tree(&script.machine.drive);
    assert_eq!(engine.snapshots(), []);
    assert_eq!(engine.snapshot_memory().total(), 0);
}

#[test]
fn a_batch_holds_what_its_buffer_does_and_the_rest_comes_next() {
    in_every_way(
        "put a 1
         put b 2
         put c 3
         put d 4
         put e 5
         create x
         seek x a    => a=1
         many x 9 20 => b=2 c=3
         next x      => d=4
         many x 0 0  => e=5
         many x 1 0  => EndOfRange
         seek x b    => b=2
         many x 9 11 => c=3
         many x 9 0  => d=4
         seek x a    => a=1
         many x 2 99 => b=2 c=3
         many x 2 99 => d=4 e=5
         many x 2 99 => EndOfRange
         seek x a    => a=1
         many x 9 15 => b=2
         seek x d    => d=4
         next x      => e=5",
    );
}

fn key(i: u64) -> Vec<u8> {
    format!("key{i:06}").into_bytes()
}

/// Returns a drive with room for a memtable of all the tombstones below.
fn drive_for_tombstones(memtable_bytes: u64) -> Machine {
    let mut device = small_device();
    device.flash.geometry.blocks_per_plane = 2048;
    device.dram.index_bytes = 2 << 20;
    let mut options = with_iterators(IteratorOptions { skip_budget: 64, ..PLAIN });
    tree_of(&mut options).memtable_bytes = memtable_bytes;
    Machine::format(1, &device, options)
}

/// Iterates over 10,000 tombstones with a budget of 64, while another client continues.
fn walk_over_tombstones(memtable_bytes: u64) -> u64 {
    let machine = drive_for_tombstones(memtable_bytes);
    let (drive, handle) = (machine.drive.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        let value = |seed| Value::Synthetic { seed, len: 20 };
        for i in [0, 10_001] {
            drive.store(&key(i), value(i), StoreMode::Upsert).await.expect("room");
        }
        for i in 1..=10_000 {
            drive.delete(&key(i)).await.expect("room");
        }
        let iterator = drive.create_iterator(None).await.expect("room");
        let other = drive.clone();
        let served = Rc::new(Cell::new(0));
        let counted = Rc::clone(&served);
        let client = handle.spawn("client", async move {
            for i in 0..1000 {
                other.store(&key(20_000 + i), value(i), StoreMode::Upsert).await.expect("room");
                other.retrieve(&key(20_000 + i), 99).await.expect("stored");
                counted.set(counted.get() + 1);
            }
        });
        assert_eq!(drive.seek(iterator, &key(0)).await.map(|pair| pair.value), Ok(value(0)));
        let mut again = 0;
        let last = loop {
            let (skipped, began) = (drive.engine_stats().iterators.skipped, handle.now());
            let answer = drive.next(iterator).await;
            assert!(drive.engine_stats().iterators.skipped - skipped <= 64);
            assert!(handle.now() - began < Nanos::from_millis(20), "a command took too long");
            match answer {
                Err(Status::AskAgain) => again += 1,
                other => break other.expect("there is another pair"),
            }
        };
        assert_eq!((&last.key[..], last.value), (&key(10_001)[..], value(10_001)));
        assert!(served.get() > again / 10, "{} served in {again} commands", served.get());
        client.await;
        again
    })
}

#[test]
fn a_command_passes_no_more_deleted_keys_than_its_budget() {
    assert_eq!(walk_over_tombstones(1 << 20), 10_000 / 64, "all of them in the memtable");
    assert!(walk_over_tombstones(64 << 10) > 0, "some of them in segments");
}

async fn fill(drive: &KvDrive, keys: u64) {
    for i in 0..keys {
        let value = Value::Synthetic { seed: i, len: 100 };
        drive.store(&key(i), value, StoreMode::Upsert).await.expect("room");
    }
    drive.settle().await;
}

#[test]
fn commands_on_one_handle_take_turns_and_a_destroy_does_not_wait_for_them() {
    for iterators in ways_of_reading() {
        let machine = Machine::format(1, &small_device(), with_iterators(iterators));
        let (drive, handle) = (machine.drive.clone(), machine.rt.handle());
        let outcome = machine.rt.block_on(async move {
            fill(&drive, 600).await;
            let iterator = drive.create_iterator(None).await.expect("room");
            drive.seek(iterator, &key(0)).await.expect("stored");
            let nexts: Vec<_> = (0..4)
                .map(|_| {
                    let drive = drive.clone();
                    handle.spawn("next", async move { drive.next(iterator).await })
                })
                .collect();
            handle.sleep(Nanos::from_micros(30)).await;
            drive.destroy_iterator(iterator).await.expect("open");
            let mut answers = Vec::new();
            for next in nexts {
                answers.push(next.await.map(|pair| pair.key));
            }
            handle.sleep(Nanos::from_millis(5)).await;
            assert_eq!(tree(&drive).snapshots(), []);
            assert_eq!(tree(&drive).snapshot_memory().total(), 0);
            answers
        });
        let pairs = outcome.iter().filter(|answer| answer.is_ok()).count();
        let refused = outcome.iter().filter(|a| **a == Err(Status::InvalidIterator)).count();
        assert_eq!(pairs + refused, 4, "{outcome:?}");
        assert!(refused > 0, "{outcome:?}");
    }
}

#[test]
fn a_reset_stops_commands_that_wait_for_their_turn() {
    let mut device = small_device();
    device.controller.queue_depth = 1;
    let machine = Machine::format(1, &device, with_iterators(PLAIN));
    let (drive, handle) = (machine.drive.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        fill(&drive, 100).await;
        let iterator = drive.create_iterator(None).await.expect("room");
        let getter = drive.clone();
        let get = handle.spawn("get", async move { getter.retrieve(&key(7), 99).await });
        handle.sleep(Nanos(1)).await;
        let seeker = drive.clone();
        let seek = handle.spawn("seek", async move { seeker.seek(iterator, &key(0)).await });
        handle.sleep(Nanos(1)).await;
        drive.reset_iterators();
        get.await.expect("stored");
        assert_eq!(seek.await, Err(Status::InvalidIterator));
    });
}

/// Reads pairs until the first error. Returns both.
async fn read_until_error(drive: &KvDrive, bulk: bool) -> (Vec<Box<[u8]>>, Status) {
    let iterator = drive.create_iterator(None).await.expect("room");
    let mut keys = match drive.seek(iterator, &key(0)).await {
        Ok(pair) => vec![pair.key],
        Err(status) => return (Vec::new(), status),
    };
    loop {
        if bulk {
            match drive.next_many(iterator, 7, u64::MAX).await {
                Ok(batch) => keys.extend(batch.pairs.into_iter().map(|pair| pair.key)),
                Err(status) => return (keys, status),
            }
        } else {
            match drive.next(iterator).await {
                Ok(pair) => keys.push(pair.key),
                Err(status) => return (keys, status),
            }
        }
    }
}

#[test]
fn damage_ahead_shows_when_a_command_comes_to_it_and_not_before() {
    let mut all = Vec::new();
    for iterators in ways_of_reading() {
        let machine = Machine::format(1, &small_device(), with_iterators(iterators));
        let drive = machine.drive.clone();
        all.extend(machine.rt.block_on(async move {
            fill(&drive, 600).await;
            let pages = drive.flash().with_array(|array| array.geometry().pages());
            drive.flash().with_array(|array| {
                // Segments that contain key 300 and the keys after it, and no others.
                for page in (0..pages).map(drives::nand::PageAddress) {
                    let Ok(image) = array.read(page) else { continue };
                    let is_index = image.bytes().get(8) == Some(&1);
                    if is_index && image.bytes().windows(7).any(|part| part == b"key0003") {
                        array.flip_bit(page, 77);
                    }
                }
            });
            [read_until_error(&drive, false).await, read_until_error(&drive, true).await]
        }));
    }
    let (keys, status) = &all[0];
    assert_eq!(*status, Status::UnrecoveredError);
    assert!(keys.len() > 200, "{} pairs before the damage", keys.len());
    assert!(
        all.iter().all(|other| *other == all[0]),
        "{:?}",
        all.iter().map(|(k, s)| (k.len(), s)).collect::<Vec<_>>()
    );
}
