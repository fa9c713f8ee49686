//! Columnar tables: their sizes, and how they are written and read (docs/decisions/0048).
//!
//! A table's pages are written together and are adjacent, striped over dies and channels. A lookup
//! reads them in phases, one after the other: the filter; if the filter may have the key, all keys;
//! if the keys have it, all addresses. The pages of one phase are read in parallel. An iterator
//! needs all entries and reads in phases too, but reads ahead at once; compaction and collection
//! also read a whole table at once.

use std::ops::Range;
use std::rc::Rc;

use runtime::{IoClass, PageImage};

use super::groups::LARGEST_PART;
use super::sliced::merge::BuiltSegment;
use crate::effort::Effort;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::columns::{
    AddressColumn, BuiltTable, KeyColumn, Measure, TableBuilder, filter_of, segments_of,
};
use crate::format::entry::Mapping;
use crate::format::meta_segment::MetaSegment;
use crate::format::page::PageFault;
use crate::format::pointer::PointerFormat;
use crate::gc::copying::in_extents;
use crate::medium::{Medium, PageNo, Shape};
use crate::operations::Reads;
use crate::options::{ColumnOptions, Options};
use crate::planted::Fault;
use crate::read::cache::Access;
use crate::read::filter::{Filter, key_hash};
use crate::space::promise::Promise;
use crate::version::level::{Level, NamedSegment, Segment};
use crate::version::location::{Columns, Location};

/// Pages of the smallest table: one page of each column.
const LEAST_PAGES: u32 = 3;

/// The maximum number of pages of a table: the pages of a column are counted in 8 bits.
const MOST_PAGES: u32 = u8::MAX as u32;

/// The size of the tables of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnForm {
    options: ColumnOptions,
    measure: Measure,
    /// Maximum number of entries of a table.
    entries: usize,
    /// Maximum number of pages of a table.
    pages: u32,
    append_unit: u32,
}

/// An upper bound of entries that will be written to tables: their number, and the bytes of their
/// keys plus one length byte each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bulk {
    pub entries: usize,
    pub key_bytes: usize,
}

impl std::ops::AddAssign for Bulk {
    fn add_assign(&mut self, more: Self) {
        self.entries += more.entries;
        self.key_bytes += more.key_bytes;
    }
}

impl ColumnForm {
    /// Returns the form of the tables of L1; `None` if the design has no columnar tables or extents
    /// are too short for them.
    pub(crate) fn new(options: &Options, shape: &Shape) -> Option<Self> {
        let columns = options.columns?;
        let pages = (shape.pages_per_extent / LARGEST_PART).min(MOST_PAGES);
        let format = PointerFormat::new(shape);
        let (address_bytes, bits) = (columns.address_bytes, columns.filter_bits);
        let form = Self {
            options: columns,
            measure: Measure::new(shape.payload_bytes, format, address_bytes, bits),
            entries: columns.entries_in(0) as usize,
            pages,
            append_unit: shape.append_unit,
        };
        (pages >= LEAST_PAGES).then_some(form)
    }

    /// Returns the form of the tables of `level`.
    pub(crate) fn of_level(self, level: usize) -> Self {
        Self { entries: self.options.entries_in(level) as usize, ..self }
    }

    /// Returns the number of pages of the largest table.
    fn largest(&self) -> u32 {
        let pages = self
            .measure
            .pages(self.entries, self.entries * (crate::format::object::MAX_KEY_BYTES + 1));
        pages.min(self.pages)
    }

    /// Returns the maximum number of tables that the entries are cut into.
    fn most_tables(&self, bulk: Bulk) -> usize {
        // Each table gets an even share of entries, but no more than its pages hold.
        let bytes = self.measure.bytes(bulk.entries, bulk.key_bytes);
        let longest = self.entries * (crate::format::object::MAX_KEY_BYTES + 1);
        let is_cut_short = self.measure.pages(self.entries, longest) > self.pages;
        let cut_short = if is_cut_short { bytes / self.measure.least_bytes(self.pages) } else { 0 };
        bulk.entries.div_ceil(self.entries) + cut_short
    }

    /// Returns the maximum number of pages that the entries take in tables.
    fn pages_of(&self, bulk: Bulk) -> u32 {
        self.measure.most_pages(bulk.entries, bulk.key_bytes, self.most_tables(bulk))
    }

    /// Returns the maximum number of pages taken, including the pages that each table may leave
    /// empty at the end of an extent (other tasks write there too) and in its last append unit.
    pub(crate) fn most_pages(&self, bulk: Bulk) -> u32 {
        let tables = self.most_tables(bulk) as u32;
        2 * self.pages_of(bulk) + tables * self.append_unit
    }

