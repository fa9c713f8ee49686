//! What clients leave free: extents for the background work that makes room again, and for what they
//! were promised (docs/decisions/0010).

use crate::error::OpenError;
use crate::front::{Front, MemtableLimits};
use crate::journal::manifest;
use crate::medium::{ExtentId, Medium, Stream};
use crate::store::PageStore;
use crate::store::extents::Extents;
use crate::store::space::Claimant;

/// Extents that memtables which were accepted take, and the checkpoints after them.
pub(super) fn extents_of_memtables<M: Medium>(
    store: &PageStore<M>,
    limits: &MemtableLimits,
) -> usize {
    // The active one, those in front of it, and one more for what collections move.
    let memtables = limits.frozen as u32 + 2;
    let accepted = memtables * pages_of(store, limits, limits.bytes);
    let growth = u64::from(memtables) * limits.checkpoint_bytes;
    let of_journal = manifest::extents_for_growth(&store.shape, growth);
    store.extents_of(accepted) + if store.has_journal_apart() { 0 } else { of_journal }
}

/// A memtable has so many times what puts leave for batches that make room.
const PART_FOR_EXCHANGE: u64 = 16;

/// Extents that puts leave for batches that make room. What these delete is given back later, by merges and collection.
pub(super) fn extents_for_exchange<M: Medium>(
    store: &PageStore<M>,
    limits: &MemtableLimits,
) -> usize {
    let bytes = limits.bytes / PART_FOR_EXCHANGE;
    // One more is being filled.
    if limits.leaves_room { store.extents_of(pages_of(store, limits, bytes)) + 1 } else { 0 }
}

/// Pages that a flush of `bytes` takes at most, its part of the index with it.
fn pages_of<M: Medium>(store: &PageStore<M>, limits: &MemtableLimits, bytes: u64) -> u32 {
    let of_index = u128::from(limits.index_pages) * u128::from(bytes);
    store.pages_of_memtable(bytes) + of_index.div_ceil(limits.bytes.into()) as u32
}

impl<M: Medium> Front<M> {
    /// Free extents that clients may not use: those that flushes leave to others, one for the
    /// index and one for the data of a collection, what memtables that were accepted take, what is left for batches
    /// that make room, and what index and journal have not taken of their own.
    pub fn client_reserve(&self, extents: &Extents) -> usize {
        self.reserve_with(|stream| self.store.left_of_due(stream, extents))
    }

    /// The same once all extents that are about to be free are.
    pub(super) fn client_reserve_in_sight(&self) -> usize {
        let extents = self.store.extents.borrow();
        self.reserve_with(|stream| self.store.left_of_due_in_sight(stream, &extents))
    }

    fn reserve_with(&self, left: impl Fn(Stream) -> usize) -> usize {
        self.reserve_of_flushes() + left(Stream::Index) + left(Stream::Log) + left(Stream::Manifest)
    }

    /// Checks that clients could write to a store that is empty: that background work and a journal, if
    /// there is one with checkpoints of about so many bytes, leave them anything.
    ///
    /// # Errors
    /// [`OpenError::TooFewExtents`], [`OpenError::SingleUnit`].
    pub fn check_extents(&self, checkpoint_bytes: Option<u64>) -> Result<(), OpenError> {
        if self.store.shape.pages_per_extent == self.store.shape.append_unit {
            return Err(OpenError::SingleUnit);
        }
        let journal = self.store.journal();
        if journal.shape.pages_per_extent == journal.shape.append_unit {
            return Err(OpenError::SingleUnit);
        }
        let of_journal = checkpoint_bytes.map_or(0, |bytes| {
            self.extents_of_log() + manifest::extents_for(&journal.shape, bytes)
        });
        let of_index = self.store.set_aside[Stream::Index as usize].get();
        self.check_there_are(self.reserve_of_flushes() + of_index + 1, of_journal)
    }

