//! The report of `PinK`'s experiments: [`figures`], and [`comparisons`] with the published claims.
//! This module has the frame of the report, and functions that both use.

mod beyond;
mod comparisons;
mod figures;
mod motivation;

use report::Report;
use report::units::count_text;

use super::{Cell, Measured, READS, Size, System};
use crate::words::{change, of_other_builds};
use crate::{Plan, Scale};

pub(crate) fn report(plan: &Plan<'_>, measured: &Measured) -> Report {
    let size = Size::of(plan.scale);
    let against_hash = |of| change(1.0, ratio(measured, "pink", "hash", of));
    let against_tree = |of| change(1.0, ratio(measured, "pink", "lightstore", of));
    let part = match plan.scale {
        Scale::Quick => format!(
            "a drive of a {}th of the paper's (flash, memory and pairs alike)",
            size.divisor
        ),
        Scale::Paper => "the paper's drive".to_owned(),
    };
    Report {
        title: "PinK (USENIX ATC'20): an LSM-tree with bounded tails inside the drive".to_owned(),
        summary: format!(
            "Against the hash-indexed drive, over YCSB {}: p99 of gets {}, mean {}, throughput {}. Against the LSM-tree with \
             Bloom filters: p99 {}, mean {}, throughput {}. No get of PinK takes more than {} flash reads, of the LSM-tree up to {}, of hash up \
             to {}.",
            READS.join(", ").to_uppercase(),
            against_hash(|cell| cell.get.p99_us),
            against_hash(|cell| cell.get.mean_us),
            against_hash(|cell| cell.operations_per_second),
            against_tree(|cell| cell.get.p99_us),
            against_tree(|cell| cell.get.mean_us),
            against_tree(|cell| cell.operations_per_second),
            measured.system("pink").most_reads(),
            measured.system("lightstore").most_reads(),
            measured.system("hash").most_reads(),
        ),
        scale: format!(
            "{} pairs of 32 + 1024 bytes, {} operations of each workload ({} range queries), on \
             {part}",
            count_text(size.records),
            count_text(size.operations),
            count_text(size.scans),
        ),
        command: plan.command(),
        figures: figures::figures(measured),
        comparisons: comparisons::comparisons(measured),
        notes: notes(plan),
    }
}

fn notes(plan: &Plan<'_>) -> Vec<String> {
    let order = if plan.fresh_loads {
        "64 operations are outstanding at a time, as in the published code; each workload runs on a \
         drive as it was behind the load."
    } else {
        "64 operations are outstanding at a time, as in the published code; workloads run one \
         after the other on one loaded drive, E last."
    };
    let mut notes = vec![
        order,
        "The paper's figures were available without numbers: what is compared is what its abstract \
         and its slides state.",
        "The drive is an assumed one where the paper's flash card has no published times; every \
         number says so in the device profile pink-zcu102. All systems run on the same numbers.",
        "Compaction goes by slices in all LSM-trees; the published code merges whole levels, as one \
         system here does.",
        "Collection takes the extent with the least in use; the published code takes the oldest.",
        "Rows that say arithmetic were not measured.",
    ];
    if plan.scale == Scale::Quick {
        notes.push(
            "The small drive has as many dies as the large one, and blocks of a sixteenth of \
             the pages whose erase takes a sixteenth of the time.",
        );
    }
    let mut notes: Vec<String> = notes.into_iter().map(str::to_owned).collect();
    notes.extend(of_other_builds(plan.keeper.taken_of_others()));
    notes
}

/// Returns the geometric mean, over the read workloads, of the value of one system over the value
/// of another. `of` returns the value of a cell.
fn ratio(measured: &Measured, design: &str, over: &str, of: fn(&Cell) -> f64) -> f64 {
    let ratios = READS.map(|workload| one_ratio(measured, design, over, workload, of));
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

fn one_ratio(
    measured: &Measured,
    design: &str,
    over: &str,
    workload: &str,
    of: fn(&Cell) -> f64,
) -> f64 {
    one_ratio_of(measured.system(design), measured.system(over), workload, of)
}

fn one_ratio_of(system: &System, over: &System, workload: &str, of: fn(&Cell) -> f64) -> f64 {
    of(system.ran(workload)) / of(over.ran(workload))
}

/// Returns the pages of one kind of background work in a cell.
type Pages = fn(&Cell) -> f64;

const COMPACTION_READS: Pages = |cell| cell.traffic.compaction_read as f64;
const COMPACTION_WRITES: Pages = |cell| cell.traffic.compaction_written as f64;
const COLLECTION_READS: Pages = |cell| cell.traffic.gc_read as f64;
const COLLECTION_WRITES: Pages = |cell| cell.traffic.gc_written as f64;

/// Returns the bytes of background work of a system per byte that users wrote, in Load and A
/// together.
fn per_user_byte(system: &System, of: Pages) -> f64 {
    let cells = [system.load.as_ref(), system.cell("a")];
    let cells = cells.into_iter().flatten();
    let written: f64 = cells.clone().map(|cell| cell.traffic.user_pages).sum();
    cells.map(of).sum::<f64>() / written
}

/// Returns `PinK` with three pinned levels, after the same workloads as NO-OPT.
fn with_search_aids(measured: &Measured) -> &System {
    measured.pinned.last().expect("levels were pinned")
}
