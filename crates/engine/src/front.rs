//! The front of a store: what stands between its clients and its index, whichever index that is.
//!
//! Writes wait for room, get a sequence number, go into the active memtable and are acknowledged; a
//! full memtable is frozen and handed to the flush. The front decides who waits and who is refused;
//! what the index has to say about it comes through [`Index`].

pub(crate) mod watched;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use runtime::Nanos;

use crate::Value;
use crate::effort::Effort;
use crate::error::EngineError;
use crate::format::object::Sequence;
use crate::front::watched::Watched;
use crate::memtable::{Entry, Memtables};
use crate::operations::{Condition, Fullness};
use crate::stats::EngineStats;
use crate::store::PageStore;
use crate::store::medium::{Medium, Stream};
use crate::store::space::{Claimant, Promise};
use crate::store::sweep::Sweep;

/// What the front asks of the index behind it.
pub(crate) trait Index {
    /// Whether `key` has a value, and `work` charged on the way.
    async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError>;

    /// What the index says to a client's write that needs room. Deletes are not asked about: they
    /// make room.
    fn admits(&self) -> Admission;

    /// Whether what is written is to be flushed at once, because only that can make room.
    fn wants_flush(&self) -> bool;

    /// The newest snapshot, for which replaced versions are kept.
    fn newest_snapshot(&self) -> Option<Sequence>;
}

/// Whether there is room for a client's write behind the memtables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// There is.
    Now,
    /// Background work is making room.
    Later,
    /// Perhaps, when it is known what the memtables hold.
    AfterFlush,
    /// There will be none.
    Never,
}

/// How much the memtables hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemtableLimits {
    /// Writes in a memtable before it is flushed.
    pub entries: usize,
    /// Bytes of objects in a memtable before it is flushed.
    pub bytes: u64,
    /// Full memtables that may wait for their flush.
    pub frozen: usize,
}

/// The front of a store.
pub(crate) struct Front<M> {
    store: Rc<PageStore<M>>,
    pub limits: MemtableLimits,
    pub memtables: RefCell<Memtables>,
    pub sequence: Cell<Sequence>,
    /// Keys of conditional writes under way.
    watched: Watched,
    pub fullness: Cell<Fullness>,
    pub sweep: Sweep,
    /// A flush waits for space.
    pub flush_is_starved: Cell<bool>,
    writes: Cell<u64>,
    user_bytes: Cell<u64>,
    stalls: Cell<u64>,
    stalled: Cell<Nanos>,
}

impl<M: Medium> Front<M> {
    pub(crate) fn new(store: Rc<PageStore<M>>, limits: MemtableLimits) -> Self {
        Self {
            store,
            limits,
            memtables: RefCell::default(),
            sequence: Cell::new(0),
            watched: Watched::default(),
            fullness: Cell::new(Fullness::Room),
            sweep: Sweep::default(),
            flush_is_starved: Cell::new(false),
            writes: Cell::new(0),
            user_bytes: Cell::new(0),
            stalls: Cell::new(0),
            stalled: Cell::new(Nanos::ZERO),
        }
    }

    /// `stats` with what the front counts.
    pub(crate) fn add_to(&self, stats: EngineStats) -> EngineStats {
        EngineStats {
            writes: self.writes.get(),
            user_bytes: self.user_bytes.get(),
            stalls: self.stalls.get(),
            stalled: self.stalled.get(),
            ..stats
        }
    }

    /// The write path of puts and deletes. Returns whether `condition` held.
    pub(crate) async fn write(
        &self,
        index: &impl Index,
        key: &[u8],
        entry: Entry,
        condition: Condition,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        let is_delete = entry.is_none();
        let cost = self.store.cpu.costs.of(Effort { memtables: 1, ..Effort::default() });
        if condition == Condition::Always {
            self.store.cpu.cores.spend(work + cost).await;
            // Last, so that what it found still holds at the insert.
            self.wait_for_room(index, is_delete).await?;
            self.insert(index, key, entry);
            return Ok(true);
        }
        // From before the search on, so that no write of the key goes unnoticed, however long this
        // one waits and wherever flushes take what the search found.
        let watch = self.watched.watch(key);
        let existed = index.exists(key, work + cost).await?;
        self.wait_for_room(index, is_delete).await?;
        // No await from here to the insert: nothing can come in between.
        let exists = watch.newest().unwrap_or(existed);
        drop(watch);
        let is_met = exists == (condition == Condition::MustExist);
        if is_met {
            self.insert(index, key, entry);
        }
        Ok(is_met)
    }

    /// Puts a client's write in the active memtable. No await: it happens at one instant.
    fn insert(&self, index: &impl Index, key: &[u8], entry: Entry) {
        let bytes = key.len() as u64 + u64::from(entry.as_ref().map_or(0, Value::len));
        self.sequence.set(self.sequence.get() + 1);
        self.writes.set(self.writes.get() + 1);
        self.user_bytes.set(self.user_bytes.get() + bytes);
        self.insert_at(index, key, self.sequence.get(), entry);
    }

