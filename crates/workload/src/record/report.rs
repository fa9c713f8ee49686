//! Report of one phase.

use hdrhistogram::Histogram;
use runtime::Nanos;

use super::{ByKind, Latencies, LatencySummary, Timeline};
use crate::{Mismatch, OpKind};

/// The result of a load or a run. Equal for equal seeds on an equal target.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RunReport {
    /// Start of the phase, in virtual time.
    pub started: Nanos,
    /// End of its last operation.
    pub ended: Nanos,
    /// Delay of the start of its last operation, in an open loop or a replay at recorded times.
    pub late: Nanos,
    /// Planned operations.
    pub planned: u64,
    /// Operations done; a read-modify-write counts once, and so does a scan. Fewer than planned
    /// after an error.
    pub operations: u64,
    /// Gets that correctly found no value, of keys that were deleted or never inserted.
    pub not_found: u64,
    /// Pairs returned by scans.
    pub scanned_pairs: u64,
    /// Wrong results of Gets and scans; more than 0 means that the target is wrong. A scan may have
    /// several.
    pub mismatch_count: u64,
    /// The first few mismatches.
    pub mismatches: Vec<Mismatch>,
    /// Operations that failed: the one that ended the phase, and concurrent ones.
    pub error_count: u64,
    /// The first failure: the operation, its time, and the target's message.
    pub first_error: Option<String>,
    /// Progress of the phase, window by window.
    pub timeline: Timeline,
    pub(super) latencies: ByKind,
}

impl RunReport {
    /// Returns the virtual time from the start of the phase to the end of its last operation.
    pub fn elapsed(&self) -> Nanos {
        self.ended.saturating_since(self.started)
    }

    /// Returns the operations per second of virtual time; 0 if no time has passed.
    pub fn throughput(&self) -> f64 {
        let seconds = self.elapsed().as_secs_f64();
        if seconds > 0.0 { self.operations as f64 / seconds } else { 0.0 }
    }

    /// Returns the latencies of `kind` in nanoseconds, from intended start to end; `None` if none
    /// was recorded.
    pub fn histogram(&self, kind: OpKind) -> Option<&Histogram<u64>> {
        self.latencies[kind as usize].as_deref()
    }

    /// Returns the latencies of `kind` with their exact maximum; `None` if none was recorded.
    pub fn latencies(&self, kind: OpKind) -> Option<&Latencies> {
        self.latencies[kind as usize].as_ref()
    }

    /// Returns the number of operations of `kind` that ended, including the Get and the Put of a
    /// read-modify-write, and the Seek and each Next of a scan.
    pub fn count(&self, kind: OpKind) -> u64 {
        self.histogram(kind).map_or(0, Histogram::len)
    }

    /// Returns a summary of the latencies of `kind`; `None` if none was recorded.
    pub fn summary(&self, kind: OpKind) -> Option<LatencySummary> {
        self.latencies(kind).map(Latencies::summary)
    }

    /// Returns the summaries of every kind of operation that occurred.
    pub fn summaries(&self) -> impl Iterator<Item = (OpKind, LatencySummary)> {
        OpKind::ALL.into_iter().filter_map(|kind| Some((kind, self.summary(kind)?)))
    }

    /// Returns whether an error or a stop ended the phase early.
    pub fn is_cut_short(&self) -> bool {
        self.operations < self.planned
    }

    /// Returns whether all operations were done and every result was correct.
    pub fn is_clean(&self) -> bool {
        self.error_count == 0 && self.mismatch_count == 0 && !self.is_cut_short()
    }
}
