//! The read options of iterators, including the published variants.

use std::ops::RangeInclusive;

use catalogue::bounds;
use serde::{Deserialize, Serialize};

/// The valid size of an iterator's buffer, in bytes.
const BUFFER_BYTES: RangeInclusive<u64> = 0..=1 << 40;
/// The valid number of pairs that an iterator reads ahead.
const VALUE_PREFETCH: RangeInclusive<u32> = 0..=65_536;
/// The valid number of pages that an iterator keeps.
const KEPT_PAGES: RangeInclusive<u32> = 0..=65_536;

/// The read options of iterators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct IteratorOptions {
    /// Whether to read the next segment of each level while the one before it is in use.
    pub index_prefetch: bool,
    /// The number of pairs whose values are read ahead of their Next: the published degree D.
    pub value_prefetch: u32,
    /// The maximum of D. D grows from `value_prefetch` with the number of pairs since the Seek, so
    /// that never more is wasted than was used. No effect if it does not exceed `value_prefetch`.
    pub most_value_prefetch: u32,
    /// The maximum number of deleted keys that one command skips; after that it returns and can be
    /// repeated.
    pub skip_budget: u32,
    /// Memory of each iterator for pages read and values read ahead, in bytes.
    pub buffer_bytes: u64,
    /// The initial size of the buffer, in bytes. It doubles each time that as many bytes of values
    /// were read as it holds, up to `buffer_bytes`, while less than three quarters of the memory of
    /// all iterators is in use: the rest is for new iterators. 0: `buffer_bytes` from the start.
    pub first_buffer_bytes: u64,
    /// The minimum number of value pages that an iterator keeps, within its buffer: the next values
    /// in key order may be in a page that was read some time ago. 0: one page for each pair ahead.
    pub kept_pages: u32,
    /// The number of pairs after a Seek whose values are inserted into the value cache, counted as
    /// Gets. Later pairs are a scan that would sweep the cache. 0: none.
    pub cached_pairs: u32,
    /// The maximum number of bytes of a level's pages that are read along with a needed page, once
    /// reads are sequential, within the buffer (`max_auto_readahead_size`). 0: none.
    pub readahead_bytes: u64,
}

impl Default for IteratorOptions {
    /// Returns the published baseline: nothing is read ahead.
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
    /// Returns a message for each invalid option.
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

    /// Returns the prefetch degree after `pairs` pairs since the Seek.
    pub(crate) fn degree(&self, pairs: u32) -> u32 {
        let most = self.most_value_prefetch.max(self.value_prefetch);
        self.value_prefetch.max(pairs).min(most)
    }

    /// Whether buffers begin small and grow.
    fn buffers_grow(&self) -> bool {
        self.first_buffer_bytes > 0
    }

    /// Returns the initial size of an iterator's buffer, in bytes.
    pub(crate) fn first_buffer(&self) -> u64 {
        if self.buffers_grow() {
            self.first_buffer_bytes.min(self.buffer_bytes)
        } else {
            self.buffer_bytes
        }
    }

    /// Returns the part of a buffer for kept pages, which is not available to values ahead, in
    /// bytes. A growing buffer is shared evenly.
    pub(crate) fn kept_bytes(&self, buffer: u64, page_bytes: u64) -> u64 {
        let kept = u64::from(self.kept_pages) * page_bytes;
        if self.buffers_grow() { kept.min(buffer / 2) } else { kept }
    }

    /// Returns the number of value pages kept, within the `in_buffer` pages of the buffer: the
    /// maximum prefetch degree plus two, or `kept_pages` if that is more.
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
