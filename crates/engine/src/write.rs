//! The front of a store: the layer between its clients and any kind of index.
//!
//! Writes wait for room, get a sequence number, go into the active memtable and are acknowledged. A
//! full memtable is frozen and handed to the flush. The front decides which writes wait and which
//! are refused; it asks the index through [`Index`].

pub(crate) mod admission;
#[cfg(test)]
mod admission_tests;
pub(crate) mod batch;
pub(crate) mod flushes;
pub(crate) mod freeing;
pub(crate) mod reserve;
pub(crate) mod stall;
pub(crate) mod tree_admission;
pub(crate) mod watched;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use runtime::{Nanos, Semaphore};

use crate::effort::Effort;
use crate::error::{EngineError, UsedUp};
use crate::format::object::Sequence;
use crate::format::value::Value;
use crate::gc::sweep::Sweep;
use crate::medium::{Medium, Stream};
use crate::memtable::{Entry, MemtableLimits, Memtables};
use crate::operations::{Condition, Fullness, Kind, WriteOptions};
use crate::planted::Fault;
use crate::space::priority::{Claimant, Need};
use crate::space::promise::Promise;
use crate::space::{Lack, PageStore};
use crate::stats::EngineStats;
use crate::wal::log::{Log, Ticket};
use crate::wal::records::Record;
use crate::wal::{Flushed, LogSync, log};
use crate::write::flushes::Flushes;

pub(crate) use crate::write::admission::Admission;
use crate::write::admission::Asked;
use crate::write::freeing::Freed;
use crate::write::watched::Watched;

/// The index, as the front uses it.
pub(crate) trait Index {
    /// Returns whether `key` has a value. Charges `work` on the way.
    async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError>;

    /// Returns whether the index has room for a client's put.
    fn admits_put(&self) -> Admission;

    /// Returns whether the index has room for a delete. A delete frees space, so it waits only for
    /// memory that background work is about to free.
    fn admits_delete(&self) -> Admission;

    /// Returns the delay of an admitted write of `bytes` bytes, because background work is behind.
    fn delay(&self, _bytes: u64) -> Nanos {
        Nanos::ZERO
    }

    /// Whether writes are still delayed.
    fn is_delayed(&self) -> bool {
        false
    }

    /// Whether background work has finished since the last write, so that it will free no more
    /// space.
    fn has_rested(&self) -> bool {
        true
    }

    /// Whether the active memtable should be flushed at once, because only that can free space.
    fn wants_flush(&self) -> bool;

    /// Returns the newest snapshot. Replaced versions are kept for it.
    fn newest_snapshot(&self) -> Option<Sequence>;
}

/// The front of a store.
pub(crate) struct Front<M> {
    pub(crate) store: Rc<PageStore<M>>,
    pub(crate) limits: MemtableLimits,
    /// The result of [`reserve::extents_of_memtables`], kept because each write needs it.
    extents_of_memtables: usize,
    /// Extents that puts leave for batches that free space.
    left_for_exchange: usize,
    /// Writes that are not in the index yet.
    pub memtables: RefCell<Memtables>,
    /// The sequence number of the newest write.
    pub sequence: Cell<Sequence>,
    /// Keys of conditional writes in progress.
    watched: Watched,
    /// The number of memtables flushed so far.
    pub(crate) flushes: Cell<u64>,
    /// The number of flushed memtables whose flush is not durable. The log keeps them, and they
    /// count as frozen.
    uncommitted: Cell<usize>,
    /// The progress of the flushes under way.
    pub(crate) order: Flushes,
    /// The log, if writes need one to survive a power cut.
    pub log: RefCell<Option<Rc<Log<M>>>>,
    /// Whether clients may write.
    pub fullness: Cell<Fullness>,
    pub(crate) sweep: Sweep,
    /// The space freed by the collection of objects in progress.
    freed: Rc<Freed>,
    /// Whether an index extent is being collected in parallel to objects.
    pub(crate) collects_index: Cell<bool>,
    /// The space that the flush waits for.
    pub(crate) flush_waits: Cell<Option<Need>>,
    pub(crate) writes: Cell<u64>,
    pub(crate) user_bytes: Cell<u64>,
    pub(crate) stalls: Cell<u64>,
    pub(crate) stalled: Cell<Nanos>,
    /// The number of client writes that wait now.
    pub(crate) stalled_now: Cell<u32>,
    /// Whether a write was refused for lack of space since the collector last found all garbage
    /// available.
    pub(crate) was_refused: Cell<bool>,
    /// The number of client writes before the refused write that woke the collector last.
    pub(crate) refused_after: Cell<Option<u64>>,
    /// The earliest time at which a refused write may wake the collector again.
    pub(crate) wakes_from: Cell<Nanos>,
    /// Whether the collector leaves to readers the space that they hold. It must be woken by a
    /// write that needs space.
    leaves_readers: Cell<bool>,
    /// For each kind, a queue of writes that wait for room. The first writer of each queue waits
    /// for the room itself.
    queues: [Semaphore; 3],
}

