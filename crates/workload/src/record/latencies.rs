//! Latencies of one kind: a histogram, and the exact maximum.

use std::ops::Deref;

use hdrhistogram::Histogram;
use runtime::Nanos;

use super::LatencySummary;

/// Latencies are distinguished up to this value, 146 years: the maximum virtual time of a
/// simulation, so that no latency is clipped. Unused parts of so large a histogram take no memory.
const LONGEST_NANOS: u64 = 1 << 62;

/// A histogram of nanoseconds with three significant digits, and the maximum to the nanosecond: the
/// histogram knows only its bucket.
#[derive(Clone, PartialEq, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    longest: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NANOS, 3);
        Self { histogram: histogram.expect("the bounds are constants and right"), longest: 0 }
    }
}

impl Latencies {
    /// Records a latency.
    pub fn record(&mut self, latency: Nanos) {
        self.histogram.saturating_record(latency.0);
        self.longest = self.longest.max(latency.0);
    }

    /// Returns the exact maximum; 0 without latencies.
    pub fn longest(&self) -> Nanos {
        Nanos(self.longest)
    }

    /// Returns a summary of the latencies.
    pub fn summary(&self) -> LatencySummary {
        LatencySummary::with_longest(&self.histogram, self.longest)
    }
}

impl Deref for Latencies {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_exact_and_nothing_is_longer() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.summary(), LatencySummary::default());
        latencies.record(Nanos(4_978_003));
        latencies.record(Nanos(5));
        let summary = latencies.summary();
        assert_eq!((summary.max_us, summary.p9999_us), (4_978.003, 4_978.003));
        assert!(latencies.max() > 4_978_003, "the end of a bucket");
    }
}
