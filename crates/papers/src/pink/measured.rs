//! Results of `PinK`'s experiments, as plain values for the report.

use super::motivation::Motivation;
use super::system::System;

/// Results of all experiments.
pub(crate) struct Measured {
    /// In the order of [`SYSTEMS`](super::size::SYSTEMS).
    pub systems: Vec<System>,
    /// `PinK` with 0, 1, 2 and 3 levels pinned.
    pub pinned: Vec<System>,
    /// `PinK` without prefixes and range pointers.
    pub plain: System,
    /// Higher trees, with as many pinned levels as fit in memory.
    pub heights: Vec<System>,
    /// `PinK` with compactions of whole levels.
    pub whole: System,
    /// A and F with all requests of the paper, each on a freshly loaded drive: hash, LSM-tree and
    /// `PinK`.
    pub full: Vec<System>,
    /// All workloads at the same rates, each on a freshly loaded drive: hash, LSM-tree and `PinK`.
    pub rated: Vec<System>,
    /// A, B and C with the firmware times multiplied by each of
    /// [`COSTS`](super::beyond::COSTS): hash and `PinK`.
    pub costly: Vec<[System; 2]>,
    /// A and C with objects of 1,024 bytes, including the key: hash and `PinK`.
    pub with_key: [System; 2],
    /// C without prefixes and range pointers, with the slowest firmware of
    /// [`COSTS`](super::beyond::COSTS).
    pub costly_plain: System,
    /// KV drives beside a block drive.
    pub motivation: Motivation,
}

impl Measured {
    /// Returns the system of [`SYSTEMS`](super::size::SYSTEMS) with this design.
    pub(super) fn system(&self, design: &str) -> &System {
        of_design(&self.systems, design)
    }
}

/// Returns the system with this design.
pub(super) fn of_design<'a>(systems: &'a [System], design: &str) -> &'a System {
    let found = systems.iter().find(|system| system.design == design);
    found.expect("every system was run")
}
