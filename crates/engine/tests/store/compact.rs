//! Manual compaction against an ordered map: in trees of all forms, with concurrent writers, and in
//! virtual time, so that the same seed gives the same store.
//!
//! A failure prints its seed: `LEVELHEAD_SEED=3 cargo test -p engine --test store compact`;
//! `LEVELHEAD_TRIALS=200` runs more trials.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Context, Waker};

use engine::{
    Durability, Engine, EngineError, Granularity, Options, Shape, UsedUp, Value, WriteOptions,
};
use runtime::{Handle, Nanos, Rng, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::{COLUMNS, fill, seeds};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns trees of all forms, with names for messages.
fn forms() -> Vec<(&'static str, Options)> {
    let small = Options { memtable_bytes: 16 << 10, ..Options::pink() };
    vec![
        ("pinned", small.clone()),
        ("a log", Options { durability: Durability::Log, ..small.clone() }),
        ("nothing pinned", Options { pinned_levels: Some(0), ..small.clone() }),
        ("whole levels", Options { compaction: Granularity::Whole, ..small.clone() }),
        ("columns", Options { pinned_levels: Some(0), columns: Some(COLUMNS), ..small.clone() }),
        ("groups", Options { inline_up_to: 128, group_pages: 5, pinned_levels: Some(1), ..small }),
    ]
}

fn create(rt: &Runtime, extents: u32, options: &Options) -> Engine<MemoryMedium> {
    let shape = Shape { extents, ..SHAPE };
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(shape), None);
    crate::setup::create(rt, &medium, options)
}

/// Writes some of 700 keys and notes the writes in `map`.
async fn write_some(engine: &Engine<MemoryMedium>, map: &mut Map, rng: &mut Rng, writes: u64) {
    for _ in 0..writes {
        let key = format!("{:03}", rng.below(700)).into_bytes();
        let options = WriteOptions::default();
        if rng.below(4) == 0 {
            map.remove(&key);
            engine.delete(&key, options, Nanos::ZERO).await.expect("there is room");
        } else {
            let value = vec![rng.below(256) as u8; rng.below(300) as usize];
            map.insert(key.clone(), value.clone());
            let value = Value::from_bytes(&value);
            engine.put(&key, value, options, Nanos::ZERO).await.expect("there is room");
        }
    }
}

async fn check(engine: &Engine<MemoryMedium>, map: &Map, what: &str) {
    for n in 0..700 {
        let key = format!("{n:03}").into_bytes();
        let found = engine.get(&key, Nanos::ZERO).await.expect("it can be read").value;
        let found = found.map(|value| value.to_bytes().to_vec());
        assert_eq!(found.as_ref(), map.get(&key), "{what}, key {n}");
    }
}

/// The state of a store after a trial: entries of its levels, bytes in use, garbage collected.
type Outcome = (Vec<(u64, u64)>, u64, u64);

fn compacted(seed: u64, name: &str, options: &Options) -> Outcome {
    let rt = Runtime::new(seed);
    let engine = create(&rt, 400, options);
    let what = format!("{name}, LEVELHEAD_SEED={seed}");
    rt.block_on(async move {
        let (mut map, mut rng) = (Map::new(), Rng::new(seed));
        for _ in 0..3 {
            write_some(&engine, &mut map, &mut rng, 2_000).await;
            engine.compact().await.unwrap_or_else(|error| panic!("{what}: {error}"));
            check(&engine, &map, &what).await;
        }
        let levels = engine.levels();
        let (last, upper) = levels.split_last().expect("there are levels");
        assert!(upper.iter().all(|(_, entries)| *entries == 0), "{what}: {levels:?}");
        assert_eq!(last.1, map.len() as u64, "{what}: each key once");
        (levels, engine.used_bytes(), engine.stats().gc_data_extents)
    })
}

#[test]
fn everything_is_in_the_last_level_once_and_a_seed_says_how() {
    let mut collected = 0;
    for seed in seeds(6) {
        for (name, options) in forms() {
            let first = compacted(seed, name, &options);
            assert_eq!(first, compacted(seed, name, &options), "{name}, seed {seed}");
            collected += first.2;
        }
    }
    assert!(collected > 0, "no garbage was collected");
}

