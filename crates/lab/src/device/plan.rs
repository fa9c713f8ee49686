//! A job on a certain drive: which blocks each stream goes to, or why that cannot be.

use std::fmt;
use std::ops::Range;

use block::nvme::SetId;
use block::{BLOCK_BYTES, SetShape};
use runtime::Nanos;
use ssd::SsdProfile;
use workload::trace::TraceError;

use super::addresses::Addresses;
use super::block_sizes::Sizes;
use super::check::place;
use super::job::{Arrivals, Before, Job, StreamSpec, WindowName};
use super::replay::{ReplayPlan, Trace};
use super::sets::SetChoice;
use super::skew::Distribution;
use crate::units::bytes_text;

/// Why a job cannot be run on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// A stream or a window command is for a set that the drive does not have.
    NoSuchSet {
        /// Who: "stream 2 (writes)".
        who: String,
        /// The set it is for.
        set: u16,
        /// How many the drive has.
        sets: usize,
    },
    /// A stream reaches beyond the end of its set, or has no room for one operation.
    DoesNotFit {
        /// Who.
        who: String,
        /// The blocks it is to go to.
        blocks: Range<u64>,
        /// Blocks of one operation.
        operation: u64,
        /// Blocks of the set.
        capacity: u64,
    },
    /// A trace cannot be replayed.
    Trace(TraceError),
    /// A trace has an operation that its part of the drive has no room for.
    LongOperation {
        /// Who.
        who: String,
        /// Bytes of the longest read or write.
        bytes: u64,
        /// Bytes of the part.
        room: u64,
    },
    /// Nobody would live to see the end.
    TooLong {
        /// Who.
        who: String,
        /// How long the trace takes at the speed asked for, in years.
        years: u64,
    },
    /// The job has window commands and the set has no windows.
    NoWindows {
        /// The set.
        set: u16,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchSet { who, set, sets: 1 } => {
                write!(f, "{who} is for set {set}; the drive has set 1 only")
            }
            Self::NoSuchSet { who, set, sets } => {
                write!(f, "{who} is for set {set}; the drive has sets 1 to {sets}")
            }
            Self::DoesNotFit { who, blocks, operation, capacity } => write!(
                f,
                "{who} is for blocks {} to {} of 4 KiB, {operation} at a time; its set has \
                 {capacity}: change offset, size or block_bytes",
                blocks.start,
                blocks.end.max(blocks.start + 1) - 1,
            ),
            Self::Trace(error) => error.fmt(f),
            Self::LongOperation { who, bytes, room } => write!(
                f,
                "{who} has an operation of {bytes} bytes, and goes to {room} bytes: change offset or size"
            ),
            Self::TooLong { who, years } => write!(
                f,
                "{who} takes {years} years at this speed, and 30 are allowed: change replay_time_scale, or give \
                 replay_no_stall"
            ),
            Self::NoWindows { set } => write!(
                f,
                "the job takes set {set} to windows, and the drive has none: leave out [[window]], \
                 or take a drive with a [plm] section"
            ),
        }
    }
}

impl std::error::Error for PlanError {}

/// A job, ready for a drive.
pub(super) struct Plan {
    pub streams: Vec<StreamPlan>,
    pub windows: Vec<WindowPlan>,
    pub bucket: Nanos,
    pub samples: usize,
    pub verifies: bool,
}

/// A stream, ready for a drive.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct StreamPlan {
    pub name: String,
    /// The set or sets that it goes to, and where each is in the list of sets.
    pub sets: Vec<(SetId, usize)>,
    /// The first block of its part of each set.
    pub first: u64,
    /// Blocks of that part.
    pub length: u64,
    pub sizes: Sizes,
    /// Where operations go, if they go at random.
    pub distribution: Option<Distribution>,
    pub read_share: f64,
    /// Of those that do not read.
    pub trim_share: f64,
    /// Trims are followed by a write of what they trimmed.
    pub writes_what_it_trims: bool,
    /// The trace that says all of this instead.
    pub replay: Option<ReplayPlan>,
    pub clients: u32,
    /// Operations per second of an open loop.
    pub rate: Option<(f64, Arrivals)>,
    /// The stream that has to end before.
    pub after: Option<usize>,
    pub delay: Nanos,
    pub duration: Option<Nanos>,
    pub operations: u64,
    /// The same in blocks.
    pub blocks: u64,
    pub flush_every: Option<u64>,
}

