//! One NVM set: a firmware with cores, memory and channels of its own.
//!
//! ```text
//!   clients -> read.rs, write.rs                    legacy I/O queue
//!                 |  buffer, cache, mapping
//!   flusher -> flush.rs  --+
//!   jobs ----> collect.rs --+-> place.rs -> Flash   internal jobs, through gates
//!   window.rs  opens and closes the gates
//!   power.rs, recover.rs  power cut and recovery
//! ```
//!
//! The state is in `RefCell`s. No borrow is held across an await.

mod collect;
mod flush;
mod jobs;
mod pace;
mod paging;
mod place;
mod power;
mod read;
mod recover;
mod stale;
mod window;
mod write;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use block::BLOCK_BYTES;
use runtime::{Cores, Handle, Nanos, Notify, Pipe, Semaphore};

use crate::firmware::Reserve;
use crate::nand::{Flash, Geometry, Lane, NandArray};

pub(crate) use jobs::RESERVE;
#[cfg(test)]
pub(crate) use power::Saved;
pub(crate) use power::SetImage;

use super::buffer::Buffer;
use super::discards::Discards;
use super::event_bell::EventBell;
use super::failure::SetFailure;
use super::gate::Gate;
use super::layout::Layout;
use super::mapping::Mapping;
use super::pacing::Pacer;
use super::page::Sequence;
use super::planted::Planted;
use super::prefill::{MappingPages, Precondition, Prefill};
use super::profile::SsdProfile;
use super::read_cache::ReadCache;
use super::stale_pages::StalePages;
use super::stats::SetStats;
use super::submission::Slots;
use super::table::Table;
use super::windows::Windows;
use crate::ssd::set::flush::Flusher;
use crate::ssd::set::jobs::Jobs;
use crate::ssd::set::paging::Paging;
use crate::ssd::set::place::Streams;

/// A block that could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unreadable {
    pub block: u32,
}

pub(crate) struct Set {
    handle: Handle,
    profile: Rc<SsdProfile>,
    times: Times,
    /// Logical blocks.
    blocks: u32,
    flash: Flash,
    layout: Layout,
    path: Path,
    /// The path of [`Lane::Apart`], for a drive that has this lane.
    path_apart: Option<Path>,
    mapping: RefCell<Mapping>,
    /// The cached part of a mapping on flash; `None` if the whole mapping is in memory.
    paging: Option<Paging>,
    /// Superblocks reserved for mapping pages; 0 if the mapping is in memory.
    mapping_superblocks: u32,
    table: RefCell<Table>,
    prefill: Option<Rc<Prefill>>,
    buffer: RefCell<Buffer>,
    /// Room in the buffer, in blocks.
    room: Semaphore,
    /// Held by the command that inserts its blocks into the buffer.
    taking: Semaphore,
    pacer: RefCell<Pacer>,
    cache: RefCell<ReadCache>,
    /// Notified when a block that is read ahead arrives.
    arrived: Notify,
    sequence: Cell<u64>,
    /// The first sequence number since power-up.
    first_of_life: Cell<u64>,
    discards: RefCell<Discards>,
    /// Whether the discarded ranges have changed since they were last saved.
    discards_changed: Cell<bool>,
    dumps: Dumps,
    streams: Streams,
    flusher: Flusher,
    jobs: Jobs,
    gates: Gates,
    plm: Plm,
    /// Pages without valid slots, whose contents can soon be freed.
    stale_pages: RefCell<StalePages>,
    /// Notified when superblocks become free, or when readers leave them.
    space_changed: Notify,
    stats: Cell<SetStats>,
    /// Whether the set takes commands: from its creation, or since it has recovered.
    is_up: Cell<bool>,
    /// Why the set is lost; `None` if it is not.
    failure: Cell<Option<SetFailure>>,
    planted: Planted,
}

/// The reserved region for dumps.
struct Dumps {
    reserve: Reserve,
    /// Number of the next dump.
    epoch: Cell<u64>,
    /// Serializes dumps.
    saving: Semaphore,
}

/// Gates that the windows close and open.
struct Gates {
    /// For garbage collection, read reclaim and wear levelling.
    jobs: Rc<Gate>,
    /// For programs that empty the buffer.
    flush: Rc<Gate>,
}

/// Predictable-latency mode, and notification of its events.
struct Plm {
    windows: RefCell<Windows>,
    /// Notified when the window changes, or a condition for its change.
    changed: Notify,
    /// Serializes window commands.
    commands: Semaphore,
    bell: Rc<EventBell>,
    /// Whether the bell was rung for the current events.
    is_listed: Cell<bool>,
}

