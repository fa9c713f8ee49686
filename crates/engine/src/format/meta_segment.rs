//! Meta segments: one page each of sorted keys and the locations of their values (research: `PinK`
//! 1.3).
//!
//! ```text
//! header (entries; 26..28: stride; 28: bytes of a pointer; 29: whether it has values;
//!         30..32: tail)
//! offset of each entry from the start of the page, u16
//! entries: pointer | key, or a key and its value (see `entry`)
//! ```
//! The stride is the length of an entry if all entries have the same length, else 0: with a stride
//! a search computes positions and ignores the offsets. The tail is the number of bytes after each
//! key in that case. An entry ends where the next one begins, the last one at the end of the stored
//! bytes, so keys need no length. The published layout reserves 1 KiB for offsets; two bytes an
//! entry hold more entries. Cost of a search: `log2(entries)` comparisons; if all keys have the
//! same length, fewer, of eight bytes each ([`Outline`], [`KeyHeads`]).
//!
//! [`MetaSegment::is_sound`] checks every offset, and every entry if values may be inline, once for
//! each page that is read; after that [`MetaSegment::new`] trusts them, as it trusts the output of
//! merges.

pub(crate) mod builder;

pub(crate) use crate::format::meta_segment::builder::MetaSegmentBuilder;

use super::entry::{IndexEntry, Mapping, OFFSET_BYTES};
use super::inlining::Inlining;
use super::key_heads::KeyHeads;
use super::object::MAX_KEY_BYTES;
use super::outline::Outline;
use super::page::{HEADER_BYTES, Page, PageKind};
use super::pointer::{Pointer, PointerFormat};
use super::{entry, key_heads, page};
use crate::effort::Effort;

/// A meta segment's bytes, read as entries.
#[derive(Clone, Copy)]
pub(crate) struct MetaSegment<'a> {
    bytes: &'a [u8],
    count: usize,
    /// The length of every entry, or 0 if lengths differ.
    stride: usize,
    layout: Layout,
    format: PointerFormat,
}

/// The header's description of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    pointer_bytes: u8,
    /// Whether some values are inline.
    has_values: bool,
    /// Bytes after the key of each entry, if all entries are alike.
    tail: u16,
}

impl Layout {
    fn to_number(self) -> u32 {
        let [low, high] = self.tail.to_le_bytes();
        u32::from_le_bytes([self.pointer_bytes, u8::from(self.has_values), low, high])
    }

    fn of_number(number: u32) -> Option<Self> {
        let [pointer_bytes, has_values, low, high] = number.to_le_bytes();
        let (has_values, tail) = (has_values == 1, u16::from_le_bytes([low, high]));
        let layout = Self { pointer_bytes, has_values, tail };
        (layout.to_number() == number && (has_values || tail == 0)).then_some(layout)
    }
}

impl<'a> MetaSegment<'a> {
    /// Reads a segment; `None` if the page contains something else. Requires: the page passed
    /// [`Self::is_sound`] or was built by a merge.
    pub(crate) fn new(bytes: &'a [u8], format: PointerFormat) -> Option<Self> {
        let page = Page::parse(bytes)?;
        let layout = Layout::of_number(page.large)?;
        let is_one =
            page.kind == PageKind::Meta && usize::from(layout.pointer_bytes) == format.bytes;
        let (count, stride) = (usize::from(page.entries), usize::from(page.small));
        is_one.then_some(Self { bytes: page.bytes, count, stride, layout, format })
    }

    /// Whether `bytes` are a meta segment with a possible position for every entry. Cost: reads
    /// each offset, and each entry if values may be inline.
    pub(crate) fn is_sound(bytes: &[u8], format: PointerFormat, inlining: &Inlining) -> bool {
        let Some(segment) = MetaSegment::new(bytes, format) else { return false };
        if !segment.has_sound_offsets() {
            return false;
        }
        if !inlining.is_on() {
            return !segment.layout.has_values;
        }
        let longest = inlining.longest_entry();
        let sound_len = |index| segment.sound_len(index).filter(|len| *len <= longest);
        let all = (0..segment.count).map(sound_len).sum::<Option<usize>>();
        all.is_some_and(|bytes| bytes <= inlining.room())
    }

