//! Stores that are full, and in which many keys are then deleted: a client that retries may put
//! again, without a manual compaction.
//!
//! A failure prints its seed: `LEVELHEAD_SEED=3 cargo test -p engine --test store full::`;
//! `LEVELHEAD_TRIALS=200` runs more trials.

use engine::{Durability, Engine, EngineError, Options, Shape, UsedUp, Value, WriteOptions};
use runtime::{Handle, Nanos, Rng, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::{create, put_number, seeds, setup};

/// How long a client retries.
const PATIENCE: Nanos = Nanos::from_millis(20_000);

fn forms() -> Vec<(&'static str, Options)> {
    let small = Options { memtable_bytes: 16 << 10, ..Options::pink() };
    let large = Options { memtable_bytes: 64 << 10, ..small.clone() };
    let of_hosts = Options { leaves_room: true, durability: Durability::Log, ..small.clone() };
    vec![
        ("pinned", small.clone()),
        ("large memtables", large.clone()),
        ("of hosts", of_hosts.clone()),
        ("of hosts, large memtables", Options { memtable_bytes: 64 << 10, ..of_hosts }),
        ("nothing pinned", Options { pinned_levels: Some(0), ..large }),
        ("two frozen", Options { frozen_memtables: 2, ..small }),
    ]
}

/// The length in bytes of values with which all deletes of a full store fit in one memtable, which
/// is not flushed by itself.
const LONG: u32 = 3_000;

/// Puts a value under a number: of the given length, or of a random length.
async fn put_one(
    engine: &Engine<MemoryMedium>,
    (n, len): (u64, Option<u32>),
    rng: &mut Rng,
) -> Result<bool, EngineError> {
    let Some(len) = len else { return put_number(engine, n, rng).await };
    let value = Value::Synthetic { seed: rng.next_u64(), len };
    engine.put(&n.to_be_bytes(), value, WriteOptions::default(), Nanos::ZERO).await
}

/// Puts values until the store is full. Returns their number.
async fn fill_with(engine: &Engine<MemoryMedium>, len: Option<u32>, rng: &mut Rng) -> u64 {
    for n in 0..1_000_000 {
        match put_one(engine, (n, len), rng).await {
            Ok(_) => {}
            Err(EngineError::Full(UsedUp::Space)) => return n,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it takes everything");
}

/// Puts, and retries while the store is full. Returns the number of retries, or the last error.
async fn put_with_patience(
    engine: &Engine<MemoryMedium>,
    handle: &Handle,
    one: (u64, Option<u32>),
    rng: &mut Rng,
) -> Result<u32, EngineError> {
    let until = handle.now() + PATIENCE;
    let mut refused = 0;
    loop {
        match put_one(engine, one, rng).await {
            Ok(_) => return Ok(refused),
            Err(EngineError::Full(_)) if handle.now() < until => refused += 1,
            Err(error) => return Err(error),
        }
        handle.sleep(Nanos::from_millis(50)).await;
    }
}

#[test]
fn a_full_store_takes_puts_again_once_much_of_it_was_deleted() {
    for seed in seeds(1) {
        let lengths = [None, Some(LONG)];
        for ((name, options), len) in
            forms().into_iter().flat_map(|it| lengths.map(|len| (it.clone(), len)))
        {
            let rt = Runtime::new(seed);
            let shape = Shape { extents: 90, ..SHAPE };
            let medium = MemoryMedium::new(&rt.handle(), &Cells::new(shape), None);
            let engine = create(&rt, &medium, &options);
            let (what, handle) = (format!("{name}, {len:?}, LEVELHEAD_SEED={seed}"), rt.handle());
            rt.block_on(async move {
                let rng = &mut Rng::new(seed);
                let there = fill_with(&engine, len, rng).await;
                // Keeps from a third of the keys to only a few.
                let kept = 2 + seed % 5;
                for n in (0..there).filter(|n| n % kept != 0 || seed % 2 == 1 && n % 3 == 0) {
                    let options = WriteOptions::default();
                    let deleted = engine.delete(&n.to_be_bytes(), options, Nanos::ZERO).await;
                    deleted.unwrap_or_else(|error| panic!("{what}: delete of {n}: {error}"));
                }
                for n in there..there + there / 4 {
                    let put = put_with_patience(&engine, &handle, (n, len), rng).await;
                    put.unwrap_or_else(|error| {
                        panic!("{what}: {} of {there}: {error}, {}", n - there, engine.background())
                    });
                }
            });
        }
    }
}

/// The index is full, not the medium. Deletes still in memtables are taken into account when a put
/// is refused.
#[test]
fn an_index_that_is_full_takes_puts_again_once_much_of_it_was_deleted() {
    for seed in seeds(4) {
        let rt = Runtime::new(seed);
        let medium =
            MemoryMedium::new(&rt.handle(), &Cells::new(Shape { extents: 400, ..SHAPE }), None);
        let options = Options { memtable_bytes: 256 << 10, ..Options::pink() };
        let mut setup = setup(&rt, &medium, &options);
        setup.surroundings.index_dram_bytes = 24 << 10;
        setup.surroundings.expected_value_bytes = 2_000;
        let engine = Engine::create(setup).expect("it fits");
        let (what, handle) = (format!("LEVELHEAD_SEED={seed}"), rt.handle());
        rt.block_on(async move {
            let rng = &mut Rng::new(seed);
            let there = fill_index(&engine).await;
            for n in (0..there).filter(|n| n % 4 != 0) {
                let deleted = engine.delete(&key(n), WriteOptions::default(), Nanos::ZERO).await;
                deleted.unwrap_or_else(|error| panic!("{what}: delete of {n}: {error}"));
            }
            let put = put_with_patience(&engine, &handle, (7, None), rng).await;
            put.unwrap_or_else(|error| panic!("{what}: {error}, {}", engine.background()));
        });
    }
}

/// Returns a key that takes much of an index.
fn key(n: u64) -> Vec<u8> {
    format!("{n:0200}").into_bytes()
}

/// Puts short values under long keys until the index is full. Returns their number.
async fn fill_index(engine: &Engine<MemoryMedium>) -> u64 {
    for n in 0..1_000_000 {
        let value = Value::from_bytes(&[7; 8]);
        match engine.put(&key(n), value, WriteOptions::default(), Nanos::ZERO).await {
            Ok(_) => {}
            Err(EngineError::Full(UsedUp::IndexMemory(_))) => return n,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it takes everything");
}
