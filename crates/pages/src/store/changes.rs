//! What one edit changes of the extents: which pages hold something from now on, and how many items
//! of each extent were published and died.
//!
//! Counted when the edit is made and applied when it is committed. Counts of edits that are under way
//! side by side add up in any order. An extent that was released meanwhile, because everything in it
//! was moved away, is known by its generation, and left alone.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::format::pointer::PointerFormat;
use crate::medium::{ExtentId, Stream};

/// Changes of extents, by extent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// What changes, by extent.
    pub extents: BTreeMap<ExtentId, ExtentChange>,
}

impl Changes {
    /// Adds what another edit changes; both are applied at one instant.
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

/// Changes of one extent.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtentChange {
    /// What the extent holds.
    pub stream: Stream,
    /// How often the extent had been opened by then.
    pub generation: u64,
    /// When the extent was opened, counted in extents opened.
    pub age: u64,
    /// Places of pages that are in use from now on: after a power cut they are no holes.
    pub placed: Vec<Range<u32>>,
    /// How many of its items came and went.
    pub counts: Counts,
}

/// How many items of an extent came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Items that were written for the index.
    pub published: u32,
    /// Items that the index refers to from now on: those that were published, at once or one by one.
    pub entered: u32,
    /// Items that it refers to no more.
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
    /// Whether each item that died was of the extent's present contents. Once generations look alike,
    /// one may have been taken for one of today's.
    pub(crate) fn is_certain(&self, format: &PointerFormat) -> bool {
        matches!(self.stream, Stream::Index | Stream::Tables) || format.tells_apart(self.generation)
    }

    /// The pages from `start` on are in use; runs that touch are joined.
    pub(crate) fn place(&mut self, start: u32, pages: u32) {
        match self.placed.last_mut() {
            Some(last) if last.end == start => last.end += pages,
            _ => self.placed.push(start..start + pages),
        }
    }
}
