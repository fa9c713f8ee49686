//! Edits of the table, which make its changes durable if memory does not survive a power cut.
//!
//! The table is changed in memory slot by slot, and a bucket page is written when its place in the
//! cache is needed, with the slots that it has at that time. So a single edit gathers all changes:
//! changed slots, written pages, live and dead objects, the end of a flush. A task that needs its
//! part to be in force waits for the turn at the manifest, and commits all that has been gathered
//! by then, for all waiting tasks (group commit). Slot changes in a page on the medium are
//! committed no later than the page: a recovery never finds a slot that refers to an unknown
//! object.
//!
//! Slot changes are numbered. A written page has the number of the last change that it contains,
//! because later changes may be committed while it is being written (`reopen`).
//!
//! With capacitors nothing is gathered: changes are in force at once.

use std::cell::{Cell, RefCell};

use super::bucket::Slot;
use super::table::SlotNo;
use crate::manifest::changes::Changes;
use crate::medium::{ExtentId, PageNo};
use crate::wal::Flushed;

/// A changed slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SlotChange {
    pub number: u64,
    pub at: SlotNo,
    pub slot: Slot,
}

/// A bucket page that is about to be written.
pub(crate) struct BucketImage {
    pub page: u32,
    /// The page contains the changes of its slots up to this number.
    pub changes: u64,
    pub bytes: Vec<u8>,
}

/// A written bucket page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PageWrite {
    pub page: u32,
    /// The page contains the changes of its slots up to this number.
    pub changes: u64,
    pub at: PageNo,
}

/// A change of the table and of the extent accounting.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Edit {
    /// Slot changes in the order of their numbers.
    pub slots: Vec<SlotChange>,
    pub pages: Vec<PageWrite>,
    pub changes: Changes,
    /// The new flush position, if the edit completes the flush of the oldest frozen memtable.
    pub flushed: Option<Flushed>,
    /// Extents that are no longer referenced.
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

/// The edit that is being gathered.
#[derive(Default)]
pub(crate) struct Gathered {
    pub edit: RefCell<Edit>,
    /// The number of edits committed so far.
    pub committed: Cell<u64>,
    /// The number of edits taken for a commit so far. The edit that is being gathered is the next.
    pub taken: Cell<u64>,
}

/// Counts over the whole table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub keys: u64,
    pub longest_search: u32,
}
