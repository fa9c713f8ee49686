//! Bucket pages in memory, in order of use. `buckets` chooses the page to evict, and reads and
//! writes pages; this module is pure bookkeeping. Cost: constant for an operation on one page.
//! [`Cache::by_age`] and [`Cache::kept`] take one step for each page that they return,
//! [`Cache::iter`] one for each page of the table.

const NONE: u32 = u32::MAX;

/// A bucket page in memory.
struct Frame {
    page: u32,
    slots: Box<[u8]>,
    is_dirty: bool,
    older: u32,
    newer: u32,
}

/// A bucket page of a saved cache (`parked`).
#[derive(Default)]
pub(crate) struct Kept<'a> {
    pub page: u32,
    pub slots: &'a [u8],
    pub is_dirty: bool,
}

/// Bucket pages in memory, in order of use.
pub(crate) struct Cache {
    capacity: usize,
    frames: Vec<Frame>,
    /// The frame of each bucket page, or `NONE`.
    frame_of: Vec<u32>,
    unused: Vec<u32>,
    oldest: u32,
    newest: u32,
    /// Places reserved for pages that are being read.
    reserved: usize,
    dirty: usize,
}

impl Cache {
    /// Creates a cache with room for `capacity` pages of a table of `pages` bucket pages.
    pub(crate) fn new(capacity: usize, pages: u32) -> Self {
        assert!(capacity > 0, "a table cannot be used without a page in memory");
        Self {
            capacity,
            frames: Vec::new(),
            frame_of: vec![NONE; pages as usize],
            unused: Vec::new(),
            oldest: NONE,
            newest: NONE,
            reserved: 0,
            dirty: 0,
        }
    }

    /// Returns the number of pages for which there is room.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of pages in memory.
    pub(crate) fn len(&self) -> usize {
        self.frames.len() - self.unused.len()
    }

