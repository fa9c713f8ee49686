//! The experiments on Vigil-KV's hardware (USENIX ATC'22): figures 2a to 2c on the drive that
//! became the prototype, figures 7b and 8a to 8c on the prototype, and a check of the model by
//! arithmetic.

mod arithmetic;
mod clients;
mod experiments;
mod measured;
pub(crate) mod report;
mod samples;

use drives::ssd::SsdProfile;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::device::arithmetic::Bounds;
use crate::device::measured::{Alternating, Lockdown, Measured, Point, Stretches, Watched};
use crate::jobs::{Job, run_those_asked_for};
use crate::kept::kept;
use crate::stand::Failure;
use crate::{Plan, Scale, settings};

/// The prototype, and the drive that became the prototype.
pub(super) const PROTOTYPE: &str = "vigil-1.92tb";
pub(super) const BASELINE: &str = "baseline-1.92tb";
/// The baseline drive with less flash, for the experiment in which the free space runs out.
pub(super) const SMALL_BASELINE: &str = "baseline-15gb";
/// Queue depths of the saturation curve.
pub(super) const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Bytes written in NDWIN before a lockdown, in MB.
pub(super) const LOCKDOWN_MB: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Number of points of a series over time.
pub(super) const STRETCHES: usize = 400;

/// Size of the experiments. Times are in seconds of virtual time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Size {
    /// Duration of the reads after 64 MB are written.
    pub flush_s: f64,
    /// Rate of the writes that use up the free space, in writes per second, and their duration.
    pub collection_writes: f64,
    pub collection_s: f64,
    /// Number of erase blocks that are read until read reclaim moves them.
    pub hammered_blocks: u32,
    pub reclaim_s: f64,
    /// Duration of NDWIN before a deterministic window: its minimum time. In figures 8a and 8b
    /// clients write meanwhile, so that the write buffer and garbage collection have work left.
    pub writing_s: f64,
    /// Duration of the prototype's deterministic window, and of the reads after the window.
    pub window_s: f64,
    pub after_s: f64,
    pub cycles: u32,
    pub isolation_s: f64,
    /// Reads at each point of the saturation curve.
    pub curve_reads: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                flush_s: 2.0,
                collection_writes: 50_000.0,
                collection_s: 16.0,
                hammered_blocks: 8,
                reclaim_s: 2.0,
                writing_s: 4.0,
                window_s: 16.0,
                after_s: 8.0,
                cycles: 2,
                isolation_s: 4.0,
                curve_reads: 100_000,
            },
            Scale::Paper => Self {
                flush_s: 10.0,
                collection_writes: 10_000.0,
                collection_s: 120.0,
                hammered_blocks: 64,
                reclaim_s: 10.0,
                writing_s: 4.0,
                window_s: 58.0,
                after_s: 40.0,
                cycles: 4,
                isolation_s: 30.0,
                curve_reads: 1_000_000,
            },
        }
    }
}

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

fn profile(name: &str) -> Result<SsdProfile, Failure> {
    SsdProfile::load(name).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paper;
    use crate::device::report;
    use crate::kept::tests::assert_goes_on;

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
