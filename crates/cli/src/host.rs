//! The one place that looks at the machine: wall clock and memory.

use std::time::Duration;

#[expect(
    clippy::disallowed_types,
    reason = "how long a simulation takes is a fact of the machine"
)]
use std::time::Instant;

/// Measures wall time from its making.
#[expect(clippy::disallowed_types, reason = "see above")]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "see above")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Most memory this process had so far, in bytes; 0 where the system does not tell.
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
