//! Space: who may take the last of it (docs/decisions/0010).
//!
//! Whoever writes is promised all the pages of one job before the job begins, so nobody ever waits
//! for space with work in hand. Claimants stand in an order; each leaves enough extents free for
//! those after it in the chain "flush needs room that compaction makes, compaction needs space that
//! collection makes":
//!
//! ```text
//! clients > flush > compaction > collection
//! ```
//! A promise counts against what is free until it is used up or given back.

use std::cell::Cell;

use crate::medium::{Medium, Stream};
use crate::store::PageStore;
use crate::store::extents::Extents;
use crate::store::promise::Promise;

/// Who asks for space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claimant {
    /// Garbage collection moving meta pages: gives back more than it takes.
    Collection,
    /// Compaction: what it writes makes as much garbage.
    Compaction,
    /// Flush: needs compaction to make room.
    Flush,
    /// Flush of what was moved out of extents that are released then.
    FlushOfMoved,
}

impl Claimant {
    /// Extents that must stay free beyond what is promised, where one step of a compaction takes
    /// `step`. Collection fills at most one extent before it releases one, and a power cut in the
    /// middle may strand another one half full.
    pub(crate) const fn leaves_free(self, step: usize) -> usize {
        match self {
            Self::Collection => 0,
            Self::Compaction => 2,
            Self::Flush => 2 + step,
            Self::FlushOfMoved => 1,
        }
    }
}

/// Space that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// For what.
    pub stream: Stream,
    /// How much, in pages.
    pub pages: u32,
    /// For whom.
    pub claimant: Claimant,
}

/// Extents that `pages` take beyond the `room` that is left in the open extent.
fn extents_for(pages: u32, room: u32, pages_per_extent: u32) -> usize {
    pages.saturating_sub(room).div_ceil(pages_per_extent) as usize
}

/// Pages that groups of `pages` pages in all can take at most, the longest being `longest`: pages
/// come in units, and a group that does not fit in what is left of an extent leaves that empty.
pub(crate) fn with_waste(pages: u32, longest: u32, unit: u32, pages_per_extent: u32) -> u32 {
    let lost_per_extent = longest.saturating_sub(1) + unit - 1;
    let usable = pages_per_extent.saturating_sub(lost_per_extent).max(1);
    let extents = if longest > 1 { pages.div_ceil(usable) + 1 } else { 0 };
    (pages + extents * lost_per_extent).next_multiple_of(unit)
}

impl<M: Medium> PageStore<M> {
    /// Promises space for `pages` pages, unless that would take what others need more.
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

    /// Waits for space for what `need` says at the time. Meanwhile `waits` says so, and the
    /// collection hears of it.
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

    /// Whether there still is no space for what somebody waits for. Asked of the extents, because
    /// space that has just been given back is there before whoever waits for it has woken.
    pub(crate) fn lacks(&self, need: Need) -> bool {
        !self.can_promise(need.stream, self.in_units(need.pages), need.claimant)
    }

    /// Extents that hold `pages`.
    pub fn extents_of(&self, pages: u32) -> usize {
        self.shape.extents_of(pages)
    }

    /// Pages promised and not yet taken, by stream.
    pub fn promised_pages(&self) -> [u32; Stream::ALL.len()] {
        Stream::ALL.map(|stream| self.promised.of(stream).get())
    }

    /// `pages`, rounded up to whole append units.
    pub fn in_units(&self, pages: u32) -> u32 {
        self.shape.in_units(pages)
    }

    /// Extents that a stream has not taken yet of those that are set aside for it.
    pub(crate) fn left_of_due(&self, stream: Stream, extents: &Extents) -> usize {
        self.set_aside[stream as usize].get().saturating_sub(extents.in_use(stream))
    }

    /// The same once all that are about to be free are: those of the stream are set aside again.
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
        // The journal's are kept from everybody, because all others wait for it; those of the index
        // from clients (`Front::client_reserve`), not from what they were promised.
        let is_kept = |other: &Stream| other.is_journal() && *other != stream;
        let others = Stream::ALL.into_iter().filter(is_kept);
        let set_aside: usize = others.map(|other| self.left_of_due(other, &extents)).sum();
        // What fits in open extents takes nothing from anybody.
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
