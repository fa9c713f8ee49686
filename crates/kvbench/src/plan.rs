//! Calculates the needs of a design on a drive of a given size, without a simulation.

mod collection;
mod heading;
mod levels;
mod levels_text;
mod tables;

use std::ops::RangeInclusive;

use engine::sizing::pair::Pair;
use engine::sizing::{Room, SizingInput};
use engine::{OpenError, Options, sizing};
use report::units::{bytes_text, count_text};

pub use levels::LevelsPlan;
pub use tables::TablesPlan;

/// Allowed lengths of keys, in bytes.
pub const KEY_BYTES: RangeInclusive<u64> = 1..=engine::MAX_KEY_BYTES as u64;
/// Allowed lengths of values, in bytes.
pub const VALUE_BYTES: RangeInclusive<u64> = 0..=engine::MAX_VALUE_BYTES as u64;
/// Allowed sizes of pages, in bytes; a page size is a power of two.
pub const PAGE_BYTES: RangeInclusive<u64> = 1 << 10..=64 << 10;
/// Allowed sizes of a drive's flash, in bytes.
pub const CAPACITY_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 50;
/// Allowed memory for the index, in bytes.
pub const DRAM_BYTES: RangeInclusive<u64> = 0..=1 << 45;
/// Allowed numbers of levels below the memtable.
pub const LEVELS: RangeInclusive<u64> = 2..=12;

/// A drive, its pairs and a design.
#[derive(Clone, Debug)]
pub struct PlanSpec {
    /// Size of the flash, in bytes.
    pub capacity_bytes: u64,
    /// Memory for the index, in bytes.
    pub dram_bytes: u64,
    /// Key length, in bytes.
    pub key_bytes: u32,
    /// Value length, in bytes.
    pub value_bytes: u32,
    /// Page size, in bytes.
    pub page_bytes: u32,
    /// The design.
    pub design: Options,
}

/// The plan of a design on a drive.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A plan with levels of segments.
    Levels(LevelsPlan),
    /// A plan with levels of tables.
    Tables(TablesPlan),
}

impl Plan {
    /// Returns the problem if the memory is too small.
    pub fn shortage(&self) -> Option<String> {
        match self {
            Self::Levels(plan) => plan.shortage(),
            Self::Tables(plan) => plan.shortage(),
        }
    }
}

/// Plans the levels of `spec`.
///
/// # Errors
/// Returns a text that names the invalid number.
pub fn plan(spec: &PlanSpec) -> Result<Plan, String> {
    if !KEY_BYTES.contains(&u64::from(spec.key_bytes)) {
        return Err(format!("a key has 1 to 255 bytes, not {}", spec.key_bytes));
    }
    if !VALUE_BYTES.contains(&u64::from(spec.value_bytes)) {
        return Err(format!("a value has 0 B to 2 MiB, not {} bytes", spec.value_bytes));
    }
    if !spec.page_bytes.is_power_of_two() || !(1024..=65_536).contains(&spec.page_bytes) {
        return Err(format!(
            "a page has a power of two from 1 KiB to 64 KiB, not {} bytes",
            spec.page_bytes
        ));
    }
    if let Some(problem) = spec.design.problems().into_iter().next() {
        return Err(problem);
    }
    if let Some(pinned) = spec.design.pinned_levels.filter(|pinned| *pinned > spec.design.levels) {
        return Err(format!(
            "pinned_levels is {pinned}, and there are {} levels: pin as many at most",
            spec.design.levels
        ));
    }
    if !CAPACITY_BYTES.contains(&spec.capacity_bytes) {
        return Err("a capacity is from 1 MiB to 1 PiB".to_owned());
    }
    let design = &spec.design;
    let cache_bytes = design.cache_bytes();
    if cache_bytes > spec.dram_bytes {
        let (needed, available) = (cache_bytes, spec.dram_bytes);
        return Err(OpenError::CachesDoNotFit { needed, available }.to_string());
    }
    let pair = Pair {
        page_bytes: spec.page_bytes,
        key_bytes: spec.key_bytes,
        value_bytes: spec.value_bytes,
        inline_up_to: design.inline_up_to,
    };
    let room = Room {
        capacity_bytes: spec.capacity_bytes,
        page_bytes: spec.page_bytes,
        pointer_bytes: sizing::pointer_bytes(spec.capacity_bytes, spec.page_bytes),
        dram_bytes: spec.dram_bytes,
    };
    let input = sizing::input_for(design, &pair, &room);
    check_keys(&input)?;
    let pages_per_value = pair.pages_of_value();
    Ok(if design.is_leveled() {
        let tables = sizing::tables::plan(design, &input);
        Plan::Tables(TablesPlan { input, tables, pages_per_value, cache_bytes })
    } else {
        let levels = sizing::plan(&input, design.level_sizing, design.pinned_levels);
        let gc_start = design.gc_start;
        Plan::Levels(LevelsPlan { input, levels, pages_per_value, cache_bytes, pair, gc_start })
    })
}

