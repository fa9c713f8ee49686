//! Meta segments: one page each of sorted keys and where their values are (research: `PinK` 1.3).
//!
//! ```text
//! header (entries; 26..28: stride; 28..32: bytes of a pointer)
//! offset of each entry from the start of the page, u16
//! entries: pointer | key
//! ```
//! The stride is the length of an entry if all have the same, else 0: with it a search computes where
//! an entry is and leaves the offsets alone. An entry ends where the next one begins, the last one at
//! the end of what is stored, so keys need no length. The published layout reserves 1 KiB for offsets;
//! two bytes an entry hold more. Cost of a search: `log2(entries)` comparisons; where all keys have the
//! same length fewer, of eight bytes of each ([`Outline`], [`KeyHeads`]).
//!
//! [`MetaSegment::is_sound`] looks at every offset, once for a page that was read; from then on
//! [`MetaSegment::new`] takes them as they are, and so it does for what merges make.

use std::ops::Range;

use pages::MAX_KEY_BYTES;
use pages::effort::Effort;
use pages::format::page::{self, HEADER_BYTES, Page, PageKind};
use pages::format::pointer::{Pointer, PointerFormat};

use crate::format::key_heads::{self, KeyHeads};
use crate::format::outline::Outline;

const OFFSET_BYTES: usize = 2;

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
    /// `None` if the page holds something else. The page was found sound or made by a merge.
    pub(crate) fn new(bytes: &'a [u8], format: PointerFormat) -> Option<Self> {
        let page = Page::parse(bytes)?;
        let is_one = page.kind == PageKind::Meta && page.large as usize == format.bytes;
        let (count, stride) = (usize::from(page.entries), usize::from(page.small));
        is_one.then_some(Self { bytes: page.bytes, count, stride, format })
    }

    /// Whether `bytes` are a meta segment in which every entry lies where entries can be. Cost: a
    /// look at each offset.
    pub(crate) fn is_sound(bytes: &[u8], format: PointerFormat) -> bool {
        let Some(segment) = MetaSegment::new(bytes, format) else { return false };
        let base = HEADER_BYTES + segment.count * OFFSET_BYTES;
        let lengths = format.bytes + 1..=format.bytes + MAX_KEY_BYTES;
        if base > segment.bytes.len() || segment.count == 0 {
            return base == segment.bytes.len();
        }
        if segment.stride > 0 {
            let end = base + segment.count * segment.stride;
            return end == segment.bytes.len() && lengths.contains(&segment.stride);
        }
        let mut ends = (1..segment.count).map(|i| segment.offset(i)).chain([segment.bytes.len()]);
        let mut start = segment.offset(0);
        start == base
            && ends.all(|end| {
                let length = end.wrapping_sub(start);
                start = end;
                lengths.contains(&length)
            })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether a segment that is sound is the one that a level list has with `entries` entries, the
    /// first of `first_key`, in front of the one that begins with `next`. Cost: a look at each key.
    pub(crate) fn is_listed(&self, entries: u16, first_key: &[u8], next: Option<&[u8]>) -> bool {
        let keys = (0..self.count).map(|index| self.key(index));
        self.count == usize::from(entries)
            && self.count > 0
            && self.key(0) == first_key
            && keys.chain(next).is_sorted_by(|before, after| before < after)
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

    /// What [`Self::find`] costs.
    pub(crate) fn effort(&self) -> Effort {
        search_effort(self.count)
    }

    /// What a search of these bytes knows beforehand, if they are a segment whose keys all have the
    /// same length.
    pub(crate) fn outline_of(bytes: &[u8]) -> Option<Outline> {
        let page = Page::parse(bytes).filter(|page| page.kind == PageKind::Meta)?;
        let (count, stride) = (usize::from(page.entries), usize::from(page.small));
        let pointer_bytes = page.large as usize;
        let key_bytes = stride.checked_sub(pointer_bytes)?;
        let first_key = HEADER_BYTES + count * OFFSET_BYTES + pointer_bytes;
        Outline::new(page.bytes, first_key, count, stride, key_bytes)
    }

    /// The pointer stored for `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Pointer> {
        let at = if let Some(outline) = Self::outline_of(self.bytes) {
            outline.find(self.bytes, key, outline.aim(key)?)?
        } else {
            let at = key_heads::lower_bound(0..self.count, |index| self.key(index).cmp(key));
            (at < self.count && self.key(at) == key).then_some(at)?
        };
        Some(self.pointer(at))
    }

    /// The first entry whose key is at least `key`; the number of entries if there is none.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        match self.heads() {
            Some(heads) => heads.lower_bound(key, 0..self.count),
            None => key_heads::lower_bound(0..self.count, |index| self.key(index).cmp(key)),
        }
    }

    /// The same among the entries from `from` on, near which it probably is. `heads` are this
    /// segment's, for whoever searches it often.
    pub(crate) fn gallop(&self, heads: Option<KeyHeads<'_>>, key: &[u8], from: usize) -> usize {
        match heads {
            Some(heads) => heads.gallop(key, from..self.count),
            None => key_heads::gallop(from..self.count, |index| self.key(index).cmp(key)),
        }
    }

    /// The keys as numbers, if all have the same length.
    pub(crate) fn heads(&self) -> Option<KeyHeads<'a>> {
        let key_bytes = self.stride.checked_sub(self.format.bytes)?;
        let keys = self.bytes.get(self.entry(0).0 + self.format.bytes..)?;
        KeyHeads::new(keys, self.stride, key_bytes)
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

    /// Adds the entries `range` of `segment`, as many as fit, and returns how many that were. Cost:
    /// one copy of all of them, where all keys of the segment have the same length.
    pub(crate) fn extend(&mut self, segment: &MetaSegment<'_>, range: Range<usize>) -> usize {
        if segment.stride == 0 {
            let fits = |index: &usize| {
                let fits = self.fits(segment.key(*index).len());
                if fits {
                    self.push(segment.key(*index), segment.pointer(*index));
                }
                fits
            };
            return range.take_while(fits).count();
        }
        let used = HEADER_BYTES + self.offsets.len() * OFFSET_BYTES + self.entries.len();
        let room = (self.payload_bytes - used) / (segment.stride + OFFSET_BYTES);
        let count = range.len().min(room);
        let first = self.entries.len();
        self.offsets.extend((0..count).map(|index| (first + index * segment.stride) as u16));
        let (start, _) = segment.entry(range.start);
        self.entries.extend_from_slice(&segment.bytes[start..start + count * segment.stride]);
        count
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
        let (count, stride) = (self.offsets.len() as u16, self.stride());
        let base = HEADER_BYTES + self.offsets.len() * OFFSET_BYTES;
        let room = base - HEADER_BYTES + self.entries.len();
        let pointer_bytes = self.format.bytes as u32;
        let mut bytes = page::start(PageKind::Meta, count, stride, pointer_bytes, room);
        let offsets_at = bytes.len();
        bytes.resize(offsets_at + self.offsets.len() * OFFSET_BYTES, 0);
        let (stored, _) = bytes[offsets_at..].as_chunks_mut();
        for (stored, offset) in stored.iter_mut().zip(self.offsets.drain(..)) {
            *stored = (offset + base as u16).to_le_bytes();
        }
        bytes.append(&mut self.entries);
        page::finish(bytes)
    }
}

