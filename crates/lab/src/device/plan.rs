//! A job on a certain drive: which blocks each stream goes to, or why that cannot be.

use std::fmt;
use std::ops::Range;

use block::nvme::SetId;
use block::{BLOCK_BYTES, SetShape};
use runtime::Nanos;
use ssd::SsdProfile;

use super::check::place;
use super::job::{Arrivals, Before, Job, StreamSpec, WindowName};

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
    pub set: SetId,
    /// Where in the list of sets that is.
    pub set_index: usize,
    /// The first block of its part of the set.
    pub first: u64,
    /// Operations that its part of the set has room for.
    pub places: u64,
    /// Blocks of an operation.
    pub blocks: u32,
    pub is_random: bool,
    pub read_share: f64,
    pub clients: u32,
    /// Operations per second of an open loop.
    pub rate: Option<(f64, Arrivals)>,
    /// The stream that has to end before.
    pub after: Option<usize>,
    pub delay: Nanos,
    pub duration: Option<Nanos>,
    pub operations: u64,
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
    let set_index = set_index(&who, spec.set, sets)?;
    let shape = &sets[set_index];
    let part = part(spec, shape.blocks);
    let operation = spec.block_bytes / u64::from(BLOCK_BYTES);
    if part.end > shape.blocks || part.end.saturating_sub(part.start) < operation {
        let capacity = shape.blocks;
        return Err(PlanError::DoesNotFit { who, blocks: part, operation, capacity });
    }
    let after = spec.after.as_ref();
    Ok(StreamPlan {
        name: name(&job.streams, index),
        set: shape.id,
        set_index,
        first: part.start,
        places: (part.end - part.start) / operation,
        blocks: operation as u32,
        is_random: spec.rw.is_random(),
        read_share: spec.read_share(),
        clients: spec.outstanding(),
        rate: spec.rate.map(|rate| (rate, spec.arrivals.unwrap_or_default())),
        after: after.and_then(|name| job.streams.iter().position(|other| other.name == *name)),
        delay: seconds(spec.start_s),
        duration: spec.duration_s.map(seconds),
        operations: spec.operation_limit(),
        flush_every: spec.flush_every,
    })
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
    let writes = |set: u16| job.streams.iter().any(|s| s.set == set && s.read_share() < 1.0);
    let reads_nothing = |spec: &StreamSpec| {
        spec.read_share() > 0.0 && part(spec, capacity).end > filled && !writes(spec.set)
    };
    let streams = job.streams.iter().enumerate().filter(|(_, spec)| reads_nothing(spec));
    let warn = |(i, spec): (usize, &StreamSpec)| {
        format!(
            "{} reads blocks that were never written, which takes no flash read: write them \
             first, by precondition, fill or a stream",
            place(i, spec)
        )
    };
    streams.map(warn).collect()
}