/// The window commands for one set, in order.
pub(super) struct WindowPlan {
    pub set: SetId,
    pub steps: Vec<(Nanos, WindowName)>,
}

fn seconds(seconds: f64) -> Nanos {
    Nanos::from_micros_f64(seconds * 1e6)
}

/// Sets a job, which has no [`super::check::problems`], upon a drive of these sets.
pub(super) fn plan(job: &Job, sets: &[SetShape]) -> Result<Plan, PlanError> {
    let streams = job.streams.iter().enumerate();
    Ok(Plan {
        streams: streams.map(|(i, _)| stream(job, i, sets)).collect::<Result<_, _>>()?,
        windows: windows(job, sets)?,
        bucket: Nanos::from_micros_f64(job.bucket_ms * 1e3),
        samples: job.samples,
        verifies: job.verify,
    })
}

fn set_index(who: &str, set: u16, sets: &[SetShape]) -> Result<usize, PlanError> {
    let index = sets.iter().position(|shape| shape.id.get() == set);
    index.ok_or_else(|| PlanError::NoSuchSet { who: who.to_owned(), set, sets: sets.len() })
}

fn stream(job: &Job, index: usize, sets: &[SetShape]) -> Result<StreamPlan, PlanError> {
    let spec = &job.streams[index];
    let who = place(index, spec);
    let indices = match spec.set {
        SetChoice::One(number) => vec![set_index(&who, number, sets)?],
        SetChoice::All => (0..sets.len()).collect(),
    };
    let capacity = indices.iter().map(|at| sets[*at].blocks).min().unwrap_or(0);
    let part = part(spec, capacity);
    let sizes = spec.sizes();
    let operation = sizes.most();
    if part.end > capacity || part.end.saturating_sub(part.start) < operation {
        return Err(PlanError::DoesNotFit { who, blocks: part, operation, capacity });
    }
    let room = (part.end - part.start, indices.len() as u64);
    let replay = spec.trace.as_ref().map(|trace| replay(&who, spec, trace, room)).transpose()?;
    let of_trace = spec.trace.as_ref().map(|trace| trace.survey.operations());
    let after = spec.after.as_ref();
    let is_random = spec.rw.is_random();
    let whole_blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES);
    Ok(StreamPlan {
        name: name(&job.streams, index),
        sets: indices.into_iter().map(|at| (sets[at].id, at)).collect(),
        first: part.start,
        length: part.end - part.start,
        sizes,
        distribution: is_random.then(|| spec.random_distribution.clone().unwrap_or_default()),
        read_share: spec.read_share(),
        trim_share: spec.trim_share(),
        writes_what_it_trims: spec.rw.writes_what_it_trims(),
        replay,
        clients: spec.outstanding(),
        rate: spec.rate.map(|rate| (rate, spec.arrivals.unwrap_or_default())),
        after: after.and_then(|name| job.streams.iter().position(|other| other.name == *name)),
        delay: seconds(spec.start_s),
        duration: spec.duration_s.map(seconds),
        operations: spec.operation_limit().min(of_trace.unwrap_or(u64::MAX)),
        blocks: spec.bytes.map_or(u64::MAX, whole_blocks),
        flush_every: spec.flush_every,
    })
}

/// Longest replay, in seconds: thirty years, of the 584 that the clock has.
const LONGEST_SECONDS: f64 = 30.0 * YEAR_SECONDS;
const YEAR_SECONDS: f64 = 365.0 * 86_400.0;

/// How a trace is replayed on so many blocks of so many sets.
fn replay(
    who: &str,
    spec: &StreamSpec,
    trace: &Trace,
    (length, sets): (u64, u64),
) -> Result<ReplayPlan, PlanError> {
    let (bytes, room) = (trace.survey.largest, length * u64::from(BLOCK_BYTES));
    // One that begins within a block goes to one more.
    if bytes + u64::from(BLOCK_BYTES) > room {
        return Err(PlanError::LongOperation { who: who.to_owned(), bytes, room });
    }
    let pace = 100.0 / spec.replay_time_scale.unwrap_or(100.0);
    let span = trace.survey.span.filter(|_| spec.is_paced_by_its_trace());
    let seconds = span.map_or(0.0, |span| span.as_secs_f64() * pace);
    if seconds > LONGEST_SECONDS {
        let years = (seconds / YEAR_SECONDS) as u64;
        return Err(PlanError::TooLong { who: who.to_owned(), years });
    }
    let (scale, align) = (spec.replay_scale.unwrap_or(1), spec.replay_align.unwrap_or(1));
    let addresses = Addresses { sets, length, scale, align };
    Ok(ReplayPlan { trace: trace.clone(), addresses, pace: span.map(|_| pace) })
}

