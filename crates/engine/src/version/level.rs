//! A level: one sorted run of meta segments, and its level list.
//!
//! The list has the first key and the location of each segment. Levels are immutable; a change
//! makes a new level that shares all untouched chunks of the list with the old one, so that old
//! versions cost only the chunks that differ. Cost of a change: the touched chunks, and one pointer
//! for each other chunk.

use std::ops::{AddAssign, Range};
use std::rc::Rc;

use super::key_index::KeyIndex;
use super::location::Location;
use super::pool::{Chunked, Descriptor, Pool};
use super::table::{IndexedPage, TableIndex};
use crate::effort::Effort;
use crate::format::meta_segment::MetaSegment;
use crate::format::outline::Outline;
use crate::medium::PageNo;
use crate::read::filter::Filter;

/// Maximum number of segments in a chunk of the list.
const CHUNK_SEGMENTS: usize = 256;

/// An entry of the level list: a meta segment, a group or a columnar table.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub location: Location,
    /// The number of entries, of all segments of a group or table together.
    pub entries: u16,
    /// The outline that guides a search within the segment, if it is in memory and has one.
    pub outline: Option<Outline>,
    descriptor: Descriptor,
}

impl Segment {
    pub(crate) fn new(location: Location, entries: u16, pool: &Rc<Pool>) -> Self {
        let image = location.image();
        let outline = image.and_then(|image| MetaSegment::outline_of(image.bytes()));
        let descriptor = pool.enter(image.is_some());
        Self { location, entries, outline, descriptor }
    }
}

/// A segment with its first key.
#[derive(Clone, Debug)]
pub(crate) struct NamedSegment {
    pub first_key: Box<[u8]>,
    pub segment: Segment,
    /// The filter of its keys, if the segment is not pinned and the design has filters.
    pub filter: Option<Filter>,
}

/// Consecutive segments of a level, shared by versions: a part of its list, or a table.
pub(crate) struct Chunk {
    index: KeyIndex,
    segments: Vec<Segment>,
    filters: Filters,
    /// The last key, if the chunk is a table.
    last_key: Option<Box<[u8]>>,
    totals: Totals,
    _counted: Chunked,
}

/// The filters of a chunk. Stored apart from the segments, which every Get reads.
enum Filters {
    None,
    /// One per segment.
    Each(Vec<Option<Filter>>),
    /// One for all segments.
    Whole(Filter),
}

impl Filters {
    fn of(&self, place: usize) -> Option<&Filter> {
        match self {
            Self::None => None,
            Self::Each(filters) => filters.get(place)?.as_ref(),
            Self::Whole(filter) => Some(filter),
        }
    }

    fn bytes(&self) -> u64 {
        let len = |filter: &Filter| filter.bytes().len() as u64;
        match self {
            Self::None => 0,
            Self::Each(filters) => filters.iter().flatten().map(len).sum(),
            Self::Whole(filter) => len(filter),
        }
    }
}

impl Chunk {
    fn new(index: KeyIndex, segments: Vec<Segment>, filters: Filters) -> Self {
        let mut totals = Totals {
            segments: segments.len() as u32,
            key_bytes: index.key_bytes(),
            filter_bytes: filters.bytes(),
            ..Totals::default()
        };
        for segment in &segments {
            totals.entries += u64::from(segment.entries);
            totals.pinned += u32::from(segment.location.image().is_some());
            if let Location::Group(group) = segment.location {
                totals.groups += 1;
                totals.grouped += u32::from(group.segments);
                totals.largest_group = totals.largest_group.max(1 + u32::from(group.segments));
            }
            if let Location::Columns(table) = segment.location {
                let pages = table.pages.all();
                totals.tables += 1;
                totals.table_pages += pages;
                totals.largest_group = totals.largest_group.max(pages);
            }
        }
        let first = segments.first().expect("a chunk has segments");
        let counted = first.descriptor.count_chunk(segments.len());
        Self { index, segments, filters, last_key: None, totals, _counted: counted }
    }

