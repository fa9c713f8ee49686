//! Statistics of a limiter.

use runtime::Nanos;
use serde::Serialize;

/// Counters since the medium was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimiterStats {
    /// Flushes.
    pub flush: PriorityStats,
    /// Compactions out of L0, if they have their own queue (SILK); otherwise they count in `rest`.
    pub l0: PriorityStats,
    /// All other compactions, and garbage collection.
    pub rest: PriorityStats,
    /// Bytes of client reads and of the log, which never wait.
    pub client_bytes: u64,
    /// The current rate in bytes per second; 0 without a limit.
    pub bytes_per_second: u64,
    /// Number of rate changes, by SILK or by auto-tuning.
    pub rate_changes: u64,
    /// Number of pauses of compactions below L0.
    pub pauses: u64,
    /// Total time of the pauses that have ended, in nanoseconds.
    pub paused_ns: u64,
}

impl LimiterStats {
    /// Returns the counts since `before`. The rate is the current one, and the longest waits are
    /// those of all time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            flush: self.flush.since(before.flush),
            l0: self.l0.since(before.l0),
            rest: self.rest.since(before.rest),
            client_bytes: self.client_bytes - before.client_bytes,
            bytes_per_second: self.bytes_per_second,
            rate_changes: self.rate_changes - before.rate_changes,
            pauses: self.pauses - before.pauses,
            paused_ns: self.paused_ns - before.paused_ns,
        }
    }
}

/// Statistics of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PriorityStats {
    /// Limited bytes that have passed.
    pub bytes: u64,
    /// Reads and writes that had to wait.
    pub waits: u64,
    /// Total waiting time, in nanoseconds.
    pub waited_ns: u64,
    /// Longest wait, in nanoseconds.
    pub longest_wait_ns: u64,
}

impl PriorityStats {
    fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            waits: self.waits - before.waits,
            waited_ns: self.waited_ns - before.waited_ns,
            longest_wait_ns: self.longest_wait_ns,
        }
    }

    pub(crate) fn note_wait(&mut self, span: Nanos) {
        self.waits += 1;
        self.waited_ns += span.0;
        self.longest_wait_ns = self.longest_wait_ns.max(span.0);
    }
}
