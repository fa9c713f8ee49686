//! Flush of the write buffer.

use std::cell::Cell;
use std::rc::Rc;

use runtime::{IoClass, Notify};

use super::Set;
use super::place::{Placed, Stream};
use crate::nand::Lane;
use crate::ssd::layout::Slot;
use crate::ssd::page::Versioned;
use crate::ssd::planted::Fault;
use crate::ssd::profile::SsdProfile;

/// State of the task that empties the buffer.
pub(super) struct Flusher {
    start: u32,
    stop: u32,
    wanted: Notify,
    /// Notified when blocks leave the buffer: their programs have ended, or they were discarded.
    pub(super) landed: Notify,
    /// Whether the buffer was filled beyond `start` and has not drained to `stop` yet.
    is_draining: Cell<bool>,
    /// Number of tasks that wait for the whole buffer to be flushed.
    pub(super) all: Cell<u32>,
    /// Program units left of the current burst.
    burst: Cell<u32>,
    is_burst_coming: Cell<bool>,
}

impl Flusher {
    pub(super) fn new(profile: &SsdProfile, capacity: usize) -> Self {
        let share = |percent: f64| (capacity as f64 * percent / 100.0) as u32;
        Self {
            start: share(profile.buffer.start_percent),
            stop: share(profile.buffer.stop_percent),
            wanted: Notify::default(),
            landed: Notify::default(),
            is_draining: Cell::new(false),
            all: Cell::new(0),
            burst: Cell::new(0),
            is_burst_coming: Cell::new(false),
        }
    }

    /// Notes that blocks have entered the buffer, or must leave it.
    pub(super) fn wake(&self) {
        self.wanted.notify_all();
    }

    /// Returns how many of `waiting` blocks go to flash now, in one program of at most `unit`.
    fn decide(&self, waiting: u32, unit: u32) -> u32 {
        if self.all.get() > 0 {
            return waiting.min(unit);
        }
        let is_draining =
            if self.is_draining.get() { waiting > self.stop } else { waiting >= self.start };
        self.is_draining.set(is_draining);
        if waiting < unit {
            return 0;
        }
        if is_draining {
            return unit;
        }
        if self.burst.get() > 0 {
            self.burst.set(self.burst.get() - 1);
            return unit;
        }
        0
    }
}

impl Set {
    /// Empties the buffer. A task that runs as long as the set.
    pub(super) async fn empty_buffer(self: Rc<Self>) {
        let unit = self.layout.slots_per_unit;
        loop {
            let waiting = self.buffer.borrow().waiting();
            if !self.has_room_for_places() {
                self.flusher.wanted.notified().await;
                continue;
            }
            let count = self.flusher.decide(waiting, unit);
            if count == 0 {
                if waiting >= unit {
                    self.arm_burst();
                }
                self.flusher.wanted.notified().await;
                continue;
            }
            self.keep_pace(count).await;
            self.open_superblock(Stream::Host).await;
            let bound = self.streams.bounds[Stream::Host as usize].acquire(1).await;
            let inside = self.gates.flush.enter().await;
            if self.is_next_block_spent(Stream::Host) {
                self.skip_unit(Stream::Host, (inside, bound));
                continue;
            }
            let versions = self.buffer.borrow_mut().take(count);
            if versions.is_empty() {
                drop((inside, bound));
                if self.buffer.borrow().is_programming() {
                    // All waiting blocks were overwritten while their programs are in flight.
                    self.flusher.landed.notified().await;
                    // Otherwise all waiting blocks were discarded.
                }
                continue;
            }
            let placed = self.place(Stream::Host, versions.clone());
            let set = Rc::clone(&self);
            self.handle.spawn("flush", async move {
                set.land(placed, versions).await;
                drop((inside, bound));
            });
        }
    }

    /// Waits for a program and enters its blocks in the mapping.
    pub(super) async fn land<F: Future<Output = ()>>(
        self: &Rc<Self>,
        placed: Placed<F>,
        versions: Vec<Versioned>,
    ) {
        let is_early = self.planted.has(Fault::MapBeforeProgram);
        if is_early {
            self.enter_landed(placed.first, &versions);
        }
        placed.program.await;
        self.path.cores.spend_in_background(self.times.map * versions.len() as u64).await;
        let blocks = versions.iter().map(|version| version.lpn);
        self.have_places(blocks, IoClass::GcRead, Lane::Shared).await;
        if !is_early {
            self.enter_landed(placed.first, &versions);
        }
        self.program_ended(placed.superblock);
        self.flusher.landed.notify_all();
        self.flusher.wake();
    }

    fn enter_landed(&self, first: Slot, versions: &[Versioned]) {
        for (slot, version) in (first.0..).map(Slot).zip(versions) {
            if self.is_mapping(version.lpn) {
                self.mapping_page_landed(version.lpn);
            } else if !self.buffer.borrow_mut().landed(version.lpn) {
                continue;
            }
            self.place_changed(version.lpn);
            let was = self.mapping.borrow_mut().set(version.lpn, Some(slot));
            self.table.borrow_mut().add_valid(slot);
            if let Some(slot) = was {
                self.slot_superseded(slot, version.sequence);
            }
            let limit = self.profile.background.discarded_ranges as usize;
            self.discards.borrow_mut().landed(version.lpn, limit);
        }
        self.forget_stale_pages();
    }

    /// Schedules a burst: after the burst interval, up to one program unit per die goes to flash.
    fn arm_burst(self: &Rc<Self>) {
        if self.flusher.is_burst_coming.replace(true) {
            return;
        }
        let set = Rc::clone(self);
        self.handle.spawn("burst", async move {
            set.handle.sleep(set.times.burst).await;
            set.flusher.is_burst_coming.set(false);
            set.flusher.burst.set(set.flash.geometry().dies());
            set.flusher.wake();
        });
    }

    /// Waits until all versions of a generation of the buffer, and of earlier ones, are on flash.
    pub(super) async fn flush_generation(self: &Rc<Self>, generation: u64) {
        self.flusher.all.set(self.flusher.all.get() + 1);
        self.flusher.wake();
        self.flusher.landed.wait_until(|| self.buffer.borrow().is_safe(generation)).await;
        self.flusher.all.set(self.flusher.all.get() - 1);
    }
}
