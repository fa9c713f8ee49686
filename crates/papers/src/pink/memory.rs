//! `PinK`'s tables of memory, by arithmetic (`engine::sizing`) with the constants of the paper's
//! own formulas: pairs of 1 KiB, 256 entries per segment on the small drive.

use engine::sizing::{LevelPlan, LevelSizing, SizingInput, plan};
use report::units::bytes_text;
use report::{Axis, BarSeries, Comparison, Figure, FigureKind, Published, Unit, Verdict};

use crate::words::{beside, row};

const MIB: f64 = (1 << 20) as f64;

/// Returns the drive of the experiments: 64 GB of flash, 64 MB of memory.
fn small_drive() -> SizingInput {
    SizingInput {
        fill_bytes: (64_u64 << 30) / 10 * 7,
        capacity_bytes: 64 << 30,
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
        dram_bytes: 64 << 20,
        levels: 4,
        memtable_bytes: 1 << 20,
        value_log_bytes: 1024.0,
        writes_pinned: false,
    }
}

/// Returns the drive of slide 15: 4 TB of flash, 4 GB of memory.
fn large_drive() -> SizingInput {
    SizingInput {
        fill_bytes: 4 << 40,
        capacity_bytes: 4 << 40,
        entries_per_segment: 32_768 / 36,
        segment_bytes: 32_768,
        dram_bytes: 4 << 30,
        ..small_drive()
    }
}

fn planned(input: &SizingInput) -> LevelPlan {
    plan(input, LevelSizing::Asymmetric, None)
}

pub(super) fn figures() -> [Figure; 2] {
    [
        memory_figure(
            "pink-memory-64gb",
            "Memory on 64 GB of flash, 64 MB of DRAM",
            &small_drive(),
        )
        .with_published([
            Published::of_group(LISTS, "9 MB, taken for MiB", 9.0 * MIB),
            Published::of_group(PINNED, "54 to 55 MB, taken for MiB", 54.5 * MIB),
        ]),
        memory_figure("pink-memory-4tb", "Memory on 4 TB of flash, 4 GB of DRAM", &large_drive()),
    ]
}

const LISTS: &str = "level lists";
const PINNED: &str = "pinned levels";

fn memory_figure(id: &str, title: &str, input: &SizingInput) -> Figure {
    let plan = planned(input);
    let pinned = plan.capacities.iter().take(plan.pinned as usize);
    let pinned = pinned.map(|segments| (segments * input.segment_bytes) as f64);
    let levels = (1..=plan.pinned).map(|level| format!("L{level} of them"));
    let names = [LISTS, PINNED].map(str::to_owned);
    let whole = [plan.memory.level_lists, plan.memory.pinned].map(|bytes| bytes as f64);
    Figure::new(
        id,
        title,
        "Level lists of all levels, and the levels that are pinned. By arithmetic, not measured.",
        FigureKind::Bars {
            over: "what it is for".to_owned(),
            categories: names.into_iter().chain(levels).collect(),
            y: Axis::linear("memory", Unit::Bytes),
            series: vec![BarSeries::new("memory", whole.into_iter().chain(pinned))],
        },
    )
}

pub(super) fn rows() -> Vec<Comparison> {
    let mut rows = small_rows();
    rows.push(large_row());
    rows.extend(small_values());
    rows
}

