//! Level arithmetic: the size of each level, and its cost in memory. The formulas are those of the
//! `PinK` paper and its authors' calculator; the tests reproduce the published memory table.

pub(crate) mod input;
pub mod monkey;
pub mod pair;
pub(crate) mod start;
pub mod tables;

pub(crate) use crate::sizing::input::{PAGE_ADDRESS_BYTES, RANGE_POINTER_BYTES};
pub use crate::sizing::input::{Room, SizingInput};
pub use crate::sizing::start::input_for;

use crate::format::pointer::PointerFormat;
use crate::medium::Shape;

/// Returns the bytes of a stored pointer on a drive of `capacity_bytes`.
pub fn pointer_bytes(capacity_bytes: u64, page_bytes: u32) -> usize {
    let pages_per_extent = 1 << 14;
    let extents = (capacity_bytes / u64::from(page_bytes)).div_ceil(pages_per_extent) as u32;
    let shape = Shape {
        payload_bytes: page_bytes,
        page_bytes,
        pages_per_extent: pages_per_extent as u32,
        extents,
        grows_to: 0,
        append_unit: 1,
        parallelism: 1,
    };
    PointerFormat::new(&shape).bytes
}

/// The growth of level sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LevelSizing {
    /// One factor from each level to the next.
    Symmetric,
    /// The pinned levels get the largest factor that memory allows; the last level gets the rest.
    Asymmetric,
}

/// Level capacities in segments, L1 first, and the number of top levels in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelPlan {
    /// Segments per level.
    pub capacities: Vec<u64>,
    /// The number of levels in memory: L1 to L`pinned`.
    pub pinned: u32,
    /// Growth factor of the pinned levels (all levels if symmetric).
    pub factor: f64,
    /// Growth factor into the last level.
    pub last_factor: f64,
    /// Memory by use, in bytes.
    pub memory: PlannedMemory,
}

impl LevelPlan {
    /// Returns the empty plan of levels made of tables, whose sizes have separate rules.
    pub(crate) fn of_tables(levels: u32) -> Self {
        Self {
            capacities: vec![0; levels as usize],
            pinned: 0,
            factor: 0.0,
            last_factor: 0.0,
            memory: PlannedMemory::default(),
        }
    }
}

/// The memory of a plan, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedMemory {
    /// Level lists of all levels.
    pub level_lists: u64,
    /// Prefixes.
    pub prefixes: u64,
    /// Range pointers.
    pub range_pointers: u64,
    /// Pinned segments.
    pub pinned: u64,
    /// Bloom filters.
    pub filters: u64,
}

impl PlannedMemory {
    /// Returns the sum of all fields.
    pub fn total(&self) -> u64 {
        self.level_lists + self.prefixes + self.range_pointers + self.pinned + self.filters
    }
}

/// Pinning may raise the write amplification to this multiple of that with every level in flash.
const MOST_AMPLIFICATION: f64 = 1.5;

/// Returns the level sizes for `pinned` levels in memory. `None` pins as many as fit without
/// raising write amplification by more than half, compared with a tree with every level in flash:
/// each level in memory saves a Get one read, but if little can be pinned, the levels below must be
/// so much larger that most of the bytes written are the index's.
pub fn plan(input: &SizingInput, sizing: LevelSizing, pinned: Option<u32>) -> LevelPlan {
    if let Some(pinned) = pinned {
        // As published: symmetric unless one level is left.
        let sizing = if pinned + 1 == input.levels { sizing } else { LevelSizing::Symmetric };
        return plan_for(input, sizing, pinned.min(input.levels));
    }
    let in_flash = plan_for(input, sizing, 0);
    let most = MOST_AMPLIFICATION * in_flash.amplification(input);
    let is_cheap = |plan: &LevelPlan| {
        let upper = plan.capacities[..plan.capacities.len() - 1].iter().sum::<u64>();
        let taken = plan.memory.pinned + upper * input.bytes_per_upper_segment();
        taken <= input.bytes_for_pinning() && plan.amplification(input) <= most
    };
    let mut plans = (1..input.levels).rev().map(|pinned| plan_for(input, sizing, pinned));
    plans.find(is_cheap).unwrap_or(in_flash)
}

/// An empty store is planned for this fraction (1/64) of a full one.
const FIRST_PART: u64 = 64;