    /// Returns an upper bound of the entries in `pages` pages of tables.
    pub(crate) fn most_in(&self, pages: u32) -> Bulk {
        let entries = self.measure.most_entries(pages, self.entries);
        Bulk { entries, key_bytes: pages as usize * self.measure.room + entries }
    }

    /// Returns the maximum number of pages written to merge one table with another, plus the rest
    /// of one of them.
    pub(crate) fn most_pages_of_least_merge(&self) -> u32 {
        let table = self.largest();
        self.most_pages(self.most_in(2 * table)) + self.most_pages(self.most_in(table))
    }

    /// Returns the maximum number of pages by which levels grow when these entries are merged in,
    /// including the empty ends of extents.
    pub(crate) fn grown_by(&self, bulk: Bulk) -> u32 {
        let pages = self.pages_of(bulk);
        pages + pages.div_ceil(LARGEST_PART - 1)
    }

    /// Returns the maximum number of pages of extents occupied by `pages` pages of tables: see
    /// `GroupForm::in_extents`.
    pub(crate) fn in_extents(&self, pages: u32, shape: &Shape) -> u32 {
        in_extents(pages, self.pages, shape)
    }

    /// Cuts the entries of segments into tables of about equal size.
    pub(crate) fn build(
        &self,
        segments: &[BuiltSegment],
        format: PointerFormat,
        forgets: bool,
    ) -> Vec<BuiltTable> {
        let entries: usize = segments.iter().map(|segment| usize::from(segment.entries)).sum();
        let share = entries.div_ceil(entries.div_ceil(self.entries).max(1));
        let mut builder = TableBuilder::new(self.measure, format);
        let mut tables = Vec::new();
        for segment in segments {
            let segment = MetaSegment::new(&segment.bytes, format).expect("a merge made it");
            for entry in (0..segment.len()).map(|index| segment.entry(index)) {
                let is_full = builder.len() == share || builder.pages_with(entry.key) > self.pages;
                if builder.len() > 0 && is_full {
                    tables.push(builder.finish(forgets));
                }
                builder.push(&entry);
            }
        }
        if builder.len() > 0 {
            tables.push(builder.finish(forgets));
        }
        tables
    }
}

/// The order in which the pages of a table are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// All pages in parallel.
    AtOnce,
    /// Keys, then addresses; first the filter, if the field is true.
    InPhases(bool),
}

impl<M: Medium> Inner<M> {
    /// Returns the form of the tables that merges into `level` write, if they write tables.
    pub(crate) fn columns_of(&self, level: usize) -> Option<ColumnForm> {
        self.columns.map(|columns| columns.of_level(level))
    }

    /// Returns an upper bound of the entries of `range` of a level.
    pub(crate) fn bulk_of(&self, level: &Level, range: &Range<usize>) -> Bulk {
        let room = self.inlining.room();
        let mut bulk = Bulk::default();
        for segment in range.clone().map(|index| level.segment(index)) {
            let entries = usize::from(segment.entries);
            let key_pages = match &segment.location {
                Location::Columns(table) => u32::from(table.pages.keys),
                other => other.segments(),
            };
            bulk += Bulk { entries, key_bytes: key_pages as usize * room + entries };
        }
        bulk
    }

    /// Writes merged segments as tables and returns the level entries for them.
    pub(crate) async fn place_in_columns(
        &self,
        segments: Vec<BuiltSegment>,
        form: ColumnForm,
        promise: Promise<'_>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Result<Vec<NamedSegment>, EngineError> {
        if form.options.filter_bits > 0 {
            let entries = segments.iter().map(|segment| u64::from(segment.entries)).sum();
            let cost = self.store.cpu.costs.of_filters(entries);
            self.store.cpu.cores.spend_in_background(cost).await;
        }
        let (format, forgets) = (self.store.format, self.planted.has(Fault::ColumnForgetsKeys));
        let building = self.store.handle.compute(move || form.build(&segments, format, forgets));
        let mut tables = building.await;
        let together = tables.iter_mut().map(|table| std::mem::take(&mut table.pages)).collect();
        let firsts = self.store.write_groups(together, promise, class, urgency).await?;
        self.stats.borrow_mut().groups_written += tables.len() as u64;
        let named = tables.into_iter().zip(firsts).map(|(table, first)| {
            let BuiltTable { first_key, entries, columns, .. } = table;
            let location = Location::Columns(Columns { first, pages: columns });
            let segment = Segment::new(location, entries, &self.pool);
            NamedSegment { first_key, segment, filter: None }
        });
        Ok(named.collect())
    }

