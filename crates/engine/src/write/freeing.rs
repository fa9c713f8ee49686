//! Paces clients by the space that collections free.
//!
//! While few extents are free, clients may write as much as the running collections have freed so
//! far. The pace does not go by whole extents, because otherwise all clients would stop until a
//! victim is empty: about a second on a large drive.
//!
//! Garbage pages of the index count as free, because compaction makes as much garbage as it writes.
//! That space comes back in whole extents, and clients should not notice when. Some of this garbage
//! always exists.

use std::cell::Cell;
use std::rc::Rc;

use super::Front;
use crate::medium::{ExtentId, Medium};

/// Clients are paced within this many extents beyond those that they leave free: an emptied victim
/// fills as much as it frees, another one is being erased, and two are being filled with objects
/// and index.
const PACED_WITHIN: u32 = 4;
/// The same limit as a part of all extents, because otherwise small drives would hold too little.
const PACED_PART: u32 = 32;
/// If too little is free, clients may write this many times as much as they leave of the space that
/// a collection frees.
const WRITTEN_TO_LEFT: u64 = 3;

/// The progress of the current collection of objects.
#[derive(Default)]
pub(crate) struct Freed {
    is_under_way: Cell<bool>,
    /// Objects of the extent that are freed.
    objects: Cell<u32>,
    of_objects: Cell<u32>,
    /// The number of free pages when it began.
    free_at_first: Cell<u64>,
    /// The bytes that clients had written when it began.
    written_at_first: Cell<u64>,
}

/// The guard of a collection of objects in progress.
pub(crate) struct Freeing<'a, M: Medium>(&'a Front<M>);

/// An object of the extent being collected. Dropping this counts it as free: it was moved, and
/// counts at its new place, or it was garbage.
pub(crate) struct Place(Rc<Freed>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.objects.set(self.0.objects.get() + 1);
    }
}

impl<M: Medium> Front<M> {
    /// Begins the collection of the objects in an extent.
    pub(crate) fn begin_freeing(&self, id: ExtentId) -> Freeing<'_, M> {
        let was_under_way = self.freed.is_under_way.replace(true);
        assert!(!was_under_way, "objects of two extents are collected at a time");
        self.freed.objects.set(0);
        self.freed.written_at_first.set(self.user_bytes.get());
        self.freed.free_at_first.set(self.pages_free());
        self.freed.of_objects.set(self.store.extents.borrow().get(id).published.max(1));
        Freeing(self)
    }

    /// Returns the number of pages that the current collection has freed.
    fn pages_freed(&self) -> u64 {
        let (freed, all) = (self.freed.objects.get(), self.freed.of_objects.get().max(1));
        u64::from(freed.min(all)) * u64::from(self.store.shape.pages_per_extent) / u64::from(all)
    }

    /// Whether a client's put must wait until the current collection has freed more. If fewer pages
    /// are free than there should be, clients get most of the freed space. They never wait for more
    /// than the collection can free.
    pub(super) fn is_paced(&self) -> bool {
        if !self.freed.is_under_way.get() {
            return false;
        }
        let written = self.user_bytes.get() - self.freed.written_at_first.get();
        let written = written / u64::from(self.store.shape.payload_bytes);
        let left = self.freed.free_at_first.get() + written / WRITTEN_TO_LEFT;
        self.pages_free() <= self.kept(0).min(left)
    }

    /// Whether so few pages are free that clients are paced, or will be before another extent is
    /// full.
    pub(crate) fn is_nearly_paced(&self) -> bool {
        self.pages_free() <= self.kept(1)
    }

    /// Returns the pages that are free or being released, plus the index's garbage, minus the pages
    /// that the memtables will fill.
    fn pages_free(&self) -> u64 {
        let garbage = self.store.extents.borrow().index_garbage();
        let free = self.store.pages_in_sight() + self.pages_freed() + garbage;
        let payload_bytes = u64::from(self.store.shape.payload_bytes);
        free.saturating_sub(self.memtables.borrow().bytes() / payload_bytes)
    }

    /// Returns the number of free pages at which pacing begins, plus `more` extents. The index may
    /// have half as much garbage as live pages, because its extents are collected when a third of
    /// their pages is garbage.
    fn kept(&self, more: usize) -> u64 {
        let shape = &self.store.shape;
        let within = PACED_WITHIN.min(shape.extents.div_ceil(PACED_PART)) as usize;
        let extents = self.client_reserve_in_sight() + within + more;
        let of_index = self.store.extents.borrow().index_pages();
        extents as u64 * u64::from(shape.pages_per_extent) + of_index / 2
    }
}

impl<M: Medium> Freeing<'_, M> {
    /// Returns the token of an object of the extent.
    pub(crate) fn place(&self) -> Place {
        Place(Rc::clone(&self.0.freed))
    }

    /// Wakes clients, because more space may be free.
    pub(crate) fn tell(&self) {
        self.0.store.room.notify_all();
    }
}

impl<M: Medium> Drop for Freeing<'_, M> {
    fn drop(&mut self) {
        self.0.freed.is_under_way.set(false);
        self.0.freed.objects.set(0);
        self.tell();
    }
}
