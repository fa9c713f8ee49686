//! The reserve that clients leave free: extents for the background work that frees space, and for
//! promises made to clients (docs/decisions/0010).

use super::Front;
use crate::error::OpenError;
use crate::manifest;
use crate::medium::{ExtentId, Medium, Stream};
use crate::memtable::MemtableLimits;
use crate::space::PageStore;
use crate::space::extents::Extents;
use crate::space::priority::Claimant;

/// Returns the extents that accepted memtables will fill, including the checkpoints after them.
pub(super) fn extents_of_memtables<M: Medium>(
    store: &PageStore<M>,
    limits: &MemtableLimits,
) -> usize {
    // The active memtable, the frozen ones, and one more for objects moved by collections.
    let memtables = limits.frozen as u32 + 2;
    let accepted = memtables * pages_of(store, limits, limits.bytes);
    let growth = u64::from(memtables) * limits.checkpoint_bytes;
    let of_journal = manifest::extents_for_growth(&store.shape, growth);
    store.extents_of(accepted) + if store.has_journal_apart() { 0 } else { of_journal }
}

/// A memtable is this many times as large as the room that puts leave for batches that free space.
const PART_FOR_EXCHANGE: u64 = 16;

/// Returns the extents that puts leave for batches that free space. The space of the deleted
/// objects is freed later, by compaction and garbage collection.
pub(super) fn extents_for_exchange<M: Medium>(
    store: &PageStore<M>,
    limits: &MemtableLimits,
) -> usize {
    let bytes = limits.bytes / PART_FOR_EXCHANGE;
    // One more extent is being filled.
    if limits.leaves_room { store.extents_of(pages_of(store, limits, bytes)) + 1 } else { 0 }
}

/// Returns the most pages that a flush of `bytes` bytes writes, including its index pages.
fn pages_of<M: Medium>(store: &PageStore<M>, limits: &MemtableLimits, bytes: u64) -> u32 {
    let of_index = u128::from(limits.index_pages) * u128::from(bytes);
    store.pages_of_memtable(bytes) + of_index.div_ceil(limits.bytes.into()) as u32
}

impl<M: Medium> Front<M> {
    /// Returns the number of free extents that clients may not use: those that flushes leave to
    /// other claimants, one for the index and one for the data of a collection, those for accepted
    /// memtables, those left for batches that free space, and those reserved for index and journal
    /// that these do not use yet.
    pub(crate) fn client_reserve(&self, extents: &Extents) -> usize {
        self.reserve_with(|stream| self.store.left_of_due(stream, extents))
    }

    /// As [`Self::client_reserve`], after all releases in progress.
    pub(super) fn client_reserve_in_sight(&self) -> usize {
        let extents = self.store.extents.borrow();
        self.reserve_with(|stream| self.store.left_of_due_in_sight(stream, &extents))
    }

    fn reserve_with(&self, left: impl Fn(Stream) -> usize) -> usize {
        self.reserve_of_flushes() + left(Stream::Index) + left(Stream::Log) + left(Stream::Manifest)
    }

    /// Checks that background work and the journal leave room for clients in an empty store. With a
    /// journal, `checkpoint_bytes` is the approximate size of a checkpoint.
    ///
    /// # Errors
    /// Returns [`OpenError::TooFewExtents`] if there are too few extents, [`OpenError::SingleUnit`]
    /// if an extent has a single append unit.
    pub(crate) fn check_extents(&self, checkpoint_bytes: Option<u64>) -> Result<(), OpenError> {
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

    /// Checks that an existing store has enough extents for the memtables that it is opened with:
    /// for their background work and their log.
    ///
    /// # Errors
    /// Returns [`OpenError::TooFewExtents`] if there are too few extents.
    pub(crate) fn check_memtables(&self) -> Result<(), OpenError> {
        // Assumes the smallest steps of compaction: the plan of the store is checked elsewhere.
        self.check_there_are(self.reserve_with_steps(1) + 1, self.extents_of_log())
    }

    /// Checks that the media have enough extents for data and index, and for the journal.
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

    /// Whether there is space for a batch that frees space: space to flush it with the present
    /// contents of the memtables (not their limits), and one more memtable of objects moved by a
    /// collection.
    pub(super) fn has_space_for_exchange(&self, bytes: u64) -> bool {
        let (store, limits) = (&self.store, &self.limits);
        let held = self.memtables.borrow().bytes() + bytes;
        let pages = pages_of(store, limits, held) + pages_of(store, limits, limits.bytes);
        store.can_promise(Stream::Objects, pages, Claimant::Flush)
    }

    /// Whether more extents are free than the reserve for background work.
    pub(crate) fn has_space_for_clients(&self) -> bool {
        let extents = self.store.extents.borrow();
        extents.free() > self.client_reserve(&extents)
    }

    /// As [`Self::has_space_for_clients`], counting extents that are being released as free.
    pub(crate) fn has_extents_for_clients(&self) -> bool {
        self.store.extents_in_sight() > self.client_reserve_in_sight()
    }

    /// Whether so few extents are free that collection must start: fewer than `share` of all, close
    /// to the clients' reserve, or close to the point where clients are paced.
    pub(crate) fn is_short_of_extents(&self, share: f64) -> bool {
        let share = (f64::from(self.store.shape.extents) * share).ceil() as usize;
        let due_below = share.max(self.client_reserve_in_sight() + 2);
        self.store.extents_in_sight() < due_below || self.is_nearly_paced()
    }

    /// Whether there is space for the live items of a data extent. A collection that has begun must
    /// be able to finish.
    pub(crate) fn can_move(&self, id: ExtentId) -> bool {
        let extents = self.store.extents.borrow();
        let shape = &self.store.shape;
        let share = extents.utilisation(extents.get(id));
        let pages = (share * f64::from(shape.pages_per_extent)).ceil();
        let bytes = (pages * f64::from(shape.payload_bytes)) as u64;
        // Moved objects are flushed in several memtables, together with clients' deletes.
        let pages = self.pages_to_flush(bytes, u64::from(extents.get(id).live))
            + self.store.pages_of_memtable(self.limits.bytes);
        self.store.can_promise(Stream::Objects, pages, Claimant::Flush)
    }

    /// Returns an estimate of the pages that flushes write for `bytes` bytes in `objects` objects.
    /// Each flush fills up its last unit, and small memtables need many flushes.
    fn pages_to_flush(&self, bytes: u64, objects: u64) -> u32 {
        let flushes = (bytes / self.limits.bytes).max(objects / self.limits.entries as u64);
        let flushes = flushes.clamp(1, objects.max(1));
        let pages = bytes.div_ceil(flushes).div_ceil(u64::from(self.store.shape.payload_bytes));
        flushes as u32 * self.store.in_units(pages as u32)
    }
}
