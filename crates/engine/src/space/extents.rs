//! The extents of the medium: which are free, which are being filled, and how much of each is in
//! use.
//!
//! Compaction updates the in-use counts when it drops an overwritten object or a tombstone. The
//! counts therefore lag behind overwrites that are still in upper levels. This module is pure
//! bookkeeping and does no I/O.

pub(crate) mod recovering;

use std::collections::BTreeSet;

use runtime::Carrier;

use super::extent::{Extent, State};
use super::tally::Tally;
use crate::format::pointer::{Pointer, PointerFormat};
use crate::manifest::changes::Counts;
use crate::medium::{ExtentId, PageNo, Shape, Stream};

/// The extents of a medium.
#[derive(Clone)]
pub struct Extents {
    shape: Shape,
    all: Vec<Extent>,
    open: [Option<ExtentId>; Stream::ALL.len()],
    tally: Tally,
    /// Closed extents without live items, so that finding one needs no search.
    empty: BTreeSet<ExtentId>,
    opened: u64,
    /// Objects that died in closed extents since the start, not counting objects that were moved.
    /// The unit is full extents.
    died: f64,
    /// The run that opens extents; 0 where runs are not noted.
    run: u32,
}

impl Extents {
    /// Creates the state of a medium whose extents are all free.
    pub fn new(shape: Shape) -> Self {
        Self::restore(shape, vec![Extent::blank(); shape.extents as usize], 0)
    }

    /// Creates the state from extents that a recovery found.
    pub(crate) fn restore(shape: Shape, extents: Vec<Extent>, opened: u64) -> Self {
        assert_eq!(extents.len(), shape.extents as usize, "extents of another medium");
        let tally = Tally::of(&extents);
        let open = Stream::ALL.map(|stream| {
            let is_open = |e: &Extent| e.state == State::Open && e.stream == stream;
            extents.iter().position(is_open).map(|index| ExtentId(index as u32))
        });
        let ids = (0..shape.extents).map(ExtentId);
        let empty = ids.filter(|id| extents[id.0 as usize].is_empty()).collect();
        Self { shape, all: extents, open, tally, empty, opened, died: 0.0, run: 0 }
    }

    /// Sets the run that opens extents from now on.
    pub fn begin_run(&mut self, run: u32) {
        self.run = run;
    }

    /// Returns the shape of the medium.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of free extents.
    pub fn free(&self) -> usize {
        self.tally.free
    }

    /// Returns the number of extents that hold `stream`, with or without live items.
    pub fn in_use(&self, stream: Stream) -> usize {
        self.tally.in_use[stream as usize]
    }

    /// Returns the number of extents that hold `stream` and are not being released.
    pub fn kept(&self, stream: Stream) -> usize {
        self.in_use(stream) - self.tally.releasing[stream as usize]
    }

    /// Returns the number of live index pages.
    pub(crate) fn index_pages(&self) -> u64 {
        self.tally.items[Stream::Index as usize]
    }

    /// Returns the number of pages that collecting all index extents would give back.
    pub(crate) fn index_garbage(&self) -> u64 {
        let all = self.kept(Stream::Index) as u64 * u64::from(self.shape.pages_per_extent);
        all.saturating_sub(u64::from(self.room(Stream::Index)) + self.index_pages())
    }

    /// Returns the dead objects of closed extents since the start, in full extents. Unlike the
    /// garbage that still exists, this number does not depend on the progress of collections.
    pub(crate) fn died(&self) -> f64 {
        self.died
    }

    /// Subtracts `moved` objects from the dead ones: they were moved, and the extent is kept for
    /// its other objects. They die in the extent, but give no space back.
    pub(crate) fn forget_moved(&mut self, id: ExtentId, moved: u64) {
        let moved = u32::try_from(moved).unwrap_or(u32::MAX);
        self.died -= share_of(self.get(id), moved, &self.shape);
    }

