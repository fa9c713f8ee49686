//! What every store of these tests is set up with.

use std::ops::Range;
use std::rc::Rc;

use engine::{ColumnOptions, Engine, Options, Planted, Setup};
use pages::{Cpu, CpuCosts, StoreId, Surroundings};
use runtime::{Cores, Nanos, Runtime};

use crate::memory::MemoryMedium;

/// Small tables in columns.
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

/// A new store of small pairs.
pub(crate) fn create(
    rt: &Runtime,
    medium: &MemoryMedium,
    options: &Options,
) -> Engine<MemoryMedium> {
    let setup = Setup {
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
    };
    Engine::create(setup).expect("it fits")
}

#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
fn wanted(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seeds of trials: the one that was asked for, or so many.
pub(crate) fn seeds(trials: u64) -> Range<u64> {
    match wanted("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..wanted("LEVELHEAD_TRIALS").unwrap_or(trials),
    }
}
