//! A level: one sorted run of meta segments, and its level list.
//!
//! The list says for each segment which key it begins with and where it is. Levels are immutable;
//! a change makes a new level that shares every chunk of the list it did not touch, so that old
//! versions cost only what differs. Cost of a change: the chunks touched, and one pointer for each
//! other chunk.

use std::ops::{AddAssign, Range};
use std::rc::Rc;

use pages::effort::Effort;
use pages::medium::PageNo;

use crate::format::meta_segment::MetaSegment;
use crate::format::outline::Outline;
use crate::lsm::filter::Filter;
use crate::lsm::key_index::KeyIndex;
use crate::lsm::location::Location;
use crate::lsm::pool::{Chunked, Descriptor, Pool};
use crate::tables::table::{IndexedPage, TableIndex};

/// Segments in a chunk of the list, at most.
const CHUNK_SEGMENTS: usize = 256;

/// One meta segment as the level list knows it, or a group of them.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub location: Location,
    /// Entries, of all segments of a group together.
    pub entries: u16,
    /// Where to look in it, if it is in memory and has an outline.
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

/// A segment with the key it begins with.
#[derive(Clone, Debug)]
pub(crate) struct NamedSegment {
    pub first_key: Box<[u8]>,
    pub segment: Segment,
    /// What keys it may have, if it is not pinned and the design has filters.
    pub filter: Option<Filter>,
}

/// Consecutive segments of a level, which versions share: a part of its list, or a table.
pub(crate) struct Chunk {
    index: KeyIndex,
    segments: Vec<Segment>,
    filters: Filters,
    /// Of a table, its last key.
    last_key: Option<Box<[u8]>>,
    totals: Totals,
    _counted: Chunked,
}

/// What tells which keys the segments of a chunk may have. Apart from the segments, which every Get looks at.
enum Filters {
    None,
    /// By segment.
    Each(Vec<Option<Filter>>),
    /// One for all of them.
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

    /// The segments of a table, which lie at `pages`, and its filter if it has one.
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

    /// Segments in it.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// The key the segment at `place` begins with.
    pub(crate) fn first_key(&self, place: usize) -> &[u8] {
        self.index.key(place)
    }

    /// Entries of the segment at `place`.
    pub(crate) fn entries(&self, place: usize) -> u16 {
        self.segments[place].entries
    }
}

/// A sorted run of segments.
pub(crate) struct Level {
    chunks: Vec<Rc<Chunk>>,
    /// First keys of the chunks.
    heads: KeyIndex,
    /// Number of the first segment of each chunk.
    starts: Vec<u32>,
    prefix_bytes: usize,
    /// Whether its chunks are tables.
    is_of_tables: bool,
    totals: Totals,
}

/// What a level list adds up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Entries of the list: segments, groups, and tables in columns.
    pub segments: u32,
    /// Those that are groups.
    pub groups: u32,
    /// Segments in them.
    pub grouped: u32,
    /// Those that are tables in columns.
    pub tables: u32,
    /// Pages of those.
    pub table_pages: u32,
    /// Pages of the largest group, its index among them, or the largest table in columns.
    pub largest_group: u32,
    pub pinned: u32,
    pub entries: u64,
    /// Length of the first keys of all segments.
    pub key_bytes: u64,
    /// Length of all filters.
    pub filter_bytes: u64,
}

impl Totals {
    /// Pages with entries, in memory or on the medium; of tables in columns all.
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

    /// The level of these chunks, which are in key order.
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

    /// Entries of its list.
    pub(crate) fn len(&self) -> usize {
        self.totals.segments as usize
    }

    /// Whether there are more than `most` pages with entries in `range` of its list. Cost: a look at no more
    /// than so many.
    pub(crate) fn has_more_pages(&self, range: &Range<usize>, most: usize) -> bool {
        let end = range.end.min(range.start.saturating_add(most));
        end < range.end || self.pages_in(range) > most
    }

    /// Pages with entries in `range` of its list. Cost: a look at each, where there are groups or tables in columns.
    pub(crate) fn pages_in(&self, range: &Range<usize>) -> usize {
        if self.totals.groups + self.totals.tables == 0 {
            return range.len();
        }
        let pages = |index| self.segment(index).location.pages_with_entries() as usize;
        range.clone().map(pages).sum()
    }

