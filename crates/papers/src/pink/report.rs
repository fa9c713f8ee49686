//! The report of `PinK`'s experiments: [`figures`], and [`comparisons`] with the published claims.
//! This module has the frame of the report.

mod beyond;
mod comparisons;
mod figures;
mod motivation;
mod ratios;

use ratios::ratio;
use report::Report;
use report::units::count_text;

use super::measured::Measured;
use super::size::{READS, Size};
use crate::plan::{Plan, Scale};
use crate::words::{change, of_other_builds};

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
