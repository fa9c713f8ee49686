//! Builds a segment from entries.

use std::ops::Range;

use super::{Layout, MetaSegment};
use crate::format::entry::{IndexEntry, OFFSET_BYTES};
use crate::format::page;
use crate::format::page::{HEADER_BYTES, PageKind};
use crate::format::pointer::PointerFormat;

/// Collects entries in key order until a page is full.
pub(crate) struct MetaSegmentBuilder {
    format: PointerFormat,
    payload_bytes: usize,
    offsets: Vec<u16>,
    entries: Vec<u8>,
    /// Bytes of all entries at full length.
    full_bytes: usize,
    /// The length of each entry and of its tail; `None` if they differ.
    alike: Option<(usize, usize)>,
    has_values: bool,
}

impl MetaSegmentBuilder {
    pub(crate) fn new(format: PointerFormat, payload_bytes: u32) -> Self {
        let payload_bytes = payload_bytes as usize;
        Self {
            format,
            payload_bytes,
            offsets: Vec::with_capacity(payload_bytes / 32),
            entries: Vec::with_capacity(payload_bytes),
            full_bytes: 0,
            alike: None,
            has_values: false,
        }
    }

    /// Returns the used bytes of the page, at full length.
    fn used(&self) -> usize {
        HEADER_BYTES + self.offsets.len() * OFFSET_BYTES + self.full_bytes
    }

    /// Adds an entry. Returns whether it fits.
    #[must_use]
    #[inline]
    pub(crate) fn push(&mut self, entry: &IndexEntry<'_>) -> bool {
        let full_len = entry.full_len(self.format);
        let fits = self.used() + OFFSET_BYTES + full_len <= self.payload_bytes;
        if fits {
            let len = self.format.bytes + entry.key.len() + entry.tail.len();
            self.note_lengths(len, entry.tail.len());
            self.offsets.push(self.entries.len() as u16);
            self.full_bytes += full_len;
            self.format.encode(entry.pointer, &mut self.entries);
            self.entries.extend_from_slice(entry.key);
            if !entry.tail.is_empty() {
                self.entries.extend_from_slice(entry.tail);
            }
        }
        fits
    }

    /// Notes the length of one or more new entries and of their tails.
    fn note_lengths(&mut self, len: usize, tail: usize) {
        if self.offsets.is_empty() {
            self.alike = Some((len, tail));
        } else if self.alike != Some((len, tail)) {
            self.alike = None;
        }
        self.has_values |= tail > 0;
    }

    /// Adds as many of the entries `range` of `segment` as fit and returns their number. Cost: a
    /// single copy if all entries have the same length and no values.
    pub(crate) fn extend(&mut self, segment: &MetaSegment<'_>, range: Range<usize>) -> usize {
        if segment.stride == 0 || segment.layout.has_values {
            return self.extend_one_by_one(segment, range);
        }
        let room = (self.payload_bytes - self.used()) / (segment.stride + OFFSET_BYTES);
        let count = range.len().min(room);
        if count == 0 {
            return 0;
        }
        self.note_lengths(segment.stride, 0);
        let first = self.entries.len();
        self.offsets.extend((0..count).map(|index| (first + index * segment.stride) as u16));
        let (start, _) = segment.entry_range(range.start);
        self.entries.extend_from_slice(&segment.bytes[start..start + count * segment.stride]);
        self.full_bytes += count * segment.stride;
        count
    }

    #[inline(never)]
    fn extend_one_by_one(&mut self, segment: &MetaSegment<'_>, range: Range<usize>) -> usize {
        range.take_while(|index| self.push(&segment.entry(*index))).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the page's bytes, unsealed, and empties the builder.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let count = self.offsets.len() as u16;
        let (stride, tail) = self.alike.take().unwrap_or_default();
        let base = HEADER_BYTES + self.offsets.len() * OFFSET_BYTES;
        let stored = base + self.entries.len();
        assert!(stored <= self.payload_bytes, "{stored} bytes in a page of {}", self.payload_bytes);
        let room = base - HEADER_BYTES + self.entries.len();
        let has_values = std::mem::take(&mut self.has_values);
        let layout =
            Layout { pointer_bytes: self.format.bytes as u8, has_values, tail: tail as u16 };
        let mut bytes = page::start(PageKind::Meta, count, stride as u16, layout.to_number(), room);
        let offsets_at = bytes.len();
        bytes.resize(offsets_at + self.offsets.len() * OFFSET_BYTES, 0);
        let (stored, _) = bytes[offsets_at..].as_chunks_mut();
        for (stored, offset) in stored.iter_mut().zip(self.offsets.drain(..)) {
            *stored = (offset + base as u16).to_le_bytes();
        }
        bytes.append(&mut self.entries);
        self.full_bytes = 0;
        page::finish(bytes)
    }
}
