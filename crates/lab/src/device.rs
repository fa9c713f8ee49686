//! Jobs on block drives: streams of reads and writes in the words of fio, in virtual time.
//!
//! A [`Job`] is TOML (see [`job`]) or a value; [`run`] does it on the drive of a profile and gives a
//! [`JobReport`]: latencies by stream and direction, a timeline, single latencies where the job asks
//! for them, window commands, and each set's counters before and after. [`DeviceResult`] is the same
//! for programs, [`table`] for eyes, [`picture`] draws it.
//!
//! ```
//! use lab::device::{self, DeviceSpec, Direction, Job, Rw, StreamSpec};
//!
//! let reads = StreamSpec { depth: Some(4), operations: Some(1_000), ..StreamSpec::new(Rw::RandRead) };
//! let spec = DeviceSpec {
//!     profile: ssd::SsdProfile::load("baseline-15gb").expect("built in"),
//!     job: Job::new("a thousand reads", vec![reads]),
//!     seed: 1,
//! };
//! let report = device::run(&spec, |_| ()).expect("it fits the drive");
//! let reads = report.streams[0].direction(Direction::Read).expect("there were some");
//! assert_eq!(reads.operations, 1_000);
//! assert!(reads.summary().p99_us < 1_000.0);
//! ```

mod addresses;
mod block_sizes;
mod check;
#[cfg(test)]
mod drive_tests;
#[cfg(test)]
mod fake;
pub mod fio;
pub mod job;
#[cfg(test)]
mod job_tests;
mod ledger;
mod memory;
mod per_direction;
pub mod picture;
mod plan;
mod random_map;
mod recorder;
mod replay;
mod report;
mod result;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;
mod sets;
mod size;
mod skew;
mod source;
pub mod stream;
mod streams;
pub mod table;
mod thinking;
mod timeline;
mod versions;
mod watch;

use std::borrow::Cow;
use std::rc::Rc;

use block::BlockDevice;
use runtime::{Handle, Runtime};
use ssd::{Ssd, SsdProfile};
use workload::Stop;

pub use block_sizes::{BlockRange, BlockSplit};
pub use job::{Before, Job, WindowName, WindowStep};
pub use ledger::{Found, Mismatch};
pub use memory::memory_bytes;
pub use per_direction::PerDirection;
pub use plan::PlanError;
pub use replay::{Fitted, Trace};
pub use report::{
    ByWindow, Checks, Direction, DirectionReport, JobReport, Sample, SetChange, StreamReport,
    WindowReport,
};
pub use result::{
    DeviceHost, DeviceResult, DirectionResult, SetResult, StreamResult, TraceResult, WindowResult,
};
pub use sets::SetChoice;
pub use size::Extent;
pub use skew::Distribution;
pub use stream::{Arrivals, Rw, StreamSpec};
pub use timeline::{Timeline, TimelinePoint};

/// What to run.
#[derive(Clone, Debug)]
pub struct DeviceSpec {
    /// The drive.
    pub profile: SsdProfile,
    /// What is done to it.
    pub job: Job,
    /// Seed of all randomness.
    pub seed: u64,
}

impl DeviceSpec {
    /// What a reader of the results should know: streams that read what nobody has written.
    pub fn warnings(&self) -> Vec<String> {
        plan::warnings(&self.job, &self.profile)
    }
}

/// Finds out whether a job can be run on its drive.
///
/// # Errors
/// [`PlanError`].
pub fn check(spec: &DeviceSpec) -> Result<(), PlanError> {
    let rt = Runtime::new(spec.seed);
    let empty = Ssd::new(&rt.handle(), &spec.profile, ssd::Precondition::Empty);
    let job = with_traces(&spec.job)?;
    plan::plan(&job, &empty.sets()).map(drop)
}

/// Does a job on a drive. `progress` is told how far it is, from 0, when the drive is made and the
/// job begins, to 1, when it has ended. Cost in wall time: a microsecond or a few an operation of
/// 4 KiB, most of it the drive's.
///
/// # Errors
/// [`PlanError`]: the job does not fit the drive. What goes wrong during the job is part of the
/// report.
///
/// # Panics
/// If the job has problems that loading it would have told.
pub fn run(spec: &DeviceSpec, progress: impl FnMut(f64) + 'static) -> Result<JobReport, PlanError> {
    run_until(spec, &Stop::default(), progress)
}

/// The same, but once `stop` is asked for no other operation begins, and the report is of what there
/// was until then. Operations that a drive does not end soon are left out of it.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_until(
    spec: &DeviceSpec,
    stop: &Stop,
    progress: impl FnMut(f64) + 'static,
) -> Result<JobReport, PlanError> {
    let problems = check::problems(&spec.job);
    assert!(problems.is_empty(), "job {}: {}", spec.job.name, problems.join("; "));
    let job = with_traces(&spec.job)?;
    let rt = Runtime::new(spec.seed);
    let handle = rt.handle();
    let ssd = Ssd::new(&handle, &spec.profile, spec.job.precondition());
    let plan = plan::plan(&job, &ssd.sets())?;
    let watch = Rc::new(watch::Watch::new(stop.clone()));
    let job = on_drive(handle, ssd, plan, (stop.clone(), Rc::clone(&watch)), Box::new(progress));
    Ok(rt.block_on_watched(job, &|| watch.look()))
}

/// A job whose traces were looked at.
fn with_traces(job: &Job) -> Result<Cow<'_, Job>, PlanError> {
    let is_ready = |stream: &StreamSpec| stream.replay.is_none() || stream.trace.is_some();
    if job.streams.iter().all(is_ready) {
        return Ok(Cow::Borrowed(job));
    }
    let mut job = job.clone();
    job.look_at_traces().map_err(PlanError::Trace)?;
    Ok(Cow::Owned(job))
}

async fn on_drive(
    handle: Handle,
    ssd: Ssd,
    plan: plan::Plan,
    (stop, watch): (Stop, Rc<watch::Watch>),
    progress: Box<dyn FnMut(f64)>,
) -> JobReport {
    let reports = |ssd: &Ssd| {
        let sets = ssd.sets().into_iter().map(|shape| shape.id);
        sets.map(|id| (id, ssd.report(id).expect("the drive has it"))).collect::<Vec<_>>()
    };
    let before = reports(&ssd);
    let asked = ssd.clone();
    let left = Box::new(move |set| asked.windows_broken(set).expect("the drive has it"));
    let device = (ssd.clone(), left as _);
    let ran = run::watched(&handle, device, Ssd::submission_queue, plan, (stop, watch), progress);
    let ran = ran.await;
    let sets = before.into_iter().zip(reports(&ssd));
    JobReport {
        started: ran.started,
        ended: ran.ended,
        streams: ran.streams,
        timeline: ran.timeline,
        windows: ran.windows,
        sets: sets.map(|((id, before), (_, after))| SetChange { id, before, after }).collect(),
        checks: ran.checks,
        is_interrupted: ran.is_interrupted,
        first_error: ran.first_error,
    }
}
