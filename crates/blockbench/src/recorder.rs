//! The recorder of a running job.
//!
//! Cost per operation: two histogram increments. Memory: up to 430 KiB for each direction that
//! occurs in a stream, the samples, and the timeline.

use block::nvme::SetId;
use runtime::Nanos;

use crate::job::WindowName;
use crate::operation::Direction;
use crate::plan::Plan;
use crate::report::{Sample, StreamReport};
use crate::timeline::{Timeline, TimelineRecorder};

/// Lines of the timeline per stream: reads, writes and trims.
const LINES: usize = 3;

/// Returns how often a set left its deterministic window without a command of the host.
pub(super) type LeftByItself = Box<dyn Fn(SetId) -> u64>;

/// The entry of a set into its deterministic window by a command of the host.
struct Entered {
    at: Nanos,
    /// How often the set had left a deterministic window without a command before.
    left_before: u64,
}

/// Records a job.
pub(super) struct Recorder {
    started: Nanos,
    samples: usize,
    streams: Vec<StreamReport>,
    timeline: TimelineRecorder,
    operations: u64,
    /// Sets with window commands, and the entry into the current deterministic window, if any.
    windows: Vec<(SetId, Option<Entered>)>,
    left: LeftByItself,
}

impl Recorder {
    pub(super) fn new(plan: &Plan, started: Nanos, left: LeftByItself) -> Self {
        let streams = plan.streams.iter().map(|stream| StreamReport {
            name: stream.name.clone(),
            set: if let [(set, _)] = stream.sets[..] { Some(set) } else { None },
            started: Nanos::ZERO,
            ended: Nanos::ZERO,
            late: Nanos::ZERO,
            fitted: None,
            directions: [const { None }; Direction::ALL.len()],
        });
        Self {
            started,
            samples: plan.samples,
            streams: streams.collect(),
            timeline: TimelineRecorder::new(started, plan.bucket, plan.streams.len() * LINES),
            operations: 0,
            windows: plan.windows.iter().map(|of_set| (of_set.set, None)).collect(),
            left,
        }
    }

    /// Returns how often a set left its deterministic window without a command of the host.
    pub(super) fn left(&self, set: SetId) -> u64 {
        (self.left)(set)
    }

    /// Notes that a set has entered its deterministic window, or receives the command to leave it.
    /// `left_before` is the result of [`Self::left`] before the command.
    pub(super) fn window(&mut self, set: SetId, to: WindowName, at: Nanos, left_before: u64) {
        for (_, of_set) in self.windows.iter_mut().filter(|(other, _)| *other == set) {
            *of_set = (to == WindowName::Dtwin).then_some(Entered { at, left_before });
        }
    }

    /// Notes the start of a stream.
    pub(super) fn begin(&mut self, stream: usize, now: Nanos) {
        let now = now.saturating_since(self.started);
        let report = &mut self.streams[stream];
        (report.started, report.ended) = (now, now);
    }

    /// Records an operation that has ended, with its latency from `since`. Returns the number of
    /// operations recorded so far.
    pub(super) fn ended(
        &mut self,
        (stream, set): (usize, SetId),
        direction: Direction,
        blocks: u64,
        since: Nanos,
        now: Nanos,
    ) -> u64 {
        let latency = now.saturating_since(since);
        let report = &mut self.streams[stream];
        report.ended = now.saturating_since(self.started);
        let part = report.directions[direction as usize].get_or_insert_default();
        part.operations += 1;
        part.blocks += blocks;
        part.histogram.record(latency);
        if let Some((_, entered)) = self.windows.iter().find(|(other, _)| *other == set) {
            let apart = part.by_window.get_or_insert_default();
            let histogram = match entered {
                Some(entered) if since < entered.at => &mut apart.outside,
                Some(entered) if (self.left)(set) > entered.left_before => &mut apart.left,
                Some(_) => &mut apart.inside,
                None => &mut apart.outside,
            };
            histogram.record(latency);
        }
        if part.samples.len() < self.samples {
            part.samples.push(Sample { at: since.saturating_since(self.started), latency });
        }
        if let Some(line) = line(stream, direction) {
            self.timeline.record(line, since, latency);
        }
        self.operations += 1;
        self.operations
    }

    pub(super) fn finish(&mut self) -> (Vec<StreamReport>, Timeline) {
        (std::mem::take(&mut self.streams), self.timeline.finish())
    }
}

/// Returns the line of a stream and direction in the timeline; `None` for flushes.
fn line(stream: usize, direction: Direction) -> Option<usize> {
    match direction {
        Direction::Read => Some(stream * LINES),
        Direction::Write => Some(stream * LINES + 1),
        Direction::Trim => Some(stream * LINES + 2),
        Direction::Flush => None,
    }
}

impl Timeline {
    /// Returns the points of a stream, by its index in the job, in one direction. Flushes have
    /// none.
    pub fn of(&self, stream: usize, direction: Direction) -> &[crate::TimelinePoint] {
        line(stream, direction).and_then(|line| self.lines.get(line)).map_or(&[], Vec::as_slice)
    }
}
