//! Cache of mapping pages, for a profile that keeps only a part of the mapping in memory. Decisions
//! only.
//!
//! A mapping page has the places of 1,024 blocks. The cache holds the most recently used pages; a
//! modified page must be written when it is evicted ("DFTL", Gupta, Kim, Urgaonkar, ASPLOS'09). The
//! places of the mapping pages themselves are always in memory.
//!
//! Blocks moved by collection do not request their pages one by one. A page that is not in memory
//! owes the change until its superblock has been copied; then it is read and written once, however
//! many of its blocks have moved (DFTL's batches). A page that comes into memory earlier takes the
//! change there.

use std::collections::{BTreeMap, BTreeSet};

/// Blocks with places in one mapping page: 4 KiB of 4 bytes each.
pub(crate) const BLOCKS_PER_PAGE: u32 = 1024;

/// The cache of mapping pages.
pub(crate) struct MapCache {
    /// Pages that fit.
    capacity: usize,
    pages: BTreeMap<u32, Used>,
    by_use: BTreeMap<u64, u32>,
    clock: u64,
    /// Pages being read.
    coming: BTreeSet<u32>,
    leaving: Leaving,
    /// Pages with owed changes of the collection in progress.
    owed: BTreeSet<u32>,
    /// Pages with owed changes of completed collections: to be read and modified.
    due: BTreeSet<u32>,
    /// Whether a completed collection still has pages in `owed`.
    has_more: bool,
}

struct Used {
    at: u64,
    is_changed: bool,
}

/// Evicted modified pages, to be written: they stay in memory until a program contains them.
/// Programs of a page never overtake each other.
#[derive(Default)]
struct Leaving {
    /// Pages ready for a program, by order of eviction.
    ready: BTreeMap<u64, u32>,
    numbers: BTreeMap<u32, u64>,
    clock: u64,
    /// Pages whose programs are in flight.
    landing: BTreeSet<u32>,
    /// Pages that were evicted again during their program.
    held: BTreeSet<u32>,
}

impl Leaving {
    fn len(&self) -> usize {
        self.ready.len() + self.held.len()
    }

    fn contains(&self, page: u32) -> bool {
        self.numbers.contains_key(&page) || self.held.contains(&page)
    }

    fn add(&mut self, page: u32) {
        if self.landing.contains(&page) {
            self.held.insert(page);
            return;
        }
        self.clock += 1;
        self.ready.insert(self.clock, page);
        self.numbers.insert(page, self.clock);
    }

    /// Returns whether the page was among them.
    fn remove(&mut self, page: u32) -> bool {
        let number = self.numbers.remove(&page);
        if let Some(number) = number {
            self.ready.remove(&number);
        }
        number.is_some() || self.held.remove(&page)
    }

    fn take(&mut self, most: usize) -> Vec<u32> {
        let first = |_| self.ready.pop_first().map(|(_, page)| page);
        let taken: Vec<u32> = (0..most).map_while(first).collect();
        for page in &taken {
            self.numbers.remove(page);
            let is_alone = self.landing.insert(*page);
            assert!(
                is_alone,
                "mapping page {page} is programmed, and its last program has not ended"
            );
        }
        taken
    }

    fn landed(&mut self, page: u32) {
        self.landing.remove(&page);
        if self.held.remove(&page) {
            self.add(page);
        }
    }
}

/// The step needed before a mapping page can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// None: it is in memory.
    InMemory,
    /// Another task reads it.
    Coming,
    /// The caller must read it.
    Missing,
}

