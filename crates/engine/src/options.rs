//! The options of a design, read from TOML files.

pub(crate) mod columns;
pub(crate) mod iterators;
pub(crate) mod surroundings;
pub(crate) mod tables;

use std::ops::RangeInclusive;

use catalogue::bounds;
use serde::{Deserialize, Deserializer, Serialize};

use crate::options::surroundings::{FROZEN_MEMTABLES, MEMTABLE_BYTES};
use crate::wal::{Durability, LogSync};

pub use crate::options::columns::ColumnOptions;
pub use crate::options::iterators::IteratorOptions;
use crate::options::tables::{Preemption, TableOptions};
use crate::sizing::LevelSizing;

/// The valid number of parallel compactions; each is a task.
const COMPACTION_WORKERS: RangeInclusive<usize> = 1..=64;

/// The maximum number of levels below the memtable.
pub(crate) const MAX_LEVELS: usize = 12;

/// The filters in memory for segments that are not pinned, so that a Get need not read them all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Filters {
    /// No filters: a Get reads one segment of each unpinned level until it finds its key.
    #[default]
    None,
    /// Bloom filters per segment, sized per level by Monkey (`sizing::monkey`).
    Monkey,
    /// Bloom filters with this many bits per key: one per table, or one per segment in other trees.
    Bits(u32),
}

/// The valid size of a cache, in bytes.
const CACHE_BYTES: RangeInclusive<u64> = 0..=1 << 40;

/// The valid number of filter bits per key.
const FILTER_BITS: RangeInclusive<u32> = 1..=40;
/// The valid number of pages of a group: at least an index and two segments.
const GROUP_PAGES: RangeInclusive<u32> = 3..=256;

/// The part of a level that one compaction takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// A few segments at a time, round robin over the key space.
    Partial,
    /// The whole level, as the published code does.
    Whole,
    /// Tables, as in `RocksDB`: flushes add tables to L0, and compactions pick tables
    /// (`Options::tables`).
    Leveled,
}

/// The unit that merges segments into levels that are not pinned. The processor does all merges
/// within memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeBy {
    /// The firmware's processor.
    #[default]
    Cpu,
    /// The accelerator, which the device must have.
    Accelerator,
}

