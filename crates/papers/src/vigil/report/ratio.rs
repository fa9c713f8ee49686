//! Ratios between configurations.

use crate::vigil::cell::Cell;
use crate::vigil::measured::Measured;
use crate::vigil::size::WORKLOADS;

/// Returns the geometric mean, over the workloads, of the value of one configuration over the value
/// of another. `of` returns the value of a cell.
pub(super) fn ratio(
    measured: &Measured,
    configuration: &str,
    over: &str,
    of: fn(&Cell) -> f64,
) -> f64 {
    let logs = WORKLOADS.map(|(workload, _)| {
        let value = |configuration| of(measured.cell(workload, configuration));
        (value(configuration) / value(over)).ln()
    });
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}
