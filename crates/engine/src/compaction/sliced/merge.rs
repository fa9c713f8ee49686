//! Merges two sorted runs of entries; the newer entry of a key wins. Pure: pages in, pages out.

use std::ops::Range;
use std::slice;

use runtime::PageImage;

use crate::format::entry::{IndexEntry, NewEntry};
use crate::format::key_heads::KeyHeads;
use crate::format::meta_segment::{MetaSegment, MetaSegmentBuilder};
use crate::format::pointer::{Pointer, PointerFormat};

/// A sorted sequence of entries, read one at a time.
pub(crate) trait Run {
    /// Returns the current entry; `None` at the end.
    fn peek(&self) -> Option<IndexEntry<'_>>;
    /// Moves to the next entry.
    fn advance(&mut self);
}

/// The entries of consecutive meta segments.
pub(crate) struct SegmentRun<'a> {
    /// The segments after the current one.
    pages: slice::Iter<'a, PageImage>,
    format: PointerFormat,
    /// The current segment; `None` at the end. `entry` is the index of the current entry in it.
    segment: Option<MetaSegment<'a>>,
    heads: Option<KeyHeads<'a>>,
    entry: usize,
    /// The run ends before this key.
    until: Option<Box<[u8]>>,
}

impl<'a> SegmentRun<'a> {
    /// Returns a run of the entries of `pages`, each of which is a meta segment.
    pub(crate) fn new(pages: &'a [PageImage], format: PointerFormat) -> Self {
        Self::until(pages, format, None)
    }

    /// Returns a run of the entries of `pages` with keys less than `until`.
    pub(crate) fn until(
        pages: &'a [PageImage],
        format: PointerFormat,
        until: Option<Box<[u8]>>,
    ) -> Self {
        let pages = pages.iter();
        let mut run = Self { pages, format, segment: None, heads: None, entry: 0, until };
        run.settle();
        run
    }

    /// Moves to the next segment at the end of the current one.
    fn settle(&mut self) {
        while self.segment.is_none_or(|segment| self.entry == segment.len()) {
            let page = self.pages.next();
            let segment = |page: &'a PageImage| MetaSegment::new(page.bytes(), self.format);
            self.segment = page.map(|page| segment(page).expect("checked when it was read"));
            self.heads = self.segment.and_then(|segment| segment.heads());
            self.entry = 0;
            if page.is_none() {
                return;
            }
        }
    }

    /// Returns the current entry if its key is `key`. Ignores `until`.
    fn entry_of(&self, key: &[u8]) -> Option<IndexEntry<'a>> {
        let segment = self.segment?;
        (segment.key(self.entry) == key).then(|| segment.entry(self.entry))
    }

    /// Takes the entries of the current segment that are less than `key`, or all of its remaining
    /// entries without `key`. Returns `None` if there are none. Ignores `until`.
    fn take_before(&mut self, key: Option<&[u8]>) -> Option<(MetaSegment<'a>, Range<usize>)> {
        let segment = self.segment?;
        let end = key.map_or(segment.len(), |key| segment.gallop(self.heads, key, self.entry));
        let stretch = std::mem::replace(&mut self.entry, end)..end;
        self.settle();
        (!stretch.is_empty()).then_some((segment, stretch))
    }
}

impl Run for SegmentRun<'_> {
    fn peek(&self) -> Option<IndexEntry<'_>> {
        let entry = self.segment?.entry(self.entry);
        let is_past = self.until.as_ref().is_some_and(|until| entry.key >= &until[..]);
        (!is_past).then_some(entry)
    }

    fn advance(&mut self) {
        self.entry += 1;
        self.settle();
    }
}

/// A run of the entries of a flush, from a list.
pub(crate) struct ListRun {
    entries: Vec<NewEntry>,
    next: usize,
}

impl ListRun {
    pub(crate) fn new(entries: Vec<NewEntry>) -> Self {
        Self { entries, next: 0 }
    }
}

impl Run for ListRun {
    fn peek(&self) -> Option<IndexEntry<'_>> {
        self.entries.get(self.next).map(NewEntry::as_ref)
    }

    fn advance(&mut self) {
        self.next += 1;
    }
}

/// A segment built by a merge, unsealed.
pub(crate) struct BuiltSegment {
    pub first_key: Box<[u8]>,
    pub bytes: Vec<u8>,
    pub entries: u16,
}

/// Returns the rest of the segments, without the entries less than `from`.
pub(crate) fn rest_from(
    pages: &[PageImage],
    from: &[u8],
    format: PointerFormat,
    payload_bytes: u32,
) -> Vec<BuiltSegment> {
    let mut out = Output::new(format, payload_bytes, false);
    for page in pages {
        let segment = MetaSegment::new(page.bytes(), format).expect("checked when it was read");
        out.copy(&segment, segment.lower_bound(from)..segment.len());
    }
    out.finish().segments
}