/// The options of an engine. `PinK` is a value of this type.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The number of levels below the memtable.
    pub levels: u32,
    /// Bytes of keys and values at which a memtable is flushed.
    pub memtable_bytes: u64,
    /// The maximum number of full memtables that wait for their flush or are being flushed. Several
    /// are flushed in parallel.
    pub frozen_memtables: usize,
    /// The longest inline value, in bytes. Longer values are stored in the value log, as are values
    /// that would take more than a quarter of a page. 0: no inline values. "all" in a file: no
    /// limit but the quarter of a page.
    #[serde(default, deserialize_with = "bytes_or_all")]
    pub inline_up_to: u32,
    /// The growth of level sizes.
    pub level_sizing: LevelSizing,
    /// The number of levels kept in memory; if absent, as many as fit without raising the cost of
    /// writes by more than half (docs/decisions/0024).
    pub pinned_levels: Option<u32>,
    /// Bytes of each key kept in the prefix array; 0 searches by whole keys.
    pub prefix_bytes: usize,
    /// Whether range pointers bound searches.
    pub range_pointers: bool,
    /// The number of pages of a group in the last level, including its index. A group has one entry
    /// in the level list and costs a Get one more read; groups are not used if the list of a full
    /// store fits in memory without them. 0: no groups.
    #[serde(default)]
    pub group_pages: u32,
    /// Levels of columnar tables instead of single pages.
    #[serde(default)]
    pub columns: Option<ColumnOptions>,
    /// The filters by which a Get skips unpinned segments.
    #[serde(default)]
    pub filters: Filters,
    /// The size in bytes of the cache of recently read pages of levels that are not pinned, as a
    /// part of the index memory; 0: none.
    #[serde(default)]
    pub page_cache_bytes: u64,
    /// The size in bytes of the cache of values of the value log, as a part of the index memory; 0:
    /// none.
    #[serde(default)]
    pub value_cache_bytes: u64,
    /// The longest value, in bytes, that is cached together with its page: if values are short, the
    /// others in the page were written in the same seconds and may be requested as often. 0: all
    /// values are cached alone.
    #[serde(default)]
    pub value_pages_up_to: u32,
    /// The part of a level that one compaction takes.
    pub compaction: Granularity,
    /// The unit that merges segments into levels that are not pinned.
    #[serde(default)]
    pub merge: MergeBy,
    /// The maximum number of parallel compactions; with tables, the second and further ones only
    /// under pressure.
    pub compaction_workers: usize,
    /// Sizes and triggers of tables, if `compaction` is "leveled".
    #[serde(default)]
    pub tables: TableOptions,
    /// Whether puts leave some extents for batches that make room
    /// ([`BatchOptions::makes_room`](crate::operations::BatchOptions::makes_room)), so that a full
    /// store
    /// accepts these too.
    #[serde(default)]
    pub leaves_room: bool,
    /// The share of the medium that the layout plans for user data.
    pub fill: f64,
    /// Garbage collection starts when the share of free extents falls below this value.
    pub gc_start: f64,
    /// The read options of iterators.
    #[serde(default)]
    pub iterators: IteratorOptions,
    /// The means by which writes survive a power cut.
    #[serde(default)]
    pub durability: Durability,
    /// When writes are acknowledged, if there is a log.
    #[serde(default)]
    pub log_sync: LogSync,
}

/// Deserializes a number of bytes, or "all".
fn bytes_or_all<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number of bytes, or \"all\"")]
    enum BytesOrAll {
        Bytes(u32),
        Word(All),
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum All {
        All,
    }
    Ok(match BytesOrAll::deserialize(deserializer)? {
        BytesOrAll::Bytes(bytes) => bytes,
        BytesOrAll::Word(All::All) => u32::MAX,
    })
}

impl Options {
    /// Returns `PinK` as published: four levels of flash addresses, the top three in memory (as
    /// many as fit), asymmetric sizes, prefixes and range pointers; compaction by slices
    /// (docs/decisions/0005).
    pub fn pink() -> Self {
        Self {
            levels: 4,
            memtable_bytes: 1 << 20,
            frozen_memtables: 1,
            inline_up_to: 0,
            level_sizing: LevelSizing::Asymmetric,
            pinned_levels: None,
            prefix_bytes: 4,
            range_pointers: true,
            group_pages: 0,
            columns: None,
            filters: Filters::None,
            page_cache_bytes: 0,
            value_cache_bytes: 0,
            value_pages_up_to: 0,
            compaction: Granularity::Partial,
            merge: MergeBy::Cpu,
            compaction_workers: 2,
            tables: TableOptions::default(),
            leaves_room: false,
            fill: 0.7,
            gc_start: 0.05,
            iterators: IteratorOptions::default(),
            durability: Durability::default(),
            log_sync: LogSync::default(),
        }
    }

    /// Returns `PinK` with the merge accelerator of its prototype.
    pub fn pink_hw() -> Self {
        Self { merge: MergeBy::Accelerator, ..Self::pink() }
    }

    /// Returns the baseline of the `PinK` paper, after `LightStore`: all levels in flash, one
    /// growth factor, the memory spent on Bloom filters; no prefixes, no range pointers. Other
    /// options are as in [`Self::pink`], compaction in particular, so that a comparison is one of
    /// the index.
    pub fn lightstore() -> Self {
        Self {
            level_sizing: LevelSizing::Symmetric,
            pinned_levels: Some(0),
            prefix_bytes: 0,
            range_pointers: false,
            filters: Filters::Monkey,
            frozen_memtables: 2,
            ..Self::pink()
        }
    }