    /// The segment at `index` in key order.
    pub(crate) fn segment(&self, index: usize) -> &Segment {
        let (chunk, place) = self.place(index);
        &self.chunks[chunk].segments[place]
    }

    /// What tells which keys the segment at `index` may have.
    pub(crate) fn filter(&self, index: usize) -> Option<&Filter> {
        if self.totals.filter_bytes == 0 {
            return None;
        }
        let (chunk, place) = self.place(index);
        self.chunks[chunk].filters.of(place)
    }

    /// Whether the segment at `index` is of a table whose keys all come before `key`.
    pub(crate) fn ends_before(&self, index: usize, key: &[u8]) -> bool {
        let ends =
            |chunk: usize| self.chunks[chunk].last_key.as_ref().is_some_and(|last| **last < *key);
        self.is_of_tables && ends(self.place(index).0)
    }

    /// The key the segment at `index` begins with.
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

    /// [`Self::place`] of what is in this chunk, most likely, or behind it.
    fn place_from(&self, chunk: usize, index: usize) -> (usize, usize) {
        match self.starts.get(chunk + 1) {
            Some(next) if *next as usize <= index => self.place(index),
            _ => (chunk, index - self.starts[chunk] as usize),
        }
    }

    /// The one segment that can hold `key`: the last that begins at or before it.
    ///
    /// `among`, if given, is known to contain it or the one before (range pointers).
    pub(crate) fn covering(
        &self,
        key: &[u8],
        among: Option<Range<usize>>,
        effort: &mut Effort,
    ) -> Option<usize> {
        let among = among.unwrap_or(0..self.len());
        self.covering_segment(key, among, effort).map(|(at, _)| at)
    }

    /// [`Self::covering`] with the segment.
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
        // The last segment of the chunk before, where the key is below the first one of this.
        let segment = match above {
            0 => self.segment(flat - 1),
            _ => &self.chunks[chunk].segments[above - 1],
        };
        Some((flat - 1, segment))
    }

    /// The last chunk that begins at or before `key`; the first of `among` if none does. Apart, because
    /// nearly always there is one chunk only.
    #[inline(never)]
    fn covering_chunk(&self, key: &[u8], among: Range<usize>, effort: &mut Effort) -> usize {
        self.heads.upper_bound(key, among.start + 1..among.end, effort) - 1
    }

    /// The segments whose keys may lie in `from..to`; `None` bounds nothing.
    pub(crate) fn overlapping(&self, from: &[u8], to: Option<&[u8]>) -> Range<usize> {
        let effort = &mut Effort::default();
        let start = self.covering(from, None, effort).unwrap_or(0);
        let end = match to {
            None => self.len(),
            Some(to) => self.first_at_or_after(to),
        };
        start..end.max(start)
    }

    /// The first segment that begins at or after `key`.
    pub(crate) fn first_at_or_after(&self, key: &[u8]) -> usize {
        match self.covering(key, None, &mut Effort::default()) {
            None => 0,
            Some(at) if self.first_key(at) == key => at,
            Some(at) => at + 1,
        }
    }

    /// This level with the segments in `range` replaced by `new`, which must keep the order.
    pub(crate) fn splice(&self, range: Range<usize>, new: Vec<NamedSegment>) -> Self {
        // The chunks that hold the range are rebuilt; an insertion at the very end belongs to the
        // last chunk.
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

    /// How many segments each chunk of the list has.
    pub(crate) fn chunk_lens(&self) -> Vec<u32> {
        self.chunks.iter().map(|chunk| chunk.len() as u32).collect()
    }

    /// The same level with its list cut into chunks of these lengths; `None` if they do not make it up.
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

    /// Copies of the segments in `range`, with their keys.
    pub(crate) fn named(&self, range: Range<usize>) -> Vec<NamedSegment> {
        range
            .map(|index| NamedSegment {
                first_key: self.first_key(index).into(),
                segment: self.segment(index).clone(),
                filter: self.filter(index).cloned(),
            })
            .collect()
    }

    /// All segments in key order.
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
    // Even shares, so that repeated splices do not leave a trail of tiny chunks.
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