fn small_rows() -> Vec<Comparison> {
    let input = small_drive();
    let with_aids = SizingInput { prefix_bytes: 4, range_pointer_bytes: 8, ..input.clone() };
    let (bare, aided) = (planned(&input), planned(&with_aids));
    let lists = bare.memory.level_lists as f64 / MIB;
    let aids = aided.memory.total() - aided.memory.pinned;
    let room = input.bytes_for_pinning() as f64 / MIB;
    let pinned = bare.memory.pinned as f64 / MIB;
    let table = 5 * (input.capacity_bytes / 1024);
    let share = input.dram_bytes as f64 / input.capacity_bytes as f64 * 100.0;
    vec![
        row(
            "pink-dram",
            "memory of the drive as a share of its flash",
            "0.1 % (slides)",
            format!("{share:.1} %"),
            Verdict::NotApplicable,
            "Arithmetic: 64 MB for 64 GB, as the profile has them.",
        ),
        row(
            "pink-level-list",
            "level list",
            "9 MB (slides; taken for MiB)",
            beside(9.0, lists, format_args!("{lists:.1} MiB")),
            Verdict::NotApplicable,
            "Arithmetic by the code that sizes levels: key and page address of each meta segment of a full drive.",
        ),
        row(
            "pink-level-list-aids",
            "level list with prefixes and range pointers",
            "10 MB (slides; taken for MiB)",
            beside(10.0, aids as f64 / MIB, bytes_text(aids)),
            Verdict::NotApplicable,
            "Arithmetic: four bytes of prefix for each segment and eight of range pointers for those above the \
             last level, as published; one range pointer of four bytes is enough here.",
        ),
        row(
            "pink-pinned",
            "pinned levels",
            "54 to 55 MB (slides; taken for MiB)",
            beside(54.5, pinned, format_args!("{pinned:.1} MiB of {room:.1}")),
            Verdict::NotApplicable,
            format!(
                "Arithmetic by the code that sizes levels: L1 to L{} of {:?} segments, growing by {:.1}.",
                bare.pinned, bare.capacities, bare.factor
            ),
        ),
        row(
            "pink-hash-table",
            "buckets of hash",
            "320 MB (slides; taken for MiB)",
            beside(320.0, table as f64 / MIB, bytes_text(table)),
            Verdict::NotApplicable,
            "Arithmetic: an entry of five bytes for each KiB of flash; 64 MB of them are cached.",
        ),
        row(
            "pink-filters",
            "Bloom filters of the LSM-tree",
            "55 MB beside 9 MB of level list (slides; taken for MiB)",
            beside(55.0, room, format_args!("{room:.1} MiB")),
            Verdict::NotApplicable,
            "Arithmetic: what 64 MB leave.",
        ),
    ]
}

fn large_row() -> Comparison {
    let input = large_drive();
    let plan = planned(&input);
    let total = plan.memory.total();
    row(
        "pink-4tb",
        "4 TB of flash, 4 GB of memory",
        "the top three levels fit (slide 15; values in a figure)",
        format!("{} pinned, {} in all", plan.pinned, bytes_text(total)),
        Verdict::NotApplicable,
        format!(
            "Arithmetic by the code that sizes levels: lists {}, pinned levels {}.",
            bytes_text(plan.memory.level_lists),
            bytes_text(plan.memory.pinned)
        ),
    )
}

/// Returns rows about a port of `PinK` to small values, from a later paper (`AnyKey`, ASPLOS'25).
fn small_values() -> Vec<Comparison> {
    let lists = |key: u64, value: u64| {
        let entries = (8192 - 16) / (key + 4 + 2);
        let input = SizingInput {
            pair_bytes: key + value,
            key_bytes: key,
            entries_per_segment: entries,
            ..small_drive()
        };
        input.level_list_bytes()
    };
    let (even, double) = (lists(80, 80), lists(80, 160));
    vec![
        row(
            "pink-port-metadata",
            "metadata with 80-byte keys and 80-byte values, 64 GB full",
            "703 MB, of which 200 MB level list (AnyKey on its port)",
            format!("level list {}", bytes_text(even)),
            Verdict::NotApplicable,
            format!(
                "Far over 64 MB either way ({} with values twice as long, where the port has 531 MB): \
                 such a drive takes pairs until its memory is used up, and is full then.",
                bytes_text(double)
            ),
        ),
        row(
            "pink-port-small-values",
            "p95 and IOPS with values of 20 in place of 1,280 bytes",
            "891 us to 8,904 us, -94 % (AnyKey on its port)",
            "not run",
            Verdict::NotApplicable,
            format!(
                "Level lists of {} do not fit in 64 MB, so that a drive is full long before its flash is; the \
                 port reads what does not fit from flash.",
                bytes_text(lists(40, 20))
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_comes_out() {
        let bare = planned(&small_drive());
        let mib = |bytes: u64| bytes as f64 / MIB;
        for (published, ours) in
            [(9.0, mib(bare.memory.level_lists)), (54.5, mib(bare.memory.pinned))]
        {
            assert!((ours / published - 1.0).abs() < 0.05, "{ours} MiB and {published}");
        }
        let large = planned(&large_drive());
        assert_eq!(large.pinned, 3);
        assert!(large.memory.total() <= large_drive().dram_bytes);
    }
}
