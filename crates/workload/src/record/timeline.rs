//! Progress of a phase over virtual time, window by window.
//!
//! Invariant: windows follow each other without gaps from the start of the phase, all with the same
//! length, and never exceed the maximum number: when one more is needed, neighbours are joined in
//! pairs and the length doubles. An operation counts in the window in which it ends.

use runtime::Nanos;

use super::sketch::{ClosedSketch, Sketch};
use crate::OpKind;

/// All windows of a phase.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// Length of each window; the last one may be cut off by the end of the phase.
    pub window: Nanos,
    /// The windows in order.
    pub windows: Vec<TimelineWindow>,
}

/// One window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimelineWindow {
    /// Start of the window.
    pub start: Nanos,
    /// Length: shorter than the others if the phase ended within it.
    pub length: Nanos,
    /// Operations that ended in it; a read-modify-write counts once, and so does a scan.
    pub operations: u64,
    /// Gets that ended in it.
    pub gets: WindowLatency,
    /// Puts that ended in it.
    pub puts: WindowLatency,
}

/// Latencies within one window, in microseconds; all 0 if there were none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WindowLatency {
    /// Number of latencies.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median, within 1 %.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

impl TimelineWindow {
    /// Returns the operations per second of virtual time; 0 if the window has no length.
    pub fn throughput(&self) -> f64 {
        let seconds = self.length.as_secs_f64();
        if seconds > 0.0 { self.operations as f64 / seconds } else { 0.0 }
    }
}

#[derive(Default)]
struct ClosedWindow {
    operations: u64,
    gets: ClosedSketch,
    puts: ClosedSketch,
}

/// Records a timeline.
pub(super) struct TimelineRecorder {
    start: Nanos,
    window: Nanos,
    max_windows: usize,
    closed: Vec<ClosedWindow>,
    /// End of the open window, which follows the closed ones.
    open_end: Nanos,
    operations: u64,
    gets: Sketch,
    puts: Sketch,
}

impl TimelineRecorder {
    pub(super) fn new(start: Nanos, window: Nanos, max_windows: usize) -> Self {
        assert!(window > Nanos::ZERO && max_windows > 0, "checked where the options enter");
        Self {
            start,
            window,
            max_windows,
            closed: Vec::new(),
            open_end: start + window,
            operations: 0,
            gets: Sketch::default(),
            puts: Sketch::default(),
        }
    }

    pub(super) fn latency(&mut self, kind: OpKind, latency: u64, now: Nanos) {
        self.advance(now);
        match kind {
            OpKind::Get => self.gets.record(latency),
            OpKind::Put => self.puts.record(latency),
            OpKind::Delete
            | OpKind::Scan
            | OpKind::Seek
            | OpKind::Next
            | OpKind::ReadModifyWrite => {}
        }
    }

    pub(super) fn operation(&mut self, now: Nanos) {
        self.advance(now);
        self.operations += 1;
    }

    /// Makes the window that contains `now` the open one.
    fn advance(&mut self, now: Nanos) {
        if now < self.open_end {
            return;
        }
        self.close();
        while self.index_of(now) >= self.max_windows {
            self.double_window();
        }
        let index = self.index_of(now);
        if index < self.closed.len() {
            self.reopen_last();
        } else {
            self.closed.resize_with(index, ClosedWindow::default);
        }
        self.open_end = self.start + self.window * (index as u64 + 1);
    }

    fn index_of(&self, now: Nanos) -> usize {
        (now.saturating_since(self.start).0 / self.window.0) as usize
    }

    fn close(&mut self) {
        let operations = std::mem::take(&mut self.operations);
        let (gets, puts) = (self.gets.close(), self.puts.close());
        self.closed.push(ClosedWindow { operations, gets, puts });
    }

    /// Reopens the last closed window, which after a doubling may not be over yet.
    fn reopen_last(&mut self) {
        if let Some(last) = self.closed.pop() {
            self.operations = last.operations;
            self.gets.reopen(&last.gets);
            self.puts.reopen(&last.puts);
        }
    }

