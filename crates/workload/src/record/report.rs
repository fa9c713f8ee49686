//! What one phase did.

use hdrhistogram::Histogram;
use runtime::Nanos;

use super::{ByKind, Latencies, LatencySummary, Timeline};
use crate::{Mismatch, OpKind};

/// The result of a load or a run. Equal for equal seeds on an equal target.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RunReport {
    /// When the phase began, in virtual time.
    pub started: Nanos,
    /// When its last operation ended.
    pub ended: Nanos,
    /// How late its last operation began, in an open loop or a replay at recorded times.
    pub late: Nanos,
    /// How many operations there were to do.
    pub planned: u64,
    /// How many were done; a read-modify-write counts once, and so does a scan. Fewer than planned
    /// after an error.
    pub operations: u64,
    /// Gets that rightly found nothing, of keys that were deleted or never inserted.
    pub not_found: u64,
    /// Pairs that scans gave.
    pub scanned_pairs: u64,
    /// Wrong answers to Gets and scans: 0, or the target is wrong. A scan may give several.
    pub mismatch_count: u64,
    /// The first few of them.
    pub mismatches: Vec<Mismatch>,
    /// Operations that failed: the one that ended the phase, and any under way beside it.
    pub error_count: u64,
    /// The first failure: what was done, when, and the target's words.
    pub first_error: Option<String>,
    /// How the phase went, window by window.
    pub timeline: Timeline,
    pub(super) latencies: ByKind,
}

impl RunReport {
    /// Virtual time from the begin of the phase to the end of its last operation.
    pub fn elapsed(&self) -> Nanos {
        self.ended.saturating_since(self.started)
    }

    /// Operations per second of virtual time; 0 if no time has passed.
    pub fn throughput(&self) -> f64 {
        let seconds = self.elapsed().as_secs_f64();
        if seconds > 0.0 { self.operations as f64 / seconds } else { 0.0 }
    }

    /// Latencies of `kind` in nanoseconds, from intended start to end; `None` if there was none.
    pub fn histogram(&self, kind: OpKind) -> Option<&Histogram<u64>> {
        self.latencies[kind as usize].as_deref()
    }

    /// The same with the longest as it was.
    pub fn latencies(&self, kind: OpKind) -> Option<&Latencies> {
        self.latencies[kind as usize].as_ref()
    }

    /// How many operations of `kind` ended. The Get and the Put within a read-modify-write count,
    /// and so do the Seek and each Next within a scan.
    pub fn count(&self, kind: OpKind) -> u64 {
        self.histogram(kind).map_or(0, Histogram::len)
    }

    /// The latencies of `kind` in short; `None` if there was none.
    pub fn summary(&self, kind: OpKind) -> Option<LatencySummary> {
        self.latencies(kind).map(Latencies::summary)
    }

    /// The latencies in short of every kind of operation that occurred.
    pub fn summaries(&self) -> impl Iterator<Item = (OpKind, LatencySummary)> {
        OpKind::ALL.into_iter().filter_map(|kind| Some((kind, self.summary(kind)?)))
    }

    /// Whether an error ended the phase before its time.
    pub fn is_cut_short(&self) -> bool {
        self.operations < self.planned
    }

    /// Whether everything was done and every value was right.
    pub fn is_clean(&self) -> bool {
        self.error_count == 0 && self.mismatch_count == 0 && !self.is_cut_short()
    }
}
