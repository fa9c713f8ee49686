//! What a limiter is told.

use std::ops::RangeInclusive;

use catalogue::bounds;
use runtime::Nanos;
use serde::{Deserialize, Serialize};

/// Rates of a drive and parts of them, in bytes a second: from a KiB to a TB.
const RATES: RangeInclusive<u64> = 1 << 10..=1_000_000_000_000;
/// Intervals and refill periods, in milliseconds.
const PERIODS_MS: RangeInclusive<u64> = 1..=60_000;

/// What limits background I/O, if anything does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimiterOptions {
    /// Flushes and compactions together get so many bytes a second.
    pub rate_limiter: Option<RateLimiterOptions>,
    /// Flushes and compactions get what clients leave of the drive's bandwidth.
    pub silk: Option<SilkOptions>,
}

/// The rate limiter of `RocksDB` 6.23 (`NewGenericRateLimiter`). Flushes go first, but at one refill in
/// `fairness`; the log is not limited.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimiterOptions {
    /// The rate; where it is auto-tuned, the most it may be.
    pub bytes_per_second: u64,
    /// Milliseconds after which what may pass is refilled. What it is refilled with is the burst.
    #[serde(default = "refill_ms")]
    pub refill_ms: u64,
    /// At one refill of so many compactions go first, so that they never starve.
    #[serde(default = "fairness")]
    pub fairness: u64,
    /// Whether reads of compactions are limited as well as writes.
    #[serde(default)]
    pub limits_reads: bool,
    /// Whether the rate follows how often it is used up.
    #[serde(default)]
    pub auto_tuned: bool,
}

fn refill_ms() -> u64 {
    100
}

fn fairness() -> u64 {
    10
}

impl RateLimiterOptions {
    /// `RocksDB`'s defaults, with that rate.
    pub fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            refill_ms: refill_ms(),
            fairness: fairness(),
            limits_reads: false,
            auto_tuned: false,
        }
    }
}

/// SILK's bandwidth for internal work, by what clients take: T - C - epsilon, not less than a floor. Reads and
/// writes count alike.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SilkOptions {
    /// T: what the drive can do, reads and writes together.
    pub bandwidth_bytes_per_second: u64,
    /// Where that number comes from, in words: how it was measured, say.
    pub bandwidth_source: String,
    /// What flushes and compactions out of L0 get in any case.
    pub floor_bytes_per_second: u64,
    /// What is left unused, in bytes a second.
    #[serde(default)]
    pub epsilon_bytes_per_second: u64,
    /// How often the budget is worked out, in milliseconds. As often bytes are refilled.
    #[serde(default = "interval_ms")]
    pub interval_ms: u64,
    /// Over how many of the last intervals C is taken.
    #[serde(default = "window_intervals")]
    pub window_intervals: u64,
    /// The budget is changed when it moves by so much, in bytes a second.
    #[serde(default = "hysteresis")]
    pub hysteresis_bytes_per_second: u64,
    /// Compactions below L0 pause while C is more than this share of T.
    #[serde(default = "pause_share")]
    pub pause_share: f64,
    /// At one refill of so many compactions below L0 go first, as in the rate limiter that SILK is built on. A
    /// read or write that waits for ever would hold tables that L0 needs.
    #[serde(default = "fairness")]
    pub fairness: u64,
}

fn interval_ms() -> u64 {
    10
}

fn window_intervals() -> u64 {
    1
}

fn hysteresis() -> u64 {
    10_000_000
}

fn pause_share() -> f64 {
    0.75
}

impl SilkOptions {
    /// SILK as published, on a drive of that bandwidth: with 200 MB/s the floor was 50, the hysteresis 10, and a
    /// pause begins at 150.
    pub fn new(bandwidth_bytes_per_second: u64, source: &str) -> Self {
        Self {
            bandwidth_bytes_per_second,
            bandwidth_source: source.to_owned(),
            floor_bytes_per_second: bandwidth_bytes_per_second / 4,
            epsilon_bytes_per_second: 0,
            interval_ms: interval_ms(),
            window_intervals: window_intervals(),
            hysteresis_bytes_per_second: hysteresis().min(bandwidth_bytes_per_second / 20),
            pause_share: pause_share(),
            fairness: fairness(),
        }
    }

