//! Extents after a power cut. Edits are replayed, and the contents of the medium decide where each
//! extent is filled further.

use super::Extents;
use crate::format::pointer::PointerFormat;
use crate::manifest::changes::Changes;
use crate::medium::{ExtentId, Stream};
use crate::space::extent::{Extent, State};

impl Extents {
    /// Resumes an open extent after a power cut, when nothing was written at or after position
    /// `frontier`, as far as the medium knows. The extent is filled further from there, or from the
    /// end of its last page in use. Returns `None` if the medium has more pages than were handed
    /// out.
    pub(crate) fn resume_at(&mut self, id: ExtentId, frontier: u32) -> Option<()> {
        let shape = self.shape;
        let in_use = self.end_of_use(id);
        let extent = &mut self.all[id.0 as usize];
        (frontier <= extent.cursor).then_some(())?;
        extent.cursor = frontier.max(shape.in_units(in_use));
        let end = shape.page(id, 0).0 + extent.cursor;
        extent.holes.retain(|page| page.0 < end);
        Some(())
    }

    /// Returns the position after the last page of an extent that is or was in use.
    fn end_of_use(&self, id: ExtentId) -> u32 {
        let extent = self.get(id);
        let is_hole = |place: &u32| extent.holes.contains(&self.shape.page(id, *place));
        (0..extent.cursor).rev().find(|place| !is_hole(place)).map_or(0, |place| place + 1)
    }

    /// Replays an edit when a store is reopened. Returns `None` if the edit is not plausible.
    pub fn replay(&mut self, changes: &Changes, format: &PointerFormat) -> Option<()> {
        for (id, change) in &changes.extents {
            let shape = self.shape;
            let extent = self.all.get_mut(id.0 as usize)?;
            if extent.generation < change.generation {
                let (age, generation) = (change.age, change.generation);
                *extent = Extent::opened_in(self.run, change.stream, age, generation);
                self.opened = self.opened.max(change.age);
            }
            for range in &change.placed {
                (range.start <= range.end && range.end <= shape.pages_per_extent).then_some(())?;
                let skipped = extent.cursor..range.start;
                extent.holes.extend(skipped.map(|place| shape.page(*id, place)));
                extent.holes.retain(|page| !range.contains(&(page.0 % shape.pages_per_extent)));
                extent.cursor = extent.cursor.max(range.end);
            }
            if extent.generation == change.generation {
                extent.count(change.counts, change.is_certain(format)).ok()?;
            }
        }
        Some(())
    }

    /// Replays that an extent was retired. Returns `None` if the extent does not exist.
    pub fn replay_retired(&mut self, id: ExtentId) -> Option<()> {
        self.all.get_mut(id.0 as usize)?.state = State::Releasing;
        Some(())
    }

    /// Ends the replay. The newest open extent of each stream stays open unless it is full; all
    /// other open extents are closed. Extents of tables are always closed.
    #[must_use]
    pub fn settled(mut self) -> Self {
        for stream in Stream::ALL {
            let is_open = |e: &&mut Extent| e.state == State::Open && e.stream == stream;
            let mut open: Vec<&mut Extent> = self.all.iter_mut().filter(is_open).collect();
            open.sort_by_key(|extent| extent.age);
            let newest = open.len().saturating_sub(1);
            for (place, extent) in open.into_iter().enumerate() {
                let is_full = extent.cursor >= self.shape.pages_per_extent;
                if place < newest || is_full || stream == Stream::Tables {
                    extent.state = State::Closed;
                }
            }
        }
        Self { run: self.run, ..Self::restore(self.shape, self.all, self.opened) }
    }

    /// Closes an open extent without live items: closed, it is garbage. Otherwise flushes that
    /// power cuts interrupt repeatedly would use up one extent after another.
    pub(crate) fn close_if_unused(&mut self, id: ExtentId) {
        let extent = self.get(id);
        if extent.live == 0 && extent.cursor > 0 {
            self.give_up(id);
        }
    }

    /// Reconciles an open extent with the medium. The medium may hold more pages than the manifest
    /// knows of: they become holes. It may hold fewer pages than were handed out when the
    /// checkpoint was written. Returns `None` if it holds fewer than are in use.
    pub(crate) fn catch_up(&mut self, id: ExtentId, frontier: u32) -> Option<()> {
        let shape = self.shape;
        let in_use = self.end_of_use(id);
        let extent = &mut self.all[id.0 as usize];
        if extent.state != State::Open {
            return Some(());
        }
        // A medium that does not know its write position reports 0.
        (frontier == 0 || frontier >= in_use).then_some(())?;
        let end = shape.in_units(in_use).max(frontier);
        extent.holes.retain(|page| page.0 < shape.page(id, end).0);
        extent.holes.extend((extent.cursor..end).map(|place| shape.page(id, place)));
        extent.cursor = end;
        Some(())
    }

    /// Whether an extent is open and no page of it is in use.
    pub(crate) fn is_unused(&self, id: ExtentId) -> bool {
        self.is_open(id) && self.end_of_use(id) == 0
    }

    /// Notes that this run fills an open extent further.
    pub(crate) fn resume(&mut self, id: ExtentId) {
        if self.run > 0 && self.is_open(id) {
            self.all[id.0 as usize].resume(self.run);
        }
    }

    /// Adopts a journal extent that recovery found. It is needed until there is a new checkpoint or
    /// its writes are flushed.
    pub(crate) fn adopt(&mut self, id: ExtentId, stream: Stream, generation: u32, frontier: u32) {
        let known = self.get(id).generation;
        self.opened += 1;
        let generation = known.max(u64::from(generation));
        let adopted = Extent {
            state: State::Closed,
            cursor: frontier,
            published: 1,
            live: 1,
            ..Extent::opened(stream, self.opened, generation)
        };
        self.replace(id, adopted);
        assert!(frontier > 0, "extent {} is of the journal, and empty", id.0);
        self.forget_open(id);
    }

    /// Marks an extent that nothing refers to as free. `generation` is the one found on the medium,
    /// which may be later than the known one.
    pub(crate) fn become_free(&mut self, id: ExtentId, generation: Option<u32>) {
        self.forget_open(id);
        self.put(id, State::Free);
        let extent = &mut self.all[id.0 as usize];
        // If the first page was torn, its generation is unknown; it was the next one.
        let found = generation.map_or(extent.generation + 1, u64::from);
        extent.generation = extent.generation.max(found);
    }
}

#[cfg(test)]
mod tests {
    use crate::space::extents::tests::with_pages_under_way;

    #[test]
    fn an_extent_is_filled_further_from_what_the_medium_has_of_it() {
        for (frontier, cursor, holes) in [(6, 6, 1), (8, 8, 3), (12, 12, 7), (0, 6, 1)] {
            let (mut extents, id) = with_pages_under_way();
            assert_eq!(extents.catch_up(id, frontier), Some(()), "frontier {frontier}");
            let extent = extents.get(id);
            assert_eq!((extent.cursor, extent.holes.len()), (cursor, holes), "{frontier}");
        }
    }

    #[test]
    fn what_is_in_use_and_not_there_is_noticed() {
        let (mut extents, id) = with_pages_under_way();
        assert_eq!(extents.catch_up(id, 4), None);
    }
}
