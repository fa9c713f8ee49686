//! The experiments on Vigil-KV's hardware (USENIX ATC'22): figures 2a to 2c on the drive that
//! became the prototype, figures 7b and 8a to 8c on the prototype, and a check of the model by
//! arithmetic.

mod arithmetic;
mod clients;
mod experiments;
mod measured;
pub(crate) mod report;
mod samples;
mod size;

use drives::ssd::SsdProfile;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::device::arithmetic::Bounds;
use crate::device::measured::{Alternating, Lockdown, Measured, Point, Stretches, Watched};
use crate::device::size::{BASELINE, PROTOTYPE, SMALL_BASELINE, Size, profile};
use crate::failure::Failure;
use crate::jobs::{Job, run_those_asked_for};
use crate::kept::kept;
use crate::plan::Plan;
use crate::settings;

#[derive(Serialize, Deserialize)]
enum Outcome {
    Watched(Box<Watched>),
    Collection(Box<Watched>, Stretches),
    Alternating(Box<Alternating>),
    Lockdowns(Vec<Lockdown>),
    Curve(Vec<Point>),
}

impl Outcome {
    fn watched(watched: Watched) -> Self {
        Self::Watched(Box::new(watched))
    }
}

type Experiment = fn(&Size, u64) -> Result<Outcome, Failure>;

const EXPERIMENTS: [(&str, Experiment); 11] = [
    ("2a: reads while the buffer is emptied", |size, seed| {
        experiments::buffer_flush(size, seed).map(Outcome::watched)
    }),
    ("2c: reads while blocks are reclaimed", |size, seed| {
        experiments::reclaim(size, seed).map(Outcome::watched)
    }),
    ("8a: reads without windows", |size, seed| {
        experiments::plain(size, seed).map(Outcome::watched)
    }),
    ("8a: reads in DTWIN, then NDWIN", |size, seed| {
        experiments::windowed(size, seed).map(Outcome::watched)
    }),
    ("8c: reads beside writes", |size, seed| experiments::mixed(size, seed).map(Outcome::watched)),
    ("8c: reads beside a set that is written", |size, seed| {
        experiments::isolated(size, seed).map(Outcome::watched)
    }),
    ("8c: reads alone", |size, seed| experiments::undisturbed(size, seed).map(Outcome::watched)),
    ("2b: reads while space is collected", |size, seed| {
        experiments::collection(size, seed)
            .map(|(watched, s)| Outcome::Collection(Box::new(watched), s))
    }),
    ("8b: windows in turns", |size, seed| {
        experiments::alternating(size, seed).map(|turns| Outcome::Alternating(Box::new(turns)))
    }),
    ("7b: lockdowns", |size, seed| experiments::lockdowns(size, seed).map(Outcome::Lockdowns)),
    ("reads at rising depth", |size, seed| experiments::curve(size, seed).map(Outcome::Curve)),
];

/// Runs all experiments, or those that the plan selects. Returns `None` if some were not run.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Option<Measured>, Failure> {
    measure_in(plan, Size::of(plan.scale))
}

fn measure_in(plan: &Plan<'_>, size: Size) -> Result<Option<Measured>, Failure> {
    let [baseline, small, prototype] =
        [profile(BASELINE), profile(SMALL_BASELINE), profile(PROTOTYPE)];
    let (baseline, small, prototype) = (baseline?, small?, prototype?);
    let seed = plan.seed;
    let devices = [&baseline, &small, &prototype].map(settings::of_file);
    let settings = json!({ "devices": devices, "size": settings::plain(&size), "seed": seed });
    let job = |(name, run): (&str, Experiment)| -> Job<'_, Outcome> {
        kept(plan.keeper, name.to_owned(), settings.clone(), move || run(&size, seed))
    };
    let jobs = EXPERIMENTS.into_iter().map(job).collect();
    let done = run_those_asked_for(jobs, plan)?;
    Ok(done.map(|done| measured(done, &baseline, &prototype)))
}

/// Collects the outcomes, which are in the order of [`EXPERIMENTS`].
fn measured(done: Vec<Outcome>, baseline: &SsdProfile, prototype: &SsdProfile) -> Measured {
    let mut done = done.into_iter();
    let mut next = || match done.next() {
        Some(Outcome::Watched(watched)) => *watched,
        _ => unreachable!("results come in the order of the jobs"),
    };
    let (buffer_flush, reclaim) = (next(), next());
    let (plain, windowed) = (next(), next());
    let (mixed, isolated, undisturbed) = (next(), next(), next());
    let (
        Some(Outcome::Collection(collection, collecting)),
        Some(Outcome::Alternating(alternating)),
        Some(Outcome::Lockdowns(lockdowns)),
        Some(Outcome::Curve(curve)),
    ) = (done.next(), done.next(), done.next(), done.next())
    else {
        unreachable!("results come in the order of the jobs")
    };
    Measured {
        buffer_flush,
        collection: *collection,
        collecting,
        reclaim,
        lockdowns,
        plain,
        windowed,
        alternating: *alternating,
        mixed,
        isolated,
        undisturbed,
        curve,
        bounds: Bounds::of(baseline),
        alone_us: baseline.read_alone_us(),
        alone_in_set_us: prototype.read_alone_us(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::report;
    use crate::doubles::assert_goes_on;
    use crate::plan::Paper;

    const TINY: Size = Size {
        flush_s: 0.05,
        collection_writes: 50_000.0,
        collection_s: 0.1,
        hammered_blocks: 1,
        reclaim_s: 0.05,
        writing_s: 0.1,
        window_s: 0.2,
        after_s: 0.1,
        cycles: 2,
        isolation_s: 0.1,
        curve_reads: 500,
    };

    #[test]
    fn a_run_that_was_stopped_goes_on() {
        assert_goes_on(Paper::Device, "8", |plan| {
            let measured = measure_in(plan, TINY)?;
            Ok(measured.map(|measured| report::report(plan, &measured)))
        });
    }
}
