//! The front of a store: what stands between its clients and its index, whichever index that is.
//!
//! Writes wait for room, get a sequence number, go into the active memtable and are acknowledged; a
//! full memtable is frozen and handed to the flush. The front decides who waits and who is refused;
//! what the index has to say about it comes through [`Index`].

mod admission;
#[cfg(test)]
mod admission_tests;
pub mod batch;
pub mod flushes;
pub(crate) mod freeing;
mod reserve;
pub(crate) mod watched;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use runtime::{Nanos, Semaphore};

use crate::effort::Effort;
use crate::error::EngineError;
use crate::format::object::Sequence;
use crate::format::value::Value;
pub use crate::front::admission::Admission;
use crate::front::admission::Asked;
use crate::front::flushes::Flushes;
use crate::front::freeing::Freed;
use crate::front::watched::Watched;
use crate::journal::log::{self, Log, Ticket};
use crate::journal::{Flushed, LogSync};
use crate::medium::{Medium, Stream};
use crate::memtable::{Entry, Memtables};
use crate::operations::{Condition, Fullness, Kind, UsedUp, WriteOptions};
use crate::planted::Fault;
use crate::records::Record;
use crate::stats::EngineStats;
use crate::store::promise::Promise;
use crate::store::space::{Claimant, Need};
use crate::store::sweep::Sweep;
use crate::store::{Lack, PageStore};

/// What the front asks of the index behind it.
#[expect(async_fn_in_trait, reason = "one executor on one thread: futures are never sent")]
pub trait Index {
    /// Whether `key` has a value, and `work` charged on the way.
    async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError>;

    /// What the index says to a client's put.
    fn admits_put(&self) -> Admission;

    /// What it says to a delete. That makes room, so it waits only for memory that background work is
    /// about to give back.
    fn admits_delete(&self) -> Admission;

    /// How long a write of `bytes` that is admitted is delayed, because background work is behind.
    fn delay(&self, _bytes: u64) -> Nanos {
        Nanos::ZERO
    }

    /// Whether writes are delayed still.
    fn is_delayed(&self) -> bool {
        false
    }

    /// Whether background work has come to its end since the last write, so that it gives no more room.
    fn has_rested(&self) -> bool {
        true
    }

    /// Whether what is written is to be flushed at once, because only that can make room.
    fn wants_flush(&self) -> bool;

    /// The newest snapshot, for which replaced versions are kept.
    fn newest_snapshot(&self) -> Option<Sequence>;
}

/// How much the memtables hold.
#[derive(Clone, Copy, Debug)]
pub struct MemtableLimits {
    /// Writes in a memtable before it is flushed.
    pub entries: usize,
    /// Bytes of objects in a memtable before it is flushed.
    pub bytes: u64,
    /// Pages by which a memtable makes the index grow at most.
    pub index_pages: u32,
    /// Bytes by which a memtable makes the checkpoints of a manifest grow at most; 0 if there is none.
    pub checkpoint_bytes: u64,
    /// Full memtables that may wait for their flush.
    pub frozen: usize,
    /// Whether puts leave room for batches that make room: some extents, for a sixteenth of a memtable.
    pub leaves_room: bool,
}

/// The front of a store.
pub struct Front<M> {
    pub(crate) store: Rc<PageStore<M>>,
    pub(crate) limits: MemtableLimits,
    /// What [`reserve::extents_of_memtables`] gives, which each write asks for.
    extents_of_memtables: usize,
    /// Extents that puts leave for batches that make room.
    left_for_exchange: usize,
    /// What was written and is not in the index yet.
    pub memtables: RefCell<Memtables>,
    /// The number of the newest write.
    pub sequence: Cell<Sequence>,
    /// Keys of conditional writes under way.
    watched: Watched,
    /// Memtables flushed so far.
    pub(crate) flushes: Cell<u64>,
    /// Those of them whose flush is not durable: the log keeps them, and they count as frozen.
    uncommitted: Cell<usize>,
    /// How far those are that are under way.
    order: Flushes,
    /// The log, if writes need one to survive a power cut.
    pub log: RefCell<Option<Rc<Log<M>>>>,
    /// Whether clients may write.
    pub fullness: Cell<Fullness>,
    pub(crate) sweep: Sweep,
    /// What the collection of objects that is under way has freed.
    freed: Rc<Freed>,
    /// Whether an extent of the index is being collected beside objects.
    pub(crate) collects_index: Cell<bool>,
    /// The space that the flush waits for.
    pub(crate) flush_waits: Cell<Option<Need>>,
    pub(crate) writes: Cell<u64>,
    pub(crate) user_bytes: Cell<u64>,
    pub(crate) stalls: Cell<u64>,
    pub(crate) stalled: Cell<Nanos>,
    /// Clients' writes that wait now.
    pub(crate) stalled_now: Cell<u32>,
    /// A write was refused for want of room since the collector has last found all garbage it could have.
    pub(crate) was_refused: Cell<bool>,
    /// Clients' writes before the refused one that has last woken the collector.
    pub(crate) refused_after: Cell<Option<u64>>,
    /// From when on a refused write may wake it.
    pub(crate) wakes_from: Cell<Nanos>,
    /// The collector leaves readers what they hold, and wants to hear of a write that needs room.
    leaves_readers: Cell<bool>,
    /// Writes of each kind that wait for room; the first of each waits for the room itself.
    queues: [Semaphore; 3],
}