    /// Returns the number of dirty pages in memory.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty
    }

    pub(crate) fn holds(&self, page: u32) -> bool {
        self.frame_of[page as usize] != NONE
    }

    /// Reserves a place for a page that is about to be read. Returns `false` if a page must be
    /// evicted first.
    pub(crate) fn reserve(&mut self) -> bool {
        let has_room = self.len() + self.reserved < self.capacity;
        self.reserved += usize::from(has_room);
        has_room
    }

    /// Returns a reserved place to the cache.
    pub(crate) fn unreserve(&mut self) {
        assert!(self.reserved > 0, "a place in memory is given back that nobody kept");
        self.reserved -= 1;
    }

    /// Puts a page in a reserved place.
    pub(crate) fn install(&mut self, page: u32, slots: Box<[u8]>, is_dirty: bool) {
        assert!(!self.holds(page), "bucket page {page} is in memory already");
        assert!(self.reserved > 0, "bucket page {page} comes, and no place was kept for it");
        self.reserved -= 1;
        self.dirty += usize::from(is_dirty);
        let frame = Frame { page, slots, is_dirty, older: NONE, newer: NONE };
        let at = if let Some(at) = self.unused.pop() {
            self.frames[at as usize] = frame;
            at
        } else {
            self.frames.push(frame);
            self.frames.len() as u32 - 1
        };
        self.frame_of[page as usize] = at;
        self.link_newest(at);
    }

    /// Returns the slots of a page and makes it the most recently used page; `None` if it is not in
    /// memory.
    pub(crate) fn touch(&mut self, page: u32) -> Option<&[u8]> {
        let at = self.frame_of[page as usize];
        if at == NONE {
            return None;
        }
        if at != self.newest {
            self.unlink(at);
            self.link_newest(at);
        }
        Some(&self.frames[at as usize].slots)
    }

    /// Returns the slots of a page in memory for a change. Marks the page as dirty.
    pub(crate) fn change(&mut self, page: u32) -> &mut [u8] {
        let frame = &mut self.frames[self.frame_of[page as usize] as usize];
        self.dirty += usize::from(!frame.is_dirty);
        frame.is_dirty = true;
        &mut frame.slots
    }

    /// Returns the slots of a page that is about to be written, and marks it as clean; `None` if it
    /// is not in memory.
    pub(crate) fn clean(&mut self, page: u32) -> Option<&[u8]> {
        let at = self.frame_of[page as usize];
        let frame = self.frames.get_mut(at as usize)?;
        let was_dirty = usize::from(frame.is_dirty);
        assert!(self.dirty >= was_dirty, "bucket page {page} is one too many of the dirty ones");
        self.dirty -= was_dirty;
        frame.is_dirty = false;
        Some(&frame.slots)
    }

    pub(crate) fn is_dirty(&self, page: u32) -> bool {
        let at = self.frame_of[page as usize];
        self.frames.get(at as usize).is_some_and(|frame| frame.is_dirty)
    }

    /// Removes a clean page from memory.
    pub(crate) fn evict(&mut self, page: u32) {
        let at = self.frame_of[page as usize];
        assert!(!self.frames[at as usize].is_dirty, "bucket page {page} would be lost");
        self.unlink(at);
        self.frames[at as usize].slots = Box::default();
        self.frame_of[page as usize] = NONE;
        self.unused.push(at);
    }

    /// Returns the pages in memory, least recently used first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = u32> {
        let next = |at: u32| self.frames.get(at as usize).map(|frame| (frame.page, frame.newer));
        let mut at = self.oldest;
        std::iter::from_fn(move || {
            let (page, newer) = next(at)?;
            at = newer;
            Some(page)
        })
    }

    /// Whether no place is reserved.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.reserved == 0
    }

    /// Returns the pages in memory with their state, least recently used first.
    pub(crate) fn kept(&self) -> impl Iterator<Item = Kept<'_>> {
        let frame = |page: u32| &self.frames[self.frame_of[page as usize] as usize];
        self.by_age().map(frame).map(|frame| Kept {
            page: frame.page,
            slots: &frame.slots,
            is_dirty: frame.is_dirty,
        })
    }

    /// Adds a page that [`Self::kept`] returned. Returns `None` if there is no room for it, if it
    /// is in memory already, or if the table has no such page.
    pub(crate) fn keep(&mut self, kept: &Kept<'_>) -> Option<()> {
        let is_new = (kept.page as usize) < self.frame_of.len() && !self.holds(kept.page);
        (is_new && self.reserve()).then_some(())?;
        self.install(kept.page, kept.slots.into(), kept.is_dirty);
        Some(())
    }

    /// Returns the pages in memory with their slots, in order of page number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let held = (0_u32..).zip(&self.frame_of).filter(|(_, at)| **at != NONE);
        held.map(|(page, at)| (page, &*self.frames[*at as usize].slots))
    }

    fn unlink(&mut self, at: u32) {
        let (older, newer) = (self.frames[at as usize].older, self.frames[at as usize].newer);
        match self.frames.get_mut(older as usize) {
            Some(frame) => frame.newer = newer,
            None => self.oldest = newer,
        }
        match self.frames.get_mut(newer as usize) {
            Some(frame) => frame.older = older,
            None => self.newest = older,
        }
    }

    fn link_newest(&mut self, at: u32) {
        let last = self.newest;
        self.frames[at as usize].older = last;
        self.frames[at as usize].newer = NONE;
        match self.frames.get_mut(last as usize) {
            Some(frame) => frame.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_leave_in_the_order_of_their_last_use(
            steps in prop::collection::vec((0..12_u32, any::<bool>()), 0..200)
        ) {
            let mut cache = Cache::new(4, 12);
            // Least recently used first: page, dirty.
            let mut model: Vec<(u32, bool)> = Vec::new();
            for (page, changes) in steps {
                if let Some(at) = model.iter().position(|(held, _)| *held == page) {
                    let (_, was_dirty) = model.remove(at);
                    prop_assert_eq!(cache.touch(page).map(|slots| slots[0]), Some(page as u8));
                    model.push((page, was_dirty || changes));
                } else {
                    prop_assert!(cache.touch(page).is_none());
                    if !cache.reserve() {
                        let oldest = cache.by_age().next().expect("it is full");
                        prop_assert_eq!(oldest, model[0].0);
                        prop_assert_eq!(cache.is_dirty(oldest), model[0].1);
                        cache.clean(oldest);
                        cache.evict(oldest);
                        model.remove(0);
                        prop_assert!(cache.reserve());
                    }
                    cache.install(page, vec![page as u8].into(), false);
                    model.push((page, changes));
                }
                if changes {
                    cache.change(page);
                }
                let pages: Vec<u32> = model.iter().map(|(held, _)| *held).collect();
                prop_assert_eq!(cache.by_age().collect::<Vec<_>>(), pages);
                let dirty = model.iter().filter(|(_, is_dirty)| *is_dirty).count();
                prop_assert_eq!((cache.len(), cache.dirty()), (model.len(), dirty));
            }
        }
    }

    #[test]
    fn reserved_places_count() {
        let mut cache = Cache::new(2, 5);
        assert!(cache.reserve() && cache.reserve() && !cache.reserve());
        cache.unreserve();
        assert!(cache.reserve());
        cache.install(3, Box::default(), false);
        assert!(!cache.reserve());
        cache.evict(3);
        assert!(cache.reserve());
    }
}
