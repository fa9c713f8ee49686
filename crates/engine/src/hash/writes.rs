//! The write path of puts and deletes.

use runtime::Nanos;

use crate::Value;
use crate::effort::Effort;
use crate::error::EngineError;
use crate::format::object::Sequence;
use crate::hash::Inner;
use crate::hash::reads::Located;
use crate::memtable::Entry;
use crate::operations::{Condition, Fullness};
use crate::store::extents::{Extents, Purpose};
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
            let exists = match self.locate(key, work + cost, false, &mut 0).await? {
                Located::Absent => false,
                Located::Memory(entry) => entry.is_some(),
                Located::Stored(_) => true,
            };
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
        // Without iterators nobody needs older versions.
        self.memtables.borrow().active.borrow_mut().insert(key, sequence, entry, None);
        // A delete on a full drive is to make room at once.
        if self.active_is_full() || self.fullness.get() != Fullness::Room {
            self.freeze_active();
        }
    }

    fn active_is_full(&self) -> bool {
        let memtables = self.memtables.borrow();
        let active = memtables.active.borrow();
        active.len() >= self.options.buffer_entries || active.bytes() >= self.options.buffer_bytes
    }

    /// Hands the active memtable to the flush, if there is room in front of it.
    pub(crate) fn freeze_active(&self) {
        let memtables = &mut *self.memtables.borrow_mut();
        let has_room = memtables.frozen.len() < self.options.frozen_buffers;
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
            if has_room && is_delete {
                break;
            }
            if has_room && self.has_space_for_clients() {
                match self.slots_for_clients() {
                    Slots::Some => break,
                    Slots::None => return Err(EngineError::Full),
                    Slots::AfterFlush => self.freeze_active(),
                }
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
        let frozen = self.memtables.borrow().frozen.len();
        !self.active_is_full() || frozen < self.options.frozen_buffers
    }

    /// Whether the table has a slot for one more key, should all in memtables be new.
    fn slots_for_clients(&self) -> Slots {
        let memtables = self.memtables.borrow();
        let lengths = memtables.newest_first().map(|memtable| memtable.borrow().len() as u64);
        let waiting: u64 = lengths.sum();
        match self.keys.get() + waiting < self.table.most_keys() {
            true => Slots::Some,
            false if waiting > 0 => Slots::AfterFlush,
            false => Slots::None,
        }
    }

    /// Clients leave the last extents to the background work that makes room again.
    fn has_space_for_clients(&self) -> bool {
        let extents = self.store.extents.borrow();
        // Cheap first: counting the index's extents takes a look at all there are.
        let most = self.reserve_without_index() + self.store.index_extents.get();
        extents.free() > most || extents.free() > self.client_reserve(&extents)
    }

    /// Free extents that clients may not use: those that flushes leave to others, one for the
    /// index and one for the data of a collection, what memtables that were accepted take, and what
    /// the index has not taken of its own.
    pub(crate) fn client_reserve(&self, extents: &Extents) -> usize {
        let of_index = self.store.index_extents.get();
        self.reserve_without_index() + of_index.saturating_sub(extents.in_use(Purpose::Meta))
    }

    fn reserve_without_index(&self) -> usize {
        let accepted = 3 * self.store.pages_of_memtable(self.options.buffer_bytes);
        Claimant::Flush.leaves_free() + 2 + self.store.extents_of(accepted)
    }
}

/// Whether the table takes another key.
enum Slots {
    Some,
    /// Perhaps, when it is known which keys in memtables are new.
    AfterFlush,
    None,
}
