//! The report of IterKVSSD's experiments: [`figures`], and [`comparisons`] with the published
//! claims. This module has the frame of the report.

mod comparisons;
mod figures;
mod tails;

use report::Report;
use report::units::{bytes_text, count_text};

use super::bounds::Board;
use super::measured::{Layout, Measured, OnStand, VersionMemory};
use super::size::{ITERATORS, Size, device};
use crate::plan::{Plan, Scale};
use crate::words::{of_other_builds, times};

pub(crate) fn report(plan: &Plan<'_>, measured: &Measured) -> Report {
    let records = Size::of(plan.scale).records;
    let board = Board::new(&device().expect("it was measured on"));
    let (best_size, best) = measured.most_gained(Layout::Sequential);
    let of_versions =
        |of: fn(&VersionMemory) -> u64| bytes_text(measured.versions.last().map_or(0, of));
    Report {
        title: "IterKVSSD (SYSTOR'23): iterators inside the drive".to_owned(),
        summary: format!(
            "Reading values ahead gains up to {} ({} values, sequential layout) and up to {} in \
             random layout; index prefetch removes {} of the reads that a Next of a long scan \
             waited for, which are too rare to show at p99.9. {ITERATORS} iterators share one pool of descriptors: {} in place of \
             {}, beside {} of memtables that their snapshots keep.",
            times(best),
            bytes_text(best_size),
            times(measured.most_gained(Layout::Random).1),
            removed(measured),
            of_versions(|memory| memory.pooled),
            of_versions(|memory| memory.summaries),
            of_versions(|memory| memory.memtables),
        ),
        scale: format!(
            "{} pairs with 4-byte keys on the whole simulated Cosmos+ board{}; the paper has 3 \
             million",
            count_text(records),
            if plan.scale == Scale::Quick { " (quick scale)" } else { "" },
        ),
        command: plan.command(),
        figures: figures::figures(&board, measured),
        comparisons: comparisons::comparisons(&board, measured),
        notes: notes(plan),
    }
}

fn notes(plan: &Plan<'_>) -> Vec<String> {
    let notes = [
        "One request is outstanding at a time, as the published host library has it.",
        "Throughput is bytes of values per second of virtual time; a range query is one Seek and as \
         many Next as the scan is long.",
        "The paper's figures were available without numbers, and its text not at all: what is \
         compared is what its abstract and its slides state.",
        "Flash and firmware times of the board are assumed (its parts are under a non-disclosure \
         agreement); every one is marked in the device profile cosmos-plus-4ch. What the gains depend on most, the time of firmware and \
         host, is run at 13, 20 and 40 us besides.",
        "A bound (\"at most\") is arithmetic on the profile: the time without prefetch over firmware and host, or over what the \
         channels need for a value, whichever is longer.",
        "Not explained: how the published p99.9 comes to see waits for the index. Whatever form the index has here, fewer than one Next in a \
         thousand meets one, so that they show beyond p99.9 only.",
        "A page that an iterator has read stays in its buffer until newer ones push it out, so small \
         values in sequential layout are read from the buffer.",
    ];
    let other_builds = of_other_builds(plan.keeper.taken_of_others());
    notes.map(str::to_owned).into_iter().chain(other_builds).collect()
}

/// Returns the share of index reads in Nexts that index prefetch removed, as text.
fn removed(measured: &Measured) -> String {
    let reads = |of: fn(&OnStand) -> u64| measured.stands.iter().map(of).sum::<u64>();
    let before = reads(|stand| stand.baseline.index_reads);
    let after = reads(|stand| stand.with_index.index_reads);
    format!("{:.0} %", (before - after.min(before)) as f64 / before.max(1) as f64 * 100.0)
}
