//! Ratios between systems, and background work per byte.

use crate::pink::measured::Measured;
use crate::pink::size::READS;
use crate::pink::system::{Cell, System};

/// Returns the geometric mean, over the read workloads, of the value of one system over the value
/// of another. `of` returns the value of a cell.
pub(super) fn ratio(measured: &Measured, design: &str, over: &str, of: fn(&Cell) -> f64) -> f64 {
    let ratios = READS.map(|workload| one_ratio(measured, design, over, workload, of));
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// Returns the value of one system over the value of another in one workload.
pub(super) fn one_ratio(
    measured: &Measured,
    design: &str,
    over: &str,
    workload: &str,
    of: fn(&Cell) -> f64,
) -> f64 {
    one_ratio_of(measured.system(design), measured.system(over), workload, of)
}

/// As [`one_ratio`], of these systems.
pub(super) fn one_ratio_of(
    system: &System,
    over: &System,
    workload: &str,
    of: fn(&Cell) -> f64,
) -> f64 {
    of(system.ran(workload)) / of(over.ran(workload))
}

/// Returns the pages of one kind of background work in a cell.
pub(super) type Pages = fn(&Cell) -> f64;

pub(super) const COMPACTION_READS: Pages = |cell| cell.traffic.compaction_read as f64;
pub(super) const COMPACTION_WRITES: Pages = |cell| cell.traffic.compaction_written as f64;
pub(super) const COLLECTION_READS: Pages = |cell| cell.traffic.gc_read as f64;
pub(super) const COLLECTION_WRITES: Pages = |cell| cell.traffic.gc_written as f64;

/// Returns the bytes of background work of a system per byte that users wrote, in Load and A
/// together.
pub(super) fn per_user_byte(system: &System, of: Pages) -> f64 {
    let cells = [system.load.as_ref(), system.cell("a")];
    let cells = cells.into_iter().flatten();
    let written: f64 = cells.clone().map(|cell| cell.traffic.user_pages).sum();
    cells.map(of).sum::<f64>() / written
}

/// Returns `PinK` with three pinned levels, after the same workloads as NO-OPT.
pub(super) fn with_search_aids(measured: &Measured) -> &System {
    measured.pinned.last().expect("levels were pinned")
}
