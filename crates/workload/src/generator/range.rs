//! Distributions over a fixed range of keys, and over a bounded past.

use runtime::Rng;

/// Every key with the same probability.
pub(crate) struct Uniform {
    first: u64,
    count: u64,
}

impl Uniform {
    pub(crate) fn new(first: u64, count: u64) -> Self {
        Self { first, count }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        self.first + rng.below(self.count)
    }
}

/// Keys in order, cyclically.
pub(crate) struct Sequential {
    first: u64,
    count: u64,
    drawn: u64,
}

impl Sequential {
    pub(crate) fn new(first: u64, count: u64) -> Self {
        Self { first, count, drawn: 0 }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        let key = self.first + self.drawn;
        self.drawn = (self.drawn + 1) % self.count;
        key
    }
}

/// A share of the operations goes to the first keys, the hot set; uniform within each set.
///
/// A hot set that rounds to zero keys gets one key, where YCSB would divide by zero.
pub(crate) struct Hotspot {
    first: u64,
    hot: u64,
    cold: u64,
    hot_share: f64,
}

impl Hotspot {
    pub(crate) fn new(first: u64, count: u64, data_fraction: f64, hot_share: f64) -> Self {
        let hot = ((count as f64 * data_fraction) as u64).clamp(1, count);
        Self { first, hot, cold: count - hot, hot_share }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let is_hot = rng.unit_f64() < self.hot_share || self.cold == 0;
        if is_hot {
            self.first + rng.below(self.hot)
        } else {
            self.first + self.hot + rng.below(self.cold)
        }
    }
}

/// Distance from the newest key: `percentile` per cent of all draws are within `within` keys.
pub(crate) struct Exponential {
    mean: f64,
}

impl Exponential {
    pub(crate) fn new(percentile: f64, within: f64) -> Self {
        Self { mean: -within / (1.0 - percentile / 100.0).ln() }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        (-(1.0 - rng.unit_f64()).ln() * self.mean) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the statistic of Pearson's chi-square test against equal shares.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn uniform_is_uniform() {
        let mut rng = Rng::new(9);
        let uniform = Uniform::new(100, 1000);
        let mut counts = [0; 1000];
        (0..1_000_000).for_each(|_| counts[uniform.draw(&mut rng) as usize - 100] += 1);
        // 999 degrees of freedom: mean 999, deviation 45.
        let statistic = chi_square(&counts);
        assert!((800.0..1200.0).contains(&statistic), "{statistic}");
    }

    #[test]
    fn hotspot_gives_each_set_its_share() {
        let mut rng = Rng::new(10);
        let hotspot = Hotspot::new(50, 1000, 0.2, 0.8);
        let draws: Vec<u64> = (0..100_000).map(|_| hotspot.draw(&mut rng)).collect();
        assert!(draws.iter().all(|key| (50..1050).contains(key)));
        let hot = draws.iter().filter(|key| **key < 250).count() as f64 / 1e5;
        assert!((hot - 0.8).abs() < 0.01, "{hot}");
    }

    #[test]
    fn hotspot_at_its_edges() {
        let mut rng = Rng::new(10);
        let all_hot = Hotspot::new(0, 10, 1.0, 0.0);
        assert!((0..100).all(|_| all_hot.draw(&mut rng) < 10));
        let one_hot = Hotspot::new(0, 10, 0.0, 1.0);
        assert!((0..100).all(|_| one_hot.draw(&mut rng) == 0));
    }

    #[test]
    fn sequential_wraps() {
        let mut sequential = Sequential::new(5, 3);
        let drawn: Vec<u64> = (0..7).map(|_| sequential.draw()).collect();
        assert_eq!(drawn, [5, 6, 7, 5, 6, 7, 5]);
    }
}
