//! Meta segments: one page each of sorted keys and where their values are (research: `PinK` 1.3).
//!
//! ```text
//! header (16) | offset of each entry, u16 | entries: pointer, key
//! ```
//! Header byte 9 holds the length of a pointer. An entry ends where the next one begins, the last
//! one at the end of the page, so keys need no length. The published layout reserves 1 KiB for
//! offsets; two bytes an entry hold more. Cost of a search: `log2(entries)` key comparisons.

use std::cmp::Ordering;

use crate::effort::Effort;
use crate::page::{self, HEADER_BYTES, PageKind};
use crate::pointer::{Pointer, PointerFormat};

const OFFSET_BYTES: usize = 2;

/// A meta segment's bytes, read as entries.
#[derive(Clone, Copy)]
pub(crate) struct MetaSegment<'a> {
    bytes: &'a [u8],
    count: usize,
    format: PointerFormat,
}

impl<'a> MetaSegment<'a> {
    /// `None` if the page holds something else.
    pub(crate) fn new(bytes: &'a [u8], format: PointerFormat) -> Option<Self> {
        let is_meta = page::kind(bytes) == Some(PageKind::Meta);
        let count = page::entries(bytes) as usize;
        is_meta.then_some(Self { bytes, count, format })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn key(&self, index: usize) -> &'a [u8] {
        let (start, end) = self.entry(index);
        &self.bytes[start + self.format.bytes..end]
    }

    pub(crate) fn pointer(&self, index: usize) -> Pointer {
        let (start, _) = self.entry(index);
        self.format.decode(&self.bytes[start..])
    }

    fn entry(&self, index: usize) -> (usize, usize) {
        let end = if index + 1 == self.count { self.bytes.len() } else { self.offset(index + 1) };
        (self.offset(index), end)
    }

    fn offset(&self, index: usize) -> usize {
        page::u16_at(self.bytes, HEADER_BYTES + index * OFFSET_BYTES) as usize
    }

    /// The pointer stored for `key`.
    pub(crate) fn find(&self, key: &[u8], effort: &mut Effort) -> Option<Pointer> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            effort.key_compares += 1;
            match self.key(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(self.pointer(middle)),
            }
        }
        None
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

    /// The page's bytes, unsealed; the builder is empty again.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let base = HEADER_BYTES + self.offsets.len() * OFFSET_BYTES;
        let mut bytes =
            page::start(PageKind::Meta, self.offsets.len() as u16, base + self.entries.len());
        bytes[9] = self.format.bytes as u8;
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