    /// Carries the state that a dump does not contain.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.f64(&mut self.died)
    }

    /// Returns the number of extents opened so far.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns the extent `id`.
    pub fn get(&self, id: ExtentId) -> &Extent {
        &self.all[id.0 as usize]
    }

    /// Returns all extents, in order.
    pub fn iter(&self) -> impl Iterator<Item = (ExtentId, &Extent)> {
        self.all.iter().enumerate().map(|(i, extent)| (ExtentId(i as u32), extent))
    }

    /// Whether any extent is in this state.
    pub(crate) fn is_any(&self, state: State) -> bool {
        self.all.iter().any(|extent| extent.state == state)
    }

    /// Whether `id` is being filled.
    pub(crate) fn is_open(&self, id: ExtentId) -> bool {
        self.open.contains(&Some(id))
    }

    /// Returns the extents that are being filled.
    pub(crate) fn open_ones(&self) -> Vec<ExtentId> {
        self.open.iter().flatten().copied().collect()
    }

    /// Whether an index refers to items of the extent, or may.
    pub(crate) fn holds_index(&self, id: ExtentId) -> bool {
        let extent = self.get(id);
        !extent.stream.is_journal() && !matches!(extent.state, State::Free | State::Releasing)
    }

    /// Closes the extent if it is being filled.
    pub(crate) fn give_up(&mut self, id: ExtentId) {
        if self.is_open(id) {
            self.close(self.get(id).stream);
        }
    }

    /// Removes the extent from the open ones.
    fn forget_open(&mut self, id: ExtentId) {
        for open in &mut self.open {
            open.take_if(|other| *other == id);
        }
    }

    /// Returns the number of pages left in the extent that is open for `stream`.
    pub fn room(&self, stream: Stream) -> u32 {
        self.open[stream as usize].map_or(0, |id| self.shape.pages_per_extent - self.get(id).cursor)
    }

    /// Closes the extent that is open for `stream`, if any.
    pub(crate) fn close(&mut self, stream: Stream) {
        if let Some(id) = self.open[stream as usize].take() {
            let state = &mut self.all[id.0 as usize].state;
            assert_eq!(*state, State::Open, "extent {} was listed as open", id.0);
            *state = State::Closed;
            self.note_empty(id);
        }
    }

    /// Returns the first page of the next append unit of `stream` and closes the extent after its
    /// last unit. Requires: an extent with room is open for `stream`.
    pub(crate) fn next_unit(&mut self, stream: Stream) -> PageNo {
        let id = self.open[stream as usize].expect("it has room, so it is open");
        assert!(self.room(stream) >= self.shape.append_unit, "{stream:?}: no room in its extent");
        let extent = &mut self.all[id.0 as usize];
        assert_eq!(
            (extent.state, extent.stream),
            (State::Open, stream),
            "extent {} is being filled with {stream:?}",
            id.0
        );
        let first = self.shape.page(id, extent.cursor);
        extent.cursor += self.shape.append_unit;
        if self.room(stream) == 0 {
            self.close(stream);
        }
        first
    }

    /// Returns the least worn free extent, and the generation to open it with; `None` if no extent
    /// is free. The generation is used up even if the medium refuses to open the extent, because
    /// part of the medium may have stored it.
    pub(crate) fn next_free(&mut self, wear: impl Fn(ExtentId) -> u32) -> Option<(ExtentId, u64)> {
        let free = self.iter().filter(|(_, extent)| extent.state == State::Free);
        let found = free.min_by_key(|(id, _)| (wear(*id), *id)).map(|(id, _)| id);
        assert_eq!(self.tally, Tally::of(&self.all), "extents are not in the states they count in");
        let extent = &mut self.all[found?.0 as usize];
        extent.generation += 1;
        Some((found?, extent.generation))
    }

    /// Records that the medium has opened a free extent, which is filled with `stream` from now on.
    pub(crate) fn open(&mut self, id: ExtentId, stream: Stream) {
        assert!(self.open[stream as usize].is_none(), "{stream:?} has an open extent already");
        self.begin(id, stream);
        self.open[stream as usize] = Some(id);
    }

    /// Records that the medium has opened a free extent for a single writer, which fills it with
    /// [`Self::fill`]. The extent counts as closed: no other writer fills it, and recovery does not
    /// resume it.
    pub(crate) fn take(&mut self, id: ExtentId, stream: Stream) {
        self.begin(id, stream);
        self.put(id, State::Closed);
    }

    fn begin(&mut self, id: ExtentId, stream: Stream) {
        let Extent { state, generation, .. } = *self.get(id);
        assert_eq!(state, State::Free, "extent {} is opened, and in use", id.0);
        self.opened += 1;
        self.replace(id, Extent::opened_in(self.run, stream, self.opened, generation));
    }

    /// Returns the first page of the next append unit of an extent that was opened with
    /// [`Self::take`]. Requires: the extent has room.
    pub(crate) fn fill(&mut self, id: ExtentId) -> PageNo {
        let shape = self.shape;
        let extent = &mut self.all[id.0 as usize];
        let end = extent.cursor + shape.append_unit;
        assert!(end <= shape.pages_per_extent, "extent {} is full", id.0);
        let first = shape.page(id, extent.cursor);
        extent.cursor = end;
        first
    }

    /// Applies [`Extent::count`] to an extent and updates the totals.
    pub(crate) fn count(
        &mut self,
        id: ExtentId,
        counts: Counts,
        is_certain: bool,
    ) -> Result<(), &'static str> {
        let extent = &mut self.all[id.0 as usize];
        if extent.stream == Stream::Objects && extent.state == State::Closed {
            self.died += share_of(extent, counts.dead, &self.shape);
        }
        let items = self.tally.items_of(extent);
        *items -= u64::from(extent.live);
        let outcome = extent.count(counts, is_certain);
        *items += u64::from(extent.live);
        self.note_empty(id);
        outcome
    }

    /// Updates the list of empty extents after a change of the extent's state or counts.
    fn note_empty(&mut self, id: ExtentId) {
        if self.get(id).is_empty() {
            self.empty.insert(id);
        } else {
            self.empty.remove(&id);
        }
    }

    /// Returns the generation of the extent that holds `page`: how many times it was opened.
    pub fn generation(&self, page: PageNo) -> u64 {
        self.get(self.shape.extent_of(page)).generation
    }

    /// Whether the object at `pointer` may still exist. Pointers distinguish only a limited number
    /// of generations. If an old one looks current, the extent may meanwhile hold journal or index
    /// pages.
    pub(crate) fn may_hold(&self, pointer: Pointer, format: &PointerFormat) -> bool {
        let extent = self.get(self.shape.extent_of(format.locate(pointer).0));
        extent.stream == Stream::Objects && format.is_of(pointer, extent.generation)
    }

    /// Returns the generation of the extent that holds `page`, and the run that handed the page
    /// out. They distinguish the page from older pages at the same place.
    pub(crate) fn stamp(&self, page: PageNo) -> (u64, u32) {
        let extent = self.get(self.shape.extent_of(page));
        (extent.generation, extent.run_at(page.0 % self.shape.pages_per_extent))
    }

    /// Whether an index may refer to `page`.
    pub(crate) fn may_be_referred_to(&self, page: PageNo) -> bool {
        let extent = self.get(self.shape.extent_of(page));
        let is_kept = !matches!(extent.state, State::Free | State::Releasing);
        let is_handed_out = page.0 % self.shape.pages_per_extent < extent.cursor;
        let is_hole = || extent.holes.contains(&page);
        is_kept && !extent.stream.is_journal() && is_handed_out && !is_hole()
    }

    /// Whether `pages` agrees with the counts of live index pages and contains no page twice.
    pub fn count_index_pages(&self, pages: impl Iterator<Item = PageNo>) -> bool {
        let mut found: Vec<BTreeSet<PageNo>> = vec![BTreeSet::new(); self.all.len()];
        for page in pages {
            let in_extent = found.get_mut(self.shape.extent_of(page).0 as usize);
            if !in_extent.is_some_and(|in_extent| in_extent.insert(page)) {
                return false;
            }
        }
        self.iter().zip(found).all(|((id, extent), found)| {
            let of_index = matches!(extent.stream, Stream::Index | Stream::Tables);
            let live = if of_index && self.holds_index(id) { extent.live } else { 0 };
            found.len() == live as usize
        })
    }

    /// Records that nothing will ever refer to `page`.
    pub(crate) fn add_hole(&mut self, page: PageNo) {
        let end = self.shape.pages_per_extent;
        let extent = self.extent_mut(page);
        assert!(page.0 % end < extent.cursor, "the hole {} was never handed out", page.0);
        extent.holes.push(page);
    }

    /// Changes the state of an extent.
    pub fn set_state(&mut self, id: ExtentId, state: State) {
        let now = self.get(id).state;
        assert!(now.leads_to(state), "extent {} goes from {now:?} to {state:?}", id.0);
        self.put(id, state);
    }

    fn put(&mut self, id: ExtentId, state: State) {
        let extent = &mut self.all[id.0 as usize];
        self.tally.leave(extent);
        extent.state = state;
        self.tally.enter(extent);
        self.note_empty(id);
    }

    fn replace(&mut self, id: ExtentId, with: Extent) {
        self.tally.enter(&with);
        let was = std::mem::replace(&mut self.all[id.0 as usize], with);
        self.tally.leave(&was);
        self.note_empty(id);
    }

    fn extent_mut(&mut self, page: PageNo) -> &mut Extent {
        &mut self.all[self.shape.extent_of(page).0 as usize]
    }

    /// Returns the share of the extent (0 to 1) that its live items would fill after a move, as far
    /// as is known. Live items of an index extent are counted in pages; its other pages are fillers
    /// of append units.
    pub fn utilisation(&self, extent: &Extent) -> f64 {
        if extent.stream == Stream::Index {
            return (f64::from(extent.live) / f64::from(self.shape.pages_per_extent)).min(1.0);
        }
        let live_share = f64::from(extent.live) / f64::from(extent.published.max(1));
        let holes = extent.holes.len() as u32;
        assert!(holes <= extent.cursor, "{holes} of {} pages are holes", extent.cursor);
        let used_pages = extent.cursor - holes;
        live_share * f64::from(used_pages) / f64::from(self.shape.pages_per_extent)
    }

    /// Returns the first closed extent without live items for which `may_go` is true.
    pub(crate) fn empty(&self, may_go: impl Fn(ExtentId, &Extent) -> bool) -> Option<ExtentId> {
        self.empty.iter().copied().find(|id| may_go(*id, self.get(*id)))
    }

    /// Returns the best extent to collect: the lowest utilisation, the oldest on a tie. Returns
    /// `None` if no closed extent for which `may_go` is true has a utilisation below `limit`.
    pub fn choose_victim(&self, limit: f64, may_go: impl Fn(ExtentId) -> bool) -> Option<ExtentId> {
        self.iter()
            .filter(|(id, extent)| extent.state == State::Closed && may_go(*id))
            .map(|(id, extent)| (self.utilisation(extent), extent.age, id))
            .filter(|(utilisation, _, _)| *utilisation < limit)
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
            .map(|(_, _, id)| id)
    }
}