impl<M: Medium> Front<M> {
    /// The front of an empty store.
    pub fn new(store: Rc<PageStore<M>>, limits: MemtableLimits) -> Self {
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

    /// `stats` with what the front counts.
    pub fn add_to(&self, stats: EngineStats) -> EngineStats {
        EngineStats {
            writes: self.writes.get(),
            user_bytes: self.user_bytes.get(),
            stalls: self.stalls.get(),
            stalled: self.stalled.get(),
            ..stats
        }
    }

    /// The write path of puts and deletes. Returns whether its condition held.
    ///
    /// # Errors
    /// [`EngineError::Full`] if there is no room and will be none, or what the index met while it looked
    /// for the key: nothing was written. [`EngineError::ReadOnly`] once background work has stopped: where
    /// there is a log, the write may survive or not.
    pub async fn write(
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
            // Last, so that what it found still holds at the insert.
            self.wait_for_room(index, kind, asked).await?;
            let ticket = self.insert(index, key, entry, sync);
            self.acknowledge(ticket).await?;
            return Ok(true);
        }
        // From before the search on, so that no write of the key goes unnoticed, however long this
        // one waits and wherever flushes take what the search found.
        let watch = self.watched.watch(key);
        let existed = index.exists(key, work + cost).await?;
        self.wait_for_room(index, kind, asked).await?;
        // No await from here to the insert: nothing can come in between.
        let exists = watch.newest().unwrap_or(existed);
        drop(watch);
        let is_met = exists == (condition == Condition::MustExist);
        if is_met {
            let ticket = self.insert(index, key, entry, sync);
            self.acknowledge(ticket).await?;
        }
        Ok(is_met)
    }

    /// Waits until a write that went into the log, if there is one, may be acknowledged.
    async fn acknowledge(&self, ticket: Option<Ticket>) -> Result<(), EngineError> {
        let log = self.log.borrow().clone();
        match (log, ticket) {
            (Some(log), Some(ticket)) => log.acknowledge(ticket).await,
            _ => Ok(()),
        }
    }

    /// Puts a client's write in the active memtable, and in a group of the log if there is one. No
    /// await: it happens at one instant.
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

    /// Puts a write with its sequence number in the active memtable, and freezes that if full.
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

    /// [`Self::insert_at`] of an entry that the active memtable has placed.
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

    /// Puts a write from the log in the active memtable again, when a store is reopened.
    pub(crate) fn replay(&self, group: u64, record: Record<'_>) {
        let Record { key, sequence, entry } = record;
        let memtables = &mut *self.memtables.borrow_mut();
        let mut active = memtables.active.borrow_mut();
        active.insert(key, sequence, entry, None);
        active.note_group(group);
        let is_full = active.is_full(&self.limits);
        drop(active);
        self.sequence.set(self.sequence.get().max(sequence));
        // As it was frozen before: what each of them holds is bounded.
        if is_full && memtables.frozen.len() < self.limits.frozen {
            memtables.freeze();
        }
    }

    fn active_is_full(&self) -> bool {
        self.memtables.borrow().active.borrow().is_full(&self.limits)
    }

    /// Whether another memtable may wait for its flush.
    fn may_freeze(&self, memtables: &Memtables) -> bool {
        memtables.frozen.len() + self.uncommitted.get() < self.limits.frozen
    }

    /// Hands the active memtable to the flush, if there is room in front of it.
    pub fn freeze_active(&self) {
        let memtables = &mut *self.memtables.borrow_mut();
        if self.may_freeze(memtables) && memtables.freeze() {
            self.store.work.notify_all();
        }
    }

    /// Clients' writes so far.
    pub fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// How full the active memtable is while there is no room in front of it; 0 while there is.
    pub fn fill_of_active_memtable(&self) -> f64 {
        let memtables = self.memtables.borrow();
        if self.may_freeze(&memtables) {
            return 0.0;
        }
        let active = memtables.active.borrow();
        let by_bytes = active.bytes() as f64 / self.limits.bytes as f64;
        by_bytes.max(active.len() as f64 / self.limits.entries as f64)
    }

