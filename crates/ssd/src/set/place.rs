//! Writing: which slots come next, programs, and what follows from their end.
//!
//! There are three streams, each with a superblock of its own: what clients write, what is moved
//! (it is colder, and mixing the two would make both wear more), and mapping pages, where the mapping
//! is on flash (they are hotter than both). One task writes each stream.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;

use flash::Geometry;
use runtime::{IoClass, Semaphore};

use super::Set;
use super::jobs::RESERVE;
use crate::layout::Slot;
use crate::page::{self, Lpn, Sequence, Versioned};
use crate::profile::SsdProfile;
use crate::table::Table;

/// Who writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stream {
    /// What clients wrote.
    Host = 0,
    /// What is moved.
    Moved = 1,
    /// Mapping pages, of a drive whose mapping is on flash.
    Mapping = 2,
}

/// A superblock that is being written.
pub(super) struct OpenSuperblock {
    pub number: u32,
    pub next_unit: u32,
    /// What its slots hold, for the summary at its end.
    pub contents: Vec<(Lpn, Sequence)>,
}

/// The superblocks that are being written, and bounds on programs under way.
pub(super) struct Streams {
    pub open: [RefCell<Option<OpenSuperblock>>; 3],
    /// Data written, programs under way, summary to come.
    closing: RefCell<Vec<OpenSuperblock>>,
    /// Programs under way.
    pub bounds: [Semaphore; 3],
    /// Superblocks in a row that had to wait for one to be free.
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
        // One program runs on a die while the data of the next cross the bus.
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

/// Slots whose program is under way.
pub(super) struct Placed<F> {
    /// The others follow.
    pub first: Slot,
    pub superblock: u32,
    pub program: F,
}

impl Set {
    /// Waits until `stream` has a superblock to write to.
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

    /// Slots that are left in the superblock that `stream` writes to.
    pub(super) fn slots_left(&self, stream: Stream) -> u64 {
        let open = self.streams.open[stream as usize].borrow();
        let units = open.as_ref().map_or(0, |open| self.layout.data_units - open.next_unit);
        u64::from(units) * u64::from(self.layout.slots_per_unit)
    }

    /// Whether a superblock is free that the stream does not leave to others.
    fn may_open(&self, stream: Stream) -> bool {
        let table = self.table.borrow();
        // What is made free for a lockdown is for the lockdown: or it would never be enough.
        let is_kept = self.jobs.wants_room.get();
        match stream {
            Stream::Host => table.free() > self.reserve(&table) && !is_kept,
            Stream::Moved => table.free() > 0,
            Stream::Mapping => match table.mapping_that_stay().cmp(&self.mapping_superblocks) {
                Ordering::Less => table.free() > RESERVE,
                // One beyond their share, until another one is collected.
                Ordering::Equal => table.free() > self.kept(&table) && !is_kept,
                Ordering::Greater => false,
            },
        }
    }

    /// Free superblocks that clients leave to others: to what is moved, and to mapping pages as many as they may have.
    pub(super) fn reserve(&self, table: &Table) -> u32 {
        RESERVE + self.mapping_superblocks.saturating_sub(table.mapping())
    }

    /// Free superblocks that mapping pages leave to others, beyond their share: in a lockdown there has to be room for
    /// the buffer.
    pub(super) fn kept(&self, table: &Table) -> u32 {
        let has_lockdowns = self.mapping_superblocks > 0 && self.profile.plm.is_some();
        let of_buffer = self.profile.superblocks_of_buffer(&self.layout);
        self.reserve(table) + if has_lockdowns { of_buffer } else { 0 }
    }

    /// Starts the program of the next unit of `stream`, filled up to its size. A superblock must
    /// be open. The program is under way when this returns.
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

    /// Whether the block that comes next in `stream` was read so often since its erase that what is
    /// written there would have to move at once, and its reads would end a window. A superblock must
    /// be open.
    pub(super) fn is_next_block_spent(&self, stream: Stream) -> bool {
        let open = self.streams.open[stream as usize].borrow();
        let open = open.as_ref().expect("a superblock was opened first");
        let index = open.next_unit * self.layout.pages_per_unit;
        let page = self.layout.superblocks.page(open.number, index);
        let (block, _) = self.flash.geometry().locate(page);
        let reads = self.flash.with_array(|array| array.read_count(block));
        reads >= self.profile.background.reclaim_reads
    }

    /// Fills the next unit of `stream` with nothing. `held` is let go when that has landed.
    pub(super) fn skip_unit<T: 'static>(self: &Rc<Self>, stream: Stream, held: T) {
        let placed = self.place(stream, Vec::new());
        let set = Rc::clone(self);
        self.handle.spawn("skipped", async move {
            set.land(placed, Vec::new()).await;
            drop(held);
        });
    }

    /// A program in `superblock` has ended.
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

    /// Ends a superblock with what its slots hold. Only now: a summary that names a block whose
    /// program was torn would hide the loss.
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

    /// What the slots of a superblock hold that is still being written, from `first` on.
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

/// Units of the summary that are on flash already.
fn open_units(open: &OpenSuperblock, layout: &crate::layout::Layout) -> usize {
    open.next_unit.saturating_sub(layout.data_units) as usize
}