    /// Checks that a store that is there has extents for the memtables that it is opened with: what background work needs for them, and their log.
    ///
    /// # Errors
    /// [`OpenError::TooFewExtents`].
    pub fn check_memtables(&self) -> Result<(), OpenError> {
        // Steps of compactions are as small as can be: which plan the store has is another matter.
        self.check_there_are(self.reserve_with_steps(1) + 1, self.extents_of_log())
    }

    /// Checks that there are so many extents for data and index, and for a journal, wherever that is.
    fn check_there_are(&self, of_data: usize, of_journal: usize) -> Result<(), OpenError> {
        let is_apart = self.store.has_journal_apart();
        let available = self.store.journal().shape.extents as usize;
        if is_apart && of_journal > available {
            return Err(OpenError::TooFewExtents { needed: of_journal, available });
        }
        let needed = of_data + if is_apart { 0 } else { of_journal };
        let available = self.store.shape.extents as usize;
        if needed > available {
            return Err(OpenError::TooFewExtents { needed, available });
        }
        Ok(())
    }

    fn reserve_of_flushes(&self) -> usize {
        self.reserve_with_steps(self.store.step_extents.get())
    }

    fn reserve_with_steps(&self, step_extents: usize) -> usize {
        Claimant::Flush.leaves_free(step_extents)
            + 2
            + self.extents_of_memtables
            + self.left_for_exchange
    }

    /// Whether there is space for a batch that makes room: it can be flushed with what memtables hold (not what they may hold), and a memtable of
    /// what a collection moves behind it.
    pub(super) fn has_space_for_exchange(&self, bytes: u64) -> bool {
        let (store, limits) = (&self.store, &self.limits);
        let held = self.memtables.borrow().bytes() + bytes;
        let pages = pages_of(store, limits, held) + pages_of(store, limits, limits.bytes);
        store.can_promise(Stream::Objects, pages, Claimant::Flush)
    }

    /// Whether clients leave enough extents to the background work that makes room again.
    pub fn has_space_for_clients(&self) -> bool {
        let extents = self.store.extents.borrow();
        extents.free() > self.client_reserve(&extents)
    }

    /// The same with those extents that are about to be free.
    pub fn has_extents_for_clients(&self) -> bool {
        self.store.extents_in_sight() > self.client_reserve_in_sight()
    }

    /// Whether free extents have become so few that collection starts: this share of all, as few as clients
    /// need left, or as few as they would soon be paced at.
    pub fn is_short_of_extents(&self, share: f64) -> bool {
        let share = (f64::from(self.store.shape.extents) * share).ceil() as usize;
        let due_below = share.max(self.client_reserve_in_sight() + 2);
        self.store.extents_in_sight() < due_below || self.is_nearly_paced()
    }

    /// Whether there is space for what is in use in a data extent: once begun, it is to be ended.
    pub fn can_move(&self, id: ExtentId) -> bool {
        let extents = self.store.extents.borrow();
        let shape = &self.store.shape;
        let share = extents.utilisation(extents.get(id));
        let pages = (share * f64::from(shape.pages_per_extent)).ceil();
        let bytes = (pages * f64::from(shape.payload_bytes)) as u64;
        // What is moved is flushed in several memtables, and clients' deletes along with it.
        let pages = self.pages_to_flush(bytes, u64::from(extents.get(id).live))
            + self.store.pages_of_memtable(self.limits.bytes);
        self.store.can_promise(Stream::Objects, pages, Claimant::Flush)
    }

    /// Pages that flushes write for `bytes` in `objects` objects, about: each fills its last unit up,
    /// and of small memtables there are many.
    fn pages_to_flush(&self, bytes: u64, objects: u64) -> u32 {
        let flushes = (bytes / self.limits.bytes).max(objects / self.limits.entries as u64);
        let flushes = flushes.clamp(1, objects.max(1));
        let pages = bytes.div_ceil(flushes).div_ceil(u64::from(self.store.shape.payload_bytes));
        flushes as u32 * self.store.in_units(pages as u32)
    }
}
