//! The recorder of a running phase, and its report.
//!
//! Cost of an operation: two histogram increments, one of them in the timeline's open window.
//! Memory: up to 430 KiB per kind of operation that occurs, plus the timeline.

mod latencies;
mod report;
mod sketch;
mod summary;
mod timeline;

pub use latencies::Latencies;
pub use report::RunReport;
pub use summary::LatencySummary;
pub use timeline::{Timeline, TimelineWindow, WindowLatency};

use runtime::Nanos;

use crate::oracle::ScanSurprise;
use crate::{Mismatch, OpKind};
use timeline::TimelineRecorder;

/// Mismatches kept in full.
const KEPT_MISMATCHES: usize = 10;

/// Latencies of each kind of operation; created when the first operation of the kind ends.
pub(crate) type ByKind = [Option<Latencies>; OpKind::ALL.len()];

/// Records one phase.
pub(crate) struct Recorder {
    started: Nanos,
    last_end: Nanos,
    late: Nanos,
    planned: u64,
    done: u64,
    latencies: ByKind,
    timeline: TimelineRecorder,
    not_found: u64,
    scanned_pairs: u64,
    mismatch_count: u64,
    mismatches: Vec<Mismatch>,
    error_count: u64,
    first_error: Option<String>,
}

impl Recorder {
    pub(crate) fn new(started: Nanos, planned: u64, window: Nanos, max_windows: usize) -> Self {
        Self {
            started,
            last_end: started,
            late: Nanos::ZERO,
            planned,
            done: 0,
            latencies: [const { None }; OpKind::ALL.len()],
            timeline: TimelineRecorder::new(started, window, max_windows),
            not_found: 0,
            scanned_pairs: 0,
            mismatch_count: 0,
            mismatches: Vec::new(),
            error_count: 0,
            first_error: None,
        }
    }

    /// Notes that an operation scheduled for `at` begins `now`.
    pub(crate) fn begun(&mut self, at: Nanos, now: Nanos) {
        self.late = now.saturating_since(at);
    }

    /// Notes that a request of `kind` whose latency counts from `since` ends `now`.
    pub(crate) fn latency(&mut self, kind: OpKind, since: Nanos, now: Nanos) {
        let latency = now.saturating_since(since);
        self.latencies[kind as usize].get_or_insert_default().record(latency);
        self.timeline.latency(kind, latency.0, now);
    }

    /// Counts a Get that correctly found no value.
    pub(crate) fn not_found(&mut self) {
        self.not_found += 1;
    }

    /// Notes that a scan of operation `operation` returned `pairs` pairs, with the mismatches
    /// found.
    pub(crate) fn scanned(
        &mut self,
        seed: u64,
        operation: u64,
        at: Nanos,
        pairs: u64,
        surprises: impl IntoIterator<Item = ScanSurprise>,
    ) {
        self.scanned_pairs += pairs;
        for surprise in surprises {
            let ScanSurprise { kind, key, key_number, expected, got } = surprise;
            self.mismatch(|| Mismatch {
                seed,
                operation,
                at,
                key,
                key_number,
                kind,
                expected,
                got,
            });
        }
    }

    /// Notes that a whole operation is done; read-modify-writes and scans count once. Returns the
    /// number of operations done.
    pub(crate) fn operation_done(&mut self, now: Nanos) -> u64 {
        // Threads may arrive here in another order than their operations ended.
        self.last_end = self.last_end.max(now);
        self.timeline.operation(now);
        self.done += 1;
        self.done
    }

    /// Counts a wrong result of a Get or a scan; `describe` is called only if the mismatch is kept.
    pub(crate) fn mismatch(&mut self, describe: impl FnOnce() -> Mismatch) {
        self.mismatch_count += 1;
        if self.mismatches.len() < KEPT_MISMATCHES {
            self.mismatches.push(describe());
        }
    }

    /// Counts a failed operation.
    pub(crate) fn error(&mut self, describe: impl FnOnce() -> String) {
        self.error_count += 1;
        self.first_error.get_or_insert_with(describe);
    }

    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    pub(crate) fn into_report(self) -> RunReport {
        RunReport {
            started: self.started,
            ended: self.last_end,
            late: self.late,
            planned: self.planned,
            operations: self.done,
            not_found: self.not_found,
            scanned_pairs: self.scanned_pairs,
            mismatch_count: self.mismatch_count,
            mismatches: self.mismatches,
            error_count: self.error_count,
            first_error: self.first_error,
            timeline: self.timeline.finish(self.last_end),
            latencies: self.latencies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles clipped at 1000 s with unclipped means would be plausible and wrong.
    #[test]
    fn latencies_of_hours_are_not_cut_short() {
        let (window, hour) = (Nanos::from_millis(100), Nanos(3_600_000_000_000));
        let mut recorder = Recorder::new(Nanos::ZERO, 2, window, 4096);
        recorder.latency(OpKind::Get, Nanos::ZERO, hour);
        recorder.operation_done(hour);
        recorder.latency(OpKind::Get, hour, hour + hour * 1000);
        recorder.operation_done(hour + hour * 1000);
        let report = recorder.into_report();
        let gets = report.summary(OpKind::Get).expect("there were two");
        assert!((gets.p50_us / 3.6e9 - 1.0).abs() < 0.001, "{gets:?}");
        assert!((gets.max_us - 3.6e12).abs() < 1e-3, "it is exact: {gets:?}");
        let last = report.timeline.windows.last().expect("there are windows");
        assert!((last.gets.p99_us / 3.6e12 - 1.0).abs() < 0.01, "{:?}", last.gets);
    }
}