/// The blocks that a stream goes to, in a set of so many.
fn part(spec: &StreamSpec, capacity: u64) -> Range<u64> {
    let in_blocks = |extent: super::Extent| extent.blocks(capacity, u64::from(BLOCK_BYTES));
    let start = spec.offset.map_or(0, in_blocks);
    let end = spec.size.map_or(capacity, |size| start.saturating_add(in_blocks(size)));
    start..end
}

/// A name that no other stream has.
fn name(streams: &[StreamSpec], index: usize) -> String {
    let own = streams[index].shown_name();
    let same = streams.iter().filter(|other| other.shown_name() == own).count();
    if same > 1 { format!("{own} {}", index + 1) } else { own.to_owned() }
}

fn windows(job: &Job, sets: &[SetShape]) -> Result<Vec<WindowPlan>, PlanError> {
    let mut plans: Vec<WindowPlan> = Vec::new();
    for (i, step) in job.windows.iter().enumerate() {
        let shape = &sets[set_index(&format!("window {}", i + 1), step.set, sets)?];
        if !shape.has_windows {
            return Err(PlanError::NoWindows { set: step.set });
        }
        let at = (seconds(step.at_s), step.to);
        match plans.iter_mut().find(|plan| plan.set == shape.id) {
            Some(plan) => plan.steps.push(at),
            None => plans.push(WindowPlan { set: shape.id, steps: vec![at] }),
        }
    }
    for plan in &mut plans {
        plan.steps.sort_by_key(|(at, _)| *at);
    }
    Ok(plans)
}

/// What a reader of the results should know: streams that read what nobody has written.
pub(super) fn warnings(job: &Job, profile: &SsdProfile) -> Vec<String> {
    let capacity = profile.blocks_per_set();
    let filled = match job.precondition {
        Before::Empty => 0,
        Before::Sequential | Before::Random => (capacity as f64 * job.fill.unwrap_or(1.0)) as u64,
    };
    let writes = |set: u16| job.streams.iter().any(|s| s.set.has(set) && s.writes());
    let reads_nothing = |spec: &StreamSpec| {
        let mut sets = (1..=profile.sets as u16).filter(|set| spec.set.has(*set));
        spec.read_share() > 0.0 && part(spec, capacity).end > filled && sets.any(|set| !writes(set))
    };
    let streams = job.streams.iter().enumerate().filter(|(_, spec)| reads_nothing(spec));
    let warn = |(i, spec): (usize, &StreamSpec)| {
        format!(
            "{} reads blocks that were never written, which takes no flash read: write them \
             first, by precondition, fill or a stream",
            place(i, spec)
        )
    };
    let replays = job.streams.iter().enumerate();
    let replays = replays.flat_map(|(i, spec)| of_replay(&place(i, spec), spec, profile));
    streams.map(warn).chain(replays).collect()
}

/// What becomes of a trace that is not as the drive is.
fn of_replay(who: &str, spec: &StreamSpec, profile: &SsdProfile) -> Vec<String> {
    let Some(Trace { survey, .. }) = &spec.trace else { return Vec::new() };
    let capacity = profile.blocks_per_set();
    let part = part(spec, capacity);
    let sets = if spec.set == SetChoice::All { u64::from(profile.sets) } else { 1 };
    let room = part.end.min(capacity).saturating_sub(part.start) * sets * u64::from(BLOCK_BYTES);
    let end = survey.end / spec.replay_scale.unwrap_or(1);
    let mut warnings = Vec::new();
    if end > room {
        warnings.push(format!(
            "{who} replays addresses up to {}, and goes to {}: those beyond it begin again at its beginning (replay_scale \
             divides them, size and set = \"all\" make room)",
            bytes_text(end),
            bytes_text(room)
        ));
    }
    if survey.sources > 1 {
        let files = survey.sources;
        warnings.push(format!(
            "{who} replays a trace of {files} files or devices: all of them onto one, as fio's replay_redirect does"
        ));
    }
    if survey.span.is_none() && !spec.replay_no_stall {
        warnings.push(format!(
            "{who} replays a trace without times: operations follow each other as fast as its depth of {} allows",
            spec.outstanding()
        ));
    }
    warnings
}
