//! What a job did, as plain data.

use block::nvme::{SetId, WindowStatus};
use runtime::Nanos;
use ssd::SetReport;
use workload::{Latencies, LatencySummary};

use super::job::WindowName;
use super::ledger::Mismatch;
use super::replay::Fitted;
use super::timeline::Timeline;

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It makes durable what was written.
    Flush,
    /// It says that blocks are not needed any more.
    Trim,
}

impl Direction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Trim];

    /// As it is written in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
        }
    }
}

/// What a job did. Times are virtual; those of samples, timeline and windows count from the
/// beginning of the job. Equal for equal seeds.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// When the job began: once predictable-latency mode was on, where the job asks for it.
    pub started: Nanos,
    /// When its last operation or window command ended.
    pub ended: Nanos,
    /// What each stream did, in the order of the job.
    pub streams: Vec<StreamReport>,
    /// How it went, bucket by bucket.
    pub timeline: Timeline,
    /// The window commands, in the order in which they were given.
    pub windows: Vec<WindowReport>,
    /// Each set of the drive, by number.
    pub sets: Vec<SetChange>,
    /// What was checked.
    pub checks: Checks,
    /// Whether somebody asked for the end before the job came to it: the report is of what there was.
    pub is_interrupted: bool,
    /// The first operation that failed, in words; the job ended with it.
    pub first_error: Option<String>,
}

/// What a stream did.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// Its name, which no other stream has.
    pub name: String,
    /// Its set; none if it goes to all of them.
    pub set: Option<SetId>,
    /// When it began, from the beginning of the job.
    pub started: Nanos,
    /// When its last operation ended.
    pub ended: Nanos,
    /// How late its last operation began, in an open loop.
    pub late: Nanos,
    /// What was done to the operations of the trace that it replays to fit them on the drive.
    pub fitted: Option<Fitted>,
    /// What it did, by direction; nothing where it did nothing.
    pub directions: [Option<DirectionReport>; Direction::ALL.len()],
}

/// What a stream did in one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionReport {
    /// Operations that ended.
    pub operations: u64,
    /// Blocks of 4 KiB that they read, wrote or trimmed.
    pub blocks: u64,
    /// Their latencies in nanoseconds, with three significant digits: in an open loop from the
    /// intended start.
    pub histogram: Latencies,
    /// The same apart by the window that the set was in, where the job takes it to windows.
    pub by_window: Option<ByWindow>,
    /// The first of them one by one, as many as the job asks for, in the order in which they ended.
    pub samples: Vec<Sample>,
}

/// Latencies in nanoseconds of operations within deterministic windows and of others.
#[derive(Clone, Debug, Default)]
pub struct ByWindow {
    /// Begun and ended while the set was in its deterministic window.
    pub inside: Latencies,
    /// Begun after the host's command for the deterministic window, and ended after the drive had left it by itself.
    pub left: Latencies,
    /// All others.
    pub outside: Latencies,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When it began, or was to begin, from the beginning of the job.
    pub at: Nanos,
    /// How long it took from there.
    pub latency: Nanos,
}

/// A window command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowReport {
    /// The set.
    pub set: SetId,
    /// The window it was to go to.
    pub to: WindowName,
    /// When the command was given, from the beginning of the job.
    pub asked: Nanos,
    /// How long the drive thought right before that a lockdown would take, if it says so.
    pub lockdown_estimate: Option<Nanos>,
    /// What the set was in then.
    pub from: WindowStatus,
    /// When the set was there, or the command was refused.
    pub reached: Nanos,
}

/// A set before and after a job.
#[derive(Clone, Debug)]
pub struct SetChange {
    /// The set.
    pub id: SetId,
    /// Its counters when the job began.
    pub before: SetReport,
    /// Its counters when the job had ended.
    pub after: SetReport,
}

/// What was checked, and what was wrong.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Blocks that were read and checked.
    pub blocks: u64,
    /// Reads that returned a block that is not what it may be: 0, or the drive is wrong.
    pub mismatches: u64,
    /// The first of them.
    pub first_mismatch: Option<Mismatch>,
}

impl JobReport {
    /// How long the job took.
    pub fn elapsed(&self) -> Nanos {
        self.ended.saturating_since(self.started)
    }

    /// Operations of all streams.
    pub fn operations(&self) -> u64 {
        let directions = self.streams.iter().flat_map(|stream| stream.directions.iter().flatten());
        directions.map(|direction| direction.operations).sum()
    }

    /// The stream of that name.
    pub fn stream(&self, name: &str) -> Option<&StreamReport> {
        self.streams.iter().find(|stream| stream.name == name)
    }
}

impl StreamReport {
    /// What it did in a direction, if it did anything there.
    pub fn direction(&self, direction: Direction) -> Option<&DirectionReport> {
        self.directions[direction as usize].as_ref()
    }

    /// How long it took.
    pub fn elapsed(&self) -> Nanos {
        self.ended.saturating_since(self.started)
    }

    /// What it did, direction by direction.
    pub fn parts(&self) -> impl Iterator<Item = (Direction, &DirectionReport)> {
        Direction::ALL.into_iter().filter_map(|d| Some((d, self.direction(d)?)))
    }
}

impl DirectionReport {
    /// The latencies in short.
    pub fn summary(&self) -> LatencySummary {
        self.histogram.summary()
    }
}
