//! Where the time of Gets went, by how long they took: how much of it was waiting for storage.
//!
//! Gets are counted in bands of their duration, eight to a power of two, so that those of the tail can be looked at
//! apart from the usual ones. Cost: three additions a Get, and 7 KiB.

use runtime::Nanos;

/// Bands to each power of two, as a power of two.
const SUB_BITS: u32 = 3;
/// Durations of so many bits have bands: 18 minutes. Longer ones share the last band.
const DURATION_BITS: u32 = 40;
const BANDS: usize = ((DURATION_BITS - SUB_BITS + 1) << SUB_BITS) as usize;

/// Gets taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Band {
    /// How many.
    pub gets: u64,
    /// How long they took, together.
    pub total: Nanos,
    /// How much of that was waiting for storage.
    pub storage: Nanos,
}

impl Band {
    fn add(&mut self, more: Self) {
        self.gets += more.gets;
        self.total += more.total;
        self.storage += more.storage;
    }

    /// The share of their time that was waiting for storage; 0 if there was none.
    pub fn storage_share(&self) -> f64 {
        self.storage.as_secs_f64() / self.total.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// How long one took on average, in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.total.as_secs_f64() * 1e6 / self.gets.max(1) as f64
    }
}

/// Gets by how long they took.
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
    /// A Get took `total`, `storage` of it waiting for storage.
    pub(crate) fn record(&mut self, total: Nanos, storage: Nanos) {
        self.bands[band_of(total)].add(Band { gets: 1, total, storage });
    }

    /// Those that came after `before`, an earlier state of the same.
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

    /// All of them.
    pub fn all(&self) -> Band {
        sum(&self.bands)
    }

    /// The slowest, at least the given share of all: 0.001 is those from p99.9 on, to the width of a band.
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