/// What a search among so many entries costs: the comparisons of a binary one.
pub(crate) fn search_effort(entries: usize) -> Effort {
    let key_compares = entries.checked_ilog2().map_or(0, |steps| steps + 1);
    Effort { key_compares, ..Effort::default() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use pages::medium::{PageNo, Shape};

    fn format(payload_bytes: u32) -> PointerFormat {
        PointerFormat::new(&Shape {
            payload_bytes,
            page_bytes: payload_bytes,
            pages_per_extent: 32,
            extents: 24,
            append_unit: 1,
            parallelism: 4,
        })
    }

    fn segment(payload_bytes: u32, key_of: impl Fn(u32) -> Vec<u8>) -> (Vec<u8>, u32) {
        let format = format(payload_bytes);
        let mut builder = MetaSegmentBuilder::new(format, payload_bytes);
        let mut count = 0;
        while builder.fits(key_of(count).len()) {
            builder.push(&key_of(count), format.pointer(PageNo(count % 700), 0, 1, 1));
            count += 1;
        }
        (builder.finish(), count)
    }

    #[test]
    fn every_key_is_found_also_in_a_padded_page_and_in_the_largest_there_is() {
        let even = |i: u32| format!("key{i:08}").into_bytes();
        let uneven = |i: u32| format!("k{i:06}{}", "x".repeat(i as usize % 60)).into_bytes();
        for payload in [1056, 8224, page::MAX_PAGE_BYTES] {
            for (bytes, count, key_of) in [even as fn(u32) -> Vec<u8>, uneven].map(|key_of| {
                let (bytes, count) = segment(payload, key_of);
                (bytes, count, key_of)
            }) {
                let mut padded = bytes.clone();
                padded.resize(payload as usize + 100, 0);
                for bytes in [&bytes, &padded] {
                    assert!(MetaSegment::is_sound(bytes, format(payload)));
                    let segment = MetaSegment::new(bytes, format(payload)).expect("a segment");
                    for i in 0..count {
                        let pointer = segment.find(&key_of(i)).expect("it was pushed");
                        assert_eq!(format(payload).locate(pointer), (PageNo(i % 700), 0));
                    }
                    assert_eq!(segment.find(b"zzz"), None);
                }
            }
        }
    }

    #[test]
    fn offsets_that_lead_elsewhere_are_noticed() {
        let uneven = |i: u32| format!("k{i:06}{}", "x".repeat(i as usize % 60)).into_bytes();
        let (bytes, _) = segment(1056, uneven);
        let with = |at: usize, value: u16| {
            let mut bytes = bytes.clone();
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
            MetaSegment::is_sound(&bytes, format(1056))
        };
        assert!(!with(24, 1000), "more entries than there is room for");
        assert!(!with(26, 20), "a stride, though entries differ in length");
        assert!(!with(28, 7), "pointers of another length");
        assert!(!with(HEADER_BYTES, 0) && !with(HEADER_BYTES + 2, 60_000));
        assert!(!MetaSegment::is_sound(&bytes[..40], format(1056)));
    }
}