impl<M: Medium> Front<M> {
    /// Creates the front of an empty store.
    pub(crate) fn new(store: Rc<PageStore<M>>, limits: MemtableLimits) -> Self {
        Self {
            extents_of_memtables: reserve::extents_of_memtables(&store, &limits),
            left_for_exchange: reserve::extents_for_exchange(&store, &limits),
            store,
            limits,
            memtables: RefCell::default(),
            sequence: Cell::new(0),
            watched: Watched::default(),
            flushes: Cell::new(0),
            uncommitted: Cell::new(0),
            order: Flushes::default(),
            log: RefCell::default(),
            fullness: Cell::new(Fullness::Room),
            sweep: Sweep::default(),
            freed: Rc::default(),
            collects_index: Cell::new(false),
            flush_waits: Cell::new(None),
            writes: Cell::new(0),
            user_bytes: Cell::new(0),
            stalls: Cell::new(0),
            stalled: Cell::new(Nanos::ZERO),
            stalled_now: Cell::new(0),
            was_refused: Cell::new(false),
            refused_after: Cell::new(None),
            wakes_from: Cell::new(Nanos::ZERO),
            leaves_readers: Cell::new(false),
            queues: [(); 3].map(|()| Semaphore::new(1)),
        }
    }

    /// Returns `stats` with the front's counters filled in.
    pub(crate) fn add_to(&self, stats: EngineStats) -> EngineStats {
        EngineStats {
            writes: self.writes.get(),
            user_bytes: self.user_bytes.get(),
            stalls: self.stalls.get(),
            stalled: self.stalled.get(),
            ..stats
        }
    }

    /// Executes a put or a delete. Returns whether its condition held.
    ///
    /// # Errors
    /// Returns [`EngineError::Full`] if there is no room and will be none, or the error of the
    /// index's search for the key: nothing was written. Returns [`EngineError::ReadOnly`] once
    /// background work has stopped: with a log, it is unknown whether the write survives.
    pub(crate) async fn write(
        &self,
        index: &impl Index,
        key: &[u8],
        entry: Entry,
        options: WriteOptions,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        let WriteOptions { condition, sync } = options;
        let kind = Kind::of(entry.is_none());
        let asked = Asked::single(log::full_bytes(key, &entry));
        let cost = self.store.cpu.costs.of(Effort { memtables: 1, ..Effort::default() });
        if condition == Condition::Always {
            self.store.cpu.cores.spend(work + cost).await;
            // The last wait, so that the room found still exists at the insert.
            self.wait_for_room(index, kind, asked).await?;
            let ticket = self.insert(index, key, entry, sync);
            self.acknowledge(ticket).await?;
            return Ok(true);
        }
        // The key is watched from before the search on. Every write of it is then noticed, however
        // long this write waits and even if a flush moves the value that the search found.
        let watch = self.watched.watch(key);
        let existed = index.exists(key, work + cost).await?;
        self.wait_for_room(index, kind, asked).await?;
        // No await from here to the insert: no other write can come in between.
        let exists = watch.newest().unwrap_or(existed);
        drop(watch);
        let is_met = exists == (condition == Condition::MustExist);
        if is_met {
            let ticket = self.insert(index, key, entry, sync);
            self.acknowledge(ticket).await?;
        }
        Ok(is_met)
    }

    /// Waits until a write may be acknowledged: if there is a log, until the log allows it.
    async fn acknowledge(&self, ticket: Option<Ticket>) -> Result<(), EngineError> {
        let log = self.log.borrow().clone();
        match (log, ticket) {
            (Some(log), Some(ticket)) => log.acknowledge(ticket).await,
            _ => Ok(()),
        }
    }

