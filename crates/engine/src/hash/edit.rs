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

use super::bucket::Slot;
use super::table::SlotNo;
use crate::manifest::changes::Changes;
use crate::medium::{ExtentId, PageNo};
use crate::wal::Flushed;

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
    pub(crate) fn merge(&mut self, other: Self) {
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
    pub edit: RefCell<Edit>,
    /// Edits committed so far; the one that is gathered comes next.
    pub committed: Cell<u64>,
    /// Edits taken to be committed so far.
    pub taken: Cell<u64>,
}

/// What is counted of the whole table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub keys: u64,
    pub longest_search: u32,
}
