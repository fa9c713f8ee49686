//! A set of bucket pages that is asked for each step of a search for the page unused for longest.

use std::fmt;

/// A bit for each page of the table, and how many are set.
#[derive(Default)]
pub(crate) struct PageSet {
    bits: Vec<u64>,
    len: usize,
}

impl PageSet {
    /// How many pages are in it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, page: u32) -> bool {
        self.bits.get(page as usize / 64).is_some_and(|word| word & bit(page) != 0)
    }

    /// Puts a page in; whether it was not there.
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

    /// Takes a page out; whether it was there.
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