    fn double_window(&mut self) {
        self.window = self.window * 2;
        let mut windows = std::mem::take(&mut self.closed).into_iter();
        while let Some(first) = windows.next() {
            self.closed.push(match windows.next() {
                Some(second) => first.join(second),
                None => first,
            });
        }
    }

    /// Returns the timeline of a phase that ended at `end`.
    pub(super) fn finish(mut self, end: Nanos) -> Timeline {
        self.close();
        let starts = (0..).map(|index| self.start + self.window * index);
        let windows = self.closed.iter().zip(starts).map(|(window, start)| TimelineWindow {
            start,
            length: self.window.min(end.saturating_since(start)),
            operations: window.operations,
            gets: WindowLatency::of(&window.gets),
            puts: WindowLatency::of(&window.puts),
        });
        Timeline { window: self.window, windows: windows.collect() }
    }
}

impl ClosedWindow {
    fn join(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            gets: self.gets.join(other.gets),
            puts: self.puts.join(other.puts),
        }
    }
}

impl WindowLatency {
    fn of(sketch: &ClosedSketch) -> Self {
        let at = |quantile| sketch.quantile(quantile) as f64 / 1e3;
        Self {
            count: sketch.count(),
            mean_us: sketch.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: sketch.max() as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Nanos = Nanos::from_millis(7);

    /// Returns a timeline with one Get of 5 us and one operation at each given millisecond.
    fn timeline(max_windows: usize, millis: &[u64]) -> Timeline {
        let mut recorder = TimelineRecorder::new(START, Nanos::from_millis(10), max_windows);
        let mut end = START;
        for ms in millis {
            end = START + Nanos::from_millis(*ms);
            recorder.latency(OpKind::Get, 5000, end);
            recorder.operation(end);
        }
        recorder.finish(end)
    }

    fn operations(timeline: &Timeline) -> Vec<u64> {
        timeline.windows.iter().map(|window| window.operations).collect()
    }

    #[test]
    fn windows_follow_each_other_without_a_gap() {
        let timeline = timeline(100, &[0, 1, 9, 10, 35]);
        assert_eq!(operations(&timeline), [3, 1, 0, 1]);
        let starts: Vec<u64> = timeline.windows.iter().map(|window| window.start.0).collect();
        assert_eq!(starts, [7_000_000, 17_000_000, 27_000_000, 37_000_000]);
        assert_eq!(timeline.windows[3].length, Nanos::from_millis(5));
        assert!((timeline.windows[0].throughput() - 300.0).abs() < 1e-9);
        let expected = WindowLatency {
            count: 3,
            mean_us: 5.0,
            p50_us: 5.0,
            p90_us: 5.0,
            p99_us: 5.0,
            p999_us: 5.0,
            max_us: 5.0,
        };
        assert_eq!(timeline.windows[0].gets, expected);
        assert_eq!(timeline.windows[0].puts, WindowLatency::default());
    }

    #[test]
    fn windows_double_when_there_are_too_many() {
        let every_ms: Vec<u64> = (0..160).collect();
        assert_eq!(operations(&timeline(16, &every_ms)), [10; 16]);
        let wide = timeline(4, &every_ms);
        assert_eq!(wide.window, Nanos::from_millis(40));
        assert_eq!(operations(&wide), [40; 4]);
        assert_eq!(wide.windows[3].gets.count, 40);
        // An odd number of windows: the last pair is still open.
        let odd = timeline(3, &every_ms[..45]);
        assert_eq!((odd.window, operations(&odd)), (Nanos::from_millis(20), vec![20, 20, 5]));
    }

    #[test]
    fn a_long_silence_doubles_as_often_as_it_takes() {
        let timeline = timeline(4, &[0, 5, 1_000_000]);
        assert!(timeline.windows.len() <= 4);
        assert_eq!(operations(&timeline).iter().sum::<u64>(), 3);
        assert_eq!(operations(&timeline)[0], 2);
    }

    #[test]
    fn a_phase_without_operations_has_one_empty_window() {
        let timeline = timeline(4, &[]);
        assert_eq!(operations(&timeline), [0]);
        assert_eq!(timeline.windows[0].length, Nanos::ZERO);
    }
}
