//! Measured write bandwidth of a member. Arithmetic only.

use std::collections::VecDeque;

use runtime::Nanos;

/// Write bandwidth in bytes per second, from recent measurements.
#[derive(Clone, Debug)]
pub(crate) struct Bandwidth {
    assumed: u64,
    seen: VecDeque<u64>,
}

/// Number of measurements kept.
const KEPT: usize = 8;
/// Minimum bytes of a measurement; fewer measure latency rather than bandwidth.
const LEAST_BYTES: u64 = 4 << 20;

impl Bandwidth {
    /// Creates one without measurements; `assumed` is used until the first.
    pub(crate) fn new(assumed: u64) -> Self {
        Self { assumed, seen: VecDeque::new() }
    }

    /// Adds a measurement: `bytes` written in the time `span`, with writes always in progress.
    pub(crate) fn observe(&mut self, bytes: u64, span: Nanos) {
        if bytes < LEAST_BYTES || span == Nanos::ZERO {
            return;
        }
        if self.seen.len() == KEPT {
            self.seen.pop_front();
        }
        let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(span.0);
        self.seen.push_back(u64::try_from(per_second).unwrap_or(u64::MAX).max(1));
    }

    /// Returns the lowest of the last measurements. Write bandwidth varies in NDWIN, so Vigil-KV
    /// relies on the worst case.
    pub(crate) fn worst(&self) -> u64 {
        self.seen.iter().copied().min().unwrap_or(self.assumed).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_last_measurements_counts() {
        let (mib, second) = (1 << 20, Nanos(1_000_000_000));
        let mut bandwidth = Bandwidth::new(77);
        bandwidth.observe(mib, second);
        assert_eq!(bandwidth.worst(), 77, "too little was written");
        bandwidth.observe(10 * mib, second);
        bandwidth.observe(100 * mib, second);
        assert_eq!(bandwidth.worst(), 10 * mib);
        (0..KEPT).for_each(|_| bandwidth.observe(50 * mib, second));
        assert_eq!(bandwidth.worst(), 50 * mib, "old ones are forgotten");
    }
}
