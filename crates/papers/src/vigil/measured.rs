//! Results of Vigil-KV's experiments, as plain values for the report.

use super::cell::Cell;
use super::size::{WORKLOADS, all};

/// Results of all experiments.
pub(crate) struct Measured {
    /// By workload, then by configuration: those of the paper, then the others.
    pub matrix: Vec<Vec<Cell>>,
    /// YCSB-E by configuration ([`SCANNING`](super::size::SCANNING)).
    pub scans: Vec<Cell>,
    /// YCSB-A of O-Vigil by limit of `plm_cache`.
    pub limits: Vec<Cell>,
    /// Gets without writes, R-Vigil, by rate.
    pub rates: Vec<Cell>,
    /// YCSB-A in closed loops of 16 clients: base and O-Vigil.
    pub closed: Vec<Cell>,
    /// YCSB-A of [`WITH_PARITY`](super::size::WITH_PARITY).
    pub with_parity: Vec<Cell>,
    /// YCSB-A without filters: base and O-Vigil.
    pub unfiltered: Vec<Cell>,
    /// Gets of `UserDB` without writes, and so without background work: base.
    pub reads_alone: Cell,
    /// YCSB-A without filters, base: compactions in time, and delayed compactions.
    pub delayed_compaction: [Cell; 2],
    /// YCSB-A, base with delayed flushes: open loop, and closed loop.
    pub delayed_flush: [Cell; 2],
    /// YCSB-A of [`FRESH`](super::size::FRESH) on empty drives.
    pub fresh: Vec<Cell>,
}

impl Measured {
    /// Returns a cell of the matrix.
    pub(super) fn cell(&self, workload: &str, configuration: &str) -> &Cell {
        let row = WORKLOADS.iter().position(|(name, _)| *name == workload);
        let column = all().position(|(name, _)| name == configuration);
        &self.matrix[row.expect("a workload")][column.expect("a configuration")]
    }
}
