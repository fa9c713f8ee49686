//! The mean of several runs and its confidence interval.

use serde::Serialize;

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval (Student's t): the interval is `mean` plus and minus this
    /// value. `None` for a single value.
    pub ci95: Option<f64>,
}

impl Estimate {
    /// Returns the estimate from independent values; `None` without values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let freedom = values.len().checked_sub(1)?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = |freedom: usize| (squares / freedom as f64 / count).sqrt();
        let ci95 = (freedom > 0).then(|| student_t(freedom) * error(freedom));
        Some(Self { mean, ci95 })
    }
}

/// The 97.5th percentile of Student's distribution for 1 to 10 degrees of freedom.
const STUDENT_T: [f64; 10] =
    [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281];

/// Returns the 97.5th percentile of Student's distribution, within 0.0002.
fn student_t(freedom: usize) -> f64 {
    if let Some(t) = STUDENT_T.get(freedom - 1) {
        return *t;
    }
    // Cornish and Fisher's expansion around the normal distribution.
    let (z, n) = (1.959_964_f64, freedom as f64);
    let [z3, z5, z7] = [3, 5, 7].map(|power| z.powi(power));
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_student_are_those_of_tables() {
        let table = [
            (1, 12.7062),
            (4, 2.7764),
            (10, 2.2281),
            (11, 2.2010),
            (20, 2.0860),
            (30, 2.0423),
            (60, 2.0003),
            (120, 1.9799),
        ];
        for (freedom, t) in table {
            assert!((student_t(freedom) - t).abs() < 2e-4, "{freedom}: {}", student_t(freedom));
        }
    }

    #[test]
    fn an_interval_is_t_standard_errors_wide() {
        let three = Estimate::of(&[1.0, 2.0, 3.0]).expect("there are values");
        assert!((three.mean - 2.0).abs() < 1e-12);
        assert!((three.ci95.expect("of three") - 4.3027 / 3_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Estimate::of(&[5.0]), Some(Estimate { mean: 5.0, ci95: None }));
        assert_eq!(Estimate::of(&[]), None);
    }
}
