//! The plan of a job for a particular drive: the blocks of each stream, or the reason why the job
//! does not fit.

use std::fmt;
use std::ops::Range;

use block::nvme::SetId;
use block::{BLOCK_BYTES, SetShape};
use drives::ssd::SsdProfile;
use report::units::bytes_text;
use runtime::Nanos;
use workload::trace::TraceError;

use crate::addresses::Addresses;
use crate::block_sizes::Sizes;
use crate::check::place;
use crate::job::{Before, Job, WindowName};
use crate::operation::Direction;
use crate::per_direction::PerDirection;
use crate::replay::{ReplayPlan, Trace};
use crate::sets::SetChoice;
use crate::size::Extent;
use crate::skew::Distribution;
use crate::stream::{Arrivals, Rates, StreamSpec};

/// The reason why a job cannot run on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// The drive does not have the set of a stream or window command.
    NoSuchSet {
        /// The stream or window command, such as "stream 2 (writes)".
        who: String,
        /// The set.
        set: u16,
        /// The number of sets of the drive.
        sets: usize,
    },
    /// A stream reaches beyond the end of its set, or has no room for one operation.
    DoesNotFit {
        /// The stream.
        who: String,
        /// The blocks of the stream.
        blocks: Range<u64>,
        /// Blocks of one operation.
        operation: u64,
        /// Blocks of the set.
        capacity: u64,
    },
    /// A trace cannot be replayed.
    Trace(TraceError),
    /// A trace has an operation that is larger than its part of the drive.
    LongOperation {
        /// The stream.
        who: String,
        /// Bytes of the longest read or write.
        bytes: u64,
        /// Bytes of the part.
        room: u64,
    },
    /// A replay takes more than 30 years.
    TooLong {
        /// The stream.
        who: String,
        /// Duration of the trace at the requested speed, in years.
        years: u64,
    },
    /// The job has window commands for a set without windows.
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

/// A job, prepared for a drive.
pub(super) struct Plan {
    pub streams: Vec<StreamPlan>,
    pub windows: Vec<WindowPlan>,
    pub bucket: Nanos,
    pub samples: usize,
    pub verifies: bool,
}

/// A stream, prepared for a drive.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct StreamPlan {
    pub name: String,
    /// The sets of the stream, and their positions in the list of sets.
    pub sets: Vec<(SetId, usize)>,
    /// The blocks in each set, for each job of the stream.
    pub parts: Vec<Range<u64>>,
    pub sizes: PerDirection<Sizes>,
    /// The directions of its operations, without the writes that follow trims.
    pub directions: Vec<Direction>,
    /// The distribution of random operations; `None` for operations in order.
    pub distribution: Option<Distribution>,
    /// Whether random operations visit each place once before they visit one again.
    pub has_map: bool,
    pub read_share: f64,
    /// The share of trims in the operations that do not read.
    pub trim_share: f64,
    /// Whether each trim is followed by a write of the same blocks.
    pub writes_what_it_trims: bool,
    /// The trace that determines the operations, if there is one.
    pub replay: Option<ReplayPlan>,
    /// Outstanding operations of each job of the stream.
    pub clients: u32,
    /// The rates of an open loop.
    pub rates: Option<(Rates, Arrivals)>,
    /// The pause of each job of the stream, and the number of operations between two pauses.
    pub thinks: Option<(Nanos, u64)>,
    /// The streams that must end before this one begins.
    pub waits_for: Vec<usize>,
    /// Whether the delay counts from the end of these streams. Otherwise it counts from the start
    /// of the job.
    pub counts_from_there: bool,
    pub delay: Nanos,
    pub duration: Option<Nanos>,
    pub operations: u64,
    /// The same limit in blocks.
    pub blocks: u64,
    /// The limit as a multiple of the blocks of the part.
    pub loops: Option<u64>,
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

/// Plans a job for a drive with these sets. Requires: the job has no [`crate::check::problems`].
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
    let parts = parts(spec, capacity);
    let sizes = spec.sizes();
    let operation = sizes.most();
    let is_short = |part: &Range<u64>| part.end.saturating_sub(part.start) < operation;
    if let Some(part) = parts.iter().find(|part| part.end > capacity || is_short(part)) {
        return Err(PlanError::DoesNotFit { who, blocks: part.clone(), operation, capacity });
    }
    let room = (parts[0].end - parts[0].start, indices.len() as u64);
    let replay = spec.trace.as_ref().map(|trace| replay(&who, spec, trace, room)).transpose()?;
    let of_trace = spec.trace.as_ref().map(|trace| trace.survey.operations());
    let is_random = spec.rw.is_random();
    let whole_blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES);
    let loops = spec.loops.unwrap_or(1);
    let pause = spec.thinktime_us.filter(|us| *us > 0.0).map(Nanos::from_micros_f64);
    let arrivals = spec.arrivals.unwrap_or_default();
    Ok(StreamPlan {
        name: name(&job.streams, index),
        sets: indices.into_iter().map(|at| (sets[at].id, at)).collect(),
        parts,
        sizes,
        directions: spec.directions(),
        distribution: is_random.then(|| spec.random_distribution.clone().unwrap_or_default()),
        has_map: spec.has_map(),
        read_share: spec.read_share(),
        trim_share: spec.trim_share(),
        writes_what_it_trims: spec.rw.writes_what_it_trims(),
        replay,
        clients: spec.outstanding(),
        rates: spec.rates().map(|rates| (rates, arrivals)),
        thinks: pause.map(|pause| (pause, spec.thinktime_blocks.unwrap_or(1))),
        waits_for: waits_for(&job.streams, index),
        counts_from_there: spec.after.is_some(),
        delay: seconds(spec.start_s),
        duration: spec.duration_s.map(seconds),
        operations: spec.operation_limit().min(of_trace.unwrap_or(u64::MAX)),
        blocks: spec.bytes.map_or(u64::MAX, |bytes| whole_blocks(bytes.saturating_mul(loops))),
        loops: spec.loops.filter(|_| spec.bytes.is_none()),
        flush_every: spec.flush_every,
    })
}

