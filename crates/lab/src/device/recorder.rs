//! What is written down while a job runs.
//!
//! Cost of an operation: two histogram increments. Memory: up to 430 KiB for each direction of a stream
//! that occurs, the samples, and the timeline's.

use block::nvme::SetId;
use runtime::Nanos;

use super::job::WindowName;
use super::plan::Plan;
use super::report::{Direction, Sample, StreamReport};
use super::timeline::{Timeline, TimelineRecorder};

/// Lines of the timeline for each stream: reads, writes and trims.
const LINES: usize = 3;

/// Says how often a set has left its deterministic window by itself.
pub(super) type LeftByItself = Box<dyn Fn(SetId) -> u64>;

/// A set has come to its deterministic window, as the host commanded.
struct Entered {
    at: Nanos,
    /// How often it had left one by itself before.
    left_before: u64,
}

/// Records a job.
pub(super) struct Recorder {
    started: Nanos,
    samples: usize,
    streams: Vec<StreamReport>,
    timeline: TimelineRecorder,
    operations: u64,
    /// Sets that are taken to windows, and how each came to its deterministic one, if it did.
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

    /// How often a set has left its deterministic window by itself.
    pub(super) fn left(&self, set: SetId) -> u64 {
        (self.left)(set)
    }

    /// A set has come to its deterministic window, or is told to leave it. Before the command it had left so many by
    /// itself.
    pub(super) fn window(&mut self, set: SetId, to: WindowName, at: Nanos, left_before: u64) {
        for (_, of_set) in self.windows.iter_mut().filter(|(other, _)| *other == set) {
            *of_set = (to == WindowName::Dtwin).then_some(Entered { at, left_before });
        }
    }

    /// A stream begins.
    pub(super) fn begin(&mut self, stream: usize, now: Nanos) {
        let now = now.saturating_since(self.started);
        let report = &mut self.streams[stream];
        (report.started, report.ended) = (now, now);
    }

    /// An operation of a stream on a set ends that counts from `since`. Returns how many ended so far.
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

/// The line of a stream's operations in the timeline. Flushes have none.
fn line(stream: usize, direction: Direction) -> Option<usize> {
    match direction {
        Direction::Read => Some(stream * LINES),
        Direction::Write => Some(stream * LINES + 1),
        Direction::Trim => Some(stream * LINES + 2),
        Direction::Flush => None,
    }
}

impl Timeline {
    /// What a stream, by its place in the job, did in a direction; nothing is noted of flushes.
    pub fn of(&self, stream: usize, direction: Direction) -> &[super::TimelinePoint] {
        line(stream, direction).and_then(|line| self.lines.get(line)).map_or(&[], Vec::as_slice)
    }
}
