//! The report of Vigil-KV's experiments: [`figures`], and comparisons with the published claims
//! ([`comparisons`], [`motivation`], [`costs`], [`beyond`]). This module has the frame of the
//! report.

mod beyond;
mod comparisons;
mod costs;
mod figures;
mod motivation;
mod ratio;

use ratio::ratio;
use report::Report;
use report::units::count_text;

use super::measured::Measured;
use super::size::{RATE, Size, WORKLOADS};
use crate::plan::{Plan, Scale};
use crate::words::{of_other_builds, times};

pub(crate) fn report(plan: &Plan<'_>, measured: &Measured) -> Report {
    let size = Size::of(plan.scale);
    let longest = WORKLOADS.map(|(workload, _)| measured.cell(workload, "o-vigil").get.p999_us);
    let (busy, late) = costs::broken(measured, "o-vigil");
    Report {
        title: "Vigil-KV (USENIX ATC'22): an LSM-tree on a drive whose sets take turns".to_owned(),
        summary: format!(
            "Against RocksDB on the baseline drive, p99.9 of gets is {} shorter with O-Vigil over {} workloads, and at \
             most {:.0} us; without any help of the drive (rails) {}, with all three papers together (levelhead) {}, and if \
             nothing disturbed gets at all (ideal) {}. O-Vigil sent {busy} gets to a set outside its window, \
             and {late} writes ended in one.",
            times(ratio(measured, "base", "o-vigil", |cell| cell.get.p999_us)),
            WORKLOADS.len(),
            longest.into_iter().fold(0.0, f64::max),
            times(ratio(measured, "base", "rails", |cell| cell.get.p999_us)),
            times(ratio(measured, "base", "levelhead", |cell| cell.get.p999_us)),
            times(ratio(measured, "base", "ideal", |cell| cell.get.p999_us)),
        ),
        scale: format!(
            "{} pairs, {} s of YCSB-A and F and {} s of the other workloads at {} operations a second, open loop{}",
            count_text(size.records),
            size.seconds,
            size.quiet_seconds,
            count_text(RATE as u64),
            match plan.scale {
                Scale::Quick => format!(
                    "; memtables, tables, plm_cache and the times of windows are {}ths of the paper's",
                    size.divisor
                ),
                Scale::Paper => String::new(),
            }
        ),
        command: plan.command(),
        figures: figures::figures(measured),
        comparisons: comparisons::comparisons(measured, &size),
        notes: notes(plan),
    }
}

fn notes(plan: &Plan<'_>) -> Vec<String> {
    let mut notes = vec![
        "The paper gives neither rate, threads, number of pairs, filters nor md's level. Chosen once for all \
         configurations: an open loop of 10 thousand operations a second (its table 2 and figure 12 leave hardly more), \
         latency from the intended start; filters of 10 bits a key, because its gets take less than 200 us where a read \
         of the flash takes 74, which leaves two reads; md as RAID-0, with RAID-5 beside it.",
        "Six memtables in all configurations, not the default two: a flush waits for a rotation, and puts would wait \
         with it. The paper is silent on this.",
        "UserDB and ZippyDB are stand-ins: the paper does not publish their parameters.",
        "Updates of YCSB read their pair first, as its binding for RocksDB has it.",
        "Compactions read outside slots as well, 100 MB a second in pieces of 16 KiB. The paper packs them into slots; \
         a compaction that waits for a rotation with each of its reads falls behind (docs/decisions/0035).",
        "Drives are full and in the steady state of long overwriting when the store comes: they collect garbage from the first write \
         on. Three runs of YCSB-A on fresh drives stand beside.",
    ];
    if plan.scale == Scale::Quick {
        notes.push(
            "Sizes and windows are divided alike, rates and flash are not: a rotation has as many flushes and \
             compactions as at full size.",
        );
    }
    let mut notes: Vec<String> = notes.into_iter().map(str::to_owned).collect();
    notes.extend(of_other_builds(plan.keeper.taken_of_others()));
    notes
}
