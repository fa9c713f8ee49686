//! The rule for inline values, and the resulting bounds of the pages that entries take.
//!
//! An entry with an inline value takes at most a quarter of a page. So the unused end of a page
//! that has no room for another entry is short, and after any merge a level's pages take only
//! little more than its entries: compactions can rely on the space bounds computed here.

use super::entry;
use super::entry::OFFSET_BYTES;
use super::object::MAX_KEY_BYTES;
use super::page::HEADER_BYTES;

/// Bytes of the longest pointer.
const MOST_POINTER_BYTES: usize = 7;

/// The rule for inline values: values up to some length are stored beside their keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inlining {
    /// The longest inline value, in bytes; `None` if no value is inline.
    up_to: Option<u32>,
    payload_bytes: usize,
}

impl Inlining {
    /// Creates the rule for values of up to `up_to` bytes; 0 for no inline values.
    pub(crate) fn new(up_to: u32, payload_bytes: u32) -> Self {
        let payload_bytes = payload_bytes as usize;
        Self { up_to: (up_to > 0).then_some(up_to), payload_bytes }
    }

    /// Whether any value is stored inline.
    pub(crate) fn is_on(&self) -> bool {
        self.up_to.is_some()
    }

    /// Returns the bytes of a page for entries and their offsets.
    pub(crate) fn room(&self) -> usize {
        self.payload_bytes.saturating_sub(HEADER_BYTES)
    }

    /// Whether a value is stored inline.
    pub(crate) fn takes(&self, key_len: usize, value_len: u32) -> bool {
        let fits = || entry::most_len(MOST_POINTER_BYTES, key_len, value_len) <= self.room() / 4;
        self.up_to.is_some_and(|most| value_len <= most) && fits()
    }

    /// Returns the bytes of the longest possible entry, with its offset.
    pub(crate) fn longest_entry(&self) -> usize {
        let without = OFFSET_BYTES + MOST_POINTER_BYTES + MAX_KEY_BYTES;
        let with_value =
            |up_to| entry::most_len(MOST_POINTER_BYTES, MAX_KEY_BYTES, up_to).min(self.room() / 4);
        self.up_to.map_or(without, |up_to| without.max(with_value(up_to)))
    }

    /// Returns the maximum number of bytes of the entries of a memtable of `bytes`: it may exceed
    /// its limit by two objects.
    pub(crate) fn entry_bytes_of(&self, bytes: usize) -> usize {
        match self.up_to {
            None => bytes,
            // An entry with a short synthetic value takes 21 bytes besides the key, an object takes
            // 19.
            Some(_) => bytes + bytes / 8 + 2 * self.longest_entry(),
        }
    }

    /// Returns the maximum number of pages of the entries of a memtable of `bytes`. Keys may be
    /// longer than expected: the memtable may contain only keys.
    pub(crate) fn most_pages_of_memtable(&self, bytes: u64) -> u32 {
        self.most_pages(self.entry_bytes_of(bytes as usize))
    }

    /// Returns the maximum number of pages that `bytes` of entries take: the end of each page may
    /// be too short for another entry.
    pub(crate) fn most_pages(&self, bytes: usize) -> u32 {
        let filled = self.room().saturating_sub(self.longest_entry()).max(1);
        bytes.div_ceil(filled) as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use crate::format::pointer::Pointer;
    use crate::format::value::Value;
    use crate::specimens::{SHAPE, pointers};
    use proptest::prelude::*;

    use super::*;
    use crate::format::entry::NewEntry;
    use crate::format::meta_segment::MetaSegmentBuilder;

    /// Returns the pages and bytes of entries with these key and value lengths, in order.
    fn pages_of(inlining: &Inlining, lengths: &[(usize, u32)]) -> (u32, usize) {
        let mut builder = MetaSegmentBuilder::new(pointers(), SHAPE.payload_bytes);
        let (mut pages, mut bytes) = (1, 0);
        for (key_len, value_len) in lengths {
            let key = vec![b'k'; *key_len].into();
            let entry = if inlining.takes(*key_len, *value_len) {
                NewEntry::inline(key, &Value::Synthetic { seed: 1, len: *value_len })
            } else {
                NewEntry::of_pointer(key, Pointer::TOMBSTONE)
            };
            bytes += OFFSET_BYTES + entry.as_ref().full_len(pointers());
            if !builder.push(&entry.as_ref()) {
                let _ = builder.finish();
                pages += 1;
                assert!(builder.push(&entry.as_ref()));
            }
        }
        (pages, bytes)
    }

    #[test]
    fn short_synthetic_values_under_long_keys_take_no_more_pages_than_was_said() {
        let inlining = Inlining::new(1, SHAPE.payload_bytes);
        let lengths: Vec<_> =
            [231, 231, 188].into_iter().cycle().take(909).zip([0, 1].into_iter().cycle()).collect();
        let (pages, bytes) = pages_of(&inlining, &lengths);
        assert!(pages <= inlining.most_pages(bytes), "{pages} of {bytes} bytes");
    }

    proptest! {
        #[test]
        fn entries_take_no_more_pages_than_was_said(
            up_to in prop_oneof![Just(1), Just(40), Just(200), Just(u32::MAX)],
            lengths in prop::collection::vec((1..=255_usize, 0..400_u32), 1..300),
        ) {
            let inlining = Inlining::new(up_to, SHAPE.payload_bytes);
            let (pages, bytes) = pages_of(&inlining, &lengths);
            prop_assert!(pages <= inlining.most_pages(bytes));
            let objects: usize =
                lengths.iter().map(|(key, value)| 19 + key + *value as usize).sum();
            prop_assert!(bytes <= inlining.entry_bytes_of(objects));
        }
    }
}
