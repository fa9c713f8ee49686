//! The generalized Pareto distribution, from which `db_bench`'s mixgraph draws lengths.

use runtime::Rng;
use serde::Serialize;

/// A generalized Pareto distribution from 0 on.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Pareto {
    /// Shape, above 0: the weight of the tail. From 1 on the mean is infinite.
    pub k: f64,
    /// Scale, above 0.
    pub sigma: f64,
}

impl Pareto {
    /// Draws a number, rounded up as in `db_bench`.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        // In (0, 1].
        let left = 1.0 - rng.unit_f64();
        (self.sigma * (left.powf(-self.k) - 1.0) / self.k).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_formula() {
        // db_bench's fit of the values of ZippyDB.
        let pareto = Pareto { k: 0.2615, sigma: 25.45 };
        let mut rng = Rng::new(1);
        let mut drawn: Vec<u64> = (0..200_000).map(|_| pareto.draw(&mut rng)).collect();
        drawn.sort_unstable();
        for share in [0.1_f64, 0.5, 0.9, 0.99, 0.999] {
            let formula = 25.45 * ((1.0 - share).powf(-0.2615) - 1.0) / 0.2615;
            let found = drawn[(share * 200_000.0) as usize] as f64;
            assert!((found - formula).abs() < 1.0 + 0.04 * formula, "{share}: {found} {formula}");
        }
    }
}