    /// Returns `RocksDB` 6.23 with its defaults, for pages of about 8 KiB: seven levels, including
    /// L0; two memtables of 64 MiB; inline values; no filters; 8 MiB of block cache, in addition to
    /// the indexes of tables; one thread for flushes and one for compactions; a log for which
    /// writes do not wait.
    pub fn rocksdb() -> Self {
        Self {
            levels: 6,
            memtable_bytes: 64 << 20,
            inline_up_to: u32::MAX,
            level_sizing: LevelSizing::Symmetric,
            pinned_levels: Some(0),
            prefix_bytes: 8,
            range_pointers: false,
            page_cache_bytes: 8 << 20,
            compaction: Granularity::Leveled,
            compaction_workers: 1,
            durability: Durability::Log,
            log_sync: LogSync::None,
            iterators: IteratorOptions {
                buffer_bytes: 512 << 10,
                readahead_bytes: 256 << 10,
                ..IteratorOptions::default()
            },
            ..Self::pink()
        }
    }

    /// Returns the options of Levelhead, the design of crate `levelhead`, which combines all three
    /// papers: the pinned index of [`Self::pink`], values apart, iterators that read ahead, a log.
    /// Names beside the numbers in `designs/levelhead.toml` are those of `RocksDB`.
    pub fn levelhead() -> Self {
        Self {
            memtable_bytes: 64 << 20,
            frozen_memtables: 5,
            pinned_levels: Some(4),
            value_cache_bytes: 8 << 20,
            value_pages_up_to: 4096,
            durability: Durability::Log,
            log_sync: LogSync::None,
            iterators: IteratorOptions {
                index_prefetch: true,
                value_prefetch: 16,
                most_value_prefetch: 32,
                skip_budget: 1024,
                buffer_bytes: 2 << 20,
                kept_pages: 128,
                cached_pairs: 128,
                ..IteratorOptions::default()
            },
            ..Self::pink()
        }
    }

    /// Returns the engine's part of SILK on [`Self::rocksdb`]: four internal threads, of which one
    /// flushes and one does only compactions out of L0; other compactions give way to those, and a
    /// compaction that blocks them is discarded. The other part limits a medium's bandwidth by the
    /// load of clients (`LimiterOptions::silk`, crate `stacks`). Filters and triggers are as in
    /// `rocksdb`, so that a comparison is one of scheduling; SILK assumes filters.
    pub fn silk() -> Self {
        let rocksdb = Self::rocksdb();
        let tables =
            TableOptions { l0_workers: 1, preemption: Preemption::Discard, ..rocksdb.tables };
        Self { compaction_workers: 2, tables, ..rocksdb }
    }

