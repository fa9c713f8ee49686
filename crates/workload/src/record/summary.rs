//! Summary of a histogram.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Latencies in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of latencies.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// 99.99th percentile.
    pub p9999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

impl LatencySummary {
    /// Summarizes a histogram of nanoseconds; all zero if it is empty. Cost: a few passes over it.
    ///
    /// Each number is as precise as the histogram: within 0.1 % for those of a [`RunReport`].
    ///
    /// [`RunReport`]: crate::RunReport
    pub fn of(nanos: &Histogram<u64>) -> Self {
        Self::with_longest(nanos, nanos.max())
    }

    /// Summarizes a histogram with a known exact maximum, which also limits the percentiles.
    pub(super) fn with_longest(nanos: &Histogram<u64>, longest: u64) -> Self {
        let quantile = |q| nanos.value_at_quantile(q).min(longest) as f64 / 1e3;
        Self {
            count: nanos.len(),
            mean_us: nanos.mean() / 1e3,
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            p9999_us: quantile(0.9999),
            max_us: longest as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_histogram() -> Histogram<u64> {
        Histogram::new_with_bounds(1, 1 << 62, 3).expect("the bounds are constants and right")
    }

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut histogram = new_histogram();
        (1..=100_000_u64).for_each(|us| histogram.saturating_record(us * 1000));
        let summary = LatencySummary::of(&histogram);
        assert_eq!(summary.count, 100_000);
        let table = [
            (summary.mean_us, 50_000.5),
            (summary.p50_us, 50_000.0),
            (summary.p90_us, 90_000.0),
            (summary.p99_us, 99_000.0),
            (summary.p999_us, 99_900.0),
            (summary.p9999_us, 99_990.0),
            (summary.max_us, 100_000.0),
        ];
        for (seen, theory) in table {
            assert!((seen / theory - 1.0).abs() < 0.001, "{seen} and {theory}");
        }
    }

    #[test]
    fn nothing_sums_up_to_nothing() {
        assert_eq!(LatencySummary::of(&new_histogram()), LatencySummary::default());
    }

    #[test]
    fn what_is_longer_than_the_longest_counts_as_that() {
        let mut histogram = new_histogram();
        histogram.saturating_record(u64::MAX);
        assert!(
            (LatencySummary::of(&histogram).max_us * 1e3 / (1_u64 << 62) as f64 - 1.0).abs() < 0.2
        );
    }
}