    /// Puts a write with its sequence number in the active memtable, and freezes that if full.
    pub(crate) fn insert_at(
        &self,
        index: &impl Index,
        key: &[u8],
        sequence: Sequence,
        entry: Entry,
    ) {
        assert!(self.has_memtable_room(), "a write goes into a memtable that is full");
        let active = Rc::clone(&self.memtables.borrow().active);
        self.watched.note(key, entry.is_some());
        active.borrow_mut().insert(key, sequence, entry, index.newest_snapshot());
        if self.active_is_full() || index.wants_flush() {
            self.freeze_active();
        }
    }

    fn active_is_full(&self) -> bool {
        let memtables = self.memtables.borrow();
        let active = memtables.active.borrow();
        active.len() >= self.limits.entries || active.bytes() >= self.limits.bytes
    }

    /// Hands the active memtable to the flush, if there is room in front of it.
    pub(crate) fn freeze_active(&self) {
        let memtables = &mut *self.memtables.borrow_mut();
        let has_room = memtables.frozen.len() < self.limits.frozen;
        if has_room && memtables.freeze() {
            self.store.work.notify_all();
        }
    }

    /// Waits until a client's write may go ahead.
    async fn wait_for_room(&self, index: &impl Index, is_delete: bool) -> Result<(), EngineError> {
        let started = self.store.handle.now();
        let mut has_waited = false;
        loop {
            match self.admits(index, is_delete)? {
                Admission::Now => break,
                Admission::Later => {}
                Admission::AfterFlush => self.freeze_active(),
                Admission::Never => return Err(EngineError::Full),
            }
            has_waited = true;
            self.store.room.notified().await;
        }
        if has_waited {
            self.stalls.set(self.stalls.get() + 1);
            self.stalled.set(self.stalled.get() + (self.store.handle.now() - started));
        }
        Ok(())
    }

    /// Whether a client's write may go ahead now.
    fn admits(&self, index: &impl Index, is_delete: bool) -> Result<Admission, EngineError> {
        if let Some(page) = self.store.failure() {
            return Err(EngineError::ReadOnly(page));
        }
        let has_room = self.has_memtable_room();
        if self.fullness.get().refuses(is_delete, has_room) {
            return Ok(Admission::Never);
        }
        Ok(match (has_room, is_delete) {
            (false, _) => Admission::Later,
            (true, true) => Admission::Now,
            (true, false) => index.admits(),
        })
    }

    /// Whether the memtables take a write. A full active memtable is frozen as soon as there is
    /// room in front of it, so all of them hold at most one object more than their limit: what a
    /// power cut has to dump is bounded.
    pub(crate) fn has_memtable_room(&self) -> bool {
        !self.active_is_full()
    }

    /// Goes on with what a power cut left.
    pub(crate) fn start(&self) {
        if self.active_is_full() {
            self.freeze_active();
        }
    }

    /// Free extents that clients may not use: those that flushes leave to others, one for the
    /// index and one for the data of a collection, and what memtables that were accepted take.
    pub(crate) fn client_reserve(&self) -> usize {
        // The active one, those in front of it, and one more for what collections move.
        let memtables = self.limits.frozen as u32 + 2;
        let accepted = memtables * self.store.pages_of_memtable(self.limits.bytes);
        let of_journal = {
            let extents = self.store.extents.borrow();
            let left = |stream| self.store.left_of_due(stream, &extents);
            left(Stream::Log) + left(Stream::Manifest)
        };
        Claimant::Flush.leaves_free() + 2 + self.store.extents_of(accepted) + of_journal
    }

    /// How full the active memtable is while there is no room in front of it; 0 while there is.
    pub(crate) fn fill_of_active_memtable(&self) -> f64 {
        let memtables = self.memtables.borrow();
        if memtables.frozen.len() < self.limits.frozen {
            return 0.0;
        }
        let active = memtables.active.borrow();
        let by_bytes = active.bytes() as f64 / self.limits.bytes as f64;
        by_bytes.max(active.len() as f64 / self.limits.entries as f64)
    }

    /// Waits for space for the data of a flush; nothing is held meanwhile but the memtable.
    pub(crate) async fn promise_data(&self, pages: u32) -> Promise<'_> {
        let promise = || self.store.try_promise(Stream::Objects, pages, Claimant::Flush);
        self.store.wait_for(promise, &self.flush_is_starved).await
    }

    /// Waits until a memtable waits for its flush.
    pub(crate) async fn wait_for_frozen(&self) {
        let has_work = || self.store.is_healthy() && !self.memtables.borrow().frozen.is_empty();
        self.store.work.wait_until(has_work).await;
    }

    /// The oldest frozen memtable is in the index. No await between that and this.
    pub(crate) fn flushed(&self) {
        self.memtables.borrow_mut().frozen.pop_front();
        if self.active_is_full() {
            self.freeze_active();
        }
    }

    /// Tells waiting clients how full the store is, if that has changed.
    pub(crate) fn set_fullness(&self, fullness: Fullness) {
        if self.fullness.replace(fullness) != fullness {
            self.store.room.notify_all();
        }
    }

    /// Whether collecting every extent once gave clients no room. Something has to be deleted
    /// before it is tried again.
    pub(crate) fn has_given_up(&self) -> bool {
        self.sweep.has_failed(self.store.shape.extents, self.writes.get())
    }
}