    pub(crate) fn interval(&self) -> Nanos {
        Nanos::from_millis(self.interval_ms)
    }
}

impl LimiterOptions {
    /// `RocksDB` with its defaults: no limit.
    pub fn rocksdb() -> Self {
        Self::default()
    }

    /// `RocksDB` with a rate limiter of that rate.
    pub fn rate_limiter(bytes_per_second: u64) -> Self {
        Self { rate_limiter: Some(RateLimiterOptions::new(bytes_per_second)), silk: None }
    }

    /// SILK on a drive of that bandwidth, in bytes a second; `source` says where the number comes from. The
    /// engine's part is `engine::Options::silk`.
    pub fn silk(bandwidth_bytes_per_second: u64, source: &str) -> Self {
        let silk = SilkOptions::new(bandwidth_bytes_per_second, source);
        Self { rate_limiter: None, silk: Some(silk) }
    }

    /// Everything that is wrong with these options, in words.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.rate_limiter.is_some() && self.silk.is_some() {
            problems.push("silk sets the rate itself: leave rate_limiter out, or silk".to_owned());
        }
        problems.extend(self.rate_limiter.iter().flat_map(RateLimiterOptions::problems));
        problems.extend(self.silk.iter().flat_map(SilkOptions::problems));
        problems
    }
}

impl RateLimiterOptions {
    fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("rate_limiter.bytes_per_second", self.bytes_per_second, RATES),
            bounds::range("rate_limiter.refill_ms", self.refill_ms, PERIODS_MS),
            bounds::range("rate_limiter.fairness", self.fairness, 1..=1_000),
        ];
        problems.into_iter().flatten().collect()
    }
}

impl SilkOptions {
    fn problems(&self) -> Vec<String> {
        let Self { bandwidth_bytes_per_second: bandwidth, pause_share, .. } = *self;
        let (floor, epsilon) = (self.floor_bytes_per_second, self.epsilon_bytes_per_second);
        let hysteresis = self.hysteresis_bytes_per_second;
        let problems = [
            bounds::range("silk.bandwidth_bytes_per_second", bandwidth, RATES),
            bounds::range(
                "silk.floor_bytes_per_second",
                floor,
                RATES.start().to_owned()..=bandwidth,
            ),
            bounds::range("silk.epsilon_bytes_per_second", epsilon, 0..=bandwidth),
            bounds::range("silk.hysteresis_bytes_per_second", hysteresis, 0..=bandwidth),
            bounds::range("silk.interval_ms", self.interval_ms, PERIODS_MS),
            bounds::range("silk.window_intervals", self.window_intervals, 1..=1_000),
            bounds::range("silk.pause_share", pause_share, 0.0..=1.0),
            bounds::range("silk.fairness", self.fairness, 1..=1_000),
        ];
        let mut problems: Vec<String> = problems.into_iter().flatten().collect();
        if self.bandwidth_source.trim().is_empty() {
            let words = "silk.bandwidth_source is empty: say where the bandwidth comes from, for example \
                         \"measured: 2 MiB reads and 1 MiB writes, half of each\"";
            problems.push(words.to_owned());
        }
        problems.extend(catalogue::unprintable("silk.bandwidth_source", &self.bandwidth_source));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        let none = Vec::<String>::new();
        assert_eq!(LimiterOptions::rocksdb().problems(), none);
        assert_eq!(LimiterOptions::rate_limiter(50_000_000).problems(), none);
        let silk = LimiterOptions::silk(200_000_000, "Samsung 843T");
        assert_eq!(silk.problems(), none);
        assert_eq!(silk.silk.as_ref().map(|silk| silk.floor_bytes_per_second), Some(50_000_000));
        let both = LimiterOptions { rate_limiter: Some(RateLimiterOptions::new(1)), ..silk };
        let problems = both.problems().join("; ");
        assert!(problems.contains("leave rate_limiter out"), "{problems}");
        assert!(problems.contains("rate_limiter.bytes_per_second is 1, must be"), "{problems}");
        let nowhere = LimiterOptions::silk(200_000_000, " ").problems();
        assert!(nowhere[0].contains("say where"), "{nowhere:?}");
    }
}
