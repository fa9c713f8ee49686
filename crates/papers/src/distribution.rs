//! Distributions of latency in a form that can be saved in a file.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Latencies in nanoseconds, and the count of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Distribution(Vec<(u64, u64)>);

impl Distribution {
    pub(super) fn of(histogram: Option<&Histogram<u64>>) -> Self {
        let recorded = histogram.into_iter().flat_map(Histogram::iter_recorded);
        Self(recorded.map(|at| (at.value_iterated_to(), at.count_at_value())).collect())
    }

    /// Returns the recorded histogram, with three significant digits, or `None` if the distribution
    /// is empty.
    pub(super) fn histogram(&self) -> Option<Histogram<u64>> {
        let mut histogram = Histogram::new(3).expect("three digits are possible");
        for (value, count) in &self.0 {
            histogram.record_n(*value, *count).expect("it grows as it has to");
        }
        (!self.0.is_empty()).then_some(histogram)
    }
}

/// Serializes a histogram as a [`Distribution`], for `#[serde(with)]`.
pub(super) mod of_histogram {
    use hdrhistogram::Histogram;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::distribution::Distribution;

    pub(crate) fn serialize<S: Serializer>(
        histogram: &Histogram<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Distribution::of(Some(histogram)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Histogram<u64>, D::Error> {
        let kept = Distribution::deserialize(deserializer)?;
        kept.histogram().ok_or_else(|| D::Error::custom("a histogram without values"))
    }
}

#[cfg(test)]
mod tests {
    use workload::LatencySummary;

    use super::*;

    #[test]
    fn a_distribution_comes_back_as_it_was_recorded() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 1 << 62, 3).expect("possible");
        for n in 1..5_000_u64 {
            histogram.record(n * n * 37).expect("within bounds");
        }
        let kept = Distribution::of(Some(&histogram));
        let text = serde_json::to_string(&kept).expect("numbers");
        let back: Distribution = serde_json::from_str(&text).expect("the same");
        assert_eq!(back, kept);
        let back = back.histogram().expect("there are some");
        assert_eq!(LatencySummary::of(&back), LatencySummary::of(&histogram));
        assert_eq!(Distribution::of(None).histogram(), None);
    }
}
