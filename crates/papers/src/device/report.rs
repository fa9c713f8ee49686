//! The report of the experiments on Vigil-KV's hardware: [`figures`], and [`comparisons`] with the
//! published claims.

mod comparisons;
mod figures;

use report::Report;

use super::measured::Measured;
use crate::plan::{Plan, Scale};
use crate::words::{micros, of_other_builds};

pub(crate) fn report(plan: &Plan<'_>, measured: &Measured) -> Report {
    let (in_dtwin, mixed) = (measured.windowed.before, measured.mixed.all);
    Report {
        title:
            "Vigil-KV's hardware (USENIX ATC'22): a block drive with predictable-latency windows"
                .to_owned(),
        summary: format!(
            "In its deterministic window the simulated prototype reads in {} on average and {} at most; \
             without windows, beside writes in one space, reads take up to {}.",
            micros(in_dtwin.mean_us),
            micros(in_dtwin.longest_us),
            micros(mixed.longest_us),
        ),
        scale: format!(
            "the whole simulated 1.92 TB drive, full and in steady state; stretches of time are {} \
             than the paper's",
            if plan.scale == Scale::Quick { "much shorter" } else { "shorter" },
        ),
        command: plan.command(),
        figures: figures::figures(measured),
        comparisons: comparisons::comparisons(measured),
        notes: notes(plan),
    }
}

fn notes(plan: &Plan<'_>) -> Vec<String> {
    let notes = [
        "The paper shows its figures without numbers on most points; compared is what its text says.",
        "One physical profile stands behind all figures: vigil-1.92tb and baseline-1.92tb are the \
         same drive in four sets and in one, and baseline-15gb has a 128th of its flash. Every \
         number there has its source or the word \"assumed\".",
        "Reads are of 4 KiB, one outstanding at a time, unless a figure says otherwise.",
        "In DTWIN the model itself asserts at each read that no internal job is under way.",
    ];
    let other_builds = of_other_builds(plan.keeper.taken_of_others());
    notes.map(str::to_owned).into_iter().chain(other_builds).collect()
}
