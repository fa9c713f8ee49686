//! A sorted array of keys that is searched by prefix first.
//!
//! `PinK` keeps the first bytes of each key in a separate array, dense in the processor's cache,
//! and compares whole keys only on a tie. Neighbouring keys share their first bytes (`user0000..`),
//! so the prefixes are taken after the bytes that all keys of the array have in common
//! (docs/decisions/0004). With `prefix_bytes` = 0 every comparison is of whole keys.

use std::ops::Range;

use crate::effort::Effort;
use crate::format::key_heads::{begins_with, common_len, head};

#[derive(Clone, Debug)]
pub(crate) struct KeyIndex {
    prefix_bytes: usize,
    /// The number of leading bytes that all keys share.
    common: usize,
    prefixes: Vec<u64>,
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl KeyIndex {
    /// Builds an index of `keys`, which must be sorted.
    pub(crate) fn new<'a>(keys: impl Iterator<Item = &'a [u8]>, prefix_bytes: usize) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for key in keys {
            bytes.extend_from_slice(key);
            ends.push(bytes.len() as u32);
        }
        let mut index = Self { prefix_bytes, common: 0, prefixes: Vec::new(), bytes, ends };
        if prefix_bytes > 0 && index.len() > 0 {
            index.common = common_len(index.key(0), index.key(index.len() - 1));
            index.prefixes = (0..index.len())
                .map(|i| prefix(&index.key(i)[index.common..], prefix_bytes))
                .collect();
        }
        index
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    /// Returns the total length of all keys, in bytes.
    pub(crate) fn key_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the index of the first key in `within` that is greater than `key`; the end of
    /// `within` if there is none.
    #[expect(clippy::inline_always, reason = "each Get does it in every level")]
    #[inline(always)]
    pub(crate) fn upper_bound(
        &self,
        key: &[u8],
        within: Range<usize>,
        effort: &mut Effort,
    ) -> usize {
        let Some(wanted) = self.wanted_prefix(key) else {
            return upper_bound(within, |index| self.is_above(index, key, effort));
        };
        let (prefixes, mut compares) = (&self.prefixes[..within.end], 0);
        let at = upper_bound(within, |index| {
            compares += 1;
            let prefix = prefixes[index];
            prefix > wanted || prefix == wanted && self.is_above(index, key, effort)
        });
        effort.prefix_compares += compares;
        at
    }

    /// Whether the key at `index` is greater than `key`, by whole keys. A separate function because
    /// it is rarely called.
    #[inline(never)]
    fn is_above(&self, index: usize, key: &[u8], effort: &mut Effort) -> bool {
        effort.key_compares += 1;
        self.key(index) > key
    }

    /// Returns the prefix to search by, if `key` has the bytes that all keys share.
    fn wanted_prefix(&self, key: &[u8]) -> Option<u64> {
        let shared = self.bytes.get(..self.common)?;
        let shares = !self.prefixes.is_empty() && begins_with(key, shared);
        shares.then(|| prefix(&key[self.common..], self.prefix_bytes))
    }
}

/// Returns the first index of `within` that is above; the end of `within` if none is.
fn upper_bound(within: Range<usize>, mut is_above: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut len) = (within.start, within.len());
    while len > 0 {
        let half = len / 2;
        let passed = if is_above(low + half) { 0 } else { half + 1 };
        len = if passed == 0 { half } else { len - passed };
        low += passed;
    }
    low
}

/// Returns the first `count` bytes as a number with the same order; missing bytes count as zero.
fn prefix(bytes: &[u8], count: usize) -> u64 {
    let unused = 64 - 8 * count.min(8) as u32;
    head(bytes) >> unused << unused
}