    fn has_sound_offsets(&self) -> bool {
        let base = HEADER_BYTES + self.count * OFFSET_BYTES;
        let longest = if self.layout.has_values {
            self.bytes.len()
        } else {
            self.format.bytes + MAX_KEY_BYTES
        };
        let lengths = self.format.bytes + 1..=longest;
        if base > self.bytes.len() || self.count == 0 {
            return base == self.bytes.len();
        }
        if self.stride > 0 {
            let end = base + self.count * self.stride;
            return end == self.bytes.len() && lengths.contains(&self.stride);
        }
        let mut ends = (1..self.count).map(|i| self.offset(i)).chain([self.bytes.len()]);
        let mut start = self.offset(0);
        start == base
            && ends.all(|end| {
                let length = end.wrapping_sub(start);
                let is_sound = end <= self.bytes.len() && lengths.contains(&length);
                start = end;
                is_sound
            })
    }

    /// Returns the bytes of an entry with its offset, at full length, if values may be inline;
    /// `None` if it is invalid. Requires: the entry is within the page.
    fn sound_len(&self, index: usize) -> Option<usize> {
        let (start, end) = self.entry_range(index);
        let rest = &self.bytes[start + self.format.bytes..end];
        let pointer = self.format.or_inline(self.format.decode(&self.bytes[start..]));
        let has_value = pointer == Pointer::INLINE;
        // Without values in the segment this pointer would be a location, until a merge turned it
        // into the mark of a value.
        (self.layout.has_values || !has_value).then_some(())?;
        let key_len = if has_value { entry::key_len_before(rest)? } else { rest.len() };
        let (key, tail) = rest.split_at_checked(key_len)?;
        let is_alike = self.stride == 0 || tail.len() == usize::from(self.layout.tail);
        let has_sound_value = !has_value || entry::value_of(tail).is_some();
        let is_sound = is_alike && has_sound_value && (1..=MAX_KEY_BYTES).contains(&key_len);
        let entry = IndexEntry { key, pointer, tail };
        is_sound.then(|| OFFSET_BYTES + entry.full_len(self.format))
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether a valid segment matches its entry in a level list: `entries` entries, beginning with
    /// `first_key`, before the segment that begins with `next`. Cost: reads each key.
    pub(crate) fn is_listed(&self, entries: u16, first_key: &[u8], next: Option<&[u8]>) -> bool {
        let keys = (0..self.count).map(|index| self.key(index));
        self.count == usize::from(entries)
            && self.count > 0
            && self.key(0) == first_key
            && keys.chain(next).is_sorted_by(|before, after| before < after)
    }

    #[inline]
    pub(crate) fn key(&self, index: usize) -> &'a [u8] {
        let (start, end) = self.entry_range(index);
        &self.bytes[start + self.format.bytes..end - self.tail_len(start, end)]
    }

    /// Returns the bytes of an entry after its key.
    #[inline]
    fn tail_len(&self, start: usize, end: usize) -> usize {
        if self.layout.has_values && self.stride == 0 {
            return self.tail_len_of_its_own(start, end);
        }
        usize::from(self.layout.tail)
    }

    /// A separate function so that the part that merges run for each entry is inlined.
    #[inline(never)]
    fn tail_len_of_its_own(&self, start: usize, end: usize) -> usize {
        if self.pointer_at(start) != Pointer::INLINE {
            return 0;
        }
        let key = start + self.format.bytes;
        let key_len = entry::key_len_before(&self.bytes[key..end]);
        end - key - key_len.expect("checked when it was read")
    }

    #[inline]
    fn pointer_at(&self, start: usize) -> Pointer {
        let pointer = self.format.decode(&self.bytes[start..]);
        if self.layout.has_values { self.format.or_inline(pointer) } else { pointer }
    }

