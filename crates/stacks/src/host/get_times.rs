//! The time of Gets by their duration: how much of it was spent waiting for storage.
//!
//! Gets are counted in bands of their duration, eight bands per power of two, so that the tail can
//! be examined separately. Costs three additions per Get, and 7 KiB.

use runtime::Nanos;

/// Bands per power of two, as a power of two.
const SUB_BITS: u32 = 3;
/// Bits of the longest duration with its own band: 18 minutes. Longer ones share the last band.
const DURATION_BITS: u32 = 40;
const BANDS: usize = ((DURATION_BITS - SUB_BITS + 1) << SUB_BITS) as usize;

/// A group of Gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Band {
    /// Number of Gets.
    pub gets: u64,
    /// Their total duration.
    pub total: Nanos,
    /// The part of it spent waiting for storage.
    pub storage: Nanos,
}

impl Band {
    fn add(&mut self, more: Self) {
        self.gets += more.gets;
        self.total += more.total;
        self.storage += more.storage;
    }

    /// Returns the share of the time spent waiting for storage; 0 without Gets.
    pub fn storage_share(&self) -> f64 {
        self.storage.as_secs_f64() / self.total.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns the mean duration of a Get, in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.total.as_secs_f64() * 1e6 / self.gets.max(1) as f64
    }
}

/// Gets grouped by their duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetTimes {
    bands: Vec<Band>,
}

impl Default for GetTimes {
    fn default() -> Self {
        Self { bands: vec![Band::default(); BANDS] }
    }
}

impl GetTimes {
    /// Records a Get that took `total`, of which `storage` was spent waiting for storage.
    pub(crate) fn record(&mut self, total: Nanos, storage: Nanos) {
        self.bands[band_of(total)].add(Band { gets: 1, total, storage });
    }

    /// Returns the Gets since `before`, an earlier state of the same counters.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let pairs = self.bands.iter().zip(&before.bands);
        let less = |(after, before): (&Band, &Band)| Band {
            gets: after.gets - before.gets,
            total: after.total - before.total,
            storage: after.storage - before.storage,
        };
        Self { bands: pairs.map(less).collect() }
    }

    /// Returns the sum of all Gets.
    pub fn all(&self) -> Band {
        sum(&self.bands)
    }

    /// Returns the slowest Gets, at least this share of all: 0.001 are those from p99.9 on. Bands
    /// are included as a whole.
    pub fn slowest(&self, share: f64) -> Band {
        let wanted = (self.all().gets as f64 * share).ceil() as u64;
        let mut slowest = Band::default();
        for band in self.bands.iter().rev() {
            if slowest.gets >= wanted {
                break;
            }
            slowest.add(*band);
        }
        slowest
    }
}

fn sum(bands: &[Band]) -> Band {
    bands.iter().fold(Band::default(), |mut sum, band| {
        sum.add(*band);
        sum
    })
}

fn band_of(duration: Nanos) -> usize {
    let value = duration.0.max(1);
    let octave = value.ilog2().saturating_sub(SUB_BITS);
    let band = (u64::from(octave) << SUB_BITS) + (value >> octave);
    (band as usize).min(BANDS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_rise_with_the_duration_and_are_an_eighth_wide() {
        let all: Vec<usize> = (0..100_000).map(|ns| band_of(Nanos(ns))).collect();
        assert!(all.is_sorted());
        for ns in [8_u64, 1_000, 73_000, 2_970_000, 1 << 39] {
            assert!(band_of(Nanos(ns)) < band_of(Nanos(ns + ns / 7)), "{ns}");
        }
        assert_eq!(band_of(Nanos(u64::MAX)), BANDS - 1);
    }

    #[test]
    fn the_slowest_are_told_apart_and_earlier_ones_left_out() {
        let mut times = GetTimes::default();
        times.record(Nanos(5), Nanos(5));
        let before = times.clone();
        for _ in 0..999 {
            times.record(Nanos::from_micros(100), Nanos::from_micros(50));
        }
        times.record(Nanos::from_micros(2_000), Nanos::from_micros(1_800));
        let run = times.since(&before);
        assert_eq!(run.all().gets, 1_000);
        let slowest = run.slowest(0.001);
        assert_eq!((slowest.gets, slowest.storage), (1, Nanos::from_micros(1_800)));
        assert!((slowest.storage_share() - 0.9).abs() < 1e-9);
        assert!((run.all().mean_us() - 101.9).abs() < 1e-6);
        assert_eq!(run.slowest(0.5).gets, 1_000, "a band is taken as a whole");
        assert_eq!(run.slowest(0.0).gets, 0);
    }
}
