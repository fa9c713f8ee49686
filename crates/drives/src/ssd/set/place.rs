//! Placement: the choice of the next slots, their programs, and the follow-up when a program ends.
//!
//! There are three streams, each with an open superblock of its own: client writes; moved blocks,
//! which are colder (mixing the two would increase write amplification); and, if the mapping is on
//! flash, mapping pages, which are hotter than both. One task writes each stream.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;

use runtime::{IoClass, Semaphore};

use super::Set;
use super::jobs::RESERVE;
use crate::nand::Geometry;
use crate::ssd::layout::Slot;
use crate::ssd::page;
use crate::ssd::page::{Lpn, Sequence, Versioned};
use crate::ssd::profile::SsdProfile;
use crate::ssd::table::Table;

/// A source of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stream {
    /// Blocks written by clients.
    Host = 0,
    /// Moved blocks.
    Moved = 1,
    /// Mapping pages, of a drive whose mapping is on flash.
    Mapping = 2,
}

/// A superblock that is being written.
pub(super) struct OpenSuperblock {
    pub number: u32,
    pub next_unit: u32,
    /// Contents of its slots, for the summary at its end.
    pub contents: Vec<(Lpn, Sequence)>,
}

/// The superblocks being written, and limits on programs in flight.
pub(super) struct Streams {
    pub open: [RefCell<Option<OpenSuperblock>>; 3],
    /// Superblocks with all data submitted, programs in flight, and the summary still to be
    /// written.
    closing: RefCell<Vec<OpenSuperblock>>,
    /// Limits on programs in flight, for each stream.
    pub bounds: [Semaphore; 3],
    /// Whether the current wait for a free superblock is already counted in the statistics.
    is_starved: Cell<bool>,
}

impl Stream {
    fn class(self) -> IoClass {
        match self {
            Self::Host | Self::Mapping => IoClass::Flush,
            Self::Moved => IoClass::GcWrite,
        }
    }
}

impl Streams {
    pub(super) fn new(geometry: &Geometry, profile: &SsdProfile) -> Self {
        // While one program runs on a die, the data of the next one cross the bus.
        let host = geometry.dies() * 2;
        let moved = geometry.dies() * profile.background.programs_per_die;
        Self {
            open: Default::default(),
            closing: RefCell::default(),
            bounds: [host, moved, host].map(|programs| Semaphore::new(programs as usize)),
            is_starved: Cell::new(false),
        }
    }
}

/// A program in flight and its slots.
pub(super) struct Placed<F> {
    /// The first of consecutive slots.
    pub first: Slot,
    pub superblock: u32,
    pub program: F,
}

impl Set {
    /// Waits until `stream` has an open superblock.
    pub(super) async fn open_superblock(&self, stream: Stream) {
        let open = &self.streams.open[stream as usize];
        while open.borrow().is_none() {
            if self.may_open(stream) {
                let number = self.table.borrow_mut().open().expect("one is free");
                if stream == Stream::Mapping {
                    self.table.borrow_mut().is_for_mapping(number);
                }
                let contents = Vec::with_capacity(self.layout.data_slots() as usize);
                *open.borrow_mut() = Some(OpenSuperblock { number, next_unit: 0, contents });
                self.jobs.wake();
                if stream == Stream::Mapping {
                    self.pace_may_change();
                }
                self.streams.is_starved.set(false);
                return;
            }
            if !self.streams.is_starved.replace(true) {
                self.count(|stats| stats.starvations += 1);
                self.jobs.wake();
            }
            self.space_changed.notified().await;
        }
    }

    /// Returns the slots left in the open superblock of `stream`.
    pub(super) fn slots_left(&self, stream: Stream) -> u64 {
        let open = self.streams.open[stream as usize].borrow();
        let units = open.as_ref().map_or(0, |open| self.layout.data_units - open.next_unit);
        u64::from(units) * u64::from(self.layout.slots_per_unit)
    }

    /// Returns whether `stream` may open a free superblock, beyond those reserved for others.
    fn may_open(&self, stream: Stream) -> bool {
        let table = self.table.borrow();
        // Superblocks freed for a lockdown are reserved for it; otherwise there would never be
        // enough.
        let is_kept = self.jobs.wants_room.get();
        match stream {
            Stream::Host => table.free() > self.reserve(&table) && !is_kept,
            Stream::Moved => table.free() > 0,
            Stream::Mapping => match table.mapping_that_stay().cmp(&self.mapping_superblocks) {
                Ordering::Less => table.free() > RESERVE,
                // Mapping pages may exceed their share by one, until another of their superblocks
                // is collected.
                Ordering::Equal => table.free() > self.kept(&table) && !is_kept,
                Ordering::Greater => false,
            },
        }
    }

    /// Returns the free superblocks that clients may not use: the reserve for moved blocks, and the
    /// rest of the share of mapping pages.
    pub(super) fn reserve(&self, table: &Table) -> u32 {
        RESERVE + self.mapping_superblocks.saturating_sub(table.mapping())
    }

    /// Returns the free superblocks that mapping pages beyond their share may not use: a lockdown
    /// needs room for the buffer.
    pub(super) fn kept(&self, table: &Table) -> u32 {
        let has_lockdowns = self.mapping_superblocks > 0 && self.profile.plm.is_some();
        let of_buffer = self.profile.superblocks_of_buffer(&self.layout);
        self.reserve(table) + if has_lockdowns { of_buffer } else { 0 }
    }