/// Returns the share of a full extent that `objects` objects of `extent` fill.
fn share_of(extent: &Extent, objects: u32, shape: &Shape) -> f64 {
    let share = f64::from(objects) / f64::from(extent.published.max(1));
    share.min(1.0) * f64::from(extent.cursor) / f64::from(shape.pages_per_extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        payload_bytes: 1056,
        page_bytes: 1024,
        pages_per_extent: 16,
        extents: 4,
        grows_to: 0,
        append_unit: 2,
        parallelism: 2,
    };

    /// Returns an extent with eight pages handed out, of which five may be in use.
    pub(super) fn with_pages_under_way() -> (Extents, ExtentId) {
        let mut extents = Extents::new(SHAPE);
        let (id, _) = extents.next_free(|_| 0).expect("all are free");
        extents.open(id, Stream::Index);
        for _ in 0..4 {
            extents.next_unit(Stream::Index);
        }
        for place in 5..8 {
            extents.add_hole(SHAPE.page(id, place));
        }
        (extents, id)
    }

    #[test]
    fn an_object_of_long_ago_is_not_taken_for_one_in_an_extent_that_has_become_the_journals() {
        let format = PointerFormat::new(&SHAPE);
        let pointer = format.pointer(SHAPE.page(ExtentId(1), 3), 0, 1, 1);
        let of_later = |generation: &u64| format.is_of(pointer, *generation);
        let looks_alike = (2..1 << 32).find(of_later).expect("generations are counted in few bits");
        let may_hold = |stream, generation| {
            let extent = Extent { state: State::Closed, ..Extent::opened(stream, 1, generation) };
            let all = vec![extent; SHAPE.extents as usize];
            Extents::restore(SHAPE, all, 1).may_hold(pointer, &format)
        };
        assert!(may_hold(Stream::Objects, 1) && !may_hold(Stream::Objects, 2));
        assert!(may_hold(Stream::Objects, looks_alike), "nobody can tell");
        for stream in [Stream::Manifest, Stream::Log, Stream::Index, Stream::Tables] {
            assert!(!may_hold(stream, looks_alike), "{stream:?}");
        }
    }

    #[test]
    fn pages_of_an_index_that_are_not_counted_are_noticed() {
        let (mut extents, id) = with_pages_under_way();
        extents.count(id, Counts { published: 2, entered: 2, dead: 0 }, true).unwrap();
        let agrees = |places: &[u32]| {
            extents.count_index_pages(places.iter().map(|place| SHAPE.page(id, *place)))
        };
        assert!(agrees(&[0, 4]) && !agrees(&[0]) && !agrees(&[0, 1, 4]));
        assert!(!agrees(&[4, 4]), "a page is there twice");
        let of_none = SHAPE.page(ExtentId(SHAPE.extents), 0);
        assert!(!extents.count_index_pages([of_none].into_iter()), "there is no such extent");
    }
}