    /// Builds the chunk of a table: its segments, which are at `pages`, and its filter, if it has
    /// one.
    pub(crate) fn of_table(
        index: &TableIndex,
        last_key: &[u8],
        pages: impl Iterator<Item = PageNo>,
        prefix_bytes: usize,
        pool: &Rc<Pool>,
    ) -> Self {
        let keys = KeyIndex::new(index.pages.iter().map(|page| &page.first_key[..]), prefix_bytes);
        let segment = |(page, indexed): (PageNo, &IndexedPage)| {
            Segment::new(Location::Stored(page), indexed.entries, pool)
        };
        let segments = pages.zip(&index.pages).map(segment).collect();
        let filters = index.filter.clone().map_or(Filters::None, Filters::Whole);
        Self { last_key: Some(last_key.into()), ..Self::new(keys, segments, filters) }
    }

    /// Returns the number of segments.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns the first key of the segment at `place`.
    pub(crate) fn first_key(&self, place: usize) -> &[u8] {
        self.index.key(place)
    }

    /// Returns the number of entries of the segment at `place`.
    pub(crate) fn entries(&self, place: usize) -> u16 {
        self.segments[place].entries
    }
}

/// A sorted run of segments.
pub(crate) struct Level {
    chunks: Vec<Rc<Chunk>>,
    /// The first keys of the chunks.
    heads: KeyIndex,
    /// The index of the first segment of each chunk.
    starts: Vec<u32>,
    prefix_bytes: usize,
    /// Whether the chunks are tables.
    is_of_tables: bool,
    totals: Totals,
}

/// The totals of a level list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Entries of the list: segments, groups and columnar tables.
    pub segments: u32,
    /// Groups among them.
    pub groups: u32,
    /// Segments in groups.
    pub grouped: u32,
    /// Columnar tables among the entries.
    pub tables: u32,
    /// Pages of columnar tables.
    pub table_pages: u32,
    /// Pages of the largest group, including its index, or of the largest columnar table.
    pub largest_group: u32,
    pub pinned: u32,
    pub entries: u64,
    /// Total length of the first keys of all segments, in bytes.
    pub key_bytes: u64,
    /// Total length of all filters, in bytes.
    pub filter_bytes: u64,
}

impl Totals {
    /// Returns the number of pages with entries, in memory or on the medium; all pages of columnar
    /// tables count.
    pub(crate) fn pages(&self) -> u32 {
        self.segments - self.groups + self.grouped - self.tables + self.table_pages
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, more: Self) {
        self.segments += more.segments;
        self.groups += more.groups;
        self.grouped += more.grouped;
        self.tables += more.tables;
        self.table_pages += more.table_pages;
        self.largest_group = self.largest_group.max(more.largest_group);
        self.pinned += more.pinned;
        self.entries += more.entries;
        self.key_bytes += more.key_bytes;
        self.filter_bytes += more.filter_bytes;
    }
}

impl Level {
    pub(crate) fn empty(prefix_bytes: usize) -> Self {
        Self::from_chunks(Vec::new(), prefix_bytes)
    }