    /// Starts the program of the next unit of `stream`, padded to its size. The program is in
    /// flight when this returns. Requires: an open superblock.
    pub(super) fn place(
        self: &Rc<Self>,
        stream: Stream,
        mut versions: Vec<Versioned>,
    ) -> Placed<impl Future<Output = ()> + use<>> {
        let wasted = self.layout.slots_per_unit as usize - versions.len();
        versions.resize(self.layout.slots_per_unit as usize, Versioned::FILLER);
        self.count(|stats| {
            stats.slots_wasted += wasted as u64;
            let used = versions.len() - wasted;
            match stream {
                Stream::Host | Stream::Mapping => stats.slots_flushed += used as u64,
                Stream::Moved => stats.slots_moved += used as u64,
            }
        });
        let mut slot = self.streams.open[stream as usize].borrow_mut();
        let open = slot.as_mut().expect("a superblock was opened first");
        let (superblock, unit) = (open.number, open.next_unit);
        open.next_unit += 1;
        open.contents.extend(versions.iter().map(|v| (v.lpn, v.sequence)));
        if open.next_unit == self.layout.data_units {
            self.streams.closing.borrow_mut().extend(slot.take());
        }
        let images = versions.chunks(self.layout.slots_per_page as usize).map(page::data).collect();
        let page = self.layout.superblocks.page(superblock, unit * self.layout.pages_per_unit);
        self.table.borrow_mut().begin_program(superblock);
        let program = self.flash.program(page, images, stream.class());
        let first = self.layout.first(superblock).0 + unit * self.layout.slots_per_unit;
        Placed { first: Slot(first), superblock, program }
    }

    /// Returns whether the next block of `stream` was read so often since its erase that data
    /// written there would have to move at once, and that reads of it would end a window. Requires:
    /// an open superblock.
    pub(super) fn is_next_block_spent(&self, stream: Stream) -> bool {
        let open = self.streams.open[stream as usize].borrow();
        let open = open.as_ref().expect("a superblock was opened first");
        let index = open.next_unit * self.layout.pages_per_unit;
        let page = self.layout.superblocks.page(open.number, index);
        let (block, _) = self.flash.geometry().locate(page);
        let reads = self.flash.with_array(|array| array.read_count(block));
        reads >= self.profile.background.reclaim_reads
    }

    /// Pads the next unit of `stream`. `held` is dropped when that program has ended.
    pub(super) fn skip_unit<T: 'static>(self: &Rc<Self>, stream: Stream, held: T) {
        let placed = self.place(stream, Vec::new());
        let set = Rc::clone(self);
        self.handle.spawn("skipped", async move {
            set.land(placed, Vec::new()).await;
            drop(held);
        });
    }

    /// Notes that a program in `superblock` has ended.
    pub(super) fn program_ended(self: &Rc<Self>, superblock: u32) {
        if !self.table.borrow_mut().end_program(superblock) {
            return;
        }
        let mut closing = self.streams.closing.borrow_mut();
        if let Some(at) = closing.iter().position(|open| open.number == superblock) {
            let open = closing.swap_remove(at);
            self.handle.spawn("summary", Rc::clone(self).write_summary(open));
        }
    }

    /// Writes the summary of a superblock and closes it. Only after all its programs have ended: a
    /// summary that lists a block whose program was torn would hide the loss.
    pub(super) async fn write_summary(self: Rc<Self>, open: OpenSuperblock) {
        let inside = self.gates.jobs.enter().await;
        let entries = page::summary_entries(self.flash.geometry().page_bytes) as usize;
        let mut images: Vec<_> = open.contents.chunks(entries).map(page::summary).collect();
        let unit = self.layout.pages_per_unit;
        let units = self.layout.units - self.layout.data_units;
        images.resize((units * unit) as usize, page::summary(&[]));
        let mut programs = Vec::new();
        for (i, images) in
            images.chunks(unit as usize).enumerate().skip(open_units(&open, &self.layout))
        {
            let index = (self.layout.data_units + i as u32) * unit;
            let page = self.layout.superblocks.page(open.number, index);
            programs.push(self.flash.program(page, images.to_vec(), IoClass::GcWrite));
        }
        for program in programs {
            program.await;
        }
        self.table.borrow_mut().close(open.number);
        drop(inside);
        self.jobs.wake();
    }

    /// Returns the contents of the slot at `place` in a superblock that is still being written.
    pub(super) fn contents_in_memory(
        &self,
        superblock: u32,
        place: u32,
    ) -> Option<(Lpn, Sequence)> {
        let of = |open: &OpenSuperblock| {
            (open.number == superblock).then(|| open.contents.get(place as usize).copied())
        };
        let open = self.streams.open.iter().find_map(|o| o.borrow().as_ref().and_then(of));
        open.or_else(|| self.streams.closing.borrow().iter().find_map(of)).flatten()
    }
}

/// Returns the summary units that are already on flash.
fn open_units(open: &OpenSuperblock, layout: &crate::ssd::layout::Layout) -> usize {
    open.next_unit.saturating_sub(layout.data_units) as usize
}