    /// Returns the entry in its stored form.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> IndexEntry<'a> {
        let (start, end) = self.entry_range(index);
        let tail = end - self.tail_len(start, end);
        let key = &self.bytes[start + self.format.bytes..tail];
        IndexEntry { key, pointer: self.pointer_at(start), tail: &self.bytes[tail..end] }
    }

    /// Returns the mapping of the entry's key.
    pub(crate) fn mapping(&self, index: usize) -> Mapping {
        if self.layout.has_values {
            return self.entry(index).mapping();
        }
        Mapping::of(self.pointer_at(self.entry_range(index).0))
    }

    #[inline]
    fn entry_range(&self, index: usize) -> (usize, usize) {
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

    /// Returns the effort of [`Self::find`].
    pub(crate) fn effort(&self) -> Effort {
        search_effort(self.count)
    }

    /// Returns the outline of these bytes, if they are a segment whose keys all have the same
    /// length.
    pub(crate) fn outline_of(bytes: &[u8]) -> Option<Outline> {
        let page = Page::parse(bytes).filter(|page| page.kind == PageKind::Meta)?;
        let (count, stride) = (usize::from(page.entries), usize::from(page.small));
        let layout = Layout::of_number(page.large)?;
        let pointer_bytes = usize::from(layout.pointer_bytes);
        let key_bytes = stride.checked_sub(pointer_bytes + usize::from(layout.tail))?;
        let first_key = HEADER_BYTES + count * OFFSET_BYTES + pointer_bytes;
        Outline::new(page.bytes, first_key, count, stride, key_bytes, layout.has_values)
    }

    /// Returns the mapping of `key`, if the segment has it.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Mapping> {
        let at = if let Some(outline) = Self::outline_of(self.bytes) {
            outline.find(self.bytes, key, outline.aim(key)?)?
        } else {
            let at = key_heads::lower_bound(0..self.count, |index| self.key(index).cmp(key));
            (at < self.count && self.key(at) == key).then_some(at)?
        };
        Some(self.mapping(at))
    }

    /// Returns the first entry whose key is at least `key`; the number of entries if there is none.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        match self.heads() {
            Some(heads) => heads.lower_bound(key, 0..self.count),
            None => key_heads::lower_bound(0..self.count, |index| self.key(index).cmp(key)),
        }
    }

    /// Like [`Self::lower_bound`], among the entries from `from` on, if the result is probably near
    /// `from`. `heads` are this segment's heads, passed in by callers that search it often.
    pub(crate) fn gallop(&self, heads: Option<KeyHeads<'_>>, key: &[u8], from: usize) -> usize {
        match heads {
            Some(heads) => heads.gallop(key, from..self.count),
            None => key_heads::gallop(from..self.count, |index| self.key(index).cmp(key)),
        }
    }

    /// Returns the keys as numbers, if all keys have the same length.
    pub(crate) fn heads(&self) -> Option<KeyHeads<'a>> {
        let around = self.format.bytes + usize::from(self.layout.tail);
        let key_bytes = self.stride.checked_sub(around)?;
        let first = self.entry_range(0).0 + self.format.bytes;
        let end = self.bytes.len().checked_sub(usize::from(self.layout.tail))?;
        KeyHeads::new(self.bytes.get(first..end)?, self.stride, key_bytes)
    }
}

/// Returns the effort of a search among `entries` entries: the comparisons of a binary search.
pub(crate) fn search_effort(entries: usize) -> Effort {
    let key_compares = entries.checked_ilog2().map_or(0, |steps| steps + 1);
    Effort { key_compares, ..Effort::default() }
}

