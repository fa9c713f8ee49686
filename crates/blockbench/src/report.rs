//! The results of a job, as plain data.

use block::nvme::{SetId, WindowStatus};
use drives::ssd::SetReport;
use runtime::Nanos;
use workload::{Latencies, LatencySummary};

use crate::job::WindowName;
use crate::ledger::Mismatch;
use crate::operation::Direction;
use crate::replay::Fitted;
use crate::timeline::Timeline;

/// The report of a job. Times are virtual; those of samples, timeline and windows count from the
/// start of the job. The same seed gives an equal report.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Start of the job: after predictable-latency mode is enabled, if the job has window commands.
    pub started: Nanos,
    /// End of the last operation or window command.
    pub ended: Nanos,
    /// The streams, in the order of the job.
    pub streams: Vec<StreamReport>,
    /// The timeline, in buckets.
    pub timeline: Timeline,
    /// The window commands, in the order of issue.
    pub windows: Vec<WindowReport>,
    /// All sets of the drive, by number.
    pub sets: Vec<SetChange>,
    /// The checks of reads.
    pub checks: Checks,
    /// Whether a stop request ended the job early: the report covers the operations until then.
    pub is_interrupted: bool,
    /// The first failed operation, as text; the job ended with it.
    pub first_error: Option<String>,
}

/// The report of a stream.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// The name, unique in the job.
    pub name: String,
    /// The set; `None` if the stream has all sets.
    pub set: Option<SetId>,
    /// Start, from the start of the job.
    pub started: Nanos,
    /// End of the last operation, from the start of the job.
    pub ended: Nanos,
    /// Time from the intended to the actual start of the last operation, in an open loop.
    pub late: Nanos,
    /// Changes to the operations of the replayed trace that fit them to the drive.
    pub fitted: Option<Fitted>,
    /// The report of each direction; `None` without operations.
    pub directions: [Option<DirectionReport>; Direction::ALL.len()],
}

/// The report of one direction of a stream.
#[derive(Clone, Debug, Default)]
pub struct DirectionReport {
    /// Operations that ended.
    pub operations: u64,
    /// Blocks of 4 KiB that they read, wrote or trimmed.
    pub blocks: u64,
    /// Latencies in nanoseconds, with three significant digits; in an open loop from the intended
    /// start.
    pub histogram: Latencies,
    /// The latencies by the window of the set, if it has window commands.
    pub by_window: Option<ByWindow>,
    /// The first latencies individually, as many as the job requests, in the order in which the
    /// operations ended.
    pub samples: Vec<Sample>,
}

/// Latencies in nanoseconds, inside and outside deterministic windows.
#[derive(Clone, Debug, Default)]
pub struct ByWindow {
    /// Operations that began and ended while the set was in its deterministic window.
    pub inside: Latencies,
    /// Operations that began after the set entered the window, and ended after the drive left it
    /// without a command of the host.
    pub left: Latencies,
    /// All others.
    pub outside: Latencies,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Start or intended start, from the start of the job.
    pub at: Nanos,
    /// Latency from that time.
    pub latency: Nanos,
}

/// A window command that was completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowReport {
    /// The set.
    pub set: SetId,
    /// The requested window.
    pub to: WindowName,
    /// Time of the command, from the start of the job.
    pub asked: Nanos,
    /// The drive's estimate of the lockdown time immediately before the command, if available.
    pub lockdown_estimate: Option<Nanos>,
    /// The state of the set before the command.
    pub from: WindowStatus,
    /// Time at which the set reached the window, from the start of the job.
    pub reached: Nanos,
}

/// A set before and after a job.
#[derive(Clone, Debug)]
pub struct SetChange {
    /// The set.
    pub id: SetId,
    /// Its counters before the job.
    pub before: SetReport,
    /// Its counters after the job.
    pub after: SetReport,
}

/// The checks of reads, and mismatches.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Blocks that were read and checked.
    pub blocks: u64,
    /// Reads that returned a wrong block: above 0, the drive is faulty.
    pub mismatches: u64,
    /// The first mismatch.
    pub first_mismatch: Option<Mismatch>,
}

impl JobReport {
    /// Returns the duration of the job.
    pub fn elapsed(&self) -> Nanos {
        self.ended.saturating_since(self.started)
    }

    /// Returns the number of operations of all streams.
    pub fn operations(&self) -> u64 {
        let directions = self.streams.iter().flat_map(|stream| stream.directions.iter().flatten());
        directions.map(|direction| direction.operations).sum()
    }

    /// Returns the stream of this name.
    pub fn stream(&self, name: &str) -> Option<&StreamReport> {
        self.streams.iter().find(|stream| stream.name == name)
    }
}

impl StreamReport {
    /// Returns the report of a direction; `None` without operations.
    pub fn direction(&self, direction: Direction) -> Option<&DirectionReport> {
        self.directions[direction as usize].as_ref()
    }

    /// Returns the duration of the stream.
    pub fn elapsed(&self) -> Nanos {
        self.ended.saturating_since(self.started)
    }

    /// Returns the directions with operations, and their reports.
    pub fn parts(&self) -> impl Iterator<Item = (Direction, &DirectionReport)> {
        Direction::ALL.into_iter().filter_map(|d| Some((d, self.direction(d)?)))
    }
}

impl DirectionReport {
    /// Returns a summary of the latencies.
    pub fn summary(&self) -> LatencySummary {
        self.histogram.summary()
    }
}
