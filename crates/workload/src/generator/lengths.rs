//! Lengths of scans.

use runtime::Rng;

use super::Zipfian;
use crate::{LengthDistribution, ScanLengths};

/// Draws lengths in records.
pub(crate) struct LengthChooser {
    lengths: ScanLengths,
    /// Draws the excess over the shortest length, for Zipfian lengths.
    zipfian: Option<Zipfian>,
}

impl LengthChooser {
    pub(crate) fn new(lengths: ScanLengths) -> Self {
        let zipfian = match lengths.distribution {
            LengthDistribution::Uniform | LengthDistribution::Pareto(_) => None,
            LengthDistribution::Zipfian => Some(Zipfian::new(lengths.max - lengths.min + 1)),
        };
        Self { lengths, zipfian }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let ScanLengths { min, max, distribution } = self.lengths;
        let span = max - min + 1;
        let beyond = match (&self.zipfian, distribution) {
            (Some(zipfian), _) => zipfian.draw(rng),
            (None, LengthDistribution::Pareto(pareto)) => pareto.draw(rng) % span,
            (None, _) => rng.below(span),
        };
        min + beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(min: u64, max: u64, distribution: LengthDistribution) -> Vec<u64> {
        let chooser = LengthChooser::new(ScanLengths { min, max, distribution });
        let mut rng = Rng::new(3);
        (0..50_000).map(|_| chooser.draw(&mut rng)).collect()
    }

    #[test]
    fn lengths_keep_their_bounds_and_their_distribution() {
        let mean = |draws: &[u64]| draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        let uniform = draws(1, 100, LengthDistribution::Uniform);
        assert_eq!((uniform.iter().min(), uniform.iter().max()), (Some(&1), Some(&100)));
        assert!((mean(&uniform) - 50.5).abs() < 0.5);
        let zipfian = draws(10, 100, LengthDistribution::Zipfian);
        assert!(zipfian.iter().all(|length| (10..=100).contains(length)));
        assert!(mean(&zipfian) < 40.0);
        assert!(draws(128, 128, LengthDistribution::Uniform).iter().all(|length| *length == 128));
    }

    /// The tail is so heavy that lengths have a mean only because of the modulo.
    #[test]
    fn lengths_of_mixgraph_are_those_that_its_formula_gives() {
        let pareto = crate::Pareto { k: 2.517, sigma: 14.236 };
        let lengths =
            ScanLengths { min: 1, max: 10_000, distribution: LengthDistribution::Pareto(pareto) };
        let chooser = LengthChooser::new(lengths);
        let mut rng = Rng::new(3);
        // The Nexts after the Seek.
        let mut nexts: Vec<u64> = (0..400_000).map(|_| chooser.draw(&mut rng) - 1).collect();
        nexts.sort_unstable();
        let mean = nexts.iter().sum::<u64>() as f64 / 4e5;
        assert!((mean - 570.0).abs() < 12.0, "{mean}");
        assert!(nexts[200_000].abs_diff(27) <= 1, "{}", nexts[200_000]);
        assert!((9_900..10_000).contains(&nexts[399_999]), "{}", nexts[399_999]);
    }
}
