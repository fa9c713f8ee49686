//! How long scans are.

use runtime::Rng;

use super::Zipfian;
use crate::{LengthDistribution, ScanLengths};

/// Draws lengths in records.
pub(crate) struct LengthChooser {
    lengths: ScanLengths,
    /// Draws by how much a length exceeds the shortest, if not all are alike.
    zipfian: Option<Zipfian>,
}

impl LengthChooser {
    pub(crate) fn new(lengths: ScanLengths) -> Self {
        let zipfian = match lengths.distribution {
            LengthDistribution::Uniform => None,
            LengthDistribution::Zipfian => Some(Zipfian::new(lengths.max - lengths.min + 1)),
        };
        Self { lengths, zipfian }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let ScanLengths { min, max, .. } = self.lengths;
        let beyond = match &self.zipfian {
            None => rng.below(max - min + 1),
            Some(zipfian) => zipfian.draw(rng),
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
}
