//! What one edit changes of the extents: which pages hold something from now on, and how many items
//! of each extent were published and died.
//!
//! Counted when the edit is made and applied when it is committed. Counts of edits that are under way
//! side by side add up in any order. An extent that was released meanwhile, because everything in it
//! was moved away, is known by its generation, and left alone.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::format::pointer::Pointer;
use crate::medium::{ExtentId, Medium, PageNo, Stream};
use crate::store::PageStore;

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
    fn add(&mut self, more: Self) {
        self.published += more.published;
        self.entered += more.entered;
        self.dead += more.dead;
    }
}

impl ExtentChange {
    /// The pages from `start` on are in use; runs that touch are joined.
    pub(crate) fn place(&mut self, start: u32, pages: u32) {
        match self.placed.last_mut() {
            Some(last) if last.end == start => last.end += pages,
            _ => self.placed.push(start..start + pages),
        }
    }
}

impl<M: Medium> PageStore<M> {
    /// A page that was written gets an entry in the index.
    pub fn publish_page(&self, changes: &mut Changes, page: PageNo) {
        let change = self.change_of(changes, page);
        change.place(page.0 % self.shape.pages_per_extent, 1);
        change.counts.add(Counts { published: 1, entered: 1, dead: 0 });
    }

    /// The index has no entry of `page` any more.
    pub fn mark_page_dead(&self, changes: &mut Changes, page: PageNo) {
        self.change_of(changes, page).counts.dead += 1;
    }

    /// The index has no entries of these objects any more. Those of an earlier generation went when
    /// their extent was collected.
    pub fn mark_dead(&self, changes: &mut Changes, objects: &[Pointer]) {
        for pointer in objects {
            let (page, _) = self.format.locate(*pointer);
            let generation = self.extents.borrow().generation(page);
            if self.format.is_of(*pointer, generation) {
                self.change_of(changes, page).counts.dead += 1;
            }
        }
    }

    pub(crate) fn change_of<'a>(
        &self,
        changes: &'a mut Changes,
        page: PageNo,
    ) -> &'a mut ExtentChange {
        let id = self.shape.extent_of(page);
        changes.extents.entry(id).or_insert_with(|| {
            let extents = self.extents.borrow();
            let extent = extents.get(id);
            ExtentChange {
                stream: extent.stream,
                generation: extent.generation,
                age: extent.age,
                placed: Vec::new(),
                counts: Counts::default(),
            }
        })
    }

    /// Makes the changes: what was written for them is in use from now on.
    pub fn apply(&self, changes: &Changes) {
        let mut extents = self.extents.borrow_mut();
        let mut unpublished = self.unpublished.borrow_mut();
        for (id, change) in &changes.extents {
            let is_current = extents.get(*id).generation == change.generation;
            assert!(
                is_current || change.placed.is_empty(),
                "extent {} was released under pages that waited for their edit",
                id.0
            );
            for place in change.placed.iter().cloned().flatten() {
                let was_out = unpublished.remove(&self.shape.page(*id, place));
                assert!(was_out, "page {place} of extent {} gets two places in an index", id.0);
            }
            if is_current {
                // Once generations look alike, an item may have been taken for one of today's.
                let is_certain =
                    change.stream == Stream::Index || self.format.tells_apart(change.generation);
                extents.count(*id, change.counts, is_certain);
            }
        }
    }
}