    /// Waits for space for the data of a flush, by which extents may become empty as `has_moved` says
    /// at the time; nothing is held meanwhile but the memtable.
    pub async fn promise_data(&self, pages: u32, has_moved: impl Fn() -> bool) -> Promise<'_> {
        self.wait_for_space(|| Self::need_of_data(pages, &has_moved)).await
    }

    fn need_of_data(pages: u32, has_moved: &impl Fn() -> bool) -> Need {
        let claimant = if has_moved() { Claimant::FlushOfMoved } else { Claimant::Flush };
        Need { stream: Stream::Objects, pages, claimant }
    }

    /// Waits for space that a flush needs.
    pub async fn wait_for_space(&self, need: impl Fn() -> Need) -> Promise<'_> {
        let promise = self.store.wait_for(need, &self.flush_waits).await;
        self.make_progress();
        promise
    }

    /// Whether a flush waits for space that is not there.
    pub fn flush_is_starved(&self) -> bool {
        self.flush_waits.get().is_some_and(|need| self.store.lacks(need))
    }

    /// Background work goes on: whatever clients wait for may come.
    pub fn make_progress(&self) {
        if self.fullness.get() == Fullness::Stuck {
            self.set_fullness(Fullness::Full(UsedUp::Space));
        }
    }

    /// The oldest frozen memtable is in the index. No await between that and this.
    pub fn flushed(&self) {
        let gone = self.memtables.borrow_mut().frozen.pop_front();
        let gone = gone.expect("a memtable is flushed once");
        // Some ten thousand keys are given back one by one. Snapshots may still share it.
        if let Ok(memtable) = Rc::try_unwrap(gone) {
            // The pages that were made of it have gone as well.
            let bytes = 2 * memtable.borrow().bytes();
            self.store.handle.drop_apart(memtable, bytes);
        }
        self.flushes.set(self.flushes.get() + 1);
    }

    /// The flush that has just taken a memtable to the index is not durable yet.
    pub fn flush_is_uncommitted(&self) {
        self.uncommitted.set(self.uncommitted.get() + 1);
    }

    /// The oldest flush that was not durable is: `flushed`.
    pub fn flush_is_committed(&self, flushed: Flushed) {
        let uncommitted = self.uncommitted.get();
        assert!(uncommitted > 0, "a flush is committed twice");
        self.uncommitted.set(uncommitted - 1);
        self.trim_log(flushed);
    }

    /// Something waits for room that the medium lacks, or does so no more: whoever waits is told.
    pub fn set_lack(&self, lack: Lack) {
        self.store.set_lack(lack);
        if let Some(log) = &*self.log.borrow() {
            log.look_again();
        }
    }

    /// The log is not needed before `flushed`.
    pub fn trim_log(&self, flushed: Flushed) {
        if let Some(log) = &*self.log.borrow() {
            log.trim(flushed.log_from);
        }
    }

    /// How many flushes there will have been when everything in memtables now is flushed.
    pub fn flushes_until_empty(&self) -> u64 {
        let active = u64::from(self.memtables.borrow().active.borrow().len() > 0);
        self.frozen_so_far() + active
    }

    /// Memtables frozen so far.
    fn frozen_so_far(&self) -> u64 {
        self.flushes.get() + self.memtables.borrow().frozen.len() as u64
    }

    /// Whether there have been so many flushes.
    pub fn has_flushed(&self, flushes: u64) -> bool {
        self.flushes.get() >= flushes
    }

    /// Hands the active memtable to the flush, if it is one of the first `flushes` and there is room in front of it.
    pub fn freeze_until(&self, flushes: u64) {
        if self.frozen_so_far() < flushes {
            self.freeze_active();
        }
    }

    /// Tells waiting clients how full the store is, if that has changed, and who waits for background work that it goes no further.
    pub fn set_fullness(&self, fullness: Fullness) {
        if self.fullness.replace(fullness) != fullness {
            self.store.room.notify_all();
            if fullness == Fullness::Stuck {
                self.store.work.notify_all();
            }
        }
    }

    /// Whether background work goes no further: it has failed, or it lacks space and nothing can give any.
    pub fn is_halted(&self) -> bool {
        let is_stuck = self.fullness.get() == Fullness::Stuck;
        is_stuck || self.store.lacks_room() || !self.store.is_healthy()
    }

    /// Whether collecting every extent once gave clients no room. Something has to be written, or, of a full store, merges
    /// have to find more garbage, before it is tried again.
    pub fn has_given_up(&self) -> bool {
        let writes = (self.fullness.get() == Fullness::Room).then(|| self.writes());
        let died = self.store.extents.borrow().died();
        self.sweep.has_failed(self.store.shape.extents, writes, died)
    }

    /// Snapshots hold garbage of a store that is short of extents.
    pub fn note_held(&self) {
        self.sweep.held.set(true);
    }

    /// Snapshots hold no garbage any more: all extents are tried again, if they did. Whether that is so.
    pub fn begin_sweep_anew(&self) -> bool {
        let was_held = self.sweep.held.take();
        if was_held {
            self.sweep.begin_anew();
            self.refused_after.set(None);
        }
        was_held
    }
}
