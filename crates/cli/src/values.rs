//! Parsers of argument values. An error names the allowed values.

use std::ops::RangeInclusive;
use std::time::Duration;

use blockbench::Before;
use report::units::{parse_count_in, parse_span_in};
use stacks::host::{Arrangement, JournalPlace, MAX_PARTITIONS, WindowPolicy};
use workload::trace::kv::KvFormat;
use workload::{MAX_OUTSTANDING, MAX_RECORDS, RATES};

pub(crate) fn records(text: &str) -> Result<u64, String> {
    parse_count_in(text, 1..=MAX_RECORDS)
}

/// Parses the length of a slice of a timeline.
pub(crate) fn slice(text: &str) -> Result<Duration, String> {
    parse_span_in(text, 1_000..=3_600_000_000_000).map(Duration::from_nanos)
}

/// Parses a count, which may be 0.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    parse_count_in(text, 0..=u64::MAX)
}

pub(crate) fn operations(text: &str) -> Result<u64, String> {
    parse_count_in(text, 1..=MAX_RECORDS)
}

pub(crate) fn queue_depth(text: &str) -> Result<u64, String> {
    parse_count_in(text, 1..=MAX_OUTSTANDING)
}

pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("allowed is a whole number from 0 to {}", u64::MAX))
}

pub(crate) fn threads(text: &str) -> Result<u64, String> {
    parse_count_in(text, 1..=1024)
}

/// Parses a number of connections of a server.
pub(crate) fn clients(text: &str) -> Result<u64, String> {
    parse_count_in(text, 1..=1 << 20)
}

/// Parses operations per second: `50000`, `50k`, `0.5`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = match text.trim().parse::<f64>() {
        Ok(rate) => Some(rate),
        Err(_) => parse_count_in(text, 1..=1_000_000_000_000).ok().map(|rate| rate as f64),
    };
    rate.filter(|rate| RATES.contains(rate))
        .ok_or_else(|| "allowed are operations per second from 0.000001 to 1e12".to_owned())
}

/// Parses the speed of a replay, in percent of the recorded speed.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    let percent = text.trim().parse::<f64>().ok().filter(|percent| (0.001..=1e6).contains(percent));
    percent.ok_or_else(|| "allowed is 0.001 to 1000000 percent of the recorded speed".to_owned())
}

/// Parses the format of a trace of a key-value store.
pub(crate) fn trace_format(text: &str) -> Result<KvFormat, String> {
    one_of(KvFormat::ALL, text)
}

pub(crate) fn partitions(text: &str) -> Result<u32, String> {
    parse_count_in(text, 1..=MAX_PARTITIONS.into()).map(|partitions| partitions as u32)
}

/// Parses the layout of a host's store on a drive's sets.
pub(crate) fn arrangement(text: &str) -> Result<Arrangement, String> {
    one_of(Arrangement::ALL, text)
}

/// Parses the place of the journal of a host's store.
pub(crate) fn journal(text: &str) -> Result<JournalPlace, String> {
    one_of(JournalPlace::ALL, text)
}

/// Parses the state of a block drive before a run.
pub(crate) fn precondition(text: &str) -> Result<Before, String> {
    one_of(Before::ALL, text)
}

/// The policy of windows, on a simulated drive or on a store on files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BenchWindows {
    /// A policy of the host.
    Policy(WindowPolicy),
    /// Windows kept by real drives.
    Plm,
}

impl BenchWindows {
    /// Returns the policy's name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Policy(policy) => policy.name(),
            Self::Plm => "plm",
        }
    }
}

/// Parses a policy of windows.
pub(crate) fn windows(text: &str) -> Result<BenchWindows, String> {
    match text {
        "plm" => Ok(BenchWindows::Plm),
        text => one_of(WindowPolicy::ALL, text)
            .map(BenchWindows::Policy)
            .map_err(|allowed| format!("{allowed}; and plm with --store")),
    }
}

fn one_of<T: Copy, const N: usize>(all: [(T, &'static str); N], text: &str) -> Result<T, String> {
    let names = || all.iter().map(|(_, name)| *name);
    let allowed = || {
        let list = names().collect::<Vec<_>>().join(", ");
        format!("allowed are {list}{}", catalogue::did_you_mean(text, names()))
    };
    let at = names().position(|name| name == text).ok_or_else(allowed)?;
    Ok(all[at].0)
}

/// Returns a parser of sizes in `range`, in bytes.
pub(crate) fn bytes(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| report::units::parse_bytes_in(text, range.clone())
}

/// Parses `NAME=VALUE`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_in_either_form() {
        for (text, rate) in [("50000", 5e4), ("50k", 5e4), ("0.5", 0.5), ("1e12", 1e12)] {
            assert_eq!(super::rate(text), Ok(rate), "{text}");
        }
        for text in ["0", "-1", "NaN", "inf", "1e300", "1e-300", "fast", "0k"] {
            assert!(rate(text).is_err_and(|words| words.contains("0.000001 to 1e12")), "{text}");
        }
    }
}
