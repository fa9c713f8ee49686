//! Batches that make room in a full store: they are accepted as long as they delete more than they
//! put.
//!
//! A failure prints its seed: `LEVELHEAD_SEED=3 cargo test -p engine --test store exchange`;
//! `LEVELHEAD_TRIALS=200` runs more trials.

use engine::{
    BatchOptions, BatchWrite, Durability, Engine, EngineError, Options, Shape, UsedUp, Value,
    WriteOptions,
};
use runtime::{Nanos, Rng, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::{create, fill, put_number, seeds};

const MAKES_ROOM: BatchOptions = BatchOptions { sync: None, makes_room: true };

fn forms() -> Vec<(&'static str, Options)> {
    let small = Options { memtable_bytes: 16 << 10, leaves_room: true, ..Options::pink() };
    vec![
        ("pinned", small.clone()),
        ("a log", Options { durability: Durability::Log, ..small.clone() }),
        ("nothing pinned", Options { pinned_levels: Some(0), ..small.clone() }),
        ("two frozen", Options { frozen_memtables: 2, durability: Durability::Log, ..small }),
    ]
}

fn engine(rt: &Runtime, extents: u32, options: &Options) -> Engine<MemoryMedium> {
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(Shape { extents, ..SHAPE }), None);
    create(rt, &medium, options)
}

fn note(n: u64) -> BatchWrite {
    let key = [b"note", &n.to_be_bytes()[..]].concat();
    (key.into(), Some(Value::from_bytes(&[7; 20])))
}

#[test]
fn a_full_store_exchanges_every_pair_for_a_shorter_one() {
    for seed in seeds(6) {
        for (name, options) in forms() {
            let rt = Runtime::new(seed);
            let engine = engine(&rt, 90, &options);
            let what = format!("{name}, LEVELHEAD_SEED={seed}");
            rt.block_on(async move {
                let rng = &mut Rng::new(seed);
                let there = fill(&engine, rng).await;
                let mut keys: Vec<u64> = (0..there).collect();
                for last in (1..keys.len()).rev() {
                    keys.swap(last, rng.below(last as u64 + 1) as usize);
                }
                for n in &keys {
                    let batch = vec![(n.to_be_bytes().into(), None), note(*n)];
                    let written = engine.write_batch(batch, MAKES_ROOM, Nanos::ZERO).await;
                    written.unwrap_or_else(|error| {
                        panic!("{what}: {n} of {there}: {error}, {}", engine.background())
                    });
                }
                engine.compact().await.unwrap_or_else(|error| panic!("{what}: {error}"));
                let put = put_number(&engine, 1, rng).await;
                put.unwrap_or_else(|error| panic!("{what}: {error}, {}", engine.background()));
                for n in keys.iter().step_by(7) {
                    let found = engine.get(&note(*n).0, Nanos::ZERO).await.expect("it can be read");
                    assert!(found.value.is_some(), "{what}: note {n}");
                }
            });
        }
    }
}

/// Batches that are marked as making room but make none are refused in the end. Deletes are still
/// accepted.
#[test]
fn what_makes_no_room_is_refused_when_the_room_for_it_is_used_up() {
    for seed in seeds(2) {
        for (name, options) in forms() {
            let rt = Runtime::new(seed);
            let engine = engine(&rt, 90, &options);
            let what = format!("{name}, LEVELHEAD_SEED={seed}");
            rt.block_on(async move {
                let rng = &mut Rng::new(seed);
                let there = fill(&engine, rng).await;
                let mut taken = 0_u64;
                let refused = loop {
                    match engine.write_batch(vec![note(taken)], MAKES_ROOM, Nanos::ZERO).await {
                        Ok(()) => taken += 1,
                        Err(error) => break error,
                    }
                    assert!(taken < 100_000, "{what}: it takes everything");
                };
                assert!(matches!(refused, EngineError::Full(UsedUp::Space)), "{what}: {refused}");
                assert!(taken > 20, "{what}: {taken} taken");
                for n in 0..there {
                    let options = WriteOptions::default();
                    let deleted = engine.delete(&n.to_be_bytes(), options, Nanos::ZERO).await;
                    deleted.unwrap_or_else(|error| panic!("{what}: delete of {n}: {error}"));
                }
                engine.compact().await.unwrap_or_else(|error| panic!("{what}: {error}"));
                let again = put_number(&engine, 1, rng).await;
                again.unwrap_or_else(|error| panic!("{what}: {error}, {}", engine.background()));
            });
        }
    }
}