/// Times of the profile in the simulation's unit.
struct Times {
    command: Nanos,
    pipeline: Nanos,
    block: Nanos,
    map: Nanos,
    access: Nanos,
    burst: Nanos,
}

/// Resources of a command between the link and the flash.
struct Path {
    slots: Slots,
    cores: Cores,
    dram: Pipe,
}

/// Arguments for the creation of a set.
#[derive(Clone)]
pub(crate) struct Parts {
    pub handle: Handle,
    pub profile: Rc<SsdProfile>,
    pub planted: Planted,
    pub events: Rc<EventBell>,
}

impl Set {
    /// Creates a set in the state of `precondition`.
    pub(crate) fn format(parts: Parts, precondition: Precondition, seed: u64) -> Rc<Self> {
        let geometry = parts.profile.flash_of_set().geometry;
        let mut array = NandArray::new(&geometry);
        let prefill = parts.prefill(&geometry, precondition, seed).map(Rc::new);
        if let Some(prefill) = &prefill {
            prefill.apply(&mut array);
        }
        let set = Self::new(parts, array, prefill);
        set.start();
        set
    }

    fn new(parts: Parts, array: NandArray, prefill: Option<Rc<Prefill>>) -> Rc<Self> {
        let Parts { handle, profile, planted, events } = parts;
        let flash_profile = profile.flash_of_set();
        let geometry = flash_profile.geometry.clone();
        let layout = Layout::new(&geometry);
        let per_half = profile.reserved_per_half(&layout);
        let (sets, controller) = (u64::from(profile.sets), &profile.controller);
        let quantum = Nanos::from_micros_f64(controller.quantum_us);
        let cores = (controller.cores / profile.sets) as usize;
        let blocks = profile.blocks_per_set() as u32;
        let mapping_pages = profile.mapping_pages_on_flash() as u32;
        let in_blocks = |bytes: u64| (bytes / sets / u64::from(BLOCK_BYTES)) as usize;
        let window = profile.dram.read_ahead_bytes / u64::from(BLOCK_BYTES);
        let optimal_write = u64::from(layout.slots_per_unit * BLOCK_BYTES);
        let path = || Path {
            slots: Slots::new(controller.queue_depth),
            cores: Cores::new(handle.clone(), cores, quantum),
            dram: Pipe::new(handle.clone(), profile.dram.mb_per_s / sets as f64),
        };
        let flash = if profile.undisturbed_clients { Flash::with_lane_apart } else { Flash::new };
        let flash = flash(handle.clone(), &flash_profile, array);
        Rc::new(Self {
            times: Times::new(&profile),
            blocks,
            flash,
            path: path(),
            path_apart: profile.undisturbed_clients.then(path),
            mapping: RefCell::new(Mapping::new(blocks + mapping_pages, prefill.clone())),
            paging: Paging::of(&profile),
            mapping_superblocks: profile.mapping_superblocks(&layout),
            table: RefCell::new(Table::new(&layout, 2 * per_half, prefill.as_ref())),
            prefill,
            buffer: RefCell::default(),
            room: Semaphore::new(in_blocks(profile.buffer.bytes).max(1)),
            taking: Semaphore::new(1),
            pacer: RefCell::default(),
            cache: RefCell::new(ReadCache::new(
                in_blocks(profile.dram.read_cache_bytes),
                window as u32,
            )),
            arrived: Notify::default(),
            sequence: Cell::new(1),
            first_of_life: Cell::new(1),
            discards: RefCell::default(),
            discards_changed: Cell::new(false),
            dumps: Dumps {
                reserve: Reserve::new(&geometry, per_half),
                epoch: Cell::new(1),
                saving: Semaphore::new(1),
            },
            streams: Streams::new(&geometry, &profile),
            flusher: Flusher::new(&profile, in_blocks(profile.buffer.bytes)),
            jobs: Jobs::new(&profile, &layout),
            gates: Gates { jobs: Gate::new(true), flush: Gate::new(true) },
            plm: Plm {
                windows: RefCell::new(Windows::new(profile.plm.clone(), optimal_write)),
                changed: Notify::default(),
                commands: Semaphore::new(1),
                bell: events,
                is_listed: Cell::new(false),
            },
            stale_pages: RefCell::default(),
            space_changed: Notify::default(),
            stats: Cell::default(),
            is_up: Cell::new(false),
            failure: Cell::new(None),
            planted,
            handle,
            profile,
            layout,
        })
    }

    fn start(self: &Rc<Self>) {
        self.is_up.set(true);
        self.handle.spawn("flusher", Rc::clone(self).empty_buffer());
        self.handle.spawn("internal jobs", Rc::clone(self).run_jobs());
        if self.paging.is_some() {
            self.handle.spawn("mapping pages", Rc::clone(self).write_mapping_pages());
            self.handle.spawn("moved blocks", Rc::clone(self).settle_moves());
        }
    }

