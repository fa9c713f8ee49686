//! Options of a limiter.

use std::ops::RangeInclusive;

use catalogue::bounds;
use runtime::Nanos;
use serde::{Deserialize, Serialize};

/// Rates of a drive and parts of them, in bytes per second: from 1 KiB to 1 TB.
const RATES: RangeInclusive<u64> = 1 << 10..=1_000_000_000_000;
/// Intervals and refill periods, in milliseconds.
const PERIODS_MS: RangeInclusive<u64> = 1..=60_000;

/// The limits on background I/O, if any.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimiterOptions {
    /// A fixed rate for flushes and compactions together.
    pub rate_limiter: Option<RateLimiterOptions>,
    /// SILK: flushes and compactions get the bandwidth that clients leave.
    pub silk: Option<SilkOptions>,
}

/// The rate limiter of `RocksDB` 6.23 (`NewGenericRateLimiter`). Flushes have priority, except at
/// one refill in `fairness`. The log is not limited.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimiterOptions {
    /// The rate in bytes per second; the maximum rate if it is auto-tuned.
    pub bytes_per_second: u64,
    /// The refill period in milliseconds. The bytes of one refill are the burst.
    #[serde(default = "refill_ms")]
    pub refill_ms: u64,
    /// Compactions have priority at one refill in this many, so that they never starve.
    #[serde(default = "fairness")]
    pub fairness: u64,
    /// Whether reads of compactions are limited, too.
    #[serde(default)]
    pub limits_reads: bool,
    /// Whether the rate is adjusted by how often it is exhausted.
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
    /// Returns `RocksDB`'s defaults with this rate.
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

/// SILK's bandwidth for internal work: T - C - epsilon, where C is the bandwidth of clients, but
/// not less than a floor. Reads and writes count alike.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SilkOptions {
    /// T: the bandwidth of the drive in bytes per second, reads and writes together.
    pub bandwidth_bytes_per_second: u64,
    /// The source of that number, in words, for example how it was measured.
    pub bandwidth_source: String,
    /// The minimum for flushes and compactions out of L0, in bytes per second.
    pub floor_bytes_per_second: u64,
    /// Bandwidth left unused, in bytes per second.
    #[serde(default)]
    pub epsilon_bytes_per_second: u64,
    /// The interval of budget updates and of refills, in milliseconds.
    #[serde(default = "interval_ms")]
    pub interval_ms: u64,
    /// Number of recent intervals over which C is averaged.
    #[serde(default = "window_intervals")]
    pub window_intervals: u64,
    /// Minimum change of the budget, in bytes per second; smaller changes are ignored.
    #[serde(default = "hysteresis")]
    pub hysteresis_bytes_per_second: u64,
    /// Compactions below L0 pause while C is more than this share of T.
    #[serde(default = "pause_share")]
    pub pause_share: f64,
    /// Compactions below L0 have priority at one refill in this many, as in the rate limiter that
    /// SILK is built on. A read or write that waits forever would hold tables that L0 needs.
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
    /// Returns SILK as published, scaled to a drive of this bandwidth. With 200 MB/s the floor is
    /// 50 MB/s, the hysteresis 10 MB/s, and pauses begin at 150 MB/s.
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
    /// Returns the defaults of `RocksDB`: no limit.
    pub fn rocksdb() -> Self {
        Self::default()
    }

    /// Returns `RocksDB` with a rate limiter of this rate, in bytes per second.
    pub fn rate_limiter(bytes_per_second: u64) -> Self {
        Self { rate_limiter: Some(RateLimiterOptions::new(bytes_per_second)), silk: None }
    }

    /// Returns SILK on a drive of this bandwidth, in bytes per second; `source` is the source of
    /// the number. The engine's part is `engine::Options::silk`.
    pub fn silk(bandwidth_bytes_per_second: u64, source: &str) -> Self {
        let silk = SilkOptions::new(bandwidth_bytes_per_second, source);
        Self { rate_limiter: None, silk: Some(silk) }
    }

    /// Returns all problems of these options, in words.
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
