//! Space of tables. A table has separate extents and ends when these are full.

use crate::format::object::MAX_KEY_BYTES;
use crate::manifest::table_codec::{index_pages, most_index_bytes};
use crate::medium::Shape;
use crate::options::Options;
use crate::version::table::Described;

/// Pages that a table may leave empty, because it ends before an entry that might not fit.
const LEFT_PAGES: u32 = 3;
/// The minimum number of pages of a table: with fewer, the index would take most of it.
const LEAST_PAGES: u32 = 8;
/// Bytes of the shortest entry: a tombstone of a one-byte key, with its offset.
const SHORTEST_ENTRY_BYTES: u64 = 6;

/// The layout of tables on a medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    per_extent: u32,
    payload_bytes: u32,
    filter_bits_per_key: u32,
    /// Maximum number of extents of a table outside of L0.
    table_extents: u32,
}

/// The contents of tables, or an upper bound of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contents {
    pub data_pages: u32,
    pub entries: u64,
    pub longest_key: usize,
}

impl Contents {
    /// Returns an upper bound for all contents of `data_pages` pages.
    pub(crate) fn any(data_pages: u32, payload_bytes: u32) -> Self {
        let entries = u64::from(data_pages) * u64::from(payload_bytes) / SHORTEST_ENTRY_BYTES;
        Self { data_pages, entries, longest_key: MAX_KEY_BYTES }
    }

    /// Returns the contents of these tables, in the same number of pages.
    pub(crate) fn of<'t, T: Described + 't>(tables: impl IntoIterator<Item = &'t T>) -> Self {
        tables.into_iter().fold(Self::default(), |all, table| {
            let meta = table.meta();
            Self {
                data_pages: all.data_pages + meta.data_pages,
                entries: all.entries + meta.entries,
                longest_key: all.longest_key.max(meta.longest_key.into()),
            }
        })
    }
}

impl Form {
    pub(crate) fn new(options: &Options, shape: &Shape) -> Self {
        let per_extent = shape.pages_per_extent;
        let pages = options.tables.table_bytes.div_ceil(u64::from(shape.page_bytes));
        let pages = pages.clamp(LEAST_PAGES.into(), 1 << 24) as u32;
        Self {
            per_extent,
            payload_bytes: shape.payload_bytes,
            filter_bits_per_key: options.filter_bits_per_key(),
            table_extents: pages.div_ceil(per_extent),
        }
    }

    /// Returns the maximum number of pages of a table outside of L0, including its index.
    pub(crate) fn table_pages(&self) -> u32 {
        self.table_extents * self.per_extent
    }

    /// Returns the number of pages of these contents, including the index.
    fn pages(&self, contents: &Contents) -> u64 {
        let Contents { data_pages, entries, longest_key } = *contents;
        let bytes = most_index_bytes(data_pages, longest_key, entries, self.filter_bits_per_key);
        u64::from(data_pages) + index_pages(bytes, self.payload_bytes)
    }

    /// Returns the number of extents of one table with these contents.
    pub(crate) fn extents_of_one(&self, contents: &Contents) -> usize {
        self.pages(contents).div_ceil(self.per_extent.into()) as usize
    }

    /// Returns the number of extents of the tables that these contents are cut into, of which
    /// `early` end early.
    pub(crate) fn extents_of_many(&self, contents: &Contents, early: u32) -> usize {
        // Each table has an index, whose last page may be partly empty.
        let in_one = self.table_pages().saturating_sub(LEFT_PAGES + 1).max(1);
        let pages = self.pages(contents);
        let (full, in_extents) =
            (pages / u64::from(in_one), pages.div_ceil(self.per_extent.into()));
        if full == 0 && early == 0 {
            return in_extents as usize;
        }
        let per_table = u64::from(self.table_extents).min(in_extents + 1);
        let tables = full as usize + early as usize + 1;
        tables.saturating_mul(per_table as usize)
    }

    /// Returns the first of `tables`, which are neighbours, that take fewer extents as one table.
    pub(crate) fn small_neighbours<'t, T: Described>(&self, tables: &'t [T]) -> Option<&'t [T]> {
        let own = |table: &T| table.meta().pages.extents.len();
        let gains = |tables: &&[T]| {
            let extents: usize = tables.iter().map(own).sum();
            self.extents_of_many(&Contents::of(*tables), 0) < extents
        };
        let most = |start: usize| {
            let ends = start + 2..=tables.len();
            let fits = |end: &usize| {
                let contents = Contents::of(&tables[start..*end]);
                self.pages(&contents) + u64::from(LEFT_PAGES) < u64::from(self.table_pages())
            };
            ends.take_while(fits).last().map(|end| &tables[start..end])
        };
        (0..tables.len()).filter_map(most).find(gains)
    }

    /// Returns the extents of the rest of a table in its level: one table in L0, possibly several
    /// elsewhere.
    pub(crate) fn extents_of_rest(&self, contents: &Contents) -> usize {
        self.extents_of_one(contents).max(self.extents_of_many(contents, 0))
    }
}

/// Returns the maximum number of tables that end early if a table with its overlap two levels down
/// may have `most_bytes`: each such table has at least half of that itself, or overlaps with as
/// much.
pub(crate) fn most_early(own_bytes: f64, beyond_bytes: f64, most_bytes: f64) -> u32 {
    ((own_bytes + beyond_bytes) * 2.0 / most_bytes) as u32
}

#[cfg(test)]
mod tests {
    use crate::specimens::SHAPE;
    use proptest::prelude::*;

    use super::*;
    use crate::options::tables::TableOptions;

    proptest! {
        /// The space kept for the smallest job of the largest tables is enough for the smallest job
        /// of any other tables.
        #[test]
        fn the_smallest_job_of_smaller_tables_takes_no_more(
            table_bytes in 1..200_000_u64,
            pages_per_extent in 2..40_u32,
            upper in 1..100_u32,
            lower in 1..100_u32,
            part in 0.01..1.0_f64,
            entries in 1..10_000_u64,
            longest_key in 1..=255_usize,
        ) {
            let tables = TableOptions { table_bytes, ..TableOptions::default() };
            let options = Options { tables, ..Options::rocksdb() };
            let form = Form::new(&options, &crate::medium::Shape { pages_per_extent, ..SHAPE });
            let least = |upper: &Contents, merged: &Contents| {
                form.extents_of_many(merged, 0) + form.extents_of_rest(upper)
            };
            let any = |data_pages| Contents::any(data_pages, SHAPE.payload_bytes);
            let some = |data_pages: u32| {
                let data_pages = (f64::from(data_pages) * part).ceil() as u32;
                let most = any(data_pages);
                Contents { data_pages, entries: entries.min(most.entries), longest_key }
            };
            let kept = least(&any(upper), &any(upper + lower));
            prop_assert!(least(&some(upper), &some(upper + lower)) <= kept);
        }
    }

    #[test]
    fn extreme_sizes_do_not_wrap() {
        let form = Form::new(&Options::rocksdb(), &SHAPE);
        let most = Contents::any(u32::MAX / 2, SHAPE.payload_bytes);
        assert!(form.extents_of_many(&most, u32::MAX) > form.extents_of_many(&most, 0));
        assert_eq!(most_early(1e20, 1e20, 1.0), u32::MAX);
    }
}
