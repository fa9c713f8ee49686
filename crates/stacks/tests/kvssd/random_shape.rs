//! Random drives, designs and loads: every user option, with values that no preset has.

use drives::nand::{Geometry, Suspend};
use engine::{
    ColumnOptions, Durability, Filters, HashOptions, MergeBy, OpenError, Options, Preemption,
    TableOptions,
};
use runtime::{Nanos, Rng, Runtime};
use stacks::design::IndexOptions;
use stacks::kvssd::{DeviceProfile, KvDrive, SetupError};
use testkit::trial::Names;
use testkit::trial::designs::{any_sync, draw_keeping, iterators, leveled, pick, tree};

use crate::harness::small_device;
use crate::shape::{Cuts, Shape};

const SUSPEND: Suspend = Suspend {
    program_us: Some(50.0),
    erase_us: Some(150.0),
    resume_us: 50.0,
    min_progress_us: 200.0,
    max_span_us: 1_000.0,
    max_per_operation: 6,
    max_per_program: None,
};

impl Shape {
    /// Returns the drive, the design and the clients of a seed.
    pub(crate) fn of_random_seed(seed: u64) -> Self {
        let mut shape = Self::of_random_seed_without_caches(seed);
        shape.draw_caches(seed);
        shape
    }

    fn of_random_seed_without_caches(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "shape");
        let mut shape = Self {
            device: device(rng),
            engine: engine(rng),
            expected_key_bytes: 30,
            expected_value_bytes: 120,
            keys: pick(rng, &[300, 1_400, 4_000]),
            names: names(rng),
            usual_value: pick(rng, &[40, 240, 240, 1_000]),
            longest_value: pick(rng, &[240, 4_000, 4_000, 65_536]),
            is_filled: rng.chance(0.3),
            clients: pick(rng, &[1, 8, 8, 40]),
            scanners: pick(rng, &[0, 1, 2]),
            sessions: 3,
            cuts: Cuts::Seldom { longest: Nanos::from_millis(500) },
            draws_sync: false,
            slowness: 1,
        };
        if shape.is_filled {
            shape.keys = 8_000;
            shape.clients = shape.clients.max(8);
        }
        shape.draw_inlining(seed);
        shape.make_it_fit(rng);
        shape.draw_journal(rng);
        shape
    }

    /// Makes some designs store small values beside their keys. Drawn from a separate random
    /// stream, so that a seed's other draws do not change.
    pub(crate) fn draw_inlining(&mut self, seed: u64) {
        let up_to =
            pick(&mut Rng::derive(seed, "inlining"), &[0, 0, 0, 1, 40, 240, 2_000, u32::MAX]);
        if let IndexOptions::Lsm(options) = &mut self.engine {
            options.inline_up_to = up_to;
        }
    }

    /// Gives some designs caches, from less than a page to more than the stored data. They are
    /// added to the memory of a seed's drive and drawn from a separate random stream, so that its
    /// other draws do not change.
    pub(crate) fn draw_caches(&mut self, seed: u64) {
        let IndexOptions::Lsm(options) = &mut self.engine else { return };
        let rng = &mut Rng::derive(seed, "caches");
        let sizes = [0, 0, 0, 300, 3 << 10, 10 << 10, 40 << 10, 1 << 20];
        (options.page_cache_bytes, options.value_cache_bytes) =
            (pick(rng, &sizes), pick(rng, &sizes));
        draw_keeping(options, seed);
        self.device.dram.index_bytes += options.cache_bytes();
    }

    /// A drive whose last level has groups.
    pub(crate) fn of_grouped_seed(seed: u64) -> Self {
        Self::of_random_seed(seed).with_groups(seed)
    }

    /// A drive with groups and frequent power cuts.
    pub(crate) fn of_restless_grouped_seed(seed: u64) -> Self {
        Self::of_restless_seed(seed).with_groups(seed)
    }

    /// A drive with legal but extreme parameters whose last level has groups.
    pub(crate) fn of_wild_grouped_seed(seed: u64) -> Self {
        Self::of_wild_seed(seed).with_groups(seed)
    }

    /// Adds groups, and extents in which they are larger than the minimum.
    fn with_groups(mut self, seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "groups");
        let options = self.tree();
        options.group_pages = pick(rng, &[3, 4, 5, 9, 32, 256]);
        options.filters = Filters::None;
        options.merge = MergeBy::Cpu;
        // With fewer pinned levels, the last level and more of the others are on the medium.
        options.pinned_levels = options.pinned_levels.map(|pinned| pinned.min(options.levels - 1));
        options.range_pointers &= rng.chance(0.5);
        let geometry = &mut self.device.flash.geometry;
        geometry.pages_per_block *= pick(rng, &[1, 2, 4, 8]);
        assert!(self.grow_to_fit(), "seed {seed}: it does not fit whatever the drive has");
        self
    }

    /// A drive whose levels consist of tables in columns.
    pub(crate) fn of_columns_seed(seed: u64) -> Self {
        Self::of_random_seed(seed).with_columns(seed)
    }

    /// A drive with tables in columns and frequent power cuts.
    pub(crate) fn of_restless_columns_seed(seed: u64) -> Self {
        Self::of_restless_seed(seed).with_columns(seed)
    }

    /// A drive with legal but extreme parameters whose levels consist of tables in columns.
    pub(crate) fn of_wild_columns_seed(seed: u64) -> Self {
        Self::of_wild_seed(seed)
            .with_columns_if_they_fit(seed)
            .unwrap_or_else(|| Self::of_wild_columns_seed(seed + 1_000_000))
    }

    pub(crate) fn with_columns(self, seed: u64) -> Self {
        let shape = self.with_columns_if_they_fit(seed);
        shape.unwrap_or_else(|| panic!("seed {seed}: it does not fit whatever the drive has"))
    }

    /// Adds tables in columns, and extents in which they have room.
    fn with_columns_if_they_fit(mut self, seed: u64) -> Option<Self> {
        let rng = &mut Rng::derive(seed, "columns");
        let options = self.tree();
        options.columns = Some(ColumnOptions {
            entries: pick(rng, &[16, 60, 200, 4_096]),
            growth: pick(rng, &[1, 2, 2, 10]),
            address_bytes: pick(rng, &[0, 8]),
            filter_bits: pick(rng, &[0, 1, 10, 32]),
            iterators_read_filters: rng.chance(0.5),
        });
        options.pinned_levels = Some(0);
        options.inline_up_to = 0;
        options.filters = Filters::None;
        options.merge = MergeBy::Cpu;
        options.range_pointers &= rng.chance(0.5);
        self.device.flash.geometry.pages_per_block *= pick(rng, &[1, 2, 4, 8]);
        // Whole tables are merged, on one or two dies.
        self.slowness *= 10;
        // Extents with fewer pages have no columns; only few drives should be like that.
        let geometry = &mut self.device.flash.geometry;
        let dies = geometry.channels * geometry.dies_per_channel * geometry.planes_per_die;
        while dies * geometry.pages_per_block < 24 && rng.chance(0.9) {
            geometry.pages_per_block *= 2;
        }
        self.grow_to_fit().then_some(self)
    }

    /// Returns the drive's tree; replaces a hash table by the tree of usual drives.
    fn tree(&mut self) -> &mut Options {
        if let IndexOptions::Hash(_) = &self.engine {
            let usual = Shape::of_seed(0);
            self.engine = usual.engine;
            self.device = usual.device;
        }
        self.engine.lsm_mut().expect("it is a tree now")
    }

    /// Removes the caches and their memory.
    pub(crate) fn without_caches(mut self) -> Self {
        if let IndexOptions::Lsm(options) = &mut self.engine {
            self.device.dram.index_bytes -= options.cache_bytes();
            (options.page_cache_bytes, options.value_cache_bytes) = (0, 0);
        }
        self
    }

    /// Makes some drives have no capacitors. Drawn last, so that a seed's other draws do not
    /// change.
    fn draw_journal(&mut self, rng: &mut Rng) {
        if !rng.chance(0.3) {
            return;
        }
        let sync = any_sync(rng);
        self.engine = self.engine.clone().with_journal(Durability::Log, sync);
        self.draws_sync = rng.chance(0.5);
        assert!(self.grow_to_fit(), "usual sizes fit");
    }

    /// A drive with a power cut every few milliseconds, also during recovery.
    pub(crate) fn of_restless_seed(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "restless");
        Self {
            keys: pick(rng, &[300, 1_400]),
            clients: pick(rng, &[8, 64]),
            is_filled: false,
            sessions: 25,
            cuts: Cuts::Restless,
            ..Self::of_random_seed(seed)
        }
    }

    /// A drive whose levels consist of tables, with triggers that fire all the time.
    pub(crate) fn of_tables_seed(seed: u64) -> Self {
        let rng = &mut Rng::derive(seed, "tables");
        let mut shape = Self::of_random_seed_without_caches(seed);
        shape.engine = leveled(rng).into();
        let sync = any_sync(rng);
        shape.engine = shape.engine.clone().with_journal(Durability::Log, sync);
        shape.draws_sync = rng.chance(0.5);
        shape.scanners = pick(rng, &[0, 1, 2]);
        // Indexes of tables are in memory, and most drives should be full before the memory is.
        shape.device.dram.index_bytes *= pick(rng, &[1, 16, 64, 256]);
        // The log waits for the concurrent writes of flushes and compactions.
        shape.slowness = 10;
        // Tables use extents of their own, so extents should be small.
        shape.device.flash.geometry.page_bytes = pick(rng, &[1_024, 1_024, 2_048]);
        shape.device.flash.geometry.transfer_bytes = shape.device.flash.geometry.page_bytes + 200;
        shape.draw_preemption(seed);
        assert!(shape.grow_to_fit(), "usual sizes fit");
        shape.draw_caches(seed);
        shape
    }

    /// Gives L0 of some designs of tables a worker of its own, to which others give way. Drawn from
    /// a separate random stream, so that a seed's other draws do not change.
    pub(crate) fn draw_preemption(&mut self, seed: u64) {
        let rng = &mut Rng::derive(seed, "preemption");
        let kinds = [Preemption::None, Preemption::None, Preemption::Keep, Preemption::Discard];
        let preemption = pick(rng, &kinds);
        let IndexOptions::Lsm(options) = &mut self.engine else { unreachable!("it has tables") };
        let least = usize::from(preemption != Preemption::None);
        options.tables.l0_workers = least + pick(rng, &[0, 0, 0, 1]);
        options.tables.preemption = preemption;
    }

    /// A drive of tables whose compactions give way to those of L0 all the time.
    pub(crate) fn of_yielding_tables_seed(seed: u64) -> Self {
        let mut shape = Self::of_tables_seed(seed);
        shape.yield_by(if seed.is_multiple_of(3) { Preemption::Keep } else { Preemption::Discard });
        shape
    }

    /// Makes L0 due often, with a worker of its own; levels below it are merged in many steps, L1
    /// most of all.
    pub(crate) fn yield_by(&mut self, preemption: Preemption) {
        self.device.flash.geometry.blocks_per_plane *= 4;
        self.device.dram.index_bytes = 16 << 20;
        self.device.controller.costs.merge_entry_ns = 20_000.0;
        self.keys = self.keys.max(1_400);
        self.clients = 8;
        let IndexOptions::Lsm(options) = &mut self.engine else { unreachable!("it has tables") };
        options.compaction_workers = 4;
        options.memtable_bytes = 4 << 10;
        options.inline_up_to = u32::MAX;
        options.tables = TableOptions {
            table_bytes: 16 << 10,
            level_base_bytes: 16 << 10,
            level_multiplier: 2.0,
            l0_compaction_trigger: 4,
            l0_slowdown_trigger: 8,
            l0_stop_trigger: 12,
            max_compaction_bytes: 32 << 10,
            soft_pending_bytes: 1 << 30,
            readahead_bytes: 1 << 10,
            write_bytes: 1 << 10,
            l0_workers: 1,
            preemption,
            ..options.tables
        };
    }

    /// A drive of tables with frequent power cuts.
    pub(crate) fn of_restless_tables_seed(seed: u64) -> Self {
        let shape = Self::of_tables_seed(seed);
        let keys = shape.keys.min(1_400);
        Self { keys, is_filled: false, sessions: 25, cuts: Cuts::Restless, ..shape }
    }

    /// A drive of tables with much room, and compactions so late that L0 is merged within itself.
    pub(crate) fn of_crowded_tables_seed(seed: u64) -> Self {
        let mut shape = Self { scanners: 0, keys: 1_400, ..Self::of_tables_seed(seed) };
        shape.device.flash.geometry.blocks_per_plane *= 8;
        let IndexOptions::Lsm(options) = &mut shape.engine else { unreachable!("it has tables") };
        shape.device.dram.index_bytes = (16 << 20) + options.cache_bytes();
        options.compaction_workers = 4;
        options.tables = TableOptions {
            l0_compaction_trigger: 2,
            l0_slowdown_trigger: 60,
            l0_stop_trigger: 80,
            max_compaction_bytes: 1 << 30,
            soft_pending_bytes: 1 << 30,
            ..options.tables
        };
        shape
    }

    /// Gives the drive memory and flash until the design fits on it.
    fn make_it_fit(&mut self, rng: &mut Rng) {
        if matches!(self.engine, IndexOptions::Hash(_)) {
            // The hash table has no iterators.
            self.scanners = 0;
        }
        // The minimum of memory, or more.
        self.device.dram.index_bytes *= pick(rng, &[1, 1, 4]);
        assert!(self.grow_to_fit(), "usual sizes fit");
    }

    /// Returns false if the design does not fit even on many blocks: extents are so short that most
    /// of each is unusable.
    pub(crate) fn grow_to_fit(&mut self) -> bool {
        while self.device.flash.geometry.blocks_per_plane < MANY_BLOCKS {
            let rt = Runtime::new(0);
            let formatted = KvDrive::format(&rt.handle(), &self.device, self.options());
            let Err(error) = formatted else { return true };
            let geometry = &mut self.device.flash.geometry;
            match error {
                SetupError::Engine(OpenError::SingleUnit) => geometry.pages_per_block *= 2,
                SetupError::TooSmall { .. }
                | SetupError::Engine(OpenError::TooFewExtents { .. }) => {
                    geometry.blocks_per_plane += 4;
                }
                SetupError::Engine(_) => {
                    self.device.dram.index_bytes += self.device.dram.index_bytes / 3;
                }
            }
        }
        false
    }
}

