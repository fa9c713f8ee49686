//! A store of tables on a simulated block drive, with a limit on background I/O.

use std::rc::Rc;

use block::nvme::SetId;
use drives::ssd::{Ssd, SsdProfile};
use engine::{Cpu, CpuCosts, Engine, Options, Setup, StoreId, Surroundings};
use runtime::{Cores, Handle, Nanos};
use stacks::limiter::{Limited, LimiterOptions};
use volume::{BlockRange, RangeOptions, Reuse};

pub(crate) type Drive = Limited<BlockRange<Ssd>>;
pub(crate) type Store = Engine<Drive>;

pub(crate) const PAGE_BYTES: u64 = 8 << 10;
const EXTENT_PAGES: u32 = 1 << 10;

/// Lengths of a key and its value, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub key_bytes: u32,
    pub value_bytes: u32,
}

/// Returns the first set of a drive, with a limit on background I/O.
pub(crate) fn limited(
    handle: &Handle,
    ssd: &Ssd,
    profile: &SsdProfile,
    limits: &LimiterOptions,
) -> Drive {
    let range = RangeOptions {
        set: SetId::new(1).expect("numbers begin with 1"),
        first_block: 0,
        page_blocks: 2,
        pages_per_extent: EXTENT_PAGES,
        extents: (profile.user_bytes / PAGE_BYTES / u64::from(EXTENT_PAGES)) as u32,
        grows_to: 0,
        parallelism: 64,
        run_pages: 1,
        reuse: Reuse::LeastWorn,
        forces_journal: false,
    };
    let range = BlockRange::new(ssd.clone(), range).expect("the drive has a set");
    Limited::new(handle, range, limits)
}

/// Creates an empty store whose merges take `merge_entry_ns` per entry.
pub(crate) fn open(
    handle: &Handle,
    medium: Drive,
    options: Options,
    pair: Pair,
    merge_entry_ns: f64,
) -> Store {
    // Costs on a core of the machine of docs/db_bench.md; assumed.
    let costs = CpuCosts {
        memtable_ns: 3_000.0,
        prefix_compare_ns: 5.0,
        key_compare_ns: 20.0,
        merge_entry_ns,
        filter_build_ns: 50.0,
        filter_probe_ns: 150.0,
        pack_object_ns: 100.0,
        hash_key_ns: 20.0,
        page_read_ns: 1_300.0,
    };
    let cores = Rc::new(Cores::new(handle.clone(), 4, Nanos::from_micros(10)));
    let setup = Setup {
        handle: handle.clone(),
        medium,
        options,
        surroundings: Surroundings {
            index_dram_bytes: 1 << 30,
            iterator_dram_bytes: 0,
            expected_key_bytes: pair.key_bytes,
            expected_value_bytes: pair.value_bytes,
        },
        cpu: Cpu { cores, costs },
        accelerator: None,
        planted: engine::Planted::default(),
        id: StoreId(1),
    };
    Engine::create(setup).unwrap_or_else(|error| panic!("{error}"))
}