#[test]
fn it_ends_while_writers_go_on() {
    for seed in seeds(2) {
        for (name, options) in forms() {
            let rt = Runtime::new(seed);
            let engine = create(&rt, 400, &options);
            let (handle, what) = (rt.handle(), format!("{name}, LEVELHEAD_SEED={seed}"));
            rt.block_on(async move {
                let (mut map, mut rng) = (Map::new(), Rng::new(seed));
                write_some(&engine, &mut map, &mut rng, 2_000).await;
                let is_over = Rc::new(Cell::new(false));
                let (other, ends) = (engine.clone(), Rc::clone(&is_over));
                let writer = handle.spawn("writer", async move {
                    let mut n = 0_u64;
                    while !ends.get() && n < 2_000_000 {
                        // In ascending order, after all existing keys, and repeatedly.
                        let key = format!("z{:06}", n % 4_000).into_bytes();
                        let value = Value::Synthetic { seed: n, len: 60 };
                        let options = WriteOptions::default();
                        other.put(&key, value, options, Nanos::ZERO).await.expect("there is room");
                        n += 1;
                    }
                    n
                });
                for compacted in runtime::join_all([engine.compact(), engine.compact()]).await {
                    compacted.unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                is_over.set(true);
                let writes = writer.await;
                assert!(writes > 0 && writes < 2_000_000, "{what}: {writes} writes");
                check(&engine, &map, &what).await;
            });
        }
    }
}

#[test]
fn a_caller_who_goes_away_leaves_a_store_that_goes_on() {
    let rt = Runtime::new(1);
    let (_, options) = forms().swap_remove(0);
    let engine = create(&rt, 400, &options);
    rt.block_on(async move {
        let (mut map, mut rng) = (Map::new(), Rng::new(1));
        write_some(&engine, &mut map, &mut rng, 2_000).await;
        let mut begun = Box::pin(engine.compact());
        let polled = begun.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "it was to be under way");
        drop(begun);
        write_some(&engine, &mut map, &mut rng, 2_000).await;
        engine.compact().await.expect("there is room");
        check(&engine, &map, "after a caller went away").await;
    });
}

#[test]
fn a_store_without_room_says_so_and_does_not_hang() {
    let rt = Runtime::new(2);
    let (_, options) = forms().swap_remove(2);
    let engine = create(&rt, 40, &options);
    rt.block_on(async move {
        for n in 0..1_000_000_u64 {
            let (key, value) = (n.to_be_bytes(), Value::Synthetic { seed: n, len: 90 });
            match engine.put(&key, value, WriteOptions::default(), Nanos::ZERO).await {
                Ok(_) => {}
                Err(EngineError::Full(UsedUp::Space)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        match engine.compact().await {
            Ok(()) | Err(EngineError::Full(UsedUp::Space)) => {}
            Err(error) => panic!("{error}"),
        }
    });
}

/// Deletes and puts keys that no other task uses, whether the writes are accepted or refused, until
/// `is_over`.
async fn write_beside(handle: Handle, engine: Engine<MemoryMedium>, is_over: Rc<Cell<bool>>) {
    let mut n = 0_u64;
    while !is_over.get() && n < 2_000_000 {
        // Refused writes and overwrites within a memtable take no time themselves.
        handle.sleep(Nanos(1_000)).await;
        let key = format!("z{:03}", n % 400).into_bytes();
        let options = WriteOptions::default();
        let value = Value::Synthetic { seed: n, len: 60 };
        let _ = engine.delete(&key, options, Nanos::ZERO).await.expect("deletes are taken");
        match engine.put(&key, value, options, Nanos::ZERO).await {
            Ok(_) | Err(EngineError::Full(UsedUp::Space)) => {}
            Err(error) => panic!("{error}"),
        }
        n += 1;
    }
    assert!(n < 2_000_000, "the compaction does not end: {}", engine.background());
}

/// After the compaction, randomly deleted keys have become free space, although collection was due
/// all the time, with and without a concurrent writer.
#[test]
fn a_store_that_was_full_takes_puts_again_when_it_returns() {
    for seed in seeds(4) {
        for (name, options) in forms() {
            for has_writer in [false, true] {
                let rt = Runtime::new(seed);
                let engine = create(&rt, 90, &options);
                let handle = rt.handle();
                let what = format!("{name}, writer {has_writer}, LEVELHEAD_SEED={seed}");
                rt.block_on(async move {
                    let mut rng = Rng::new(seed);
                    let there = fill(&engine, &mut rng).await;
                    let is_over = Rc::new(Cell::new(false));
                    let writer = has_writer.then(|| {
                        let work =
                            write_beside(handle.clone(), engine.clone(), Rc::clone(&is_over));
                        handle.spawn("writer", work)
                    });
                    for n in (0..there).filter(|_| rng.below(3) == 0) {
                        let (key, options) = (n.to_be_bytes(), WriteOptions::default());
                        let deleted = engine.delete(&key, options, Nanos::ZERO).await;
                        deleted.unwrap_or_else(|error| panic!("{what}: {error}"));
                    }
                    let compacted = engine.compact().await;
                    let stands = || engine.background();
                    compacted.unwrap_or_else(|error| panic!("{what}: {error}, {}", stands()));
                    let value = Value::Synthetic { seed: 1, len: 200 };
                    let put = engine.put(b"new", value, WriteOptions::default(), Nanos::ZERO);
                    put.await.unwrap_or_else(|error| panic!("{what}: {error}, {}", stands()));
                    is_over.set(true);
                    if let Some(writer) = writer {
                        writer.await;
                    }
                });
            }
        }
    }
}