/// Returns the number of entries with keys of `key_len` bytes that fit in a page, with values of
/// `value_len` bytes if those are inline.
pub(crate) fn entries_per_page(
    payload_bytes: u32,
    pointer_bytes: usize,
    key_len: u32,
    value_len: Option<u32>,
) -> u32 {
    let entry = entry::full_len(pointer_bytes, key_len as usize, value_len);
    ((payload_bytes as usize - HEADER_BYTES) / entry) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::entry::NewEntry;
    use crate::format::value::Value;
    use crate::medium::{PageNo, Shape};

    fn format(payload_bytes: u32) -> PointerFormat {
        PointerFormat::new(&Shape {
            payload_bytes,
            page_bytes: payload_bytes,
            pages_per_extent: 32,
            extents: 24,
            grows_to: 0,
            append_unit: 1,
            parallelism: 4,
        })
    }

    /// Returns the `i`th entry, with a pointer to a page or an inline value.
    fn entry(payload_bytes: u32, i: u32, key: Vec<u8>, value: Option<Value>) -> NewEntry {
        if let Some(value) = value {
            return NewEntry::inline(key.into(), &value);
        }
        let pointer = format(payload_bytes).pointer(PageNo(i % 700), 0, 1, 1);
        NewEntry::of_pointer(key.into(), pointer)
    }

    /// Builds a full segment of these keys. `value_of` returns the inline value; without it an
    /// entry has a pointer.
    fn segment(
        payload_bytes: u32,
        key_of: impl Fn(u32) -> Vec<u8>,
        value_of: impl Fn(u32) -> Option<Value>,
    ) -> (Vec<u8>, Vec<NewEntry>) {
        let mut builder = MetaSegmentBuilder::new(format(payload_bytes), payload_bytes);
        let mut entries = Vec::new();
        for entry in (0..).map(|i| entry(payload_bytes, i, key_of(i), value_of(i))) {
            if !builder.push(&entry.as_ref()) {
                break;
            }
            entries.push(entry);
        }
        (builder.finish(), entries)
    }

    fn even(i: u32) -> Vec<u8> {
        format!("key{i:08}").into_bytes()
    }

    fn uneven(i: u32) -> Vec<u8> {
        format!("k{i:06}{}", "x".repeat(i as usize % 60)).into_bytes()
    }

    fn synthetic(len: u32) -> Value {
        Value::Synthetic { seed: u64::from(len) << 40, len }
    }

    #[test]
    fn every_entry_is_found_also_in_a_padded_page_and_in_the_largest_there_is() {
        let values: [fn(u32) -> Option<Value>; 4] = [
            |_| None,
            |_| Some(synthetic(20)),
            |i| (i % 3 > 0).then(|| Value::from_bytes(&vec![i as u8; i as usize % 50])),
            |i| Some(if i % 2 == 0 { synthetic(i % 90) } else { Value::from_bytes(&[5; 10]) }),
        ];
        for payload in [1056, 8224, page::MAX_PAGE_BYTES] {
            for (key_of, value_of) in [even as fn(u32) -> Vec<u8>, uneven]
                .into_iter()
                .flat_map(|key| values.map(|v| (key, v)))
            {
                let (bytes, entries) = segment(payload, key_of, value_of);
                assert!(bytes.len() <= payload as usize && entries.len() > 10);
                let mut padded = bytes.clone();
                padded.resize(payload as usize + 100, 0);
                for bytes in [&bytes, &padded] {
                    assert!(MetaSegment::is_sound(
                        bytes,
                        format(payload),
                        &Inlining::new(u32::MAX, payload)
                    ));
                    let segment = MetaSegment::new(bytes, format(payload)).expect("a segment");
                    for (i, entry) in (0..).zip(&entries) {
                        assert_eq!(segment.entry(i), entry.as_ref());
                        let found = segment.find(entry.as_ref().key);
                        assert_eq!(found, Some(entry.as_ref().mapping()));
                    }
                    assert_eq!(segment.find(b"zzz"), None);
                }
            }
        }
    }

    #[test]
    fn synthetic_values_take_the_room_of_full_ones() {
        let full = |_| Some(Value::Bytes(synthetic(20).to_bytes()));
        let (_, stored_in_full) = segment(1056, even, full);
        let (bytes, entries) = segment(1056, even, |_| Some(synthetic(20)));
        assert_eq!(entries.len(), stored_in_full.len());
        assert_eq!(entries.len() as u32, entries_per_page(1056, format(1056).bytes, 11, Some(20)));
        let layout = Layout { pointer_bytes: 4, has_values: true, tail: 12 };
        assert_eq!(Page::parse(&bytes).expect("a page").large, layout.to_number());
    }

    #[test]
    fn entries_that_no_merge_could_place_are_noticed() {
        let is_sound = |bytes: &[u8], up_to| {
            MetaSegment::is_sound(bytes, format(1056), &Inlining::new(up_to, 1056))
        };
        let of_one = |value: Option<Value>| {
            let mut builder = MetaSegmentBuilder::new(format(1056), 1056);
            assert!(builder.push(&entry(1056, 0, even(0), value).as_ref()));
            builder.finish()
        };
        let mut long = of_one(Some(synthetic(200)));
        assert!(is_sound(&long, u32::MAX) && is_sound(&long, 200));
        assert!(!is_sound(&long, 0), "no value stands in this store's segments");
        let at = long.len() - 4; // the length of the value
        long[at..at + 2].copy_from_slice(&60_000_u16.to_le_bytes());
        assert!(!is_sound(&long, u32::MAX), "longer than a page");
        let mut inline = of_one(None);
        let at = inline.len() - 4 - even(0).len();
        inline[at..at + 4].copy_from_slice(&[0xFE, 0xFF, 0xFF, 0xFF]);
        assert!(!is_sound(&inline, 1), "a value beside the key, and there is none");
        assert!(is_sound(&inline, 0), "a place");
    }

    #[test]
    fn offsets_that_lead_elsewhere_are_noticed() {
        let (bytes, _) = segment(1056, uneven, |_| None);
        let with = |at: usize, value: u16| {
            let mut bytes = bytes.clone();
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
            MetaSegment::is_sound(&bytes, format(1056), &Inlining::new(0, 1056))
        };
        assert!(!with(24, 1000), "more entries than there is room for");
        assert!(!with(26, 20), "a stride, though entries differ in length");
        assert!(!with(28, 7), "pointers of another length");
        assert!(!with(HEADER_BYTES, 0) && !with(HEADER_BYTES + 2, 60_000));
        assert!(!MetaSegment::is_sound(&bytes[..40], format(1056), &Inlining::new(0, 1056)));
    }
}
