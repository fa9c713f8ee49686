//! The drive, the systems, the workloads and the sizes of `PinK`'s experiments.

use crate::plan::Scale;

/// The drive of the paper.
pub(super) const DEVICE: &str = "pink-zcu102";
/// The systems of the paper, as designs, and their names in the paper.
pub(super) const SYSTEMS: [(&str, &str); 4] =
    [("hash", "Hash"), ("lightstore", "LSM-tree"), ("pink", "PinK"), ("pink-hw", "PinK+HW")];
/// The workloads, in the order in which they run on a loaded drive. E is last because hash does not
/// run E: all other workloads have the same predecessors in all systems.
pub(super) const WORKLOADS: [&str; 6] = ["a", "b", "c", "d", "f", "e"];
/// The workloads in which reads are measured.
pub(super) const READS: [&str; 5] = ["a", "b", "c", "d", "f"];
/// The paper's name of `PinK` without prefixes and range pointers.
pub(super) const WITHOUT_AIDS: &str = "PinK (NO-OPT)";

/// Size of the experiments.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Divisor of the drive, its memory and the number of pairs.
    pub divisor: u64,
    pub records: u64,
    /// Operations of each workload.
    pub operations: u64,
    /// Range queries of E.
    pub scans: u64,
    /// Requests of a workload as in the paper: as many as there are pairs.
    pub requests: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                divisor: 64,
                records: 687_500,
                operations: 300_000,
                scans: 6_000,
                requests: 687_500,
            },
            Scale::Paper => Self {
                divisor: 1,
                records: 44_000_000,
                operations: 4_400_000,
                scans: 44_000,
                requests: 44_000_000,
            },
        }
    }
}
