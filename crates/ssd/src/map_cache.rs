//! Which pages of the mapping are in memory, where a profile keeps a part of it there. Decisions only.
//!
//! A mapping page has the places of 1,024 blocks. What is in memory is what was used last; a page that was changed
//! there has to be written when it leaves ("DFTL", Gupta, Kim, Urgaonkar, ASPLOS'09). Where each mapping page is on
//! flash is always in memory.
//!
//! Blocks that collection moves do not ask for their pages one by one. Pages that are not in memory owe the change
//! until the superblock has been copied, and each is then read and written once, however many of its blocks have moved
//! (DFTL's batches); one that comes into memory before that takes it in there.

use std::collections::{BTreeMap, BTreeSet};

/// Blocks whose places are in one mapping page: 4 KiB of 4 bytes each.
pub(crate) const BLOCKS_PER_PAGE: u32 = 1024;

/// See the module.
pub(crate) struct MapCache {
    /// Pages that fit.
    capacity: usize,
    pages: BTreeMap<u32, Used>,
    by_use: BTreeMap<u64, u32>,
    clock: u64,
    /// Being read.
    coming: BTreeSet<u32>,
    leaving: Leaving,
    /// Of the collection that goes on.
    owed: BTreeSet<u32>,
    /// Of those before it: to be read and changed.
    due: BTreeSet<u32>,
    /// A collection has ended whose pages are still among those that owe.
    has_more: bool,
}

struct Used {
    at: u64,
    is_changed: bool,
}

/// Pages that were changed and are to be written: in memory until a program takes them. Programs of a page never
/// overtake each other.
#[derive(Default)]
struct Leaving {
    /// Those that a program can take, by when they left.
    ready: BTreeMap<u64, u32>,
    numbers: BTreeMap<u32, u64>,
    clock: u64,
    /// Their programs are under way.
    landing: BTreeSet<u32>,
    /// They left again meanwhile.
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

    /// Whether it was there.
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

/// What there is to do before a mapping page can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Nothing.
    InMemory,
    /// Somebody else reads it.
    Coming,
    /// To read it: the caller does.
    Missing,
}

impl MapCache {
    /// An empty one, for so many pages.
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

    /// Asks for a page. Whoever finds it missing reads it and says so by [`Self::arrived`].
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

    /// Whether it is in memory, or about to leave it.
    pub(crate) fn is_known(&self, page: u32) -> bool {
        self.pages.contains_key(&page) || self.leaving.contains(page)
    }

    /// Whether somebody reads it.
    pub(crate) fn is_coming(&self, page: u32) -> bool {
        self.coming.contains(&page)
    }

    /// A page was read.
    pub(crate) fn arrived(&mut self, page: u32) {
        self.coming.remove(&page);
        self.put(page, false);
    }

    /// A page is changed. If it has left since it was asked for, it is there again.
    pub(crate) fn change(&mut self, page: u32) {
        self.leaving.remove(page);
        self.put(page, true);
    }

    /// A block of a page was moved: if the page is not in memory it owes that.
    pub(crate) fn change_or_owe(&mut self, page: u32) {
        if self.is_known(page) {
            self.change(page);
        } else if !self.due.contains(&page) {
            self.owed.insert(page);
        }
    }

    /// A collection has copied everything: what pages owe because of it is due after what is due already.
    pub(crate) fn make_due(&mut self) {
        self.has_more = true;
    }

    /// The first pages that are to be read and changed.
    pub(crate) fn due(&mut self, most: usize) -> BTreeSet<u32> {
        if self.due.is_empty() && std::mem::take(&mut self.has_more) {
            self.due = std::mem::take(&mut self.owed);
        }
        self.due.iter().take(most).copied().collect()
    }

    /// Whether two collections are behind with their changes.
    pub(crate) fn owes_much(&self) -> bool {
        !self.due.is_empty() && !self.owed.is_empty()
    }

    /// Pages that a program can take.
    pub(crate) fn ready(&self) -> usize {
        self.leaving.ready.len()
    }

    /// All that wait for a program.
    pub(crate) fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Takes up to `most` of them for a program. One whose last program is under way stays.
    pub(crate) fn take_leaving(&mut self, most: usize) -> Vec<u32> {
        self.leaving.take(most)
    }

    /// The program of a page has ended.
    pub(crate) fn landed(&mut self, page: u32) {
        self.leaving.landed(page);
    }

    fn put(&mut self, page: u32, is_changed: bool) {
        // What it owes is done with it.
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
