//! Merging two sorted runs of entries: the newer one wins. Pure: pages in, pages out.

use std::cmp::Ordering;
use std::ops::Range;

use runtime::PageImage;

use crate::format::meta_segment::{MetaSegment, MetaSegmentBuilder};
use crate::format::pointer::{Pointer, PointerFormat};

/// A sorted sequence of entries, read one at a time.
pub(crate) trait Run {
    /// The entry it stands at.
    fn peek(&self) -> Option<(&[u8], Pointer)>;
    /// Goes to the next entry.
    fn advance(&mut self);
}

/// Entries of consecutive meta segments.
pub(crate) struct SegmentRun {
    pages: Vec<PageImage>,
    format: PointerFormat,
    page: usize,
    entry: usize,
    /// Where the key of the current entry lies in its page, and its pointer.
    current: Option<(Range<usize>, Pointer)>,
    /// The run ends before this key.
    until: Option<Box<[u8]>>,
}

impl SegmentRun {
    /// The entries of `pages`, each of which is a meta segment.
    pub(crate) fn new(pages: Vec<PageImage>, format: PointerFormat) -> Self {
        Self::until(pages, format, None)
    }

    /// Those entries of `pages` that come before the key `until`.
    pub(crate) fn until(
        pages: Vec<PageImage>,
        format: PointerFormat,
        until: Option<Box<[u8]>>,
    ) -> Self {
        let mut run = Self { pages, format, page: 0, entry: 0, current: None, until };
        run.settle();
        run
    }

    /// Looks up the entry it stands at, going on to the next page at the end of one.
    fn settle(&mut self) {
        self.current = None;
        while let Some(page) = self.pages.get(self.page) {
            let segment = MetaSegment::new(page.bytes(), self.format);
            let segment = segment.expect("checked when it was read");
            if self.entry < segment.len() {
                self.current = Some((segment.key_range(self.entry), segment.pointer(self.entry)));
                return;
            }
            self.page += 1;
            self.entry = 0;
        }
    }
}

impl Run for SegmentRun {
    fn peek(&self) -> Option<(&[u8], Pointer)> {
        let (key, pointer) = self.current.as_ref()?;
        let key = &self.pages[self.page].bytes()[key.clone()];
        let is_past = self.until.as_ref().is_some_and(|until| key >= &until[..]);
        (!is_past).then_some((key, *pointer))
    }

    fn advance(&mut self) {
        self.entry += 1;
        self.settle();
    }
}

/// Entries from a list, for what a flush brings.
pub(crate) struct ListRun {
    entries: Vec<(Box<[u8]>, Pointer)>,
    next: usize,
}

impl ListRun {
    pub(crate) fn new(entries: Vec<(Box<[u8]>, Pointer)>) -> Self {
        Self { entries, next: 0 }
    }
}

impl Run for ListRun {
    fn peek(&self) -> Option<(&[u8], Pointer)> {
        self.entries.get(self.next).map(|(key, pointer)| (&key[..], *pointer))
    }

    fn advance(&mut self) {
        self.next += 1;
    }
}

/// A segment that a merge made, unsealed.
pub(crate) struct BuiltSegment {
    pub first_key: Box<[u8]>,
    pub bytes: Vec<u8>,
    pub entries: u16,
}

/// What remains of a segment when its entries before the key `from` are gone.
pub(crate) fn rest_from(
    page: &PageImage,
    from: &[u8],
    format: PointerFormat,
    payload_bytes: u32,
) -> Option<BuiltSegment> {
    let segment = MetaSegment::new(page.bytes(), format).expect("checked when it was read");
    let mut out = Output::new(format, payload_bytes, false);
    for index in (0..segment.len()).filter(|index| segment.key(*index) >= from) {
        out.push(segment.key(index), segment.pointer(index));
    }
    out.finish().segments.pop()
}

/// What came of a merge.
#[derive(Default)]
pub(crate) struct Merged {
    pub segments: Vec<BuiltSegment>,
    /// Pointers of the lower run that a newer entry made obsolete.
    pub dead: Vec<Pointer>,
    /// Entries that went in.
    pub entries: usize,
}

/// Merges `upper`, the newer run, with `lower`. At the last level tombstones have done their work
/// and are dropped. Cost: one comparison and one copy per entry.
pub(crate) fn merge(
    mut upper: impl Run,
    mut lower: impl Run,
    format: PointerFormat,
    payload_bytes: u32,
    drops_tombstones: bool,
) -> Merged {
    let mut out = Output::new(format, payload_bytes, drops_tombstones);
    loop {
        match (upper.peek(), lower.peek()) {
            (None, None) => return out.finish(),
            (Some((key, pointer)), None) => {
                out.push(key, pointer);
                upper.advance();
            }
            (None, Some((key, pointer))) => {
                out.push(key, pointer);
                lower.advance();
            }
            (Some((newer, pointer)), Some((older, old_pointer))) => match newer.cmp(older) {
                Ordering::Less => {
                    out.push(newer, pointer);
                    upper.advance();
                }
                Ordering::Greater => {
                    out.push(older, old_pointer);
                    lower.advance();
                }
                Ordering::Equal => {
                    out.push(newer, pointer);
                    out.bury(old_pointer);
                    upper.advance();
                    lower.advance();
                }
            },
        }
    }
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

    fn push(&mut self, key: &[u8], pointer: Pointer) {
        self.merged.entries += 1;
        if self.drops_tombstones && pointer.is_tombstone() {
            return;
        }
        if !self.builder.fits(key.len()) {
            self.cut();
        }
        if self.builder.len() == 0 {
            self.first_key = key.into();
        }
        self.builder.push(key, pointer);
    }

    /// Drops an entry of the lower run.
    fn bury(&mut self, pointer: Pointer) {
        self.merged.entries += 1;
        if !pointer.is_tombstone() {
            self.merged.dead.push(pointer);
        }
    }

    fn cut(&mut self) {
        let entries = self.builder.len() as u16;
        if entries > 0 {
            let first_key = std::mem::take(&mut self.first_key);
            let bytes = self.builder.finish();
            self.merged.segments.push(BuiltSegment { first_key, bytes, entries });
        }
    }

    fn finish(mut self) -> Merged {
        self.cut();
        self.merged
    }
}
