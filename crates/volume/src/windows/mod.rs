//! Windows: all members of a volume but one are in their deterministic window (DTWIN), without
//! writes.
//!
//! ```text
//!  state ....... commands that a member may be given now
//!  route ....... the source of a read: reqd                       (decisions)
//!  slot ........ lengths of windows                               (arithmetic)
//!  bandwidth ... measured write bandwidth of a member             (arithmetic)
//!  images ...... plm_cache: stripes not yet on all members        (bookkeeping)
//!  caching ..... stripes that are acknowledged before the members have them
//!  flow ........ commands waiting for a member, and in progress on it
//!  gate ........ the medium in front of a member: holds commands that must wait
//!  reads ....... source of reads in a volume with windows
//!  control ..... windows as users of a volume see them: on and off, statistics
//!  devd ........ the task that gives the members their slots in turn
//!  simple ...... a driver that schedules nothing by windows, for comparison
//!  windowed .... interface: a medium whose device has windows
//!  options ..... options and statistics of windows
//! ```
//! A stripe is acknowledged when it is in `plm_cache`, and each member gets its chunk in its own
//! slot. A sync (`plm_sync`) waits until all members have their chunks durably. Reads of a member
//! outside its window are rebuilt from the others.
//!
//! Source: Vigil-KV (ATC'22), sections 4.2 and 6. docs/decisions/0035 covers the gaps of the paper.

mod bandwidth;
mod caching;
mod control;
mod devd;
mod flow;
mod gate;
mod images;
mod options;
mod reads;
pub mod route;
mod simple;
pub mod slot;
mod state;
mod windowed;

use std::cell::{Cell, RefCell};

use runtime::{IoClass, Nanos, Notify, Semaphore};

pub(crate) use gate::{Gate, Pass};
use images::Images;
pub use options::{InternalReads, JournalWrites, Keeper, Overflow, WindowOptions, WindowStats};
use route::Reader;
pub use simple::SimpleWindows;
pub use state::State;
pub use windowed::Windowed;

/// The windows of a volume.
pub(crate) struct Windows {
    pub options: WindowOptions,
    pub images: RefCell<Images>,
    /// The pages that `plm_cache` may hold.
    pub room: Semaphore,
    pub page_bytes: u64,
    pub stats: Cell<WindowStats>,
    /// The earliest time of the next internal read outside a slot.
    next_read: Cell<Nanos>,
    /// Whether client writes are stalled by background work.
    is_stalled: Cell<bool>,
    /// Whether windows are to be turned off.
    is_ending: Cell<bool>,
    /// Whether members take writes at once again.
    pub is_over: Cell<bool>,
    /// Whether all members have been in their deterministic windows.
    has_begun: Cell<bool>,
    /// Notified on changes that affect the length or start of slots.
    pub changed: Notify,
}

impl Windows {
    fn new(options: WindowOptions, page_bytes: u64) -> Self {
        let pages = (options.cache_bytes / page_bytes).max(1);
        Self {
            options,
            images: RefCell::default(),
            room: Semaphore::new(usize::try_from(pages).unwrap_or(usize::MAX)),
            page_bytes,
            stats: Cell::default(),
            next_read: Cell::new(Nanos::ZERO),
            is_stalled: Cell::default(),
            is_ending: Cell::default(),
            is_over: Cell::default(),
            has_begun: Cell::default(),
            changed: Notify::default(),
        }
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut WindowStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    /// Counts an acknowledged stripe that waited for room for the time `waited`.
    fn note_stripe(&self, waited: Nanos) {
        let cached = self.cached();
        self.count(|stats| {
            stats.stripes += 1;
            stats.waits_for_room += u64::from(waited > Nanos::ZERO);
            stats.waited += waited;
            stats.most_cached = stats.most_cached.max(cached);
        });
        // The fill level of `plm_cache` affects the length of slots.
        self.changed.notify_all();
    }

    pub(crate) fn set_write_stall(&self, is_on: bool) {
        if self.is_stalled.replace(is_on) != is_on {
            self.changed.notify_all();
        }
    }

    /// Returns the bytes in `plm_cache`.
    pub(crate) fn cached(&self) -> u64 {
        self.room.in_use() as u64 * self.page_bytes
    }

    /// Returns the maximum number of pages of one read of class `class`.
    pub(crate) fn most_at_once(&self, class: IoClass) -> u32 {
        match self.options.internal_reads {
            InternalReads::AnyTime { piece_bytes, .. } if Reader::of(class) == Reader::Internal => {
                (piece_bytes / self.page_bytes).clamp(1, u32::MAX.into()) as u32
            }
            InternalReads::AnyTime { .. } | InternalReads::InSlots => u32::MAX,
        }
    }

    /// Reserves bandwidth for an internal read of `pages` pages outside a slot. Returns its
    /// earliest start.
    pub(crate) fn book_read(&self, pages: u32, now: Nanos) -> Nanos {
        let InternalReads::AnyTime { bytes_per_second, .. } = self.options.internal_reads else {
            return now;
        };
        let due = self.next_read.get().max(now);
        let bytes = u64::from(pages) * self.page_bytes;
        self.next_read.set(due + slot::span_of(bytes, bytes_per_second));
        due
    }
}