/// Returns the plan of an empty store. It is the plan of a full store if that has all levels but
/// the last in memory, because then it never changes. Otherwise the memory that a full store needs
/// for its level lists is better used for pinned levels at first: the plan is for a small store,
/// and new plans follow as it grows.
pub fn first_plan(input: &SizingInput, sizing: LevelSizing, pinned: Option<u32>) -> LevelPlan {
    let full = plan(input, sizing, pinned);
    if pinned.is_some() || full.is_final(input) {
        return full;
    }
    let in_half_of_memory = input.dram_bytes / 2 / input.list_bytes_per_segment();
    let stored = (input.segments_at_capacity() / FIRST_PART).min(in_half_of_memory);
    let stored_segments = Some(stored.max(1));
    plan(&SizingInput { stored_segments, ..input.clone() }, sizing, pinned)
}

fn plan_for(input: &SizingInput, sizing: LevelSizing, pinned: u32) -> LevelPlan {
    let is_asymmetric = sizing == LevelSizing::Asymmetric && pinned > 0 && pinned < input.levels;
    let (factor, last_factor, capacities) =
        if is_asymmetric { asymmetric(input, pinned) } else { symmetric(input) };
    let of = |levels: usize| capacities[..levels].iter().sum::<u64>();
    let upper = of(capacities.len() - 1);
    let besides = input.listed_besides(upper);
    let memory = PlannedMemory {
        level_lists: input.level_list_bytes() + besides * (input.key_bytes + input.pointer_bytes),
        prefixes: (input.listed_at_capacity() + besides) * input.prefix_bytes,
        range_pointers: upper * input.range_pointer_bytes,
        pinned: of(pinned as usize) * input.segment_bytes,
        filters: 0,
    };
    let mut plan = LevelPlan { capacities, pinned, factor, last_factor, memory };
    plan.memory.filters = monkey::memory_bytes(&plan.keys(input), &plan.filter_bits(input));
    plan
}

impl LevelPlan {
    /// Returns the keys of each level that is not pinned, when it is full.
    pub fn keys(&self, input: &SizingInput) -> Vec<u64> {
        let keys = self.capacities.iter().map(|segments| segments * input.entries_per_segment);
        (0..).zip(keys).map(|(n, keys)| if n < self.pinned { 0 } else { keys }).collect()
    }

    /// Whether the plan of a full store has all levels but the last in memory: then it never
    /// changes.
    pub(crate) fn is_final(&self, input: &SizingInput) -> bool {
        self.pinned + 1 >= input.levels && self.memory.total() <= input.dram_bytes
    }

    /// Returns the bytes written to flash per byte of pairs, if every level is full and keys arrive
    /// in random order. Garbage collection, and the log if there is one, are not included.
    pub fn amplification(&self, input: &SizingInput) -> f64 {
        self.index_amplification(input) + input.value_amplification()
    }

    /// Returns the index's part of [`Self::amplification`]: when an entry moves down, as many
    /// entries of the next level are rewritten as that level is larger. During the load of an empty
    /// store it is about half.
    pub fn index_amplification(&self, input: &SizingInput) -> f64 {
        let pairs_per_segment = input.pair_bytes * input.entries_per_segment;
        let flushed = input.memtable_bytes as f64 / pairs_per_segment as f64;
        let sizes = self.capacities.iter().map(|segments| *segments as f64);
        let above = std::iter::once(flushed).chain(sizes.clone());
        let free_levels = if input.writes_pinned { 0 } else { self.pinned };
        let written_to = sizes.zip(above).skip(free_levels as usize);
        // `sum()` of nothing would be -0.
        let entries = written_to.fold(0.0, |sum, (own, above)| sum + 1.0 + own / above);
        let entry_bytes = input.segment_bytes as f64 / input.entries_per_segment as f64;
        entries * entry_bytes / input.pair_bytes as f64
    }

    /// Returns the bits per key of each level's Bloom filters; 0 for levels without filters.
    pub fn filter_bits(&self, input: &SizingInput) -> Vec<f64> {
        let others = PlannedMemory { filters: 0, ..self.memory };
        let room = input.dram_bytes.saturating_sub(others.total());
        if !input.has_filters {
            return vec![0.0; self.capacities.len()];
        }
        let mut bits = monkey::bits_per_key(&self.keys(input), room);
        bits[..self.pinned as usize].fill(0.0);
        bits
    }
}