    /// Looks up `key` in a table. Returns the mapping, if found, and the effort of decoding the
    /// pages.
    pub(crate) async fn look_up(
        &self,
        table: Columns,
        key: &[u8],
        class: IoClass,
        reads: &mut Reads,
    ) -> Result<(Option<Mapping>, Effort), EngineError> {
        let damaged = || EngineError::Corrupt(table.first, PageFault::Contents);
        let begun = self.store.handle.now();
        let mut effort = Effort::default();
        let mut found = None;
        if self.may_be_in(table, key, class, reads, &mut effort).await? {
            let pages = self.read_column(table.keys(), class, Access::Point).await?;
            pages.count_in(reads, &mut effort);
            let keys = KeyColumn::read(&pages.images).ok_or_else(damaged)?;
            effort += keys.effort();
            if let Some(at) = keys.find(key) {
                let pages = self.read_column(table.addresses(), class, Access::Point).await?;
                pages.count_in(reads, &mut effort);
                let addresses = AddressColumn::read(&pages.images, self.store.format);
                let pointer = addresses.and_then(|addresses| addresses.get(at));
                found = Some(Mapping::of(pointer.ok_or_else(damaged)?));
            }
        }
        reads.time += self.store.handle.now() - begun;
        effort.hashes += self.caches.looks_for_pages(effort.page_reads);
        Ok((found, effort))
    }

    /// Whether a table may have `key`, by its filter.
    async fn may_be_in(
        &self,
        table: Columns,
        key: &[u8],
        class: IoClass,
        reads: &mut Reads,
        effort: &mut Effort,
    ) -> Result<bool, EngineError> {
        if table.pages.filter == 0 {
            return Ok(true);
        }
        let pages = self.read_column(table.filter(), class, Access::Point).await?;
        pages.count_in(reads, effort);
        effort.filter_probes += 1;
        let filter = filter_of(&pages.images).and_then(|bytes| Filter::from_bytes(&bytes));
        let filter = filter.ok_or(EngineError::Corrupt(table.first, PageFault::Contents))?;
        self.stats.borrow_mut().filter_probes += 1;
        Ok(filter.may_have(key_hash(key)))
    }

    /// Reads all segments of a table.
    pub(crate) async fn read_table(
        &self,
        table: Columns,
        class: IoClass,
        order: Order,
    ) -> Result<Rc<[PageImage]>, EngineError> {
        let phases = match order {
            Order::AtOnce => vec![table.behind_filter()],
            Order::InPhases(false) => vec![table.keys(), table.addresses()],
            Order::InPhases(true) => vec![table.filter(), table.keys(), table.addresses()],
        };
        let mut images = Vec::new();
        for phase in phases {
            let is_filter = phase == table.filter();
            let pages = self.read_column(phase, class, Access::Scan).await?;
            if !is_filter {
                images.extend(pages.images);
            }
        }
        self.table_of_pages(table, &images)
    }

    /// Decodes the segments of a table from the pages of its keys and addresses.
    pub(crate) fn table_of_pages(
        &self,
        table: Columns,
        pages: &[PageImage],
    ) -> Result<Rc<[PageImage]>, EngineError> {
        let (format, payload) = (self.store.format, self.store.shape.payload_bytes);
        let segments = segments_of(table.pages, pages, format, payload);
        let segments = segments.ok_or(EngineError::Corrupt(table.first, PageFault::Contents))?;
        Ok(segments.into())
    }

    /// Reads pages in parallel. Client reads use the page cache and fill it; collection and
    /// compaction bypass it.
    async fn read_column(
        &self,
        pages: Range<u32>,
        class: IoClass,
        access: Access,
    ) -> Result<ReadColumn, EngineError> {
        let is_of_client = class != IoClass::GcRead && class != IoClass::CompactionRead;
        let begin = |page: PageNo| {
            let cached = if is_of_client { self.cached_page(page, access) } else { None };
            match cached {
                Some(image) => Ok(image),
                None => Err(self.store.medium.read(page, class)),
            }
        };
        let begun: Vec<_> = pages.map(PageNo).map(|page| (page, begin(page))).collect();
        let mut column = ReadColumn { images: Vec::with_capacity(begun.len()), from_medium: 0 };
        for (page, image) in begun {
            let image = match image {
                Ok(image) => image,
                Err(read) => {
                    let image = self.store.check_or_rebuild(page, read.await, class).await?;
                    column.from_medium += 1;
                    if is_of_client {
                        self.keep_page(page, &image, access);
                    }
                    image
                }
            };
            column.images.push(image);
        }
        Ok(column)
    }
}

/// Pages that were read together.
struct ReadColumn {
    images: Vec<PageImage>,
    /// The number of pages that were not in the cache.
    from_medium: u32,
}

impl ReadColumn {
    fn count_in(&self, reads: &mut Reads, effort: &mut Effort) {
        reads.count += self.from_medium;
        effort.page_reads += self.images.len() as u32;
    }
}

