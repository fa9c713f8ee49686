//! The setup of the stores of these tests.

use std::ops::Range;
use std::rc::Rc;

use engine::{
    ColumnOptions, Cpu, CpuCosts, Durability, Engine, EngineError, Medium, Options, Planted, Setup,
    StoreId, Surroundings, UsedUp, Value, WriteOptions,
};
use runtime::{Cores, Nanos, Rng, Runtime};

use crate::memory::MemoryMedium;

/// Small columnar tables.
pub(crate) const COLUMNS: ColumnOptions = ColumnOptions {
    entries: 60,
    growth: 2,
    address_bytes: 8,
    filter_bits: 10,
    iterators_read_filters: false,
};

/// A processor that takes no time.
pub(crate) fn cpu(rt: &Runtime) -> Cpu {
    Cpu { cores: Rc::new(Cores::new(rt.handle(), 1, Nanos(10_000))), costs: CpuCosts::FREE }
}

/// A store of small pairs.
pub(crate) fn setup(rt: &Runtime, medium: &MemoryMedium, options: &Options) -> Setup<MemoryMedium> {
    Setup {
        handle: rt.handle(),
        medium: medium.clone(),
        options: Options { page_cache_bytes: 0, ..options.clone() },
        surroundings: Surroundings {
            index_dram_bytes: 1 << 20,
            iterator_dram_bytes: 8 << 20,
            expected_key_bytes: 24,
            expected_value_bytes: 80,
        },
        cpu: cpu(rt),
        accelerator: None,
        planted: Planted::default(),
        id: StoreId(7),
    }
}

/// A store of small pairs, with a log and memtables of 2 KiB, so that few writes fill its
/// structures.
pub(crate) fn logged<M: Medium>(rt: &Runtime, medium: M) -> Setup<M> {
    Setup {
        handle: rt.handle(),
        medium,
        options: Options {
            memtable_bytes: 2 << 10,
            durability: Durability::Log,
            ..Options::pink()
        },
        surroundings: Surroundings {
            index_dram_bytes: 24 << 10,
            iterator_dram_bytes: 0,
            expected_key_bytes: 16,
            expected_value_bytes: 100,
        },
        cpu: cpu(rt),
        accelerator: None,
        planted: Planted::default(),
        id: StoreId(7),
    }
}

/// Creates a store of small pairs.
pub(crate) fn create(
    rt: &Runtime,
    medium: &MemoryMedium,
    options: &Options,
) -> Engine<MemoryMedium> {
    Engine::create(setup(rt, medium, options)).expect("it fits")
}

/// Puts a value of a random length under a number.
pub(crate) async fn put_number(
    engine: &Engine<MemoryMedium>,
    n: u64,
    rng: &mut Rng,
) -> Result<bool, EngineError> {
    let value = Value::Synthetic { seed: rng.next_u64(), len: 60 + rng.below(200) as u32 };
    engine.put(&n.to_be_bytes(), value, WriteOptions::default(), Nanos::ZERO).await
}

/// Puts values under numbers until the store is full. Returns their number.
pub(crate) async fn fill(engine: &Engine<MemoryMedium>, rng: &mut Rng) -> u64 {
    for n in 0..1_000_000 {
        match put_number(engine, n, rng).await {
            Ok(_) => {}
            Err(EngineError::Full(UsedUp::Space)) => return n,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it takes everything");
}

#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
fn wanted(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Returns the seeds of trials: the requested one, or the first `trials`.
pub(crate) fn seeds(trials: u64) -> Range<u64> {
    match wanted("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..wanted("LEVELHEAD_TRIALS").unwrap_or(trials),
    }
}
