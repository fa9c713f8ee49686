//! The options of a store's media, volume and engine.

use std::rc::Rc;

use block::BlockDevice;
use engine::{Cpu, CpuCosts, MAX_KEY_BYTES, MAX_VALUE_BYTES, Setup, StoreId, Surroundings};
use runtime::{Cores, Handle, Nanos};
use volume::{BlockRange, Layout, RangeOptions, Reuse};

use crate::device::Device;
use crate::directory::identity::Identity;
use crate::drive;
use crate::error::place::Place;
use crate::file_engine::{Files, Member};
use crate::options::{Options, Windows};

/// Concurrent appends. This number keeps the drive busy, and a read waits for at most 256 KiB of
/// writes (decision 40).
const APPENDS: u32 = 4;
/// The upper limit of memory for an index, in bytes: as large as all pages of the largest store.
const MOST_MEMORY: u64 = 1 << 44;
/// The upper limit of the value cache, in bytes.
const MOST_CACHE: u64 = 1 << 40;
/// Memory for snapshots and the buffers of ranges, in bytes.
pub(crate) const ITERATOR_BYTES: u64 = 64 << 20;
/// The initial buffer of each end of a range, in bytes: the first pairs are read concurrently.
const FIRST_BUFFER_BYTES: u64 = 16 << 10;
/// Tombstones that a range steps over before it yields to waiting threads: some tens of
/// microseconds.
const SKIP_BUDGET: u32 = 64;

/// Returns the sets of a device as media.
pub(crate) fn ranges(device: &Device, identity: &Identity, place: &Place) -> Vec<Member> {
    let range = |set, path| RangeOptions {
        set,
        first_block: drive::first_byte(path) / u64::from(block::BLOCK_BYTES),
        page_blocks: identity.page_bytes / block::BLOCK_BYTES,
        pages_per_extent: identity.pages_per_extent(),
        extents: identity.extents(),
        grows_to: identity.most_extents(),
        parallelism: APPENDS,
        run_pages: identity.pages_of_a_write(),
        reuse: Reuse::First,
        forces_journal: true,
    };
    let sets = device.sets().into_iter().zip(place.files.iter());
    let sets = sets.map(|(shape, path)| range(shape.id, path));
    sets.map(|options| BlockRange::new(device.clone(), options).expect("its size was checked"))
        .collect()
}

pub(crate) fn volume_setup(
    handle: &Handle,
    members: Vec<Member>,
    options: &Options,
    identity: &Identity,
) -> volume::Setup<Member> {
    let layout = Layout::Parity { chunk_pages: identity.pages_of_a_write() };
    volume::Setup {
        handle: handle.clone(),
        cores: cores(handle),
        members,
        options: volume::Options {
            fills: !options.read_only,
            ..volume::Options::new(layout, u64::from(identity.id))
        },
        planted: volume::Planted::default(),
    }
}

/// Returns cores that charge no time: in real time, work takes the time that it takes.
fn cores(handle: &Handle) -> Rc<Cores> {
    Rc::new(Cores::new(handle.clone(), 1, Nanos::from_micros(100)))
}

pub(crate) fn setup(
    handle: &Handle,
    medium: Files,
    options: &Options,
    identity: &Identity,
) -> Setup<Files> {
    let mut index = engine::Options::levelhead();
    index.memtable_bytes = identity.memtable_bytes(options);
    index.inline_up_to = identity.inline_up_to;
    // With windows, a flush waits for a slot of each member; another memtable may fill meanwhile.
    index.frozen_memtables = if options.windows == Windows::Off { 1 } else { 2 };
    let memory_bytes = options.memory_bytes.min(MOST_MEMORY);
    index.value_cache_bytes = options.value_cache_bytes.min(memory_bytes / 2).min(MOST_CACHE);
    index.log_sync = options.durability.into();
    index.leaves_room = true;
    index.iterators.first_buffer_bytes = FIRST_BUFFER_BYTES;
    index.iterators.skip_budget = SKIP_BUDGET;
    // Pins as many levels as fit in memory; the others are read.
    index.pinned_levels = None;
    Setup {
        handle: handle.clone(),
        medium,
        options: index,
        surroundings: Surroundings {
            index_dram_bytes: memory_bytes,
            iterator_dram_bytes: ITERATOR_BYTES,
            expected_key_bytes: options.expected_key_bytes.clamp(1, MAX_KEY_BYTES as u32),
            expected_value_bytes: options.expected_value_bytes.min(MAX_VALUE_BYTES),
        },
        cpu: Cpu { cores: cores(handle), costs: CpuCosts::FREE },
        accelerator: None,
        planted: engine::Planted::default(),
        id: StoreId(identity.id),
    }
}
