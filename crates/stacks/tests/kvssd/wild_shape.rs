//! Legal but extreme drives and designs: extents of two append units, pages of 512 bytes to 64 KiB,
//! memtables larger than extents or smaller than values, dozens of levels, workers and waiting
//! memtables, times from one extreme to the other, keys that differ only in their last bytes.

use drives::nand::Geometry;
use engine::sizing::LevelSizing;
use engine::{
    Durability, Filters, Granularity, HashOptions, IteratorOptions, MergeBy, Options, TableOptions,
};
use runtime::{Nanos, Rng};
use stacks::design::IndexOptions;
use stacks::kvssd::DeviceProfile;
use testkit::trial::Names;
use testkit::trial::designs::{any_sync, leveled, pick};

use crate::harness::small_device;
use crate::shape::{Cuts, Shape};

fn device(rng: &mut Rng) -> DeviceProfile {
    let mut device = small_device();
    let (bits_per_cell, one_shot, pages_per_block) = pick(
        rng,
        &[
            (2, false, 4),
            (2, false, 16),
            (3, true, 3),
            (3, true, 6),
            (3, true, 24),
            (1, false, 4),
            (4, true, 8),
        ],
    );
    let bits_per_cell: u32 = bits_per_cell;
    let bits = bits_per_cell as usize;
    let page_bytes = pick(rng, &[512, 1_024, 2_048, 4_096, 4_096, 8_192, 16_384, 65_536]);
    device.flash.geometry = Geometry {
        channels: pick(rng, &[1, 2, 4]),
        dies_per_channel: pick(rng, &[1, 2, 3]),
        planes_per_die: pick(rng, &[1, 2, 4]),
        blocks_per_plane: pick(rng, &[12, 16, 24, 40, 64]),
        pages_per_block,
        page_bytes,
        spare_bytes: pick(rng, &[0, 32, 512]),
        transfer_bytes: page_bytes + page_bytes / 16 + 512,
        one_shot,
        bits_per_cell,
    };
    let timing = &mut device.flash.timing;
    timing.read_us = [pick(rng, &[5.0, 49.0]), 58.0, 67.0, 80.0][..bits].into();
    let programs =
        pick(rng, &[[300.0, 500.0], [2_000.0, 1_200.0], [20.0, 30.0], [10_000.0, 10_000.0]]);
    timing.program_us = programs[..if one_shot { 1 } else { bits.min(2) }].into();
    timing.erase_us = pick(rng, &[100.0, 900.0, 10_000.0]);
    timing.background_deadline_us = pick(rng, &[100.0, 1_000.0, 20_000.0]);
    device.controller.queue_depth = pick(rng, &[1, 2, 64, 64]);
    device.controller.cores = pick(rng, &[1, 4, 16]);
    device.dram.index_bytes = 8 << 10;
    device.dram.iterator_bytes = pick(rng, &[1 << 10, 16 << 10, 256 << 10]);
    device
}

fn engine(rng: &mut Rng) -> IndexOptions {
    let memtable_bytes = pick(rng, &[1 << 10, 1 << 10, 4 << 10, 16 << 10, 64 << 10]);
    if rng.chance(0.3) {
        return IndexOptions::Hash(HashOptions {
            buffer_entries: pick(rng, &[1, 2, 10, 40, 400]),
            buffer_bytes: memtable_bytes,
            frozen_buffers: pick(rng, &[1, 1, 2, 3, 8]),
            gc_start: pick(rng, &[0.01, 0.05, 0.2, 0.4]),
        });
    }
    loop {
        let levels = 2 + rng.below(10) as u32;
        let options = Options {
            levels,
            memtable_bytes,
            frozen_memtables: pick(rng, &[1, 1, 2, 3, 8, 12]),
            level_sizing: pick(rng, &[LevelSizing::Symmetric, LevelSizing::Asymmetric]),
            pinned_levels: rng.chance(0.5).then(|| rng.below(u64::from(levels) + 1) as u32),
            prefix_bytes: pick(rng, &[0, 1, 4, 8]),
            range_pointers: rng.chance(0.5),
            filters: pick(rng, &[Filters::None, Filters::Monkey]),
            compaction: pick(rng, &[Granularity::Partial, Granularity::Whole]),
            merge: pick(rng, &[MergeBy::Cpu, MergeBy::Accelerator]),
            compaction_workers: pick(rng, &[1, 2, 4, 8, 16]),
            fill: pick(rng, &[0.05, 0.5, 0.7, 0.9, 0.99]),
            gc_start: pick(rng, &[0.01, 0.05, 0.2, 0.45]),
            iterators: IteratorOptions {
                index_prefetch: rng.chance(0.5),
                value_prefetch: pick(rng, &[0, 3, 64]),
                skip_budget: pick(rng, &[1, 8, 1_024]),
                buffer_bytes: pick(rng, &[0, 16 << 10, 64 << 10]),
                ..IteratorOptions::default()
            },
            ..Options::pink()
        };
        if options.problems().is_empty() {
            return options.into();
        }
    }
}