    /// Returns a message for each invalid option.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(2..=MAX_LEVELS as u32).contains(&self.levels) {
            problems.push(format!("levels is {}, must be 2 to {MAX_LEVELS}", self.levels));
        }
        problems.extend(bounds::range("memtable_bytes", self.memtable_bytes, MEMTABLE_BYTES));
        let frozen = self.frozen_memtables;
        problems.extend(bounds::range("frozen_memtables", frozen, FROZEN_MEMTABLES));
        if self.prefix_bytes > 8 {
            problems.push(format!("prefix_bytes is {}, must be 0 to 8", self.prefix_bytes));
        }
        let leaves_none_unpinned = self.pinned_levels.is_some_and(|pinned| pinned >= self.levels);
        if leaves_none_unpinned && self.filters != Filters::None {
            problems.push(
                "filters are for levels that are not pinned, and pinned_levels leaves none: pin \
                 fewer levels, or set filters to \"none\""
                    .to_owned(),
            );
        }
        if leaves_none_unpinned && self.merge == MergeBy::Accelerator {
            problems.push(
                "the accelerator merges into levels that are not pinned, and pinned_levels leaves \
                 none: pin fewer levels, or set merge to \"cpu\""
                    .to_owned(),
            );
        }
        let workers = self.compaction_workers;
        problems.extend(bounds::range("compaction_workers", workers, COMPACTION_WORKERS));
        if !(self.fill > 0.0 && self.fill < 1.0) {
            problems.push(format!("fill is {}, must be more than 0 and less than 1", self.fill));
        }
        if !(self.gc_start > 0.0 && self.gc_start < 0.5) {
            problems
                .push(format!("gc_start is {}, must be more than 0, less than 0.5", self.gc_start));
        }
        problems.extend(self.iterators.problems());
        let (pages, values) = (self.page_cache_bytes, self.value_cache_bytes);
        problems.extend(bounds::range("page_cache_bytes", pages, CACHE_BYTES));
        problems.extend(bounds::range("value_cache_bytes", values, CACHE_BYTES));
        problems.extend(self.problems_of_filters());
        if self.is_leveled() {
            problems.extend(self.problems_of_tables());
        }
        if self.group_pages > 0 {
            problems.extend(self.problems_of_groups());
        }
        if let Some(columns) = &self.columns {
            problems.extend(columns.problems());
            problems.extend(self.problems_beside_columns());
        }
        problems
    }

    /// Whether levels are made of tables.
    pub fn is_leveled(&self) -> bool {
        self.compaction == Granularity::Leveled
    }

    /// Returns the bytes of all caches.
    pub fn cache_bytes(&self) -> u64 {
        self.page_cache_bytes + self.value_cache_bytes
    }

    /// Returns the configured filter bits per key; 0 if they are not configured.
    pub(crate) fn filter_bits_per_key(&self) -> u32 {
        if let Filters::Bits(bits) = self.filters { bits } else { 0 }
    }

    fn problems_of_filters(&self) -> Option<String> {
        let Filters::Bits(bits) = self.filters else { return None };
        bounds::range("filters.bits", bits, FILTER_BITS)
    }

    /// Returns a message for each option that cannot be combined with groups.
    fn problems_of_groups(&self) -> Vec<String> {
        let with = |what: &str, instead: &str| {
            format!("group_pages {} does not go with {what}: {instead}", self.group_pages)
        };
        let mut problems: Vec<String> =
            bounds::range("group_pages", self.group_pages, GROUP_PAGES).into_iter().collect();
        if self.is_leveled() {
            problems.push(with("compaction \"leveled\"", "tables have indexes of their own"));
        }
        if self.filters != Filters::None {
            problems.push(with("filters", "set filters to \"none\""));
        }
        if self.merge == MergeBy::Accelerator {
            problems.push(with("the accelerator", "set merge to \"cpu\""));
        }
        problems
    }

    /// Returns a message for each option that cannot be combined with columnar tables.
    fn problems_beside_columns(&self) -> Vec<String> {
        let allowed = [
            (!self.is_leveled(), "compaction \"leveled\"", "tables of that kind are others"),
            (self.pinned_levels == Some(0), "levels in memory", "set pinned_levels to 0"),
            (self.inline_up_to == 0, "values beside keys", "set inline_up_to to 0"),
            (self.group_pages == 0, "group_pages", "set group_pages to 0"),
            (self.filters == Filters::None, "filters in memory", "set columns.filter_bits"),
            (self.merge == MergeBy::Cpu, "the accelerator", "set merge to \"cpu\""),
        ];
        let refused = allowed.into_iter().filter(|(is_allowed, _, _)| !is_allowed);
        refused
            .map(|(_, what, instead)| format!("columns do not go with {what}: {instead}"))
            .collect()
    }

    /// Returns a message for each invalid option of tables, and for each option that cannot be
    /// combined with tables.
    fn problems_of_tables(&self) -> Vec<String> {
        let with = |what: &str, instead: &str| {
            format!("compaction \"leveled\" does not go with {what}: {instead}")
        };
        let mut problems = self.tables.problems();
        if self.durability != Durability::Log {
            problems.push(with("memory that survives", "set durability to \"log\""));
        }
        if self.pinned_levels.is_some_and(|pinned| pinned > 0) {
            problems.push(with("levels in memory", "set pinned_levels to 0"));
        }
        if self.range_pointers {
            problems.push(with("range pointers", "set range_pointers to false"));
        }
        if self.filters == Filters::Monkey {
            problems
                .push(with("filters \"monkey\"", "set filters to { bits = 10 }, or to \"none\""));
        }
        if self.merge == MergeBy::Accelerator {
            problems.push(with("the accelerator", "set merge to \"cpu\""));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_that_cannot_be_are_refused_in_words() {
        let presets = [
            Options::pink(),
            Options::pink_hw(),
            Options::lightstore(),
            Options::rocksdb(),
            Options::silk(),
        ];
        for preset in presets {
            assert_eq!(preset.problems(), Vec::<String>::new());
        }
        let all_pinned =
            |options: Options| Options { pinned_levels: Some(4), ..options }.problems().join("; ");
        assert_eq!(all_pinned(Options::pink()), "");
        assert!(all_pinned(Options::pink_hw()).contains("merge"));
        assert!(all_pinned(Options::lightstore()).contains("filters"));
    }

    #[test]
    fn what_tables_do_not_go_with_is_said() {
        let rocksdb = Options::rocksdb();
        let problems = |options: Options| options.problems().join("; ");
        let in_memory = Options { pinned_levels: Some(2), ..rocksdb.clone() };
        assert!(problems(in_memory).contains("set pinned_levels to 0"));
        let capacitors = Options { durability: Durability::Capacitors, ..rocksdb.clone() };
        assert!(problems(capacitors).contains("set durability to \"log\""));
        let monkey = Options { filters: Filters::Monkey, ..rocksdb.clone() };
        assert!(problems(monkey).contains("set filters to { bits = 10 }"));
        let bits = |bits| Options { filters: Filters::Bits(bits), ..rocksdb.clone() };
        assert_eq!(problems(bits(10)), "");
        assert!(problems(bits(0)).contains("filters.bits is 0, must be 1 to 40"));
    }

    #[test]
    fn what_groups_do_not_go_with_is_said() {
        let problems =
            |options: Options| Options { group_pages: 32, ..options }.problems().join("; ");
        assert_eq!(problems(Options::pink()), "");
        assert!(problems(Options::lightstore()).contains("set filters to"));
        assert!(problems(Options::pink_hw()).contains("set merge to"));
        assert!(problems(Options::rocksdb()).contains("tables have indexes of their own"));
        let two = Options { group_pages: 2, ..Options::pink() }.problems();
        assert_eq!(two, ["group_pages is 2, must be 3 to 256"]);
    }

    #[test]
    fn sizes_and_counts_beyond_all_drives_are_refused_with_what_is_allowed() {
        let memtable = Options { memtable_bytes: 1 << 60, ..Options::pink() }.problems();
        assert_eq!(
            memtable,
            [format!("memtable_bytes is {}, must be 1024 to {}", 1_u64 << 60, 1_u64 << 40)]
        );
        for workers in [0, 65, 100_000] {
            let options = Options { compaction_workers: workers, ..Options::pink() };
            let words = format!("compaction_workers is {workers}, must be 1 to 64");
            assert_eq!(options.problems(), [words]);
        }
        let frozen = Options { frozen_memtables: 1 << 40, ..Options::pink() }.problems();
        assert!(frozen[0].starts_with("frozen_memtables is "), "{frozen:?}");
        let mut options = Options::pink();
        options.iterators =
            IteratorOptions { value_prefetch: u32::MAX, skip_budget: 0, ..options.iterators };
        assert_eq!(options.problems().len(), 2);
    }
}
