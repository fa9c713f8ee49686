//! Space: which task may use the last free extents (docs/decisions/0010).
//!
//! A writer is promised all the pages of a job before the job begins, so no task ever waits for
//! space in the middle of its work. Claimants have an order. Each leaves enough extents free for
//! those after it in the chain "flush needs room that compaction makes, compaction needs space that
//! collection makes":
//!
//! ```text
//! clients > flush > compaction > collection
//! ```
//! A promise counts against the free space until it is used up or given back.

use std::cell::Cell;

use super::PageStore;
use super::extents::Extents;
use super::promise::Promise;
use crate::medium::{Medium, Stream};

/// The kind of task that asks for space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claimant {
    /// Garbage collection of index pages: frees more than it uses.
    Collection,
    /// Compaction: makes as much garbage as it writes.
    Compaction,
    /// Flush: needs compaction to make room.
    Flush,
    /// Flush of objects that were moved out of extents, which are released after it.
    FlushOfMoved,
}

impl Claimant {
    /// Returns the number of extents that must stay free beyond the promised ones. `step` is the
    /// number of extents that one step of a compaction uses. Collection fills at most one extent
    /// before it releases one, and a power cut in between may leave another one half full.
    pub(crate) const fn leaves_free(self, step: usize) -> usize {
        match self {
            Self::Collection => 0,
            Self::Compaction => 2,
            Self::Flush => 2 + step,
            Self::FlushOfMoved => 1,
        }
    }
}

/// Space that a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// The stream to be written.
    pub stream: Stream,
    /// The number of pages.
    pub pages: u32,
    /// The kind of task that waits.
    pub claimant: Claimant,
}

/// Returns the number of extents that `pages` pages need beyond the `room` pages left in the open
/// extent.
fn extents_for(pages: u32, room: u32, pages_per_extent: u32) -> usize {
    pages.saturating_sub(room).div_ceil(pages_per_extent) as usize
}

/// Returns the most pages that groups of `pages` pages in all can use; the longest group has
/// `longest` pages. Pages come in units, and a group that does not fit into the rest of an extent
/// leaves that rest empty.
pub(crate) fn with_waste(pages: u32, longest: u32, unit: u32, pages_per_extent: u32) -> u32 {
    let lost_per_extent = longest.saturating_sub(1) + unit - 1;
    let usable = pages_per_extent.saturating_sub(lost_per_extent).max(1);
    let extents = if longest > 1 { pages.div_ceil(usable) + 1 } else { 0 };
    (pages + extents * lost_per_extent).next_multiple_of(unit)
}

impl<M: Medium> PageStore<M> {
    /// Promises space for `pages` pages; `None` if other tasks need the space more.
    pub fn try_promise(
        &self,
        stream: Stream,
        pages: u32,
        claimant: Claimant,
    ) -> Option<Promise<'_>> {
        let pages = self.in_units(pages);
        if !self.can_promise(stream, pages, claimant) {
            return None;
        }
        let promised = self.promised.of(stream);
        promised.set(promised.get() + pages);
        Some(Promise { stream, left: pages, promised, work: &self.work })
    }

    /// Waits for the space that `need` returns, which is evaluated again at each try. While it
    /// waits, `waits` holds the need, and garbage collection is notified.
    pub(crate) async fn wait_for(
        &self,
        need: impl Fn() -> Need,
        waits: &Cell<Option<Need>>,
    ) -> Promise<'_> {
        loop {
            let needed = need();
            if let Some(promise) = self.try_promise(needed.stream, needed.pages, needed.claimant) {
                waits.set(None);
                return promise;
            }
            if waits.replace(Some(needed)).is_none() {
                self.work.notify_all();
                self.room.notify_all();
            }
            self.work.notified().await;
        }
    }

    /// Whether a waiting task still lacks space. Computed from the extents: space that was just
    /// given back counts before the waiting task has woken.
    pub(crate) fn lacks(&self, need: Need) -> bool {
        !self.can_promise(need.stream, self.in_units(need.pages), need.claimant)
    }

    /// Returns the number of extents that hold `pages` pages.
    pub fn extents_of(&self, pages: u32) -> usize {
        self.shape.extents_of(pages)
    }

    /// Returns the pages promised and not used yet, by stream.
    pub fn promised_pages(&self) -> [u32; Stream::ALL.len()] {
        Stream::ALL.map(|stream| self.promised.of(stream).get())
    }

    /// Returns `pages` rounded up to whole append units.
    pub fn in_units(&self, pages: u32) -> u32 {
        self.shape.in_units(pages)
    }

    /// Returns the extents set aside for `stream` that it does not use yet.
    pub(crate) fn left_of_due(&self, stream: Stream, extents: &Extents) -> usize {
        self.set_aside[stream as usize].get().saturating_sub(extents.in_use(stream))
    }

    /// As [`Self::left_of_due`], after all releases in progress: released extents of the stream are
    /// set aside again.
    pub(crate) fn left_of_due_in_sight(&self, stream: Stream, extents: &Extents) -> usize {
        self.set_aside[stream as usize].get().saturating_sub(extents.kept(stream))
    }

    /// Whether [`Self::try_promise`] would succeed now.
    pub fn can_promise(&self, stream: Stream, pages: u32, claimant: Claimant) -> bool {
        let extents = self.extents.borrow();
        let needed: usize = Stream::ALL
            .into_iter()
            .map(|other| {
                let asked = if other == stream { pages } else { 0 };
                let promised = self.promised.of(other).get() + asked;
                extents_for(promised, extents.room(other), self.shape.pages_per_extent)
            })
            .sum();
        // Extents set aside for the journal are kept from all claimants, because all of them wait
        // for the journal. Extents set aside for the index are kept from clients
        // (`Front::client_reserve`), but not out of space already promised to them.
        let is_kept = |other: &Stream| other.is_journal() && *other != stream;
        let others = Stream::ALL.into_iter().filter(is_kept);
        let set_aside: usize = others.map(|other| self.left_of_due(other, &extents)).sum();
        // Pages that fit into open extents need no free extent.
        let takes_none = needed == 0;
        takes_none
            || needed + claimant.leaves_free(self.step_extents.get()) + set_aside <= extents.free()
    }
}

#[cfg(test)]
mod tests {
    use super::{extents_for, with_waste};

    #[test]
    fn promises_are_counted_in_extents_beyond_the_open_one() {
        assert_eq!(extents_for(10, 10, 32), 0);
        assert_eq!(extents_for(11, 10, 32), 1);
        assert_eq!(extents_for(43, 10, 32), 2);
    }

    #[test]
    fn single_pages_waste_less_than_a_unit_and_groups_the_end_of_each_extent() {
        assert_eq!(with_waste(5, 1, 1, 32), 5);
        assert_eq!(with_waste(5, 1, 3, 32), 6);
        assert_eq!(with_waste(40, 8, 1, 32), 40 + 3 * 7);
    }
}
