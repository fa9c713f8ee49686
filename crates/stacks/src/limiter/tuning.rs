//! The auto-tuned rate of `RocksDB` 6.23 (`GenericRateLimiter::Tune`): it depends on the number of
//! periods, out of the last hundred, in which a request had to wait. Pure.

use runtime::Nanos;

/// Periods between two adjustments of the rate.
const PERIODS: u64 = 100;
/// Ratio of the maximum rate to the minimum rate.
const RANGE: u64 = 20;

/// The number of periods with waits, and the resulting rate.
#[derive(Debug)]
pub(crate) struct Tuning {
    most: u64,
    rate: u64,
    period: Nanos,
    since: Nanos,
    /// Periods in which a request had to wait.
    drains: u64,
}

impl Tuning {
    /// Starts at half of the maximum rate.
    pub(crate) fn new(most: u64, period: Nanos) -> Self {
        Self { most, rate: (most / 2).max(1), period, since: Nanos::ZERO, drains: 0 }
    }

    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    pub(crate) fn note_drain(&mut self) {
        self.drains += 1;
    }

    /// Adjusts the rate at `now`. Returns the new rate if it changes.
    pub(crate) fn tune(&mut self, now: Nanos) -> Option<u64> {
        let elapsed = now.saturating_since(self.since).0.div_ceil(self.period.0);
        if elapsed < PERIODS {
            return None;
        }
        let least = (self.most / RANGE).max(1);
        let next = match self.drains * 100 / elapsed {
            0 => least,
            1..50 => (self.rate / 105 * 100 + self.rate % 105 * 100 / 105).max(least),
            50..=90 => self.rate,
            _ => (self.rate / 100 * 105 + self.rate % 100 * 105 / 100).min(self.most),
        };
        (self.since, self.drains) = (now, 0);
        let changes = std::mem::replace(&mut self.rate, next) != next;
        changes.then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_how_often_bytes_ran_out() {
        let mut tuning = Tuning::new(2_000_000, Nanos::from_millis(100));
        let mut now = Nanos::ZERO;
        let mut after = |drains: u64, periods: u64| {
            (0..drains).for_each(|_| tuning.note_drain());
            now += Nanos::from_millis(100 * periods);
            tuning.tune(now);
            tuning.rate()
        };
        assert_eq!(after(99, 99), 1_000_000, "it is too early to tell");
        assert_eq!(after(0, 1), 1_050_000, "99 of 100");
        assert_eq!(after(70, 100), 1_050_000);
        assert_eq!(after(49, 100), 1_000_000);
        assert_eq!(after(0, 100), 100_000, "a twentieth");
        assert_eq!(after(30, 100), 100_000, "no less");
        for _ in 0..100 {
            after(100, 100);
        }
        assert_eq!(after(100, 100), 2_000_000, "no more than was said");
    }
}