/// Checks that there are at least as many keys of this length as pairs.
fn check_keys(input: &SizingInput) -> Result<(), String> {
    let pairs = input.fill_bytes / input.pair_bytes;
    let bits = 8 * input.key_bytes;
    if bits >= 64 || pairs <= 1 << bits {
        return Ok(());
    }
    Err(format!(
        "there are {} keys of {}, and {} pairs on a drive that is filled as laid out: give longer keys, or longer values",
        count_text(1 << bits),
        bytes_text(input.key_bytes),
        count_text(pairs)
    ))
}

/// Returns the plan as text.
pub fn render(plan: &Plan) -> String {
    match plan {
        Plan::Levels(plan) => levels_text::render(plan),
        Plan::Tables(plan) => plan.render(),
    }
}

#[cfg(test)]
mod tests {
    use engine::sizing::monkey;

    use super::*;

    fn levels_of(spec: &PlanSpec) -> LevelsPlan {
        let plan = plan(spec).expect("the numbers make sense");
        let Plan::Levels(plan) = plan else { panic!("levels of segments") };
        plan
    }

    #[test]
    fn four_terabytes_with_four_gigabytes_of_memory_pin_three_levels() {
        let spec = PlanSpec {
            capacity_bytes: 4 << 40,
            dram_bytes: 4 << 30,
            key_bytes: 32,
            value_bytes: 1024,
            page_bytes: 32_768,
            design: Options::pink(),
        };
        let plan = levels_of(&spec);
        assert_eq!((plan.levels.pinned, plan.worst_case_reads()), (3, 2));
        assert!(plan.fits());
        let text = levels_text::render(&plan);
        assert!(text.contains("at most 2 flash reads"), "{text}");
    }

    #[test]
    fn plans_that_contradict_themselves_are_refused() {
        let spec = |key_bytes, pinned| PlanSpec {
            capacity_bytes: 64 << 30,
            dram_bytes: 64 << 20,
            key_bytes,
            value_bytes: 1024,
            page_bytes: 8_192,
            design: Options { pinned_levels: pinned, ..Options::pink() },
        };
        let words = |spec: &PlanSpec| plan(spec).expect_err("it makes no sense");
        let (few, many) = (words(&spec(1, None)), words(&spec(32, Some(9))));
        assert!(few.starts_with("there are 256 keys of 1 B, and "), "{few}");
        assert!(many.starts_with("pinned_levels is 9, and there are 4 levels"), "{many}");
        assert!(plan(&spec(4, None)).is_ok());
        // All levels are pinned: the level lists fit in memory, the pinned segments do not.
        let all = levels_of(&spec(32, Some(4)));
        let shortage = all.shortage().expect("64 MiB are not enough");
        assert!(shortage.contains("GiB of it are segments of pinned levels"), "{shortage}");
        let text = levels_text::render(&all);
        assert!(text.contains("index 0.00)"), "{text}");
    }

    #[test]
    fn the_paper_s_baseline_spends_its_memory_on_filters() {
        let spec = PlanSpec {
            capacity_bytes: 64 << 30,
            dram_bytes: 64 << 20,
            key_bytes: 32,
            value_bytes: 1024,
            page_bytes: 8192,
            design: Options::lightstore(),
        };
        let plan = levels_of(&spec);
        assert_eq!((plan.levels.pinned, plan.worst_case_reads()), (0, 5));
        let memory = plan.levels.memory;
        assert!(plan.fits() && memory.filters > 53 << 20, "{memory:?}");
        let text = levels_text::render(&plan);
        assert!(text.contains("read in vain on the average"), "{text}");
    }

    #[test]
    fn caches_come_off_the_memory_and_stand_in_the_plan() {
        let of = |page_cache_bytes, value_cache_bytes| PlanSpec {
            capacity_bytes: 64 << 30,
            dram_bytes: 64 << 20,
            key_bytes: 32,
            value_bytes: 1024,
            page_bytes: 8192,
            design: Options { page_cache_bytes, value_cache_bytes, ..Options::pink() },
        };
        let plan_of = |spec| levels_of(&spec);
        let (without, with) = (plan_of(of(0, 0)), plan_of(of(6 << 20, 4 << 20)));
        let text = levels_text::render(&with);
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(
            row("caches").ends_with(" 10.0 MiB") && row("budget").ends_with(" 64.0 MiB"),
            "{text}"
        );
        assert!(!levels_text::render(&without).contains("caches"));
        let pinned = |plan: &LevelsPlan| plan.levels.memory.pinned;
        assert!(pinned(&with) + (9 << 20) < pinned(&without), "less is pinned");
        let words = plan(&of(64 << 20, 1)).expect_err("that is more than all");
        assert!(words.contains("page_cache_bytes and value_cache_bytes"), "{words}");
    }

