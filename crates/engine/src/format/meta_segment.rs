//! Meta segments: one page each of sorted keys and where their values are (research: `PinK` 1.3).
//!
//! ```text
//! header (16) | offset of each entry, u16 | entries: pointer, key
//! ```
//! Header byte 9 holds the length of a pointer; bytes 12..14 the length of an entry if all have the
//! same, else 0: a search then computes where an entry is and leaves the offsets alone. An entry
//! ends where the next one begins, the last one at the end of the page, so keys need no length. The published layout reserves 1 KiB for
//! offsets; two bytes an entry hold more. Cost of a search: `log2(entries)` key comparisons.

use std::ops::Range;

use runtime::prefetch;

use crate::MAX_KEY_BYTES;
use crate::effort::Effort;
use crate::format::page::{self, HEADER_BYTES, PageKind};
use crate::format::pointer::{Pointer, PointerFormat};

const OFFSET_BYTES: usize = 2;
const STRIDE_AT: usize = 12;

/// A meta segment's bytes, read as entries.
#[derive(Clone, Copy)]
pub(crate) struct MetaSegment<'a> {
    bytes: &'a [u8],
    count: usize,
    /// Length of every entry, or 0 if they differ.
    stride: usize,
    format: PointerFormat,
}

impl<'a> MetaSegment<'a> {
    /// `None` if the page holds something else.
    pub(crate) fn new(bytes: &'a [u8], format: PointerFormat) -> Option<Self> {
        let is_meta = page::kind(bytes) == Some(PageKind::Meta);
        let count = page::entries(bytes) as usize;
        let stride = page::u16_at(bytes, STRIDE_AT) as usize;
        is_meta.then_some(Self { bytes, count, stride, format })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn key(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.key_range(index)]
    }

    /// Where the key of an entry lies in the page.
    pub(crate) fn key_range(&self, index: usize) -> Range<usize> {
        let (start, end) = self.entry(index);
        start + self.format.bytes..end
    }

    pub(crate) fn pointer(&self, index: usize) -> Pointer {
        let (start, _) = self.entry(index);
        self.format.decode(&self.bytes[start..])
    }

    fn entry(&self, index: usize) -> (usize, usize) {
        if self.stride > 0 {
            let start = HEADER_BYTES + self.count * OFFSET_BYTES + index * self.stride;
            return (start, start + self.stride);
        }
        let end = if index + 1 == self.count { self.bytes.len() } else { self.offset(index + 1) };
        (self.offset(index), end)
    }

    fn offset(&self, index: usize) -> usize {
        page::u16_at(self.bytes, HEADER_BYTES + index * OFFSET_BYTES) as usize
    }

    /// What [`Self::find`] costs: the comparisons of a binary search.
    pub(crate) fn effort(&self) -> Effort {
        let key_compares = self.count.checked_ilog2().map_or(0, |steps| steps + 1);
        Effort { key_compares, ..Effort::default() }
    }

    /// Hints that a search will come: the keys that its first steps look at.
    pub(crate) fn prefetch(&self) {
        let quarter = self.count / 4;
        let sixteenth = quarter / 4;
        if sixteenth > 0 {
            for pivot in (0..4).flat_map(|q| (0..4).map(move |s| q * quarter + s * sixteenth)) {
                prefetch(&self.bytes[self.entry(pivot).0]);
            }
        }
    }

    /// The pointer stored for `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Pointer> {
        let at = self.lower_bound(key);
        (at < self.count && self.key(at) == key).then(|| self.pointer(at))
    }

    /// The first entry whose key is at least `key`; the number of entries if there is none.
    ///
    /// The pivots of two steps of a binary search are looked at together, so that the cache misses
    /// of a simulation's large memory overlap.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut len) = (0, self.count);
        while len >= 8 {
            let quarter = len / 4;
            let is_at_least = |pivot: usize| usize::from(self.key(low + pivot) <= key);
            let passed = is_at_least(quarter) + is_at_least(2 * quarter) + is_at_least(3 * quarter);
            low += passed * quarter;
            len = if passed == 3 { len - 3 * quarter } else { quarter };
        }
        (low..low + len).find(|index| self.key(*index) >= key).unwrap_or(low + len)
    }
}

/// Collects entries in key order until a page is full.
pub(crate) struct MetaSegmentBuilder {
    format: PointerFormat,
    payload_bytes: usize,
    offsets: Vec<u16>,
    entries: Vec<u8>,
}

impl MetaSegmentBuilder {
    pub(crate) fn new(format: PointerFormat, payload_bytes: u32) -> Self {
        let payload_bytes = payload_bytes as usize;
        Self {
            format,
            payload_bytes,
            offsets: Vec::with_capacity(payload_bytes / 32),
            entries: Vec::with_capacity(payload_bytes),
        }
    }

    /// Whether another entry with a key of this length fits.
    pub(crate) fn fits(&self, key_len: usize) -> bool {
        let offsets = (self.offsets.len() + 1) * OFFSET_BYTES;
        let entries = self.entries.len() + self.format.bytes + key_len;
        HEADER_BYTES + offsets + entries <= self.payload_bytes
    }

    pub(crate) fn push(&mut self, key: &[u8], pointer: Pointer) {
        debug_assert!(self.fits(key.len()));
        self.offsets.push(self.entries.len() as u16);
        self.format.encode(pointer, &mut self.entries);
        self.entries.extend_from_slice(key);
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Length of every entry so far, or 0 if they differ.
    fn stride(&self) -> u16 {
        let count = self.offsets.len();
        let stride = self.entries.len() / count.max(1);
        let is_even = (0..).zip(&self.offsets).all(|(i, at)| *at as usize == i * stride);
        if is_even && stride * count == self.entries.len() { stride as u16 } else { 0 }
    }

    /// The page's bytes, unsealed; the builder is empty again.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let base = HEADER_BYTES + self.offsets.len() * OFFSET_BYTES;
        let mut bytes =
            page::start(PageKind::Meta, self.offsets.len() as u16, base + self.entries.len());
        bytes[9] = self.format.bytes as u8;
        bytes[STRIDE_AT..STRIDE_AT + 2].copy_from_slice(&self.stride().to_le_bytes());
        for offset in self.offsets.drain(..) {
            bytes.extend_from_slice(&(offset + base as u16).to_le_bytes());
        }
        bytes.append(&mut self.entries);
        bytes
    }
}

/// Entries with keys of `key_len` bytes that fit in a page.
pub(crate) fn entries_per_page(payload_bytes: u32, pointer_bytes: usize, key_len: u32) -> u32 {
    let entry = pointer_bytes as u32 + key_len + OFFSET_BYTES as u32;
    (payload_bytes - HEADER_BYTES as u32) / entry
}

/// Pages that `bytes` of entries take at most: the end of each may be left empty for want of room
/// for one more entry, whose key has up to 255 bytes.
pub(crate) fn most_pages(bytes: usize, payload_bytes: u32) -> u32 {
    let longest_entry = 7 + MAX_KEY_BYTES + OFFSET_BYTES;
    let filled = (payload_bytes as usize).saturating_sub(HEADER_BYTES + longest_entry).max(1);
    bytes.div_ceil(filled) as u32 + 1
}
