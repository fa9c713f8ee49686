//! The quantiles of latency curves.

use hdrhistogram::Histogram;
use workload::Latencies;

/// Returns the quantiles of a latency curve, which are dense towards the tail.
fn quantiles() -> Vec<f64> {
    let mut quantiles: Vec<f64> = (0..90).map(|percent| f64::from(percent) / 100.0).collect();
    for decade in 1..=5 {
        let tail = 10_f64.powi(-decade);
        quantiles.extend((0..36).map(|step| 1.0 - tail * 10_f64.powf(-f64::from(step) / 36.0)));
    }
    quantiles
}

/// Returns the quantiles that the histogram resolves, with their values in nanoseconds. A quantile
/// is resolved if at least one operation is beyond it.
pub(crate) fn resolved_quantiles(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let is_resolved = |quantile: &f64| (1.0 - quantile) * histogram.len() as f64 >= 1.0;
    let quantiles = quantiles().into_iter().filter(is_resolved);
    quantiles.map(|quantile| (quantile, histogram.value_at_quantile(quantile))).collect()
}

/// Returns the resolved quantiles with their values in nanoseconds. The last point is the longest
/// latency, at quantile 1.
pub fn with_longest(latencies: &Latencies) -> Vec<(f64, u64)> {
    let longest = latencies.longest().0;
    let resolved = resolved_quantiles(latencies).into_iter();
    let all = resolved.map(|(quantile, ns)| (quantile, ns.min(longest)));
    all.chain((!latencies.is_empty()).then_some((1.0, longest))).collect()
}

/// Returns the position of a quantile on a tail axis, `1 / (1 - quantile)`. Quantile 1 is the
/// longest of `operations` operations.
pub fn tail(quantile: f64, operations: u64) -> f64 {
    if quantile < 1.0 { 1.0 / (1.0 - quantile) } else { (operations as f64).max(1.0) }
}
