//! The write path of puts and deletes.

use std::rc::Rc;

use runtime::Nanos;

use crate::Value;
use crate::effort::Effort;
use crate::error::EngineError;
use crate::format::object::Sequence;
use crate::lsm::Inner;
use crate::lsm::reads::Located;
use crate::memtable::Entry;
use crate::operations::Condition;
use crate::planted::Fault;
use crate::store::medium::Medium;
use crate::store::space::Claimant;

impl<M: Medium> Inner<M> {
    /// The write path of puts and deletes.
    pub(crate) async fn write(
        &self,
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
            self.wait_for_room(is_delete).await?;
            self.insert(key, entry);
            return Ok(true);
        }
        loop {
            let (start, flushes) = (self.sequence.get(), self.flushes.get());
            let guard = self.store.epochs.enter();
            let exists = match self.locate(key, work + cost, &mut 0).await? {
                Located::Absent => false,
                Located::Memory(entry) => entry.is_some(),
                Located::At(_) => true,
            };
            // Not while waiting for room: making room may mean waiting for readers to leave.
            drop(guard);
            self.wait_for_room(is_delete).await?;
            // No await from here to the insert: nothing can come in between.
            if self.flushes.get() != flushes {
                continue; // what was newer may have left the memtables meanwhile
            }
            let newest = self.memtables.borrow().get(key).map(|(at, entry)| (at, entry.is_some()));
            let exists = newest.filter(|(at, _)| *at > start).map_or(exists, |(_, is_put)| is_put);
            if exists != (condition == Condition::MustExist) {
                return Ok(false);
            }
            self.insert(key, entry);
            return Ok(true);
        }
    }

    /// Puts a client's write in the active memtable. No await: it happens at one instant.
    fn insert(&self, key: &[u8], entry: Entry) {
        let bytes = key.len() as u64 + u64::from(entry.as_ref().map_or(0, Value::len));
        self.sequence.set(self.sequence.get() + 1);
        {
            let mut stats = self.stats.borrow_mut();
            stats.writes += 1;
            stats.user_bytes += bytes;
        }
        self.insert_at(key, self.sequence.get(), entry);
    }

    /// Puts a write with its sequence number in the active memtable, and freezes that if full.
    pub(crate) fn insert_at(&self, key: &[u8], sequence: Sequence, entry: Entry) {
        let active = Rc::clone(&self.memtables.borrow().active);
        let newest = self.snapshots.newest();
        let newest = newest.filter(|_| !self.store.planted.has(Fault::OverwriteUnderSnapshot));
        active.borrow_mut().insert(key, sequence, entry, newest);
        let is_due = active.borrow().bytes() >= self.options.memtable_bytes;
        if is_due || self.is_squeezing.get() {
            self.freeze_active();
        }
    }

    /// Hands the active memtable to the flush, if there is room in front of it.
    pub(crate) fn freeze_active(&self) {
        let memtables = &mut *self.memtables.borrow_mut();
        let has_room = memtables.frozen.len() < self.options.frozen_memtables;
        if has_room && memtables.freeze() {
            self.store.work.notify_all();
        }
    }

    /// Waits until a client's write may go ahead.
    async fn wait_for_room(&self, is_delete: bool) -> Result<(), EngineError> {
        let started = self.store.handle.now();
        let mut has_waited = false;
        loop {
            if let Some(page) = self.store.failure() {
                return Err(EngineError::ReadOnly(page));
            }
            let has_room = self.has_memtable_room();
            if self.fullness.get().refuses(is_delete, has_room) {
                return Err(EngineError::Full);
            }
            if has_room && (is_delete || self.has_space_for_clients()) {
                break;
            }
            has_waited = true;
            self.store.room.notified().await;
        }
        if has_waited {
            let mut stats = self.stats.borrow_mut();
            stats.stalls += 1;
            stats.stalled += self.store.handle.now() - started;
        }
        Ok(())
    }

    pub(crate) fn has_memtable_room(&self) -> bool {
        let memtables = self.memtables.borrow();
        memtables.active_bytes() < self.options.memtable_bytes
            || memtables.frozen.len() < self.options.frozen_memtables
    }

    /// Clients leave the last extents to the background work that makes room again, and wait while
    /// pinned levels are over the memory budget.
    fn has_space_for_clients(&self) -> bool {
        self.store.extents.borrow().free() > self.client_reserve()
            && self.memory_index_bytes() <= self.surroundings.index_dram_bytes
    }

    /// Free extents that clients may not use: those that flushes leave to others, one for the
    /// index and one for the data of a collection, and what memtables that were accepted take.
    pub(crate) fn client_reserve(&self) -> usize {
        let accepted = 3 * self.store.pages_of_memtable(self.options.memtable_bytes);
        Claimant::Flush.leaves_free() + 2 + self.store.extents_of(accepted)
    }
}
