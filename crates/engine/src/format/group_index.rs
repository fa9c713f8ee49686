//! The index of a group: its first page, which contains the first keys of the other pages.
//!
//! ```text
//! header (entries: pages of the group besides this one)
//! offset of each entry from the start of the page, u16
//! entries: entries of the page u16 | its first key
//! ```
//! A group consists of adjacent pages of a level that share an entry of the level list
//! (docs/decisions/0031). Cost of a search: `log2(pages)` comparisons.

use super::entry::OFFSET_BYTES;
use super::meta_segment::search_effort;
use super::object::MAX_KEY_BYTES;
use super::page;
use super::page::{HEADER_BYTES, Page, PageKind, u16_at};
use crate::effort::Effort;

/// Bytes of a page's number of entries.
const COUNT_BYTES: usize = 2;

/// The index of a group, in the bytes of its page.
#[derive(Clone, Copy)]
pub(crate) struct GroupIndex<'a> {
    bytes: &'a [u8],
    pages: usize,
}

impl<'a> GroupIndex<'a> {
    /// Reads an index; `None` if the page contains something else. Requires: the page passed
    /// [`Self::is_sound`], or was just built.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let page = Page::parse(bytes).filter(|page| page.kind == PageKind::GroupIndex)?;
        Some(Self { bytes: page.bytes, pages: usize::from(page.entries) })
    }

    /// Whether `bytes` are the index of a group of `pages` other pages. Cost: reads each key.
    pub(crate) fn is_sound(bytes: &[u8], pages: u16) -> bool {
        GroupIndex::new(bytes)
            .is_some_and(|index| index.pages == usize::from(pages) && index.is_in_order())
    }

    fn is_in_order(&self) -> bool {
        let base = HEADER_BYTES + self.pages * OFFSET_BYTES;
        if self.pages == 0 || base > self.bytes.len() || self.offset(0) != base {
            return false;
        }
        let longest = COUNT_BYTES + MAX_KEY_BYTES;
        let is_whole = |place| {
            let (start, end) = self.range(place);
            let len = end.checked_sub(start).filter(|_| end <= self.bytes.len());
            len.is_some_and(|len| (COUNT_BYTES + 1..=longest).contains(&len))
        };
        (0..self.pages).all(is_whole)
            && (0..self.pages).map(|place| self.first_key(place)).is_sorted_by(|a, b| a < b)
    }

    fn offset(&self, place: usize) -> usize {
        usize::from(u16_at(self.bytes, HEADER_BYTES + place * OFFSET_BYTES))
    }

    fn range(&self, place: usize) -> (usize, usize) {
        let is_last = place + 1 == self.pages;
        let end = if is_last { self.bytes.len() } else { self.offset(place + 1) };
        (self.offset(place), end)
    }

    /// Returns the first key of the page at `place`; the index page does not count.
    pub(crate) fn first_key(&self, place: usize) -> &'a [u8] {
        let (start, end) = self.range(place);
        &self.bytes[start + COUNT_BYTES..end]
    }

    /// Returns the one page that can hold `key`: the last whose first key is at most `key`. `None`
    /// if all first keys are greater.
    pub(crate) fn covering(&self, key: &[u8]) -> Option<u16> {
        let (mut low, mut high) = (0, self.pages);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.first_key(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1).map(|place| place as u16)
    }

    /// Returns the last page whose first key is less than `key`; `None` if there is none.
    pub(crate) fn before(&self, key: &[u8]) -> Option<u16> {
        match self.covering(key)? {
            at if self.first_key(usize::from(at)) == key => at.checked_sub(1),
            at => Some(at),
        }
    }

    /// Returns the last page.
    pub(crate) fn last(&self) -> Option<u16> {
        self.pages.checked_sub(1).map(|place| place as u16)
    }

    /// Returns the effort of [`Self::covering`].
    pub(crate) fn effort(&self) -> Effort {
        search_effort(self.pages)
    }
}

/// Builds the index of pages with these first keys and numbers of entries, unsealed.
pub(crate) fn build<'a>(pages: impl ExactSizeIterator<Item = (&'a [u8], u16)>) -> Vec<u8> {
    let count = pages.len();
    let base = HEADER_BYTES + count * OFFSET_BYTES;
    let (mut offsets, mut entries) = (Vec::new(), Vec::new());
    for (first_key, of_page) in pages {
        offsets.extend_from_slice(&((base + entries.len()) as u16).to_le_bytes());
        entries.extend_from_slice(&of_page.to_le_bytes());
        entries.extend_from_slice(first_key);
    }
    let room = offsets.len() + entries.len();
    let mut bytes = page::start(PageKind::GroupIndex, count as u16, 0, 0, room);
    bytes.append(&mut offsets);
    bytes.append(&mut entries);
    page::finish(bytes)
}

/// Returns the bytes of a page's entry in the index of its group.
pub(crate) fn entry_bytes(first_key: &[u8]) -> usize {
    OFFSET_BYTES + COUNT_BYTES + first_key.len()
}

/// Returns the bytes of a page for entries of an index.
pub(crate) fn room(payload_bytes: u32) -> usize {
    payload_bytes as usize - HEADER_BYTES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index_of(keys: &[Vec<u8>]) -> Vec<u8> {
        build(keys.iter().map(|key| (&key[..], 7)))
    }

    proptest! {
        #[test]
        fn the_page_that_covers_a_key_is_the_last_that_begins_at_or_before_it(
            keys in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 1..20), 1..40),
            wanted in prop::collection::vec(any::<u8>(), 1..20),
        ) {
            let keys: Vec<Vec<u8>> = keys.into_iter().collect();
            let bytes = index_of(&keys);
            prop_assert!(GroupIndex::is_sound(&bytes, keys.len() as u16));
            let index = GroupIndex::new(&bytes).unwrap();
            let expected = keys.iter().rposition(|key| *key <= wanted);
            prop_assert_eq!(index.covering(&wanted).map(usize::from), expected);
            let expected = keys.iter().rposition(|key| *key < wanted);
            prop_assert_eq!(index.before(&wanted).map(usize::from), expected);
            prop_assert_eq!(index.last().map(usize::from), Some(keys.len() - 1));
            for (place, key) in keys.iter().enumerate() {
                prop_assert_eq!(index.first_key(place), &key[..]);
            }
        }

        #[test]
        fn forged_bytes_are_not_sound_or_can_be_searched(
            at in 20_usize..80, value in any::<u8>(), pages in 0_u16..6,
        ) {
            let keys: Vec<Vec<u8>> = (1_u8..5).map(|byte| vec![byte; usize::from(byte)]).collect();
            let mut bytes = index_of(&keys);
            let at = at.min(bytes.len() - 1);
            bytes[at] = value;
            if GroupIndex::is_sound(&bytes, pages) {
                let index = GroupIndex::new(&bytes).expect("it is sound");
                prop_assert!(index.covering(&[2, 9]).is_none_or(|place| place < pages));
            }
        }
    }

    #[test]
    fn other_pages_and_other_numbers_of_pages_are_refused() {
        let keys = [b"a".to_vec(), b"b".to_vec()];
        let bytes = index_of(&keys);
        assert!(GroupIndex::is_sound(&bytes, 2) && !GroupIndex::is_sound(&bytes, 3));
        let backwards = index_of(&[b"b".to_vec(), b"a".to_vec()]);
        assert!(!GroupIndex::is_sound(&backwards, 2));
        let filler = page::finish(page::start(PageKind::Filler, 2, 0, 0, 0));
        assert!(!GroupIndex::is_sound(&filler, 2));
    }
}
