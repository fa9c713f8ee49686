//! Edits of the table: what makes its changes outlive a power cut where memory does not.
//!
//! The table is changed in memory slot by slot, and bucket pages are written when their place is
//! needed, with whatever slots they have by then. So there is one edit that everything is gathered in:
//! slots that were changed, pages that were written, objects in use and dead, the end of a memtable.
//! Whoever needs his part to be in force has the turn at the manifest and commits all that has come
//! together, for all who wait (group commit). What a page on the medium has was committed no later
//! than the page: a recovery never meets a slot whose object it does not know of.
//!
//! Changes of slots are numbered. A page that was written says up to which number it has them, because
//! others may have been committed while it was under way (`reopen`).
//!
//! With capacitors nothing is gathered: changes are in force at once.

use std::cell::{Cell, RefCell};

use pages::error::EngineError;
use pages::journal::Flushed;
use pages::journal::manifest::Manifest;
use pages::medium::{ExtentId, Medium, PageNo};
use pages::store::changes::Changes;

use crate::bucket::Slot;
use crate::hash::table::SlotNo;
use crate::hash::{Inner, edit_codec};

/// A slot that was changed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SlotChange {
    pub number: u64,
    pub at: SlotNo,
    pub slot: Slot,
}

/// A bucket page on its way to the medium.
pub(crate) struct BucketImage {
    pub page: u32,
    /// It has the changes of its slots up to this number.
    pub changes: u64,
    pub bytes: Vec<u8>,
}

/// A bucket page that was written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PageWrite {
    pub page: u32,
    /// It has the changes of its slots up to this number.
    pub changes: u64,
    pub at: PageNo,
}

/// A change of the table and of what it says about the extents.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Edit {
    /// In the order of their numbers.
    pub slots: Vec<SlotChange>,
    pub pages: Vec<PageWrite>,
    pub changes: Changes,
    /// Whether the oldest frozen memtable is in the table from then on.
    pub flushed: Option<Flushed>,
    /// Extents that nothing refers to from then on.
    pub retired: Vec<ExtentId>,
}

impl Edit {
    fn merge(&mut self, other: Self) {
        let Self { slots, pages, changes, flushed, retired } = other;
        self.slots.extend(slots);
        self.pages.extend(pages);
        self.changes.merge(changes);
        assert!(self.flushed.is_none() || flushed.is_none(), "one memtable is flushed at a time");
        self.flushed = self.flushed.or(flushed);
        self.retired.extend(retired);
    }
}

/// The edit that is gathered.
#[derive(Default)]
pub(crate) struct Gathered {
    edit: RefCell<Edit>,
    /// Edits committed so far; the one that is gathered comes next.
    committed: Cell<u64>,
    /// Edits taken to be committed so far.
    taken: Cell<u64>,
}

impl<M: Medium> Inner<M> {
    /// Notes a slot that was changed in memory.
    pub(crate) fn note_slot(&self, change: SlotChange) {
        if self.manifest.is_some() {
            self.gathered.edit.borrow_mut().slots.push(change);
        }
    }

    /// Changes that follow from slots.
    pub(crate) fn note_changes(&self, changes: Changes) {
        if self.manifest.is_some() {
            self.gathered.edit.borrow_mut().changes.merge(changes);
        } else {
            self.store.apply(&changes);
        }
    }

    /// Puts an edit in force, with all that was noted before.
    ///
    /// # Errors
    /// [`EngineError::Medium`]: whether the edit outlives a power cut is unknown, and it is not in force.
    /// [`EngineError::ReadOnly`]: an earlier one could not be written, and neither will this one.
    pub(crate) async fn publish(&self, edit: Edit) -> Result<(), EngineError> {
        let Some(manifest) = &self.manifest else {
            self.apply(edit);
            return Ok(());
        };
        self.gathered.edit.borrow_mut().merge(edit);
        let number = self.gathered.taken.get() + 1;
        let _turn = manifest.turn(&self.store).await?;
        // Whoever had the turn before may have taken this along.
        if self.gathered.committed.get() < number {
            self.commit_gathered(manifest).await?;
        }
        Ok(())
    }

    /// Commits and applies what was gathered, by whoever has the turn.
    pub(crate) async fn commit_gathered(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let edit = self.gathered.edit.take();
        self.gathered.taken.set(self.gathered.taken.get() + 1);
        if manifest.is_due(&self.store) {
            manifest.checkpoint(&self.store, &self.checkpoint(&edit)).await?;
        } else {
            manifest.commit(&self.store, &self.encode(&edit)).await?;
        }
        self.gathered.committed.set(self.gathered.taken.get());
        self.apply(edit);
        self.settled.notify_all();
        self.store.work.notify_all();
        Ok(())
    }

    /// An edit as bytes. What it says of the whole table is as of now.
    pub(crate) fn encode(&self, edit: &Edit) -> Vec<u8> {
        let totals = Totals { keys: self.keys.get(), longest_search: self.longest_search.get() };
        edit_codec::encode(edit, totals, self.store.format)
    }

    /// All at one instant; slots are changed already.
    fn apply(&self, edit: Edit) {
        let Edit { slots: _, pages, changes, flushed, retired: _ } = edit;
        for PageWrite { page, at, .. } in pages {
            self.directory.borrow_mut()[page as usize] = Some(at);
            let was_marked = self.writing.borrow_mut().remove(&page);
            assert!(was_marked, "bucket page {page} was written while others could write it");
        }
        self.store.apply(&changes);
        if let Some(flushed) = flushed {
            self.front.flushed();
            self.flushed.set(flushed);
            if let Some(log) = &*self.front.log.borrow() {
                log.trim(flushed.log_from);
            }
        }
    }
}

/// What is counted of the whole table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub keys: u64,
    pub longest_search: u32,
}