    /// Inserts a client's write into the active memtable and the log, if there is one. Atomic,
    /// because it has no await.
    fn insert(
        &self,
        index: &impl Index,
        key: &[u8],
        entry: Entry,
        sync: Option<LogSync>,
    ) -> Option<Ticket> {
        let bytes = key.len() as u64 + u64::from(entry.as_ref().map_or(0, Value::len));
        self.sequence.set(self.sequence.get() + 1);
        self.writes.set(self.writes.get() + 1);
        self.user_bytes.set(self.user_bytes.get() + bytes);
        let sequence = self.sequence.get();
        let before = self.memtables.borrow().active.borrow().last_sequence();
        assert!(before < sequence, "write {sequence} comes after write {before}");
        let is_forgotten = entry.is_none() && self.store.planted.has(Fault::DeleteNotLogged);
        let log = self.log.borrow();
        let log = log.as_ref().filter(|_| !is_forgotten);
        let entry = self.place(entry);
        let ticket = log.map(|log| log.push(key, sequence, &entry, sync));
        if let Some(ticket) = ticket {
            self.memtables.borrow().active.borrow_mut().note_group(ticket.group);
        }
        self.insert_placed(index, key, sequence, entry);
        ticket
    }

    /// See [`Memtable::place`](crate::memtable::Memtable::place).
    fn place(&self, entry: Entry) -> Entry {
        self.memtables.borrow().active.borrow_mut().place(entry)
    }

    /// Inserts a write with its sequence number into the active memtable, and freezes it if full.
    pub(crate) fn insert_at(
        &self,
        index: &impl Index,
        key: &[u8],
        sequence: Sequence,
        entry: Entry,
    ) {
        let entry = self.place(entry);
        self.insert_placed(index, key, sequence, entry);
    }

    /// As [`Self::insert_at`], for an entry that the active memtable has placed.
    fn insert_placed(&self, index: &impl Index, key: &[u8], sequence: Sequence, entry: Entry) {
        assert!(self.has_memtable_room(), "a write goes into a memtable that is full");
        let newest = self.sequence.get();
        assert!(sequence <= newest, "write {sequence} is newer than the newest, {newest}");
        let active = Rc::clone(&self.memtables.borrow().active);
        self.watched.note(key, entry.is_some());
        active.borrow_mut().insert_placed(key, sequence, entry, index.newest_snapshot());
        if self.active_is_full() || index.wants_flush() {
            self.freeze_active();
        }
    }

    /// Inserts a write from the log into the active memtable when a store is reopened.
    pub(crate) fn replay(&self, group: u64, record: Record<'_>) {
        let Record { key, sequence, entry } = record;
        let memtables = &mut *self.memtables.borrow_mut();
        let mut active = memtables.active.borrow_mut();
        active.insert(key, sequence, entry, None);
        active.note_group(group);
        let is_full = active.is_full(&self.limits);
        drop(active);
        self.sequence.set(self.sequence.get().max(sequence));
        // Frozen at the same fill as before the restart, because the size of each memtable is
        // bounded.
        if is_full && memtables.frozen.len() < self.limits.frozen {
            memtables.freeze();
        }
    }

    fn active_is_full(&self) -> bool {
        self.memtables.borrow().active.borrow().is_full(&self.limits)
    }

    /// Whether another memtable may be frozen.
    fn may_freeze(&self, memtables: &Memtables) -> bool {
        memtables.frozen.len() + self.uncommitted.get() < self.limits.frozen
    }

    /// Freezes the active memtable for the flush, if another one may be frozen.
    pub(crate) fn freeze_active(&self) {
        let memtables = &mut *self.memtables.borrow_mut();
        if self.may_freeze(memtables) && memtables.freeze() {
            self.store.work.notify_all();
        }
    }

    /// Returns the number of client writes so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Returns the fill level of the active memtable while no other memtable may be frozen; 0
    /// otherwise.
    pub(crate) fn fill_of_active_memtable(&self) -> f64 {
        let memtables = self.memtables.borrow();
        if self.may_freeze(&memtables) {
            return 0.0;
        }
        let active = memtables.active.borrow();
        let by_bytes = active.bytes() as f64 / self.limits.bytes as f64;
        by_bytes.max(active.len() as f64 / self.limits.entries as f64)
    }