impl MapCache {
    /// Creates an empty cache for `capacity` pages.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            pages: BTreeMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
            coming: BTreeSet::new(),
            leaving: Leaving::default(),
            owed: BTreeSet::new(),
            due: BTreeSet::new(),
            has_more: false,
        }
    }

    /// Requests a page. A caller that gets [`Access::Missing`] must read the page and then call
    /// [`Self::arrived`].
    pub(crate) fn access(&mut self, page: u32) -> Access {
        if self.pages.contains_key(&page) {
            self.put(page, false);
            return Access::InMemory;
        }
        if self.leaving.remove(page) {
            self.put(page, true);
            return Access::InMemory;
        }
        if self.coming.insert(page) { Access::Missing } else { Access::Coming }
    }

    /// Returns whether a page is in memory, including those evicted but not yet written.
    pub(crate) fn is_known(&self, page: u32) -> bool {
        self.pages.contains_key(&page) || self.leaving.contains(page)
    }

    /// Returns whether a page is being read.
    pub(crate) fn is_coming(&self, page: u32) -> bool {
        self.coming.contains(&page)
    }

    /// Notes that a page was read.
    pub(crate) fn arrived(&mut self, page: u32) {
        self.coming.remove(&page);
        self.put(page, false);
    }

    /// Modifies a page. A page evicted since its request returns to memory.
    pub(crate) fn change(&mut self, page: u32) {
        self.leaving.remove(page);
        self.put(page, true);
    }

    /// Notes that a block of a page was moved: modifies the page if it is in memory, else records
    /// that it owes the change.
    pub(crate) fn change_or_owe(&mut self, page: u32) {
        if self.is_known(page) {
            self.change(page);
        } else if !self.due.contains(&page) {
            self.owed.insert(page);
        }
    }

    /// Notes that a collection has copied all its blocks: the changes it owes become due after
    /// those that are due already.
    pub(crate) fn make_due(&mut self) {
        self.has_more = true;
    }

    /// Returns the first `most` pages that are to be read and modified.
    pub(crate) fn due(&mut self, most: usize) -> BTreeSet<u32> {
        if self.due.is_empty() && std::mem::take(&mut self.has_more) {
            self.due = std::mem::take(&mut self.owed);
        }
        self.due.iter().take(most).copied().collect()
    }

    /// Returns whether two collections are behind with their changes.
    pub(crate) fn owes_much(&self) -> bool {
        !self.due.is_empty() && !self.owed.is_empty()
    }

    /// Returns the number of pages ready for a program.
    pub(crate) fn ready(&self) -> usize {
        self.leaving.ready.len()
    }

    /// Returns the number of pages that wait for a program, including those whose last program is
    /// in flight.
    pub(crate) fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Moves up to `most` ready pages into a program. A page whose last program is in flight stays.
    pub(crate) fn take_leaving(&mut self, most: usize) -> Vec<u32> {
        self.leaving.take(most)
    }

    /// Notes that the program of a page has ended.
    pub(crate) fn landed(&mut self, page: u32) {
        self.leaving.landed(page);
    }

    fn put(&mut self, page: u32, is_changed: bool) {
        // The change that the page owes is included.
        let was_owed = self.owed.remove(&page);
        let is_changed = self.due.remove(&page) || was_owed || is_changed;
        self.clock += 1;
        let before = self.pages.insert(page, Used { at: self.clock, is_changed });
        self.by_use.insert(self.clock, page);
        if let Some(before) = before {
            self.by_use.remove(&before.at);
            self.pages.get_mut(&page).expect("it was put there").is_changed |= before.is_changed;
        }
        if self.pages.len() > self.capacity {
            let (_, oldest) = self.by_use.pop_first().expect("each page was used");
            let oldest_used = self.pages.remove(&oldest).expect("it is in both");
            if oldest_used.is_changed {
                self.leaving.add(oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cache: &mut MapCache, pages: &[u32]) {
        for page in pages {
            if cache.access(*page) == Access::Missing {
                cache.arrived(*page);
            }
        }
    }

    #[test]
    fn what_was_used_longest_ago_leaves_first() {
        let mut cache = MapCache::new(2);
        read(&mut cache, &[1, 2, 1, 3]);
        assert!(cache.is_known(1) && cache.is_known(3) && !cache.is_known(2));
        assert_eq!(cache.leaving(), 0, "what was not changed is on flash");
    }

    #[test]
    fn a_page_is_read_once_for_all_who_ask() {
        let mut cache = MapCache::new(2);
        assert_eq!(cache.access(7), Access::Missing);
        assert_eq!(cache.access(7), Access::Coming);
        cache.arrived(7);
        assert_eq!(cache.access(7), Access::InMemory);
    }

    #[test]
    fn what_was_changed_is_written_when_it_leaves_and_one_program_after_the_other() {
        let mut cache = MapCache::new(1);
        read(&mut cache, &[1]);
        cache.change(1);
        read(&mut cache, &[2]);
        assert_eq!(cache.take_leaving(9), [1]);
        read(&mut cache, &[1]);
        cache.change(1);
        read(&mut cache, &[2]);
        assert_eq!((cache.ready(), cache.take_leaving(9)), (0, vec![]), "it is being programmed");
        assert_eq!(cache.leaving(), 1, "it waits for that");
        cache.landed(1);
        assert_eq!(cache.take_leaving(9), [1]);
    }

    #[test]
    fn a_page_that_waits_to_be_written_is_in_memory() {
        let mut cache = MapCache::new(1);
        read(&mut cache, &[1]);
        cache.change(1);
        read(&mut cache, &[2]);
        assert_eq!(cache.access(1), Access::InMemory);
        assert_eq!(cache.leaving(), 0);
        read(&mut cache, &[2]);
        assert_eq!(cache.take_leaving(9), [1], "it is changed still");
    }

    #[test]
    fn a_page_is_due_once_however_many_of_its_blocks_were_moved() {
        let mut cache = MapCache::new(1);
        read(&mut cache, &[1]);
        for page in [3, 1, 2, 3, 2, 3] {
            cache.change_or_owe(page);
        }
        assert!(cache.due(9).is_empty(), "more may be moved");
        cache.make_due();
        assert_eq!(cache.due(9), [2, 3].into(), "page 1 was in memory");
        assert!(!cache.owes_much());
        cache.change_or_owe(3);
        cache.change_or_owe(4);
        cache.make_due();
        assert_eq!((cache.due(9), cache.owes_much()), ([2, 3].into(), true), "one after the other");
        read(&mut cache, &[2, 3]);
        assert_eq!((cache.due(9), cache.take_leaving(9)), ([4].into(), vec![1, 2]));
    }
}
