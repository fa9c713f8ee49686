//! A set of bucket pages with fast lookups: the search for the least recently used page asks it at
//! each step.

use std::fmt;

/// One bit for each page of the table, and the number of bits set.
#[derive(Default)]
pub(crate) struct PageSet {
    bits: Vec<u64>,
    len: usize,
}

impl PageSet {
    /// Returns the number of pages in the set.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, page: u32) -> bool {
        self.bits.get(page as usize / 64).is_some_and(|word| word & bit(page) != 0)
    }

    /// Adds a page. Returns whether the set did not contain it.
    pub(crate) fn insert(&mut self, page: u32) -> bool {
        let is_new = !self.contains(page);
        let word = page as usize / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= bit(page);
        self.len += usize::from(is_new);
        is_new
    }

    /// Removes a page. Returns whether the set contained it.
    pub(crate) fn remove(&mut self, page: u32) -> bool {
        let was_there = self.contains(page);
        if was_there {
            self.bits[page as usize / 64] &= !bit(page);
            self.len -= 1;
        }
        was_there
    }
}

fn bit(page: u32) -> u64 {
    1 << (page % 64)
}

impl fmt::Debug for PageSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages = 0..64 * self.bits.len() as u32;
        f.debug_set().entries(pages.filter(|page| self.contains(*page))).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((any::<bool>(), 0..200_u32), 0..100)) {
            let (mut set, mut model) = (PageSet::default(), BTreeSet::new());
            for (is_insert, page) in steps {
                if is_insert {
                    prop_assert_eq!(set.insert(page), model.insert(page));
                } else {
                    prop_assert_eq!(set.remove(page), model.remove(&page));
                }
                prop_assert_eq!(set.len(), model.len());
            }
            prop_assert_eq!(format!("{set:?}"), format!("{model:?}"));
        }
    }
}