/// Returns capacities of `factor^n` segments for level `n`.
fn powers(factor: f64, levels: u32) -> Vec<u64> {
    (1..=levels).map(|n| (factor.powi(n as i32).round() as u64).max(1)).collect()
}

/// The published search: start at the root of the total and decrease in steps of 0.05 until all
/// levels together hold no more than the fill target.
fn symmetric(input: &SizingInput) -> (f64, f64, Vec<u64>) {
    let total = input.segments_at_fill().max(1);
    let start = (total as f64).powf(1.0 / f64::from(input.levels)).ceil();
    let factors = (0..).map(|step| start - 0.05 * f64::from(step)).take_while(|t| *t > 2.0);
    for factor in factors {
        let capacities = powers(factor, input.levels);
        if capacities.iter().sum::<u64>() <= total {
            return (factor, factor, capacities);
        }
    }
    (2.0, 2.0, powers(2.0, input.levels))
}

/// The published search: decrease from the symmetric factor in steps of 0.1 until the pinned levels
/// fit in the remaining memory; the last level takes the rest of the fill target. Levels between
/// them, which are not published, grow by one factor from the last pinned level.
fn asymmetric(input: &SizingInput, pinned: u32) -> (f64, f64, Vec<u64>) {
    let total = input.segments_at_fill().max(1);
    let room = input.bytes_for_pinning();
    let start = (total as f64).powf(1.0 / f64::from(input.levels)).ceil();
    // With much memory a larger factor also fits: pinning less than fits has no benefit.
    let start = start.max((room as f64 / input.segment_bytes as f64).powf(1.0 / f64::from(pinned)));
    let fits = |factor: f64| {
        let capacities = below_pinned(powers(factor, pinned), input.levels, total);
        let (_, upper) = capacities.split_last().expect("there is a last level");
        let in_memory: u64 = capacities[..pinned as usize].iter().sum();
        let of_upper = upper.iter().sum::<u64>() * input.bytes_per_upper_segment();
        in_memory * input.segment_bytes + of_upper <= room && in_memory <= total
    };
    let mut factors =
        (0..).map(|step| start.ceil() - 0.1 * f64::from(step)).take_while(|t| *t > 2.0);
    let factor = factors.find(|t| fits(*t)).unwrap_or(2.0);
    let capacities = below_pinned(powers(factor, pinned), input.levels, total);
    let [.., above, last] = capacities[..] else { panic!("there are two levels at least") };
    let last_factor = last as f64 / above as f64;
    (factor, last_factor, capacities)
}

