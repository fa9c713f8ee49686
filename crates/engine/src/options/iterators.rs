//! How iterators read: values of one type, of which the published ways are some.

use std::ops::RangeInclusive;

use catalogue::bounds;
use serde::{Deserialize, Serialize};

/// Bytes of an iterator's buffer.
const BUFFER_BYTES: RangeInclusive<u64> = 0..=1 << 40;
/// Pairs that an iterator reads ahead.
const VALUE_PREFETCH: RangeInclusive<u32> = 0..=65_536;
/// Pages that an iterator keeps.
const KEPT_PAGES: RangeInclusive<u32> = 0..=65_536;

/// How iterators read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct IteratorOptions {
    /// Read the next segment of each level while the one before it is in use.
    pub index_prefetch: bool,
    /// Pairs whose values are read ahead of the Next that asks for them: the published degree D.
    pub value_prefetch: u32,
    /// What D grows to: from `value_prefetch` on it is the number of pairs that came since the Seek, so that no
    /// more is read in vain than was read for use. Of no effect where it is not more than `value_prefetch`.
    pub most_value_prefetch: u32,
    /// Deleted keys that one command passes at most; then it says so and can be asked again.
    pub skip_budget: u32,
    /// Memory of each iterator for pages read and values read ahead, in bytes.
    pub buffer_bytes: u64,
    /// What of it an iterator has to begin with. It is doubled each time that as much as it holds was read for values, up to `buffer_bytes`, as
    /// long as three quarters of the memory for all are not taken: the rest is for those that begin. 0: all of it at once.
    pub first_buffer_bytes: u64,
    /// Pages of values that it keeps at least, as far as the buffer goes: what follows in the order of keys may lie in
    /// one that was read a while ago. At 0 one for each pair ahead.
    pub kept_pages: u32,
    /// Values that it leaves in the value cache: those of so many pairs from a Seek on, which count as if
    /// they had been got. What comes behind is a scan that would sweep the cache. 0: none.
    pub cached_pairs: u32,
    /// Most bytes of a level's pages that are read along with the one that is needed, once pages are read in order, as
    /// far as the buffer goes: `max_auto_readahead_size`. 0 for none.
    pub readahead_bytes: u64,
}

impl Default for IteratorOptions {
    /// As the published baseline: nothing is read ahead.
    fn default() -> Self {
        Self {
            index_prefetch: false,
            value_prefetch: 0,
            most_value_prefetch: 0,
            skip_budget: 1024,
            buffer_bytes: 64 << 10,
            first_buffer_bytes: 0,
            kept_pages: 0,
            cached_pairs: 0,
            readahead_bytes: 0,
        }
    }
}

impl IteratorOptions {
    /// Everything that is wrong with them, in words.
    pub(super) fn problems(&self) -> Vec<String> {
        let of = |name, number, allowed| bounds::range(name, number, allowed);
        let bytes = |name, number| bounds::range(name, number, BUFFER_BYTES);
        let problems = [
            of("iterators.value_prefetch", self.value_prefetch, VALUE_PREFETCH),
            of("iterators.most_value_prefetch", self.most_value_prefetch, VALUE_PREFETCH),
            of("iterators.skip_budget", self.skip_budget, 1..=u32::MAX),
            of("iterators.kept_pages", self.kept_pages, KEPT_PAGES),
            bytes("iterators.buffer_bytes", self.buffer_bytes),
            bytes("iterators.first_buffer_bytes", self.first_buffer_bytes),
            bytes("iterators.readahead_bytes", self.readahead_bytes),
        ];
        problems.into_iter().flatten().collect()
    }

    /// The degree of prefetching once `pairs` have come since the Seek.
    pub(crate) fn degree(&self, pairs: u32) -> u32 {
        let most = self.most_value_prefetch.max(self.value_prefetch);
        self.value_prefetch.max(pairs).min(most)
    }

    /// Whether buffers begin small and grow.
    fn buffers_grow(&self) -> bool {
        self.first_buffer_bytes > 0
    }

    /// What an iterator has of its buffer to begin with.
    pub(crate) fn first_buffer(&self) -> u64 {
        if self.buffers_grow() {
            self.first_buffer_bytes.min(self.buffer_bytes)
        } else {
            self.buffer_bytes
        }
    }

    /// What of a buffer is not for values ahead: those of pages that are kept. One that grows is shared evenly.
    pub(crate) fn kept_bytes(&self, buffer: u64, page_bytes: u64) -> u64 {
        let kept = u64::from(self.kept_pages) * page_bytes;
        if self.buffers_grow() { kept.min(buffer / 2) } else { kept }
    }

    /// Pages of values that are kept, where the buffer has room for `in_buffer`: one for the pair at hand, one for each
    /// pair ahead, and those that are to be kept besides.
    pub(crate) fn pages_kept(&self, in_buffer: u64) -> usize {
        let ahead = self.value_prefetch.max(self.most_value_prefetch);
        let wanted = (u64::from(ahead) + 2).max(self.kept_pages.into());
        wanted.min(in_buffer.max(1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_degree_grows_with_the_pairs_that_came_up_to_its_most() {
        let fixed = IteratorOptions { value_prefetch: 8, ..IteratorOptions::default() };
        assert_eq!([0, 1, 9, 1_000].map(|pairs| fixed.degree(pairs)), [8; 4]);
        let growing = IteratorOptions { most_value_prefetch: 32, ..fixed };
        assert_eq!([0, 8, 9, 31, 32, 1_000].map(|n| growing.degree(n)), [8, 8, 9, 31, 32, 32]);
        let none = IteratorOptions::default();
        assert_eq!([0, 1_000].map(|pairs| none.degree(pairs)), [0, 0]);
    }

    #[test]
    fn a_buffer_that_grows_begins_small_and_is_shared_evenly() {
        let page = 4 << 10;
        let fixed = IteratorOptions {
            buffer_bytes: 2 << 20,
            kept_pages: 128,
            ..IteratorOptions::default()
        };
        assert_eq!((fixed.first_buffer(), fixed.kept_bytes(16 << 10, page)), (2 << 20, 512 << 10));
        let growing = IteratorOptions { first_buffer_bytes: 16 << 10, ..fixed };
        assert_eq!(growing.first_buffer(), 16 << 10);
        assert_eq!(growing.kept_bytes(16 << 10, page), 8 << 10);
        assert_eq!(growing.kept_bytes(2 << 20, page), 512 << 10);
        let large = IteratorOptions { first_buffer_bytes: 4 << 20, ..fixed };
        assert_eq!(large.first_buffer(), 2 << 20);
    }

    #[test]
    fn pages_are_kept_as_far_as_the_buffer_goes() {
        let published = IteratorOptions { value_prefetch: 8, ..IteratorOptions::default() };
        assert_eq!([0, 1, 9, 100].map(|room| published.pages_kept(room)), [1, 1, 9, 10]);
        let more = IteratorOptions { kept_pages: 64, ..published };
        assert_eq!([0, 9, 100].map(|room| more.pages_kept(room)), [1, 9, 64]);
        let fewer = IteratorOptions { kept_pages: 4, ..published };
        assert_eq!(fewer.pages_kept(100), 10);
    }
}