    /// Marks the set as lost. Commands in flight continue, but their completions report the loss.
    pub(crate) fn fail(&self, failure: SetFailure) {
        self.failure.set(Some(failure));
    }

    pub(crate) fn failure(&self) -> Option<SetFailure> {
        self.failure.get()
    }

    /// Returns the number of logical blocks.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Returns the bytes that one program writes.
    pub(crate) fn optimal_write_bytes(&self) -> u32 {
        self.layout.slots_per_unit * BLOCK_BYTES
    }

    pub(crate) fn flash(&self) -> &Flash {
        &self.flash
    }

    pub(crate) fn stats(&self) -> SetStats {
        self.stats.get()
    }

    fn count(&self, change: impl FnOnce(&mut SetStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    fn next_sequence(&self) -> Sequence {
        let next = self.sequence.get();
        self.sequence.set(next + 1);
        Sequence(next)
    }

    /// Returns the free superblocks, and all.
    pub(crate) fn space(&self) -> (u32, u32) {
        let table = self.table.borrow();
        (table.free(), table.count())
    }

    /// Returns the least and the most erases of a superblock.
    pub(crate) fn wear(&self) -> (u32, u32) {
        self.table.borrow().wear()
    }

    /// Returns the memory of this process for the mapping, in bytes.
    pub(crate) fn mapping_bytes(&self) -> u64 {
        self.mapping.borrow().memory_bytes()
    }

    /// Executes a command of `queue`, which holds a slot of the set until it ends.
    pub(crate) async fn in_slot<T>(
        &self,
        lane: Lane,
        queue: u16,
        command: impl Future<Output = T>,
    ) -> T {
        let _slot = self.path(lane).slots.acquire(queue).await;
        command.await
    }

    fn path(&self, lane: Lane) -> &Path {
        match lane {
            Lane::Shared => &self.path,
            Lane::Apart => self.path_apart.as_ref().expect("only a drive that has it uses it"),
        }
    }

    /// Charges a core for a command of `blocks` blocks, and waits for the pipeline.
    async fn charge_command(&self, lane: Lane, blocks: u32) {
        let work = self.times.command + self.times.block * u64::from(blocks.saturating_sub(1));
        let cores = &self.path(lane).cores;
        self.handle.sleep_until(cores.book(work) + self.times.pipeline).await;
    }

    /// Returns the time at which `bytes` that are available now have passed through memory.
    fn through_memory(&self, lane: Lane, bytes: u64) -> Nanos {
        self.path(lane).dram.book(bytes) + self.times.access
    }
}

impl Times {
    fn new(profile: &SsdProfile) -> Self {
        let us = Nanos::from_micros_f64;
        let controller = &profile.controller;
        Self {
            command: us(controller.command_us),
            pipeline: us(controller.pipeline_us),
            block: us(controller.block_ns / 1e3),
            map: us(controller.map_ns / 1e3),
            access: us(profile.dram.access_ns / 1e3),
            burst: us(profile.buffer.burst_interval_ms * 1e3),
        }
    }
}

impl Parts {
    /// Returns the prefill of a set in the state of `precondition`.
    fn prefill(
        &self,
        geometry: &Geometry,
        precondition: Precondition,
        seed: u64,
    ) -> Option<Prefill> {
        let layout = Layout::new(geometry);
        let first = 2 * self.profile.reserved_per_half(&layout);
        let all = layout.superblocks.count() - first;
        let blocks = self.profile.blocks_per_set() as f64;
        let count = self.profile.mapping_pages_on_flash() as u32;
        let pages = MappingPages { first: blocks as u32, count };
        let share = |share: f64| match (blocks * share.clamp(0.0, 1.0)) as u32 {
            0 => 0,
            blocks => blocks + count,
        };
        let prefill = match precondition {
            Precondition::Empty => None,
            Precondition::Sequential(part) => {
                Some(Prefill::sequential(&layout, first, share(part)))
                    .filter(|p| !p.superblocks().is_empty())
            }
            Precondition::Random(part) => {
                // The superblocks that garbage collection keeps free.
                let percent = self.profile.background.start_free_percent;
                let kept = RESERVE + self.profile.mapping_superblocks(&layout);
                let free = self.profile.superblocks_kept(&layout, percent) + kept;
                let least = (f64::from(share(part)) / f64::from(layout.data_slots())) as u32 + 1;
                let count = all.saturating_sub(free).max(least).min(all - kept);
                let mapped = share(part);
                (mapped > 0).then(|| Prefill::random(&layout, first, count, mapped, seed))
            }
        };
        prefill.map(|prefill| prefill.with_mapping_pages(pages))
    }
}