impl Shape {
    /// Returns the drive, the design and the clients of a seed.
    pub(crate) fn of_wild_seed(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "wild");
        let mut shape = Self {
            device: device(rng),
            engine: engine(rng),
            expected_key_bytes: pick(rng, &[4, 30, 255]),
            expected_value_bytes: pick(rng, &[1, 120, 4_000]),
            keys: pick(rng, &[100, 300, 1_400, 4_000]),
            names: pick(
                rng,
                &[Names::Usual, Names::UpTo(4), Names::UpTo(255), Names::Deep, Names::Deep],
            ),
            usual_value: pick(rng, &[1, 40, 240, 240, 1_000, 8_000]),
            longest_value: pick(rng, &[1, 240, 4_000, 65_536, u32::MAX - 1]),
            is_filled: rng.chance(0.3),
            clients: pick(rng, &[1, 8, 8, 40, 100]),
            scanners: pick(rng, &[0, 1, 2]),
            sessions: 3,
            cuts: Cuts::Seldom { longest: Nanos::from_millis(500) },
            draws_sync: rng.chance(0.5),
            slowness: 20,
        };
        if shape.is_filled {
            shape.keys = 8_000;
            shape.clients = shape.clients.max(8);
        }
        if matches!(shape.engine, IndexOptions::Hash(_)) {
            shape.expected_key_bytes = 30;
            shape.expected_value_bytes = shape.expected_value_bytes.max(120);
            shape.scanners = 0;
        }
        if rng.chance(0.7) {
            let sync = any_sync(rng);
            shape.engine = shape.engine.clone().with_journal(Durability::Log, sync);
        }
        shape.draw_inlining(seed);
        shape.device.dram.index_bytes *= pick(rng, &[1, 1, 4]);
        if !shape.grow_to_fit() {
            return Self::of_wild_seed(seed + 1_000_000);
        }
        shape.draw_caches(seed);
        shape
    }

    /// An extreme drive whose levels consist of tables.
    pub(crate) fn of_wild_tables_seed(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "wild tables");
        let mut shape = Self::of_wild_seed(seed);
        let options = leveled(rng);
        let trigger = pick(rng, &[1, 2, 4, 20]);
        let slowdown = trigger + pick(rng, &[0, 1, 30]);
        let bits = pick(rng, &[1, 7, 40]);
        let tables = TableOptions {
            table_bytes: pick(rng, &[1 << 10, 10 << 10, 1 << 20]),
            level_base_bytes: pick(rng, &[1 << 10, 100 << 10, 1 << 20]),
            level_multiplier: pick(rng, &[1.0, 3.0, 100.0]),
            l0_compaction_trigger: trigger,
            l0_slowdown_trigger: slowdown,
            l0_stop_trigger: slowdown + pick(rng, &[0, 1, 30]),
            max_compaction_bytes: pick(rng, &[1 << 20, 3 << 20, 1 << 40]),
            soft_pending_bytes: pick(rng, &[1 << 10, 100 << 10, 1 << 40]),
            hard_pending_bytes: pick(rng, &[1 << 40, 1 << 50]),
            ..options.tables
        };
        shape.engine = Options {
            levels: 2 + rng.below(10) as u32,
            memtable_bytes: pick(rng, &[1 << 10, 4 << 10, 64 << 10]),
            frozen_memtables: pick(rng, &[1, 2, 8]),
            filters: pick(rng, &[Filters::None, Filters::Bits(bits)]),
            compaction_workers: pick(rng, &[1, 2, 8]),
            tables,
            ..options
        }
        .into();
        let sync = any_sync(rng);
        shape.engine = shape.engine.with_journal(Durability::Log, sync);
        shape.scanners = pick(rng, &[0, 1, 2]);
        shape.device.dram.index_bytes = pick(rng, &[16 << 10, 1 << 20, 16 << 20]);
        shape.slowness = 60;
        shape.draw_preemption(seed);
        if !shape.grow_to_fit() {
            return Self::of_wild_tables_seed(seed + 1_000_000);
        }
        shape.draw_caches(seed);
        shape
    }

    /// An extreme drive of tables with frequent power cuts.
    pub(crate) fn of_restless_wild_tables_seed(seed: u64) -> Self {
        let wild = Self::of_wild_tables_seed(seed);
        let keys = wild.keys.min(1_400);
        Self { keys, is_filled: false, sessions: 25, cuts: Cuts::Restless, ..wild }
    }

    /// An extreme drive with frequent power cuts.
    pub(crate) fn of_restless_wild_seed(seed: u64) -> Self {
        let wild = Self::of_wild_seed(seed);
        let keys = wild.keys.min(1_400);
        Self { keys, is_filled: false, sessions: 25, cuts: Cuts::Restless, ..wild }
    }
}
