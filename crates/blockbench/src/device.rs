//! The run of a job on a simulated drive.

use std::borrow::Cow;
use std::rc::Rc;

use block::BlockDevice;
use drives::ssd::{Ssd, SsdProfile};
use runtime::{Handle, Runtime};
use workload::Stop;

use crate::check::problems;
use crate::job::Job;
use crate::plan::{self, PlanError};
use crate::report::{JobReport, SetChange};
use crate::run::watched;
use crate::stream::StreamSpec;
use crate::watch::Watch;

/// A run: a drive, a job and a seed.
#[derive(Clone, Debug)]
pub struct DeviceSpec {
    /// The profile of the drive.
    pub profile: SsdProfile,
    /// The job.
    pub job: Job,
    /// The seed of all randomness.
    pub seed: u64,
}

impl DeviceSpec {
    /// Returns warnings about the results, one sentence each: for example, a stream that reads
    /// blocks that were never written.
    pub fn warnings(&self) -> Vec<String> {
        plan::warnings(&self.job, &self.profile)
    }
}

/// Checks whether a job fits its drive.
///
/// # Errors
/// Returns [`PlanError`] if the job does not fit the drive.
pub fn check(spec: &DeviceSpec) -> Result<(), PlanError> {
    let rt = Runtime::new(spec.seed);
    let empty = Ssd::new(&rt.handle(), &spec.profile, drives::ssd::Precondition::Empty);
    let job = with_traces(&spec.job)?;
    plan::plan(&job, &empty.sets()).map(drop)
}

/// Executes a job on a drive. Calls `progress` with the progress of the job: 0 once the drive is
/// ready and the job begins, 1 at the end. Cost in wall time: about one to a few microseconds per
/// operation of 4 KiB, most of it for the drive.
///
/// # Errors
/// Returns [`PlanError`] if the job does not fit the drive. Errors during the job are part of the
/// report.
///
/// # Panics
/// Panics if the job has problems that loading it would have reported.
pub fn run(spec: &DeviceSpec, progress: impl FnMut(f64) + 'static) -> Result<JobReport, PlanError> {
    run_until(spec, &Stop::default(), progress)
}

/// Same as [`run`], but ends early once `stop` is requested: no further operation begins, and the
/// report covers the operations that ended. Operations that the drive does not complete soon are
/// not in the report.
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
    let problems = problems(&spec.job);
    assert!(problems.is_empty(), "job {}: {}", spec.job.name, problems.join("; "));
    let job = with_traces(&spec.job)?;
    let rt = Runtime::new(spec.seed);
    let handle = rt.handle();
    let ssd = Ssd::new(&handle, &spec.profile, spec.job.precondition());
    let plan = plan::plan(&job, &ssd.sets())?;
    let watch = Rc::new(Watch::new(stop.clone()));
    let job = on_drive(handle, ssd, plan, (stop.clone(), Rc::clone(&watch)), Box::new(progress));
    Ok(rt.block_on_watched(job, &|| watch.look()))
}

/// Returns the job with the surveys of all its traces.
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
    (stop, watch): (Stop, Rc<Watch>),
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
    let ran = watched(&handle, device, Ssd::submission_queue, plan, (stop, watch), progress);
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
