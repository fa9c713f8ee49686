//! `PinK`'s experiments (USENIX ATC'20): YCSB Load and A to F on a 64 GB drive with 64 MB of
//! memory, with 44 M pairs of 32 + 1024 bytes. The systems are hash, LSM-tree, `PinK` and
//! `PinK`+HW.

mod beyond;
mod memory;
mod motivation;
pub(crate) mod report;
mod system;
#[cfg(test)]
mod tests;

use crate::jobs::run_those_asked_for;
use crate::stand::Failure;
use crate::{Plan, Scale};

pub(super) use beyond::{COSTS, RATES, rate_of};
pub(super) use motivation::{Motivation, READS_OF_KEYS};
pub(super) use system::{Cell, System};
use system::{Change, Variant};

/// The drive of the paper.
const DEVICE: &str = "pink-zcu102";
/// The systems of the paper, as designs, and their names in the paper.
pub(super) const SYSTEMS: [(&str, &str); 4] =
    [("hash", "Hash"), ("lightstore", "LSM-tree"), ("pink", "PinK"), ("pink-hw", "PinK+HW")];
/// The workloads, in the order in which they run on a loaded drive. E is last because hash does not
/// run E: all other workloads have the same predecessors in all systems.
pub(super) const WORKLOADS: [&str; 6] = ["a", "b", "c", "d", "f", "e"];
/// The workloads in which reads are measured.
pub(super) const READS: [&str; 5] = ["a", "b", "c", "d", "f"];
/// The paper's name of `PinK` without prefixes and range pointers.
const WITHOUT_AIDS: &str = "PinK (NO-OPT)";
/// Numbers of levels in the experiment on higher trees.
const HEIGHTS: std::ops::RangeInclusive<u32> = 3..=7;

/// Size of the experiments.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Divisor of the drive, its memory and the number of pairs.
    pub divisor: u64,
    pub records: u64,
    /// Operations of each workload.
    pub operations: u64,
    /// Range queries of E.
    pub scans: u64,
    /// Requests of a workload as in the paper: as many as there are pairs.
    pub requests: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                divisor: 64,
                records: 687_500,
                operations: 300_000,
                scans: 6_000,
                requests: 687_500,
            },
            Scale::Paper => Self {
                divisor: 1,
                records: 44_000_000,
                operations: 4_400_000,
                scans: 44_000,
                requests: 44_000_000,
            },
        }
    }
}

/// Results of all experiments.
pub(super) struct Measured {
    /// In the order of [`SYSTEMS`].
    pub systems: Vec<System>,
    /// `PinK` with 0, 1, 2 and 3 levels pinned.
    pub pinned: Vec<System>,
    /// `PinK` without prefixes and range pointers.
    pub plain: System,
    /// Higher trees, with as many pinned levels as fit in memory.
    pub heights: Vec<System>,
    /// `PinK` with compactions of whole levels.
    pub whole: System,
    /// A and F with all requests of the paper, each on a freshly loaded drive: hash, LSM-tree and
    /// `PinK`.
    pub full: Vec<System>,
    /// All workloads at the same rates, each on a freshly loaded drive: hash, LSM-tree and `PinK`.
    pub rated: Vec<System>,
    /// A, B and C with the firmware times multiplied by each of [`COSTS`]: hash and `PinK`.
    pub costly: Vec<[System; 2]>,
    /// A and C with objects of 1,024 bytes, including the key: hash and `PinK`.
    pub with_key: [System; 2],
    /// C without prefixes and range pointers, with the slowest firmware of [`COSTS`].
    pub costly_plain: System,
    /// KV drives beside a block drive.
    pub motivation: Motivation,
}

impl Measured {
    /// Returns the system of [`SYSTEMS`] with this design.
    pub(super) fn system(&self, design: &str) -> &System {
        of_design(&self.systems, design)
    }
}

/// Returns the system with this design.
pub(super) fn of_design<'a>(systems: &'a [System], design: &str) -> &'a System {
    let found = systems.iter().find(|system| system.design == design);
    found.expect("every system was run")
}

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
    let beyond::Beyond { full, rated, costly, with_key, costly_plain } =
        beyond::Beyond::of(&mut done);
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