    /// Builds a level of these chunks, which must be in key order.
    pub(crate) fn from_chunks(chunks: Vec<Rc<Chunk>>, prefix_bytes: usize) -> Self {
        let mut starts = Vec::with_capacity(chunks.len());
        let mut totals = Totals::default();
        for chunk in &chunks {
            starts.push(totals.segments);
            totals += chunk.totals;
        }
        let heads = KeyIndex::new(chunks.iter().map(|chunk| chunk.index.key(0)), prefix_bytes);
        let is_of_tables = chunks.first().is_some_and(|chunk| chunk.last_key.is_some());
        Self { chunks, heads, starts, prefix_bytes, is_of_tables, totals }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the number of entries of the level's list.
    pub(crate) fn len(&self) -> usize {
        self.totals.segments as usize
    }

    /// Whether `range` of the list has more than `most` pages with entries. Cost: reads at most
    /// `most` entries of the list.
    pub(crate) fn has_more_pages(&self, range: &Range<usize>, most: usize) -> bool {
        let end = range.end.min(range.start.saturating_add(most));
        end < range.end || self.pages_in(range) > most
    }

    /// Returns the number of pages with entries in `range` of the list. Cost: reads each entry of
    /// the list if the level has groups or columnar tables.
    pub(crate) fn pages_in(&self, range: &Range<usize>) -> usize {
        if self.totals.groups + self.totals.tables == 0 {
            return range.len();
        }
        let pages = |index| self.segment(index).location.pages_with_entries() as usize;
        range.clone().map(pages).sum()
    }

    /// Returns the segment at `index` in key order.
    pub(crate) fn segment(&self, index: usize) -> &Segment {
        let (chunk, place) = self.place(index);
        &self.chunks[chunk].segments[place]
    }

    /// Returns the filter of the segment at `index`, if it has one.
    pub(crate) fn filter(&self, index: usize) -> Option<&Filter> {
        if self.totals.filter_bytes == 0 {
            return None;
        }
        let (chunk, place) = self.place(index);
        self.chunks[chunk].filters.of(place)
    }

    /// Whether the segment at `index` is of a table whose keys are all less than `key`.
    pub(crate) fn ends_before(&self, index: usize, key: &[u8]) -> bool {
        let ends =
            |chunk: usize| self.chunks[chunk].last_key.as_ref().is_some_and(|last| **last < *key);
        self.is_of_tables && ends(self.place(index).0)
    }

    /// Returns the first key of the segment at `index`.
    pub(crate) fn first_key(&self, index: usize) -> &[u8] {
        let (chunk, place) = self.place(index);
        self.chunks[chunk].index.key(place)
    }

    fn place(&self, index: usize) -> (usize, usize) {
        if self.chunks.len() == 1 {
            return (0, index);
        }
        let chunk = self.starts.partition_point(|start| *start as usize <= index) - 1;
        (chunk, index - self.starts[chunk] as usize)
    }

    /// Like [`Self::place`]. Requires: the segment is in `chunk` (likely) or in a later chunk.
    fn place_from(&self, chunk: usize, index: usize) -> (usize, usize) {
        match self.starts.get(chunk + 1) {
            Some(next) if *next as usize <= index => self.place(index),
            _ => (chunk, index - self.starts[chunk] as usize),
        }
    }

    /// Returns the one segment that can hold `key`: the last whose first key is at most `key`.
    ///
    /// `among`, if given, must contain it or the segment before it (range pointers).
    pub(crate) fn covering(
        &self,
        key: &[u8],
        among: Option<Range<usize>>,
        effort: &mut Effort,
    ) -> Option<usize> {
        let among = among.unwrap_or(0..self.len());
        self.covering_segment(key, among, effort).map(|(at, _)| at)
    }

    /// Like [`Self::covering`]; also returns the segment.
    #[expect(clippy::inline_always, reason = "each Get does it in every level")]
    #[inline(always)]
    pub(crate) fn covering_segment(
        &self,
        key: &[u8],
        among: Range<usize>,
        effort: &mut Effort,
    ) -> Option<(usize, &Segment)> {
        if among.is_empty() {
            return None;
        }
        let (first, first_place) = self.place(among.start);
        let (last, last_place) = self.place_from(first, among.end - 1);
        let chunk = match last - first {
            0 => first,
            _ => self.covering_chunk(key, first..last + 1, effort),
        };
        let from = if chunk == first { first_place } else { 0 };
        let to = if chunk == last { last_place + 1 } else { self.chunks[chunk].segments.len() };
        let above = self.chunks[chunk].index.upper_bound(key, from..to, effort);
        let flat = self.starts[chunk] as usize + above;
        if flat <= among.start {
            return None;
        }
        // If the key is less than the chunk's first key, the last segment of the previous chunk
        // covers it.
        let segment = match above {
            0 => self.segment(flat - 1),
            _ => &self.chunks[chunk].segments[above - 1],
        };
        Some((flat - 1, segment))
    }

    /// Returns the last chunk whose first key is at most `key`; the first of `among` if there is
    /// none. A separate function because a level nearly always has a single chunk.
    #[inline(never)]
    fn covering_chunk(&self, key: &[u8], among: Range<usize>, effort: &mut Effort) -> usize {
        self.heads.upper_bound(key, among.start + 1..among.end, effort) - 1
    }

    /// Returns the segments whose keys may be in `from..to`; `None` means no upper bound.
    pub(crate) fn overlapping(&self, from: &[u8], to: Option<&[u8]>) -> Range<usize> {
        let effort = &mut Effort::default();
        let start = self.covering(from, None, effort).unwrap_or(0);
        let end = match to {
            None => self.len(),
            Some(to) => self.first_at_or_after(to),
        };
        start..end.max(start)
    }

    /// Returns the first segment whose first key is at least `key`.
    pub(crate) fn first_at_or_after(&self, key: &[u8]) -> usize {
        match self.covering(key, None, &mut Effort::default()) {
            None => 0,
            Some(at) if self.first_key(at) == key => at,
            Some(at) => at + 1,
        }
    }

    /// Returns this level with the segments in `range` replaced by `new`. Requires: the result is
    /// in key order.
    pub(crate) fn splice(&self, range: Range<usize>, new: Vec<NamedSegment>) -> Self {
        // Rebuilds the chunks that hold the range; an insertion at the very end belongs to the last
        // chunk.
        let touched = self.touched_chunks(&range);
        let base = self.starts.get(touched.start).map_or(0, |start| *start as usize);
        let mut segments = self.named(base..range.start);
        segments.extend(new);
        let end = match self.starts.get(touched.end) {
            Some(start) => *start as usize,
            None => self.len(),
        };
        segments.extend(self.named(range.end..end));
        let mut chunks = self.chunks[..touched.start].to_vec();
        chunks.extend(into_chunks(&segments, self.prefix_bytes));
        chunks.extend_from_slice(&self.chunks[touched.end..]);
        Self::from_chunks(chunks, self.prefix_bytes)
    }

    /// Returns the number of segments of each chunk.
    pub(crate) fn chunk_lens(&self) -> Vec<u32> {
        self.chunks.iter().map(|chunk| chunk.len() as u32).collect()
    }

    /// Returns the same level with its list cut into chunks of these lengths; `None` if they do not
    /// add up to the list's length.
    pub(crate) fn cut_into(&self, lens: &[u32]) -> Option<Self> {
        let all: u64 = lens.iter().map(|len| u64::from(*len)).sum();
        (all == self.len() as u64 && lens.iter().all(|len| *len > 0)).then_some(())?;
        let mut start = 0;
        let chunks = lens.iter().map(|len| {
            let part = self.named(start..start + *len as usize);
            start += part.len();
            into_chunk(&part, self.prefix_bytes)
        });
        Some(Self::from_chunks(chunks.collect(), self.prefix_bytes))
    }

    fn touched_chunks(&self, range: &Range<usize>) -> Range<usize> {
        if self.chunks.is_empty() {
            return 0..0;
        }
        let last = self.len() - 1;
        let start = self.place(range.start.min(last)).0;
        let end = self.place(range.end.saturating_sub(1).max(range.start).min(last)).0;
        start..end + 1
    }

    /// Returns copies of the segments in `range`, with their keys and filters.
    pub(crate) fn named(&self, range: Range<usize>) -> Vec<NamedSegment> {
        range
            .map(|index| NamedSegment {
                first_key: self.first_key(index).into(),
                segment: self.segment(index).clone(),
                filter: self.filter(index).cloned(),
            })
            .collect()
    }

    /// Returns all segments in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Segment)> {
        self.chunks.iter().flat_map(|chunk| {
            chunk.segments.iter().enumerate().map(|(i, segment)| (chunk.index.key(i), segment))
        })
    }
}

fn into_chunks(segments: &[NamedSegment], prefix_bytes: usize) -> Vec<Rc<Chunk>> {
    if segments.is_empty() {
        return Vec::new();
    }
    // Shares are even, so that repeated splices do not leave a trail of tiny chunks.
    let share = segments.len().div_ceil(segments.len().div_ceil(CHUNK_SEGMENTS));
    segments.chunks(share).map(|part| into_chunk(part, prefix_bytes)).collect()
}

fn into_chunk(part: &[NamedSegment], prefix_bytes: usize) -> Rc<Chunk> {
    let index = KeyIndex::new(part.iter().map(|named| &named.first_key[..]), prefix_bytes);
    let segments = part.iter().map(|named| named.segment.clone()).collect();
    let has_filters = part.iter().any(|named| named.filter.is_some());
    let filters = || part.iter().map(|named| named.filter.clone()).collect();
    let filters = if has_filters { Filters::Each(filters()) } else { Filters::None };
    Rc::new(Chunk::new(index, segments, filters))
}