/// The result of a merge.
#[derive(Default)]
pub(crate) struct Merged {
    pub segments: Vec<BuiltSegment>,
    /// Pointers of the lower run whose entries were replaced by newer ones.
    pub dead: Vec<Pointer>,
    /// The number of entries of the lower run that were replaced, except tombstones.
    pub duplicates: usize,
    /// The number of input entries.
    pub entries: usize,
}

/// Merges the newer run `upper` with `lower`, whose segments take part completely. At the last
/// level tombstones are dropped. Cost: a search and a copy for each entry of the upper run; the
/// entries of the lower run between two of them are copied in one piece.
pub(crate) fn merge(
    mut upper: impl Run,
    mut lower: SegmentRun<'_>,
    format: PointerFormat,
    payload_bytes: u32,
    drops_tombstones: bool,
) -> Merged {
    debug_assert!(lower.until.is_none(), "the lower run is merged to its end");
    let mut out = Output::new(format, payload_bytes, drops_tombstones);
    while let Some(newer) = upper.peek() {
        out.copy_before(&mut lower, Some(newer.key));
        if let Some(replaced) = lower.entry_of(newer.key) {
            out.drop_replaced(replaced);
            lower.advance();
        }
        out.push(&newer);
        upper.advance();
    }
    out.copy_before(&mut lower, None);
    out.finish()
}

struct Output {
    builder: MetaSegmentBuilder,
    first_key: Box<[u8]>,
    drops_tombstones: bool,
    merged: Merged,
}

impl Output {
    fn new(format: PointerFormat, payload_bytes: u32, drops_tombstones: bool) -> Self {
        Self {
            builder: MetaSegmentBuilder::new(format, payload_bytes),
            first_key: Box::default(),
            drops_tombstones,
            merged: Merged::default(),
        }
    }

    fn push(&mut self, entry: &IndexEntry<'_>) {
        self.merged.entries += 1;
        if self.drops_tombstones && entry.is_tombstone() {
            return;
        }
        if !self.builder.push(entry) {
            self.cut();
            assert!(self.builder.push(entry), "an entry does not fit in an empty segment");
        }
        if self.builder.len() == 1 {
            self.first_key = entry.key.into();
        }
    }

    /// Adds the entries of `run` that are less than `key`, or all of its entries without `key`.
    fn copy_before(&mut self, run: &mut SegmentRun<'_>, key: Option<&[u8]>) {
        while let Some((segment, entries)) = run.take_before(key) {
            let goes_on = entries.end == segment.len();
            self.copy(&segment, entries);
            if !goes_on {
                break; // the next entry of the segment is not less than the key
            }
        }
    }

    /// Adds the entries `range` of a segment, without tombstones if those are dropped.
    fn copy(&mut self, segment: &MetaSegment<'_>, mut range: Range<usize>) {
        while self.drops_tombstones && !range.is_empty() {
            let is_tombstone = |index: &usize| segment.entry(*index).is_tombstone();
            let kept = range.start..range.clone().find(is_tombstone).unwrap_or(range.end);
            range.start = kept.end;
            if !range.is_empty() {
                self.merged.entries += 1;
                range.start += 1;
            }
            self.copy_all(segment, kept);
        }
        self.copy_all(segment, range);
    }

    /// Adds the entries `range` of a segment, including tombstones.
    fn copy_all(&mut self, segment: &MetaSegment<'_>, mut range: Range<usize>) {
        self.merged.entries += range.len();
        while !range.is_empty() {
            let is_first = self.builder.len() == 0;
            let copied = self.builder.extend(segment, range.clone());
            if copied == 0 {
                assert!(!is_first, "an entry does not fit in an empty segment");
                self.cut();
                continue;
            }
            if is_first {
                self.first_key = segment.key(range.start).into();
            }
            range.start += copied;
        }
    }

    /// Drops an entry of the lower run. Its object is dead; an inline value is dropped with its
    /// entry.
    fn drop_replaced(&mut self, entry: IndexEntry<'_>) {
        self.merged.entries += 1;
        self.merged.duplicates += usize::from(!entry.is_tombstone());
        if entry.pointer.is_place() {
            self.merged.dead.push(entry.pointer);
        }
    }

    fn cut(&mut self) {
        let entries = self.builder.len() as u16;
        if entries > 0 {
            let first_key = std::mem::take(&mut self.first_key);
            let bytes = self.builder.finish();
            let before = self.merged.segments.last().map(|built| &built.first_key);
            assert!(before.is_none_or(|key| *key < first_key), "a merge got keys out of order");
            self.merged.segments.push(BuiltSegment { first_key, bytes, entries });
        }
    }

    fn finish(mut self) -> Merged {
        self.cut();
        self.merged
    }
}