    #[test]
    fn short_values_cost_writes_and_the_plan_says_how_many() {
        let of = |value_bytes, inline_up_to| {
            let design = Options { inline_up_to, ..Options::pink() };
            let (capacity_bytes, dram_bytes) = (1 << 30, 1 << 20);
            let (key_bytes, page_bytes) = (16, 8192);
            let spec =
                PlanSpec { capacity_bytes, dram_bytes, key_bytes, value_bytes, page_bytes, design };
            levels_of(&spec)
        };
        let long = of(1024, 0);
        let values = long.input.value_amplification();
        assert!((values - 8192.0 / 7.0 / 1040.0).abs() < 1e-9, "seven share a page");
        assert!(long.levels.amplification(&long.input) < values + 1.0, "{:?}", long.levels);
        let short = of(64, 0);
        let index = short.levels.index_amplification(&short.input);
        assert!((3.0..30.0).contains(&index), "{index}: {:?}", short.levels);
        assert!(levels_text::render(&short).contains("write amplification when full "));
        let inline = of(64, 100);
        assert_eq!(
            (inline.input.value_amplification(), inline.worst_case_reads()),
            (0.0, 4 - inline.levels.pinned)
        );
    }

    /// Returns the plan of a drive of 1 GiB with 1 MiB of memory.
    fn small(design: &Options, value_bytes: u32, fill: f64) -> LevelsPlan {
        levels_of(&PlanSpec {
            capacity_bytes: 1 << 30,
            dram_bytes: 1 << 20,
            key_bytes: 32,
            value_bytes,
            page_bytes: 8192,
            design: Options { fill, ..design.clone() },
        })
    }

    #[test]
    fn collection_is_estimated_by_the_share_of_the_flash_in_use() {
        let told = |fill| {
            let text = levels_text::render(&small(&Options::pink(), 1024, fill));
            let line =
                text.lines().find(|line| line.starts_with("with collection ")).map(str::to_owned);
            let line = line.unwrap_or_else(|| panic!("{text}"));
            let all = line.split(' ').nth(2).and_then(|word| word.parse::<f64>().ok());
            (all.expect("a number"), line)
        };
        let (half, most) = (told(0.5), told(0.75));
        assert!(half.0 < most.0 && half.0 > 1.1, "{half:?} {most:?}");
        assert!(half.1.contains("or more") && !half.1.contains("near full"), "{}", half.1);
        assert!(most.1.contains("so near full it is too little"), "{}", most.1);
        let full = levels_text::render(&small(&Options::pink(), 4096, 0.7));
        assert!(full.contains("collection finds no room"), "{full}");
    }

    #[test]
    fn pages_that_objects_leave_half_empty_are_told() {
        let told = |value_bytes| levels_text::render(&small(&Options::pink(), value_bytes, 0.3));
        let (cliff, below) = (told(4096), told(4000));
        assert!(
            cliff.contains("objects leave 50 % of the pages of values empty; values of "),
            "{cliff}"
        );
        assert!(!below.contains("objects leave"), "{below}");
    }

    #[test]
    fn keys_that_are_there_meet_the_filters_above_them_only() {
        let plan = small(&Options::lightstore(), 1024, 0.7);
        let bits = plan.levels.filter_bits(&plan.input);
        let present = monkey::vain_reads_of_present_keys(&plan.levels.keys(&plan.input), &bits);
        let absent = monkey::expected_vain_reads(&bits);
        // Most keys are in the last level, whose filters have the highest error rate. Measured on
        // such a drive: 0.0013.
        assert!((0.001..0.002).contains(&present) && (0.012..0.014).contains(&absent));
        // Two levels of the same size: Gets of half of the keys probe the filters of the other
        // level.
        let half = monkey::vain_reads_of_present_keys(&[5, 5], &[0.0, 10.0]);
        assert!((half - 0.5).abs() < 1e-9, "{half}");
    }

    #[test]
    fn levels_that_can_be_planned_are_those_that_designs_may_have() {
        for (levels, is_right) in [(1, false), (2, true), (12, true), (13, false)] {
            let design = Options { levels, ..Options::pink() };
            assert_eq!(design.problems().is_empty(), is_right, "{levels}");
            assert_eq!(LEVELS.contains(&u64::from(levels)), is_right, "{levels}");
        }
    }

    #[test]
    fn a_plan_that_does_not_fit_says_so_first() {
        let spec = PlanSpec {
            capacity_bytes: 64 << 30,
            dram_bytes: 1,
            key_bytes: 32,
            value_bytes: 1024,
            page_bytes: 8192,
            design: Options::pink(),
        };
        let text = render(&plan(&spec).expect("the numbers make sense"));
        assert!(
            text.starts_with("DOES NOT FIT: what a full drive has to have in memory takes "),
            "{text}"
        );
        let long = PlanSpec { value_bytes: u32::MAX, ..spec };
        assert!(plan(&long).is_err_and(|words| words.contains("2 MiB")));
    }

    #[test]
    fn numbers_that_make_no_sense_are_named() {
        let spec = PlanSpec {
            capacity_bytes: 4 << 40,
            dram_bytes: 4 << 30,
            key_bytes: 300,
            value_bytes: 1024,
            page_bytes: 8192,
            design: Options::pink(),
        };
        assert!(plan(&spec).is_err_and(|text| text.contains("255")));
    }
}
