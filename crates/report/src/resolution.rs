//! Percentiles of too few samples, and their mark.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use workload::LatencySummary;

use crate::units::three_digits;

/// Minimum number of samples above a percentile; with fewer, the percentile is a matter of chance.
const FEWEST_BEYOND: u64 = 10;

/// Percentiles by the name of their field, and the number of samples above them, of 10 000.
const PERCENTILES: [(&str, u64); 5] =
    [("p50_us", 5_000), ("p90_us", 1_000), ("p99_us", 100), ("p999_us", 10), ("p9999_us", 1)];

/// The mark after a percentile of too few samples.
pub(crate) const MARK: &str = "*";
/// The meaning of the mark.
pub(crate) const MEANING: &str = "* rests on too few samples: fewer than 10 took longer";

/// Returns the fields of the percentiles for which `count` samples are too few.
pub(crate) fn too_few_samples(count: u64) -> impl Iterator<Item = &'static str> {
    let is_thin =
        move |(_, beyond): &(&str, u64)| count.saturating_mul(*beyond) < FEWEST_BEYOND * 10_000;
    PERCENTILES.into_iter().filter(is_thin).map(|(field, _)| field)
}

/// Returns mean, percentiles and maximum as cells of a table's row.
pub fn cells(of: &LatencySummary) -> [String; 7] {
    let thin: Vec<&str> = too_few_samples(of.count).collect();
    let cell = |field: &str, value: f64| {
        let mark = if thin.contains(&field) { MARK } else { "" };
        format!("{}{mark}", three_digits(value))
    };
    [
        cell("mean_us", of.mean_us),
        cell("p50_us", of.p50_us),
        cell("p90_us", of.p90_us),
        cell("p99_us", of.p99_us),
        cell("p999_us", of.p999_us),
        cell("p9999_us", of.p9999_us),
        cell("max_us", of.max_us),
    ]
}

/// Returns a table, with the meaning of the mark if the table contains it.
pub fn explained(table: &str) -> String {
    let end = if table.contains(MARK) { format!("\n{MEANING}") } else { String::new() };
    format!("{table}{end}")
}

/// A summary that lists its percentiles of too few samples.
#[derive(Serialize)]
pub(crate) struct Marked<'a> {
    #[serde(flatten)]
    latency: &'a LatencySummary,
    /// Percentiles with fewer than 10 samples above them; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub too_few_samples: Vec<&'static str>,
}

impl<'a> From<&'a LatencySummary> for Marked<'a> {
    fn from(latency: &'a LatencySummary) -> Self {
        Self { latency, too_few_samples: too_few_samples(latency.count).collect() }
    }
}

/// Serialises a summary with its marks.
///
/// # Errors
/// Returns the error of the serializer.
pub fn one<S: Serializer>(of: &LatencySummary, serializer: S) -> Result<S::Ok, S::Error> {
    Marked::from(of).serialize(serializer)
}

/// Serialises a summary with its marks, if there is one.
///
/// # Errors
/// Returns the error of the serializer.
pub fn some<S: Serializer>(of: &Option<LatencySummary>, serializer: S) -> Result<S::Ok, S::Error> {
    of.as_ref().map(Marked::from).serialize(serializer)
}

/// Serialises summaries by name with their marks.
///
/// # Errors
/// Returns the error of the serializer.
pub fn all<S: Serializer>(
    of: &BTreeMap<&'static str, LatencySummary>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(of.iter().map(|(name, latency)| (name, Marked::from(latency))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let thin = |count| too_few_samples(count).collect::<Vec<_>>();
        assert_eq!(thin(19).len(), 5);
        assert_eq!(thin(20), ["p90_us", "p99_us", "p999_us", "p9999_us"]);
        assert_eq!(thin(999), ["p99_us", "p999_us", "p9999_us"]);
        assert_eq!(thin(1_000), ["p999_us", "p9999_us"]);
        assert_eq!(thin(99_999), ["p9999_us"]);
        assert!(thin(100_000).is_empty() && thin(u64::MAX).is_empty());
    }

    #[test]
    fn marks_stand_in_tables_and_in_json() {
        let of = |count| LatencySummary { count, p999_us: 5.0, ..LatencySummary::default() };
        let texts = |count| cells(&of(count)).concat();
        assert!(texts(5_000).contains("5.00*") && !texts(100_000).contains('*'));
        assert!(explained(&texts(5_000)).ends_with(MEANING));
        assert_eq!(explained("1"), "1");
        let json = |count| serde_json::to_value(Marked::from(&of(count))).expect("JSON");
        assert_eq!(json(5_000)["too_few_samples"], serde_json::json!(["p999_us", "p9999_us"]));
        assert!(json(100_000).get("too_few_samples").is_none());
        assert_eq!(json(100_000)["count"], 100_000);
    }
}