    /// Waits for space for the data of a flush. `has_moved` is evaluated at each try: whether
    /// extents may become empty by this flush. The task holds only the memtable while it waits.
    #[cfg(feature = "baselines")]
    pub(crate) async fn promise_data(
        &self,
        pages: u32,
        has_moved: impl Fn() -> bool,
    ) -> Promise<'_> {
        self.wait_for_space(|| Self::need_of_data(pages, &has_moved)).await
    }

    pub(crate) fn need_of_data(pages: u32, has_moved: &impl Fn() -> bool) -> Need {
        let claimant = if has_moved() { Claimant::FlushOfMoved } else { Claimant::Flush };
        Need { stream: Stream::Objects, pages, claimant }
    }

    /// Waits for space that a flush needs.
    pub(crate) async fn wait_for_space(&self, need: impl Fn() -> Need) -> Promise<'_> {
        let promise = self.store.wait_for(need, &self.flush_waits).await;
        self.make_progress();
        promise
    }

    /// Whether a flush waits for space that does not exist.
    pub(crate) fn flush_is_starved(&self) -> bool {
        self.flush_waits.get().is_some_and(|need| self.store.lacks(need))
    }

    /// Records that background work has made progress, so that waiting clients may get room.
    pub(crate) fn make_progress(&self) {
        if self.fullness.get() == Fullness::Stuck {
            self.set_fullness(Fullness::Full(UsedUp::Space));
        }
    }

    /// Removes the oldest frozen memtable, which is in the index now. Requires: no await since it
    /// entered the index.
    pub(crate) fn flushed(&self) {
        let gone = self.memtables.borrow_mut().frozen.pop_front();
        let gone = gone.expect("a memtable is flushed once");
        // Some ten thousand keys are freed one by one. Snapshots may still share the memtable.
        if let Ok(memtable) = Rc::try_unwrap(gone) {
            // The pages built from the memtable have been freed too.
            let bytes = 2 * memtable.borrow().bytes();
            self.store.handle.drop_apart(memtable, bytes);
        }
        self.flushes.set(self.flushes.get() + 1);
    }

    /// Records that the flush that has just completed is not durable yet.
    pub(crate) fn flush_is_uncommitted(&self) {
        self.uncommitted.set(self.uncommitted.get() + 1);
    }

    /// Records that the oldest flush that was not durable is durable now: `flushed`.
    pub(crate) fn flush_is_committed(&self, flushed: Flushed) {
        let uncommitted = self.uncommitted.get();
        assert!(uncommitted > 0, "a flush is committed twice");
        self.uncommitted.set(uncommitted - 1);
        self.trim_log(flushed);
    }

    /// Sets which writes wait because the medium is out of space, and wakes waiting tasks.
    pub(crate) fn set_lack(&self, lack: Lack) {
        self.store.set_lack(lack);
        if let Some(log) = &*self.log.borrow() {
            log.look_again();
        }
    }

    /// Trims the log: its part before `flushed` is no longer needed.
    pub(crate) fn trim_log(&self, flushed: Flushed) {
        if let Some(log) = &*self.log.borrow() {
            log.trim(flushed.log_from);
        }
    }

    /// Returns the total number of flushes at the time when all current memtables are flushed.
    pub(crate) fn flushes_until_empty(&self) -> u64 {
        let active = u64::from(self.memtables.borrow().active.borrow().len() > 0);
        self.frozen_so_far() + active
    }

    /// Returns the number of memtables frozen so far.
    fn frozen_so_far(&self) -> u64 {
        self.flushes.get() + self.memtables.borrow().frozen.len() as u64
    }

    /// Whether at least `flushes` flushes have completed.
    pub(crate) fn has_flushed(&self, flushes: u64) -> bool {
        self.flushes.get() >= flushes
    }

    /// Freezes the active memtable if it is among the first `flushes` memtables and another one may
    /// be frozen.
    pub(crate) fn freeze_until(&self, flushes: u64) {
        if self.frozen_so_far() < flushes {
            self.freeze_active();
        }
    }

    /// Sets how full the store is. On a change it wakes waiting clients, and if background work is
    /// stuck, also the tasks that wait for background work.
    pub(crate) fn set_fullness(&self, fullness: Fullness) {
        if self.fullness.replace(fullness) != fullness {
            self.store.room.notify_all();
            if fullness == Fullness::Stuck {
                self.store.work.notify_all();
            }
        }
    }

    /// Whether background work has stopped: it has failed, or it lacks space and nothing can free
    /// any.
    pub(crate) fn is_halted(&self) -> bool {
        let is_stuck = self.fullness.get() == Fullness::Stuck;
        is_stuck || self.store.lacks_room() || !self.store.is_healthy()
    }

    /// Whether collecting every extent once gave clients no room. It is tried again after a write,
    /// or, if the store is full, after compaction has found more garbage.
    pub(crate) fn has_given_up(&self) -> bool {
        let writes = (self.fullness.get() == Fullness::Room).then(|| self.writes());
        let died = self.store.extents.borrow().died();
        self.sweep.has_failed(self.store.shape.extents, writes, died)
    }

    /// Records that snapshots hold garbage while the store is short of extents.
    pub(crate) fn note_held(&self) {
        self.sweep.held.set(true);
    }

    /// Records that snapshots no longer hold garbage, so that all extents are tried again if they
    /// did. Returns whether they did.
    pub(crate) fn begin_sweep_anew(&self) -> bool {
        let was_held = self.sweep.held.take();
        if was_held {
            self.sweep.begin_anew();
            self.refused_after.set(None);
        }
        was_held
    }
}
