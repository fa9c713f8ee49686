//! Windows: all members of a volume but one are in their deterministic window, in which nothing is written.
//!
//! ```text
//!  state ....... what a member may be given now
//!  route ....... where a read goes: reqd                          (decisions)
//!  slot ........ how long windows last                            (arithmetic)
//!  bandwidth ... what a member was seen to write                  (arithmetic)
//!  images ...... plm_cache: stripes on their way to the members   (bookkeeping)
//!  caching ..... stripes that are acknowledged before the members have them
//!  flow ........ what waits for a member, and what is under way on it
//!  gate ........ the medium in front of a member: what may not pass waits
//!  reads ....... where a volume with windows reads from
//!  devd ........ the task that takes member after member through its slot
//!  simple ...... a driver that schedules nothing by windows, to compare with
//!  windowed .... the seam: a medium whose device has windows
//!  options ..... what windows are told, and what they did
//! ```
//! A stripe is acknowledged when it is in `plm_cache`, and each member gets its chunk in its own slot. A sync
//! (`plm_sync`) waits until all members have had theirs and made it durable. Reads of a member outside
//! its window are rebuilt from the others.
//!
//! Source: Vigil-KV (ATC'22), sections 4.2 and 6. docs/decisions/0035 has what the paper leaves open.

mod bandwidth;
mod caching;
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
use std::rc::Rc;

use pages::{Medium, Stream};
use runtime::{IoClass, Nanos, Notify, Semaphore};

pub(crate) use gate::{Gate, Pass};
use images::Images;
pub use options::{InternalReads, JournalWrites, Keeper, Overflow, WindowOptions, WindowStats};
use route::Reader;
pub use simple::SimpleWindows;
pub use state::State;
pub use windowed::Windowed;

use crate::volume::{Inner, Volume};

impl<M: Windowed> Volume<M> {
    /// Windows begin: from now on all members but one are kept in their deterministic windows, as soon as
    /// all have been there once. That takes devices their shortest NDWIN, in which everything goes on.
    ///
    /// # Panics
    /// If there are windows already.
    pub fn start_windows(&self, options: WindowOptions) {
        let inner = &self.inner;
        let page_bytes = u64::from(inner.stripes.member_shape().page_bytes);
        let windows = Rc::new(Windows::new(options, page_bytes));
        let before = inner.windows.replace(Some(Rc::clone(&windows)));
        assert!(before.is_none(), "there are windows already");
        for taker in inner.takers() {
            taker.medium.flow().begin_slot(Nanos::MAX, options.write_bytes_per_second);
        }
        let devd = devd::Devd::new(Rc::clone(inner), windows);
        inner.handle.spawn("devd", devd.run());
    }

    /// Waits until all members have been in their deterministic windows; at once, if there are no windows.
    pub async fn windows_begun(&self) {
        let Some(windows) = self.inner.windows() else { return };
        windows.changed.wait_until(|| windows.has_begun.get()).await;
    }

    /// Writes what is in `plm_cache`, and turns windows off.
    pub async fn end_windows(&self) {
        let inner = &self.inner;
        if let Some(windows) = inner.windows() {
            windows.is_ending.set(true);
            windows.changed.notify_all();
        }
        inner.changed.wait_until(|| inner.windows.borrow().is_none()).await;
    }

    /// What windows did since they began; nothing without them.
    pub fn window_stats(&self) -> Option<WindowStats> {
        let windows = self.inner.windows()?;
        let takers = self.inner.takers();
        let of_all = |count: fn(&flow::Flow) -> u64| -> u64 {
            takers.iter().map(|taker| count(taker.medium.flow())).sum()
        };
        let (writes_in_dtwin, journal_writes) =
            (of_all(flow::Flow::writes_in_dtwin), of_all(flow::Flow::writes_at_once));
        let cached = windows.cached();
        Some(WindowStats { writes_in_dtwin, journal_writes, cached, ..windows.stats.get() })
    }

    /// What each member may be given now.
    pub fn window_states(&self) -> Vec<State> {
        self.inner.takers().iter().map(|taker| taker.medium.state()).collect()
    }
}

impl<M: Medium> Inner<M> {
    pub(crate) fn windows(&self) -> Option<Rc<Windows>> {
        self.windows.borrow().clone()
    }

    /// Whether what is written to a stream waits for the slots of its members.
    pub(crate) fn pass(&self, stream: Stream) -> Pass {
        let windows = self.windows.borrow();
        let is_at_once =
            windows.as_ref().is_some_and(|it| it.options.journal == JournalWrites::AtOnce);
        if is_at_once && stream.is_journal() { Pass::AtOnce } else { Pass::InSlot }
    }
}

/// The windows of a volume.
pub(crate) struct Windows {
    pub options: WindowOptions,
    pub images: RefCell<Images>,
    /// Pages that `plm_cache` may hold.
    pub room: Semaphore,
    pub page_bytes: u64,
    pub stats: Cell<WindowStats>,
    /// When the next read of an internal task outside a slot may begin.
    next_read: Cell<Nanos>,
    /// Clients' writes wait for background work.
    is_stalled: Cell<bool>,
    /// They are to come to an end.
    is_ending: Cell<bool>,
    /// Members are outside windows again, and take writes at once.
    pub is_over: Cell<bool>,
    /// All members have been in their deterministic windows.
    has_begun: Cell<bool>,
    /// Something that slots are sized by, or begin for.
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

    /// A stripe has been acknowledged that waited so long for room.
    fn note_stripe(&self, waited: Nanos) {
        let cached = self.cached();
        self.count(|stats| {
            stats.stripes += 1;
            stats.waits_for_room += u64::from(waited > Nanos::ZERO);
            stats.waited += waited;
            stats.most_cached = stats.most_cached.max(cached);
        });
        // Slots are sized by how full it is.
        self.changed.notify_all();
    }

    pub(crate) fn set_write_stall(&self, is_on: bool) {
        if self.is_stalled.replace(is_on) != is_on {
            self.changed.notify_all();
        }
    }

    /// Bytes in `plm_cache`.
    pub(crate) fn cached(&self) -> u64 {
        self.room.in_use() as u64 * self.page_bytes
    }

    /// Most pages that are read at once for whoever reads as `class`.
    pub(crate) fn most_at_once(&self, class: IoClass) -> u32 {
        match self.options.internal_reads {
            InternalReads::AnyTime { piece_bytes, .. } if Reader::of(class) == Reader::Internal => {
                (piece_bytes / self.page_bytes).clamp(1, u32::MAX.into()) as u32
            }
            InternalReads::AnyTime { .. } | InternalReads::InSlots => u32::MAX,
        }
    }

    /// When an internal task may read so many pages outside a slot.
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
