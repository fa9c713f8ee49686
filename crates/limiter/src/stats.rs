//! What a limiter did, counted.

use runtime::Nanos;
use serde::Serialize;

/// Counters since the medium was put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimiterStats {
    /// Flushes.
    pub flush: PriorityStats,
    /// Compactions out of L0, as far as they have a queue of their own (SILK). Else they are in `rest`.
    pub l0: PriorityStats,
    /// All other compactions, and collection.
    pub rest: PriorityStats,
    /// Bytes of clients' reads and of the log, which never wait.
    pub client_bytes: u64,
    /// The rate in force, in bytes a second; 0 if there is none.
    pub bytes_per_second: u64,
    /// Times the rate was changed: by SILK, or by auto-tuning.
    pub rate_changes: u64,
    /// Times that compactions below L0 were to pause.
    pub pauses: u64,
    /// For how long in all, in nanoseconds, pauses that have ended.
    pub paused_ns: u64,
}

impl LimiterStats {
    /// What came since `before`. The rate is the one in force, and the longest waits are of all time.
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

/// Of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PriorityStats {
    /// Bytes that were limited and have passed.
    pub bytes: u64,
    /// Reads and writes that had to wait.
    pub waits: u64,
    /// How long in all, in nanoseconds.
    pub waited_ns: u64,
    /// The longest of them.
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
