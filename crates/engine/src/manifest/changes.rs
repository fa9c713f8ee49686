//! The effect of one edit on the extents: which pages are in use from now on, and how many items of
//! each extent were published and died.
//!
//! The counts are collected when the edit is built and applied when it is committed. Counts of
//! concurrent edits can be added in any order. An extent may be released meanwhile, because
//! everything in it was moved. Its generation then differs, and the change of it is ignored.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::format::pointer::PointerFormat;
use crate::medium::{ExtentId, Stream};

/// The changes of an edit, by extent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The change of each extent.
    pub extents: BTreeMap<ExtentId, ExtentChange>,
}

impl Changes {
    /// Adds the changes of another edit. Both are applied at the same time.
    pub fn merge(&mut self, other: Self) {
        for (id, more) in other.extents {
            let Some(change) = self.extents.get_mut(&id) else {
                self.extents.insert(id, more);
                continue;
            };
            let is_same = change.generation == more.generation;
            assert!(is_same, "extent {} was released with an edit of it under way", id.0);
            change.placed.extend(more.placed);
            change.counts.add(more.counts);
        }
    }
}

/// The changes of one extent.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtentChange {
    /// The stream that the extent holds.
    pub stream: Stream,
    /// The extent's generation: how many times it had been opened.
    pub generation: u64,
    /// The extent's age: the number of extents that had been opened, including this one.
    pub age: u64,
    /// Positions of pages that are in use from now on: recovery does not treat them as holes.
    pub placed: Vec<Range<u32>>,
    /// How many of the extent's items were added and died.
    pub counts: Counts,
}

/// Counts of items of an extent that were added and died.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Items that were written for the index.
    pub published: u32,
    /// Items that the index refers to from now on. Published items are entered all at once or one
    /// by one.
    pub entered: u32,
    /// Items that the index no longer refers to.
    pub dead: u32,
}

impl Counts {
    pub(crate) fn add(&mut self, more: Self) {
        self.published += more.published;
        self.entered += more.entered;
        self.dead += more.dead;
    }
}

impl ExtentChange {
    /// Whether every item counted as dead surely belongs to the extent's present generation. Object
    /// pointers store few bits of the generation: once generations wrap around, an old pointer may
    /// look current.
    pub(crate) fn is_certain(&self, format: &PointerFormat) -> bool {
        matches!(self.stream, Stream::Index | Stream::Tables) || format.tells_apart(self.generation)
    }

    /// Marks `pages` pages from `start` on as in use. Adjacent runs are joined.
    pub(crate) fn place(&mut self, start: u32, pages: u32) {
        match self.placed.last_mut() {
            Some(last) if last.end == start => last.end += pages,
            _ => self.placed.push(start..start + pages),
        }
    }
}
