//! Random options of LSM-trees: draws every option that a user can set, also in combinations that
//! no preset has.

use engine::sizing::LevelSizing;
use engine::{Filters, Granularity, IteratorOptions, LogSync, MergeBy, Options, TableOptions};
use runtime::Rng;

/// Returns a random element of `of`.
pub fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// Returns a random default durability of writes.
pub fn any_sync(rng: &mut Rng) -> LogSync {
    pick(rng, &[LogSync::None, LogSync::Interval, LogSync::Group, LogSync::Each])
}

/// Returns a random tree of lists. The options may be invalid: a store may refuse them.
pub fn tree(rng: &mut Rng, memtable_bytes: u64) -> Options {
    let levels = 2 + rng.below(4) as u32;
    Options {
        levels,
        memtable_bytes,
        frozen_memtables: pick(rng, &[1, 1, 2, 3]),
        level_sizing: pick(rng, &[LevelSizing::Symmetric, LevelSizing::Asymmetric]),
        pinned_levels: rng.chance(0.5).then(|| rng.below(u64::from(levels) + 1) as u32),
        prefix_bytes: pick(rng, &[0, 1, 4, 8]),
        range_pointers: rng.chance(0.5),
        filters: pick(rng, &[Filters::None, Filters::Monkey]),
        compaction: pick(rng, &[Granularity::Partial, Granularity::Whole]),
        merge: pick(rng, &[MergeBy::Cpu, MergeBy::Accelerator]),
        compaction_workers: 1 + rng.below(4) as usize,
        fill: pick(rng, &[0.5, 0.7, 0.9]),
        gc_start: pick(rng, &[0.02, 0.05, 0.2]),
        iterators: iterators(rng),
        ..Options::pink()
    }
}

/// Returns a random design whose levels consist of tables.
pub fn leveled(rng: &mut Rng) -> Options {
    let memtable_bytes = pick(rng, &[1 << 10, 4 << 10, 4 << 10, 16 << 10]);
    let table_bytes = pick(rng, &[2 << 10, 8 << 10, 32 << 10]);
    let trigger = pick(rng, &[1, 2, 4]);
    let slowdown = trigger + pick(rng, &[0, 2, 6]);
    Options {
        levels: 2 + rng.below(4) as u32,
        memtable_bytes,
        frozen_memtables: pick(rng, &[1, 1, 2, 3]),
        inline_up_to: pick(rng, &[0, 40, 240, u32::MAX, u32::MAX]),
        pinned_levels: None,
        prefix_bytes: pick(rng, &[0, 4]),
        range_pointers: false,
        filters: pick(rng, &[Filters::None, Filters::Bits(1), Filters::Bits(10)]),
        compaction: Granularity::Leveled,
        compaction_workers: pick(rng, &[1, 1, 2, 4]),
        gc_start: pick(rng, &[0.02, 0.05, 0.2]),
        iterators: iterators(rng),
        tables: TableOptions {
            table_bytes,
            level_base_bytes: table_bytes * pick(rng, &[1, 2, 4]),
            level_multiplier: pick(rng, &[2.0, 4.0, 10.0]),
            l0_compaction_trigger: trigger,
            l0_slowdown_trigger: slowdown,
            l0_stop_trigger: slowdown + pick(rng, &[0, 2, 10]),
            max_compaction_bytes: table_bytes * pick(rng, &[1, 4, 25]),
            soft_pending_bytes: pick(rng, &[16 << 10, 256 << 10, 1 << 30]),
            hard_pending_bytes: 1 << 30,
            delayed_write_bytes_per_s: pick(rng, &[1 << 20, 16 << 20]),
            readahead_bytes: pick(rng, &[1 << 10, 8 << 10, 1 << 20]),
            write_bytes: pick(rng, &[1 << 10, 8 << 10, 1 << 20]),
            ..TableOptions::default()
        },
        ..Options::pink()
    }
}

/// Returns random iterator options.
pub fn iterators(rng: &mut Rng) -> IteratorOptions {
    let (index_prefetch, value_prefetch) = (rng.chance(0.5), pick(rng, &[0, 3, 8]));
    let skip_budget = pick(rng, &[1, 8, 1_024]);
    let buffer_bytes = pick(rng, &[0, 16 << 10, 64 << 10]);
    let readahead_bytes = if skip_budget == 8 { 0 } else { 256 << 10 };
    IteratorOptions {
        index_prefetch,
        value_prefetch,
        skip_budget,
        buffer_bytes,
        readahead_bytes,
        ..IteratorOptions::default()
    }
}

/// Draws the caches and readahead of iterators, and the maximum length of values that are cached
/// with their pages. Uses an RNG of its own, so that the other draws of a seed do not change.
pub fn draw_keeping(options: &mut Options, seed: u64) {
    let rng = &mut Rng::derive(seed, "keeping");
    options.value_pages_up_to = pick(rng, &[0, 0, 60, u32::MAX]);
    let iterators = &mut options.iterators;
    iterators.most_value_prefetch = pick(rng, &[0, 0, 5, 32]);
    iterators.kept_pages = pick(rng, &[0, 0, 4, 128]);
    iterators.cached_pairs = pick(rng, &[0, 0, 3, 1_000]);
}