const MANY_BLOCKS: u32 = 1_000;

fn names(rng: &mut Rng) -> Names {
    pick(rng, &[Names::Usual, Names::Usual, Names::UpTo(4), Names::UpTo(60), Names::UpTo(255)])
}

fn device(rng: &mut Rng) -> DeviceProfile {
    let mut device = small_device();
    // MLC page by page, one-shot TLC, SLC.
    let (bits_per_cell, one_shot, pages_per_block) =
        pick(rng, &[(2, false, 8), (2, false, 16), (3, true, 6), (3, true, 12), (1, false, 4)]);
    let bits = bits_per_cell as usize;
    let page_bytes = pick(rng, &[1_024, 1_024, 2_048, 4_096, 16_384]);
    device.flash.geometry = Geometry {
        channels: pick(rng, &[1, 2]),
        dies_per_channel: pick(rng, &[1, 2, 3]),
        planes_per_die: pick(rng, &[1, 2]),
        blocks_per_plane: pick(rng, &[24, 32, 40]),
        pages_per_block,
        page_bytes,
        spare_bytes: pick(rng, &[0, 32]),
        transfer_bytes: page_bytes + page_bytes / 16 + 32,
        one_shot,
        bits_per_cell,
    };
    let timing = &mut device.flash.timing;
    timing.read_us = [49.0, 58.0, 67.0][..bits].into();
    let programs = if rng.chance(0.5) { [300.0, 500.0] } else { [2_000.0, 1_200.0] };
    timing.program_us = programs[..if one_shot { 1 } else { bits.min(2) }].into();
    timing.erase_us = pick(rng, &[100.0, 900.0, 3_500.0]);
    timing.background_deadline_us = pick(rng, &[100.0, 1_000.0, 20_000.0]);
    device.flash.suspend = rng.chance(0.3).then_some(SUSPEND);
    device.controller.queue_depth = pick(rng, &[2, 64, 64]);
    device.controller.cores = pick(rng, &[1, 4, 16]);
    if rng.chance(0.15) {
        // The result of a lookup is old when it is used.
        device.controller.costs.key_compare_ns = 40_000.0;
        device.controller.cores = 16;
    }
    device.dram.index_bytes = 8 << 10;
    device.dram.iterator_bytes = pick(rng, &[16 << 10, 256 << 10]);
    device
}

fn engine(rng: &mut Rng) -> IndexOptions {
    let memtable_bytes = pick(rng, &[1 << 10, 4 << 10, 4 << 10, 16 << 10]);
    match rng.below(10) {
        0 | 1 => IndexOptions::Hash(HashOptions {
            buffer_entries: pick(rng, &[10, 40, 200]),
            buffer_bytes: memtable_bytes,
            frozen_buffers: pick(rng, &[1, 1, 2, 3]),
            gc_start: pick(rng, &[0.05, 0.2]),
        }),
        2..5 => Options {
            memtable_bytes,
            iterators: iterators(rng),
            ..pick(rng, &[Options::pink, Options::pink_hw, Options::lightstore])()
        }
        .into(),
        _ => loop {
            let options = tree(rng, memtable_bytes);
            if options.problems().is_empty() {
                return options.into();
            }
        },
    }
}
