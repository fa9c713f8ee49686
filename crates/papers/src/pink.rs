//! `PinK`'s experiments (USENIX ATC'20): YCSB Load and A to F on a 64 GB drive with 64 MB of
//! memory, with 44 M pairs of 32 + 1024 bytes. The systems are hash, LSM-tree, `PinK` and
//! `PinK`+HW.

mod beyond;
mod measured;
mod memory;
mod motivation;
pub(crate) mod report;
mod size;
mod system;
#[cfg(test)]
mod tests;

use beyond::Beyond;
use measured::Measured;
use motivation::Motivation;
use size::{READS, SYSTEMS, Size, WITHOUT_AIDS, WORKLOADS};
use system::{Change, Variant};

use crate::failure::Failure;
use crate::jobs::run_those_asked_for;
use crate::plan::Plan;

/// Numbers of levels in the experiment on higher trees.
const HEIGHTS: std::ops::RangeInclusive<u32> = 3..=7;

/// Runs all experiments, or those that the plan selects. Returns `None` if some were not run.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Option<Measured>, Failure> {
    measure_in(plan, Size::of(plan.scale))
}

fn measure_in(plan: &Plan<'_>, size: Size) -> Result<Option<Measured>, Failure> {
    let mut jobs = Vec::new();
    let mut add = |name: &str, design, workloads: &'static [&'static str], change: Change| {
        let variant = Variant { design, name: name.to_owned(), change };
        jobs.push(system::job(plan, size, variant, workloads)?);
        Ok::<(), Failure>(())
    };
    for (design, name) in SYSTEMS {
        let workloads: &[&str] = if design == "hash" { &READS } else { &WORKLOADS };
        add(name, design, workloads, Change::None)?;
    }
    for levels in 0..=3 {
        add(&format!("{levels} levels pinned"), "pink", &["a", "c"], Change::Pin(levels))?;
    }
    // The workloads are those of the variants with pinned levels. The last such variant is the
    // unchanged PinK.
    add(WITHOUT_AIDS, "pink", &["a", "c"], Change::NoSearchAids)?;
    for height in HEIGHTS {
        add(&format!("{height} levels in all"), "pink", &["a", "c"], Change::Height(height))?;
    }
    add("PinK, whole levels", "pink", &["a", "c"], Change::WholeLevels)?;
    jobs.extend(beyond::jobs(plan, &size)?);
    jobs.extend(motivation::jobs(plan, &size)?);
    let Some(done) = run_those_asked_for(jobs, plan)? else { return Ok(None) };
    let mut done = done.into_iter();
    let mut take = |count: usize| done.by_ref().take(count).collect::<Vec<_>>();
    let (systems, pinned) = (take(SYSTEMS.len()), take(4));
    let plain = take(1).remove(0);
    let heights = take(HEIGHTS.count());
    let whole = take(1).remove(0);
    let Beyond { full, rated, costly, with_key, costly_plain } = Beyond::of(&mut done);
    let motivation = Motivation::of(&mut done);
    Ok(Some(Measured {
        systems,
        pinned,
        plain,
        heights,
        whole,
        full,
        rated,
        costly,
        with_key,
        costly_plain,
        motivation,
    }))
}
