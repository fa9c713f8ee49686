//! Pacing of clients by what collections free.
//!
//! While free extents are few, clients may write as much as collections under way have freed so far, and
//! not whole extents at a time: otherwise they would all stop until a victim is empty, a second on a large
//! drive.
//!
//! Pages of the index that are garbage count as free, because what compaction writes makes as much garbage
//! as it takes: it comes back in whole extents, and clients are not to feel when. Some of it is always there.

use std::cell::Cell;
use std::rc::Rc;

use crate::front::Front;
use crate::medium::{ExtentId, Medium};

/// Extents beyond those that clients leave free within which they are paced: while a victim is emptied as
/// much is filled, another one is being erased, and two are being filled with objects and index.
const PACED_WITHIN: u32 = 4;
/// That is no more than this part of all, or small drives would hold too little.
const PACED_PART: u32 = 32;
/// Where too little is free, clients write so many times what they leave of what a collection frees.
const WRITTEN_TO_LEFT: u64 = 3;

/// What the collection of objects that is under way has freed.
#[derive(Default)]
pub(crate) struct Freed {
    is_under_way: Cell<bool>,
    /// In objects of the extent.
    objects: Cell<u32>,
    of_objects: Cell<u32>,
    /// Pages that were free when it began.
    free_at_first: Cell<u64>,
    /// Bytes that clients had written then.
    written_at_first: Cell<u64>,
}

/// A collection of objects under way, until it is dropped.
pub(crate) struct Freeing<'a, M: Medium>(&'a Front<M>);

/// An object of the extent that is collected. It is free when this is dropped: it was moved, and counts
/// where it went, or it was garbage.
pub(crate) struct Place(Rc<Freed>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.objects.set(self.0.objects.get() + 1);
    }
}

impl<M: Medium> Front<M> {
    /// The collection of the objects in an extent begins.
    pub(crate) fn begin_freeing(&self, id: ExtentId) -> Freeing<'_, M> {
        let was_under_way = self.freed.is_under_way.replace(true);
        assert!(!was_under_way, "objects of two extents are collected at a time");
        self.freed.objects.set(0);
        self.freed.written_at_first.set(self.user_bytes.get());
        self.freed.free_at_first.set(self.pages_free());
        self.freed.of_objects.set(self.store.extents.borrow().get(id).published.max(1));
        Freeing(self)
    }

    /// Pages that the collection under way has freed.
    fn pages_freed(&self) -> u64 {
        let (freed, all) = (self.freed.objects.get(), self.freed.of_objects.get().max(1));
        u64::from(freed.min(all)) * u64::from(self.store.shape.pages_per_extent) / u64::from(all)
    }

    /// Whether a client's put waits until the collection under way has freed more. Where fewer pages are
    /// free than are to be, clients get most of what it frees; but they are not to wait for more than it can
    /// free.
    pub(super) fn is_paced(&self) -> bool {
        if !self.freed.is_under_way.get() {
            return false;
        }
        let written = self.user_bytes.get() - self.freed.written_at_first.get();
        let written = written / u64::from(self.store.shape.payload_bytes);
        let left = self.freed.free_at_first.get() + written / WRITTEN_TO_LEFT;
        self.pages_free() <= self.kept(0).min(left)
    }

    /// Whether so few pages are free that clients are paced, or will be before another extent is full.
    pub fn is_nearly_paced(&self) -> bool {
        self.pages_free() <= self.kept(1)
    }

    /// Pages that are free or about to be, the index's garbage with them, less what memtables will take.
    fn pages_free(&self) -> u64 {
        let garbage = self.store.extents.borrow().index_garbage();
        let free = self.store.pages_in_sight() + self.pages_freed() + garbage;
        let payload_bytes = u64::from(self.store.shape.payload_bytes);
        free.saturating_sub(self.memtables.borrow().bytes() / payload_bytes)
    }

    /// Pages within which clients are paced, and `more` extents. The index is given half as much garbage as it
    /// has pages, for its extents are collected when a third of them is that.
    fn kept(&self, more: usize) -> u64 {
        let shape = &self.store.shape;
        let within = PACED_WITHIN.min(shape.extents.div_ceil(PACED_PART)) as usize;
        let extents = self.client_reserve_in_sight() + within + more;
        let of_index = self.store.extents.borrow().index_pages();
        extents as u64 * u64::from(shape.pages_per_extent) + of_index / 2
    }
}

impl<M: Medium> Freeing<'_, M> {
    /// For an object of the extent.
    pub(crate) fn place(&self) -> Place {
        Place(Rc::clone(&self.0.freed))
    }

    /// Lets clients know that more may be free.
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