/// Returns the streams that must end before this one begins: those before the last stonewall, and
/// the one named by `after`.
fn waits_for(streams: &[StreamSpec], index: usize) -> Vec<usize> {
    let wall = (0..=index).rev().find(|at| streams[*at].stonewall).unwrap_or(0);
    let named = streams[index].after.as_ref();
    let named = named.and_then(|name| streams.iter().position(|other| other.name == *name));
    (0..wall).chain(named.filter(|at| *at >= wall)).collect()
}

/// The longest replay, in seconds: thirty years, of the 584 years of the clock.
const LONGEST_SECONDS: f64 = 30.0 * YEAR_SECONDS;
const YEAR_SECONDS: f64 = 365.0 * 86_400.0;

/// Plans the replay of a trace on `length` blocks of each of `sets` sets.
fn replay(
    who: &str,
    spec: &StreamSpec,
    trace: &Trace,
    (length, sets): (u64, u64),
) -> Result<ReplayPlan, PlanError> {
    let (bytes, room) = (trace.survey.largest, length * u64::from(BLOCK_BYTES));
    // An operation that begins within a block covers one more block.
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

/// Returns the blocks of each job of a stream, in a set of `capacity` blocks.
fn parts(spec: &StreamSpec, capacity: u64) -> Vec<Range<u64>> {
    let in_blocks = |extent: Extent| extent.blocks(capacity, u64::from(BLOCK_BYTES));
    let first = spec.offset.map_or(0, in_blocks);
    let further = spec.offset_increment.unwrap_or(0) / u64::from(BLOCK_BYTES);
    let part = |job: u32| {
        let start = first.saturating_add(further.saturating_mul(u64::from(job)));
        let end = spec.size.map_or(capacity, |size| start.saturating_add(in_blocks(size)));
        start..if spec.ends_with_set { end.min(capacity) } else { end }
    };
    (0..spec.jobs()).map(part).collect()
}

/// Returns the end of the last of these parts.
fn end(spec: &StreamSpec, capacity: u64) -> u64 {
    parts(spec, capacity).into_iter().map(|part| part.end).max().unwrap_or(0)
}

/// Returns a unique name for a stream.
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

/// Returns warnings about the results, one sentence each: for example, a stream that reads blocks
/// that were never written.
pub(super) fn warnings(job: &Job, profile: &SsdProfile) -> Vec<String> {
    let capacity = profile.blocks_per_set();
    let filled = match job.precondition {
        Before::Empty => 0,
        Before::Sequential | Before::Random => (capacity as f64 * job.fill.unwrap_or(1.0)) as u64,
    };
    let writes = |set: u16| job.streams.iter().any(|s| s.set.has(set) && s.writes());
    let reads_nothing = |spec: &StreamSpec| {
        let mut sets = (1..=profile.sets as u16).filter(|set| spec.set.has(*set));
        spec.read_share() > 0.0 && end(spec, capacity) > filled && sets.any(|set| !writes(set))
    };
    let streams = job.streams.iter().enumerate().filter(|(_, spec)| reads_nothing(spec));
    let warn = |(i, spec): (usize, &StreamSpec)| {
        format!(
            "{} reads blocks that were never written, which takes no flash read: write them \
             first, by precondition, fill or a stream",
            place(i, spec)
        )
    };
    let others = job.streams.iter().enumerate().flat_map(|(i, spec)| {
        let who = place(i, spec);
        of_places(&who, spec, capacity).into_iter().chain(of_replay(&who, spec, profile))
    });
    streams.map(warn).chain(others).collect()
}

/// Warns of operations that go to other places than the options suggest.
fn of_places(who: &str, spec: &StreamSpec, capacity: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if spec.wants_map() && !spec.has_map() {
        warnings.push(format!(
            "{who} has operations of several sizes, and may go to a place again before all others \
             had their turn, as with norandommap; fio would cut operations short at places that \
             it has been to"
        ));
    }
    let whole = StreamSpec { ends_with_set: false, ..spec.clone() };
    if end(&whole, capacity) > end(spec, capacity) {
        warnings.push(format!(
            "{who} would reach beyond the end of its set, and ends with it, as on a device of {}",
            bytes_text(capacity * u64::from(BLOCK_BYTES))
        ));
    }
    warnings
}

/// Warns of differences between a trace and its replay on the drive.
fn of_replay(who: &str, spec: &StreamSpec, profile: &SsdProfile) -> Vec<String> {
    let Some(Trace { survey, .. }) = &spec.trace else { return Vec::new() };
    let capacity = profile.blocks_per_set();
    let part = parts(spec, capacity).swap_remove(0);
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
