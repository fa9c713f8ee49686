//! Which pages of the mapping are in memory, where a profile keeps a part of it there. Decisions only.
//!
//! A mapping page has the places of 1,024 blocks. What is in memory is what was used last; a page that was changed
//! there has to be written when it leaves ("DFTL", Gupta, Kim, Urgaonkar, ASPLOS'09; its segments and its batches
//! are left out). Where each mapping page is on flash is always in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// Changed and to be written: in memory until a program takes them.
    leaving: VecDeque<u32>,
    /// Their programs are under way.
    landing: BTreeSet<u32>,
}

struct Used {
    at: u64,
    is_changed: bool,
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
            leaving: VecDeque::new(),
            landing: BTreeSet::new(),
        }
    }

    /// Asks for a page. Whoever finds it missing reads it and says so by [`Self::arrived`].
    pub(crate) fn access(&mut self, page: u32) -> Access {
        if self.pages.contains_key(&page) {
            self.put(page, false);
            return Access::InMemory;
        }
        if let Some(at) = self.leaving.iter().position(|leaving| *leaving == page) {
            self.leaving.remove(at);
            self.put(page, true);
            return Access::InMemory;
        }
        if self.coming.insert(page) { Access::Missing } else { Access::Coming }
    }

    /// Whether it is in memory, or on its way there.
    pub(crate) fn is_known(&self, page: u32) -> bool {
        self.pages.contains_key(&page) || self.leaving.contains(&page)
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
        self.leaving.retain(|leaving| *leaving != page);
        self.put(page, true);
    }

    /// Pages that wait for a program and whose turn it could be.
    pub(crate) fn leaving(&self) -> usize {
        self.leaving.iter().filter(|page| !self.landing.contains(page)).count()
    }

    /// Takes up to `most` of them for a program. One whose last program is under way stays: programs of a page
    /// never overtake each other.
    pub(crate) fn take_leaving(&mut self, most: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        let landing = &mut self.landing;
        self.leaving.retain(|page| {
            let goes = taken.len() < most && landing.insert(*page);
            if goes {
                taken.push(*page);
            }
            !goes
        });
        taken
    }

    /// The program of a page has ended.
    pub(crate) fn landed(&mut self, page: u32) {
        self.landing.remove(&page);
    }

    fn put(&mut self, page: u32, is_changed: bool) {
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
                self.leaving.push_back(oldest);
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
        assert_eq!((cache.leaving(), cache.take_leaving(9)), (0, vec![]), "it is being programmed");
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
}