/// Looks up `key` in the segments of a table.
pub(crate) fn find_in(
    segments: &[PageImage],
    key: &[u8],
    format: PointerFormat,
) -> Option<Mapping> {
    let behind = segments.partition_point(|image| first_key_in(image, format) <= key);
    segment_in(&segments[behind.checked_sub(1)?], format).find(key)
}

/// Returns the first key of a table's segment.
pub(crate) fn first_key_in(image: &PageImage, format: PointerFormat) -> &[u8] {
    segment_in(image, format).key(0)
}

fn segment_in(image: &PageImage, format: PointerFormat) -> MetaSegment<'_> {
    MetaSegment::new(image.bytes(), format).expect("tables are checked when they are read")
}

#[cfg(test)]
mod tests {
    use crate::specimens::{SHAPE, pointers};
    use proptest::prelude::*;

    use super::*;
    use crate::compaction::sliced::merge::{ListRun, SegmentRun, merge};
    use crate::format::entry::NewEntry;
    use crate::format::pointer::Pointer;

    fn form(entries: u32, pages_per_extent: u32, unit: u32) -> ColumnForm {
        let columns = ColumnOptions {
            entries,
            growth: 2,
            address_bytes: 8,
            filter_bits: 10,
            iterators_read_filters: true,
        };
        let options = Options { columns: Some(columns), ..Options::lightstore() };
        let shape = Shape { pages_per_extent, append_unit: unit, ..SHAPE };
        ColumnForm::new(&options, &shape).expect("it has room")
    }

    fn merged(lengths: &[usize]) -> Vec<BuiltSegment> {
        let key =
            |(n, len): (usize, &usize)| [&(n as u16).to_be_bytes()[..], &vec![7; *len]].concat();
        let keys = lengths.iter().enumerate().map(key);
        let entries =
            keys.map(|key| NewEntry::of_pointer(key.into(), Pointer::TOMBSTONE)).collect();
        let nothing = SegmentRun::new(&[], pointers());
        merge(ListRun::new(entries), nothing, pointers(), SHAPE.payload_bytes, false).segments
    }

    proptest! {
        #[test]
        fn tables_have_all_entries_in_order_and_take_no_more_than_was_said(
            lengths in prop_oneof![
                prop::collection::vec(0..=253_usize, 1..200),
                prop::collection::vec(Just(2_usize), 1..900),
            ],
            (entries, pages_per_extent, unit) in
                prop_oneof![
                    Just((4_096, 512, 1)),
                    Just((50, 64, 2)),
                    Just((4_096, 24, 3)),
                    Just((16, 24, 1))
                ],
        ) {
            let form = form(entries, pages_per_extent, unit);
            let tables = form.build(&merged(&lengths), pointers(), false);
            let counts = tables.iter().map(|table| usize::from(table.entries));
            prop_assert_eq!(counts.clone().sum::<usize>(), lengths.len());
            prop_assert!(counts.clone().all(|count| count > 0 && count <= entries as usize));
            prop_assert!(tables.is_sorted_by(|a, b| a.first_key < b.first_key));
            prop_assert!(tables.iter().all(|table| table.columns.all() <= form.largest()));
            let key_bytes = lengths.iter().map(|len| len + 3).sum();
            let bulk = Bulk { entries: lengths.len(), key_bytes };
            prop_assert!(tables.len() <= form.most_tables(bulk));
            // At most the end of an extent before each table, and the end of a unit after it, stay
            // empty.
            let taken = |table: &BuiltTable| 2 * table.columns.all() - 1 + unit - 1;
            prop_assert!(tables.iter().map(taken).sum::<u32>() <= form.most_pages(bulk));
            let pages = tables.iter().map(|table| table.columns.all()).sum();
            prop_assert!(
                form.most_in(pages).entries >= bulk.entries
                    && form.most_in(pages).key_bytes >= key_bytes
            );
            prop_assert!(pages <= form.pages_of(bulk));
        }
    }

    #[test]
    fn tables_grow_from_level_to_level_as_far_as_extents_have_room() {
        let form = form(4_096, 4_096, 1);
        let of = |level: usize| form.of_level(level).entries;
        assert_eq!((of(0), of(3), of(9)), (4_096, 32_768, 65_535));
        let shares: Vec<u16> = {
            let tables = form.of_level(0).build(&merged(&vec![2; 5_000]), pointers(), false);
            tables.iter().map(|table| table.entries).collect()
        };
        assert_eq!(shares, [2_500, 2_500]);
    }

    #[test]
    fn extents_that_are_short_have_no_tables() {
        let options = Options { columns: Some(form(100, 64, 1).options), ..Options::lightstore() };
        assert!(ColumnForm::new(&options, &Shape { pages_per_extent: 23, ..SHAPE }).is_none());
    }
}