/// Adds the levels below the pinned ones, so that all levels together have `total` segments.
fn below_pinned(mut capacities: Vec<u64>, levels: u32, total: u64) -> Vec<u64> {
    let last_pinned = *capacities.last().expect("a level is pinned");
    let unpinned = levels - capacities.len() as u32;
    let ratio = total as f64 / last_pinned as f64;
    let factor = ratio.powf(1.0 / f64::from(unpinned)).max(1.0);
    let size = |n: u32| (last_pinned as f64 * factor.powi(n as i32)).round() as u64;
    capacities.extend((1..unpinned).map(size));
    let upper: u64 = capacities.iter().sum();
    capacities.push(total.saturating_sub(upper).max(1));
    capacities
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: f64 = (1_u64 << 20) as f64;

    /// The paper's drive: 64 GB, 64 MB, 32 B keys, 1 KB pairs, 8 KB pages of 256 entries.
    fn paper() -> SizingInput {
        SizingInput {
            fill_bytes: 448 * GIB / 10,
            capacity_bytes: 64 * GIB,
            stored_segments: None,
            pair_bytes: 1024,
            key_bytes: 32,
            pointer_bytes: 4,
            entries_per_segment: 256,
            segment_bytes: 8192,
            prefix_bytes: 0,
            group_segments: 1,
            range_pointer_bytes: 0,
            has_filters: false,
            dram_bytes: GIB / 16,
            levels: 4,
            memtable_bytes: 1 << 20,
            value_log_bytes: 1170.0,
            writes_pinned: false,
        }
    }

    #[test]
    fn the_paper_s_memory_table_for_64_gb() {
        let input = paper();
        assert_eq!(input.segments_at_capacity(), 262_144);
        assert!((input.level_list_bytes() as f64 / MIB - 9.0).abs() < 0.001);
        assert!((input.bytes_for_pinning() as f64 / MIB - 55.0).abs() < 0.001);
        let plan = plan(&input, LevelSizing::Asymmetric, None);
        assert_eq!(plan.pinned, 3);
        assert!((plan.factor - 18.8).abs() < 0.01, "factor {}", plan.factor);
        assert_eq!(plan.capacities[..3], [19, 353, 6645]);
        assert!((plan.last_factor - 26.56).abs() < 0.01, "last factor {}", plan.last_factor);
        assert!((plan.memory.pinned as f64 / MIB - 54.8).abs() < 0.05);
    }

    #[test]
    fn prefixes_and_range_pointers_make_ten_megabytes_of_lists() {
        let input = SizingInput { prefix_bytes: 4, range_pointer_bytes: 8, ..paper() };
        let plan = plan(&input, LevelSizing::Asymmetric, None);
        let memory = plan.memory;
        let lists = memory.level_lists + memory.prefixes + memory.range_pointers;
        assert!((lists as f64 / MIB - 10.0).abs() < 0.1, "{lists} bytes");
        let pinned = memory.pinned as f64 / MIB;
        assert!((53.0..=54.1).contains(&pinned), "{pinned} MiB pinned");
        assert!(lists + memory.pinned <= input.dram_bytes);
    }

    #[test]
    fn an_entry_is_written_as_often_as_levels_are_larger_than_those_above() {
        // One level in flash, 26.6 times the one above, entries of 32 bytes, pairs of 1024.
        let input = paper();
        let plan = plan(&input, LevelSizing::Asymmetric, None);
        let written = plan.index_amplification(&input);
        assert!((written - 27.56 * 32.0 / 1024.0).abs() < 0.01, "{written}");
        assert!((plan.amplification(&input) - written - 1170.0 / 1024.0).abs() < 1e-9);
        // All levels in flash: each of four costs its factor; the memtable has four segments.
        let of_all = plan.index_amplification(&SizingInput { writes_pinned: true, ..input });
        let factors = 19.0 / 4.0 + 353.0 / 19.0 + 6645.0 / 353.0 + 26.56;
        assert!((of_all - (4.0 + factors) * 32.0 / 1024.0).abs() < 0.01, "{of_all}");
    }

    /// Pairs of 16 + 64 bytes on the paper's drive, in segments of 340 entries.
    fn short_pairs() -> SizingInput {
        let (pair_bytes, key_bytes, entries_per_segment) = (80, 16, 340);
        SizingInput {
            pair_bytes,
            key_bytes,
            entries_per_segment,
            value_log_bytes: 100.0,
            ..paper()
        }
    }

    #[test]
    fn fewer_levels_are_pinned_where_the_last_would_be_far_larger_than_those_above() {
        let input = short_pairs();
        let all = plan(&input, LevelSizing::Asymmetric, Some(3));
        assert!(all.last_factor > 100.0, "{}", all.last_factor);
        let chosen = plan(&input, LevelSizing::Asymmetric, None);
        let of = |pinned| plan_for(&input, LevelSizing::Asymmetric, pinned).amplification(&input);
        assert!(chosen.pinned < 3, "{chosen:?}");
        assert!(chosen.amplification(&input) <= 1.5 * of(0));
        assert!((chosen.pinned + 1..4).all(|pinned| of(pinned) > 1.5 * of(0)));
        assert!(5.0 * chosen.amplification(&input) < all.amplification(&input));
    }

    #[test]
    fn what_is_planned_fits_with_range_pointers_between_levels_in_flash() {
        for pair_bytes in [60, 80, 144, 272, 1040] {
            for dram_bytes in [1 << 16, 1 << 20, 16 << 20, 64 << 20, 300 << 20] {
                let aids = SizingInput { prefix_bytes: 4, range_pointer_bytes: 4, ..short_pairs() };
                let input = SizingInput { pair_bytes, dram_bytes, ..aids };
                let first = first_plan(&input, LevelSizing::Asymmetric, None);
                let needed = first.memory.total();
                assert!(needed <= dram_bytes, "{needed} of {dram_bytes}: {pair_bytes}, {first:?}");
            }
        }
    }

    #[test]
    fn levels_below_the_pinned_ones_grow_by_one_factor() {
        let input = short_pairs();
        let LevelPlan { capacities, .. } = plan_for(&input, LevelSizing::Asymmetric, 1);
        let ratios: Vec<f64> = capacities.windows(2).map(|w| w[1] as f64 / w[0] as f64).collect();
        let total: u64 = capacities.iter().sum();
        assert_eq!(total, input.segments_at_fill());
        assert!(ratios.iter().all(|ratio| (ratio / ratios[0] - 1.0).abs() < 0.15), "{ratios:?}");
    }

    #[test]
    fn a_store_begins_with_the_plan_for_a_full_one_only_if_that_pins_all_levels_but_the_last() {
        let asymmetric = LevelSizing::Asymmetric;
        let first = first_plan(&paper(), asymmetric, None);
        assert_eq!(first, plan(&paper(), asymmetric, None));
        let input = short_pairs();
        let first = first_plan(&input, asymmetric, None);
        let part: u64 = first.capacities.iter().sum();
        assert_eq!((first.pinned, part), (3, input.segments_at_capacity() / FIRST_PART));
        let fixed = first_plan(&input, asymmetric, Some(1));
        assert_eq!(fixed, plan(&input, asymmetric, Some(1)));
        // Memory that cannot hold the lists of a full store is enough for a small store.
        let poor = SizingInput { dram_bytes: 100, ..short_pairs() };
        assert!(plan(&poor, asymmetric, None).memory.total() > poor.dram_bytes);
        assert!(first_plan(&poor, asymmetric, None).memory.total() <= poor.dram_bytes);
    }

    #[test]
    fn symmetric_sizes_do_not_fit_the_paper_s_memory() {
        let plan = plan(&paper(), LevelSizing::Symmetric, Some(3));
        assert!((20.4..=21.0).contains(&plan.factor), "factor {}", plan.factor);
        let mib = plan.memory.pinned as f64 / MIB;
        assert!((69.0..=77.0).contains(&mib), "{mib} MiB");
    }

    #[test]
    fn four_terabytes_with_four_gigabytes() {
        // The authors' calculator: 32 KB pages, 910 entries each.
        let input = SizingInput {
            fill_bytes: 4096 * GIB,
            capacity_bytes: 4096 * GIB,
            entries_per_segment: 910,
            segment_bytes: 32_768,
            dram_bytes: 4 * GIB,
            ..paper()
        };
        let plan = plan(&input, LevelSizing::Symmetric, None);
        assert_eq!(plan.pinned, 3);
        assert!((plan.factor - 46.35).abs() < 0.06, "factor {}", plan.factor);
        let mib = |n: usize| plan.capacities[n] as f64 * 32_768.0 / MIB;
        assert!((mib(0) - 1.47).abs() < 0.05, "L1 {}", mib(0));
        assert!((mib(1) - 67.2).abs() < 0.7, "L2 {}", mib(1));
        assert!((mib(2) - 3112.0).abs() < 30.0, "L3 {}", mib(2));
        assert!((plan.memory.level_lists as f64 / MIB - 162.0).abs() < 0.5);
        assert!(plan.memory.level_lists + plan.memory.pinned < input.dram_bytes);
    }

    #[test]
    fn filters_take_what_lists_and_pinned_levels_leave() {
        let input = SizingInput { has_filters: true, ..paper() };
        let unpinned = plan(&input, LevelSizing::Symmetric, Some(0));
        let total = unpinned.memory.total();
        assert!(total <= input.dram_bytes && total > input.dram_bytes - 64, "{total} bytes");
        assert!((unpinned.memory.filters as f64 / MIB - 55.0).abs() < 0.01);
        let vain = monkey::expected_vain_reads(&unpinned.filter_bits(&input));
        assert!((0.005..0.012).contains(&vain), "{vain} reads in vain");
        let pinned = plan(&input, LevelSizing::Symmetric, Some(2));
        let bits = pinned.filter_bits(&input);
        assert!(bits[..2] == [0.0, 0.0] && bits[2] > bits[3], "{bits:?}");
        assert!(pinned.memory.total() <= input.dram_bytes);
    }

    #[test]
    fn without_memory_nothing_is_pinned() {
        let plan = plan(&SizingInput { dram_bytes: 0, ..paper() }, LevelSizing::Asymmetric, None);
        assert_eq!((plan.pinned, plan.memory.pinned), (0, 0));
    }
}
