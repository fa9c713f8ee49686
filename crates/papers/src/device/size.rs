//! Drives and sizes of the experiments.

use drives::ssd::SsdProfile;
use serde::Serialize;

use crate::failure::Failure;
use crate::plan::Scale;

/// The prototype, and the drive that became the prototype.
pub(super) const PROTOTYPE: &str = "vigil-1.92tb";
pub(super) const BASELINE: &str = "baseline-1.92tb";
/// The baseline drive with less flash, for the experiment in which the free space runs out.
pub(super) const SMALL_BASELINE: &str = "baseline-15gb";
/// Queue depths of the saturation curve.
pub(super) const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Bytes written in NDWIN before a lockdown, in MB.
pub(super) const LOCKDOWN_MB: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Number of points of a series over time.
pub(super) const STRETCHES: usize = 400;

/// Size of the experiments. Times are in seconds of virtual time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Size {
    /// Duration of the reads after 64 MB are written.
    pub flush_s: f64,
    /// Rate of the writes that use up the free space, in writes per second, and their duration.
    pub collection_writes: f64,
    pub collection_s: f64,
    /// Number of erase blocks that are read until read reclaim moves them.
    pub hammered_blocks: u32,
    pub reclaim_s: f64,
    /// Duration of NDWIN before a deterministic window: its minimum time. In figures 8a and 8b
    /// clients write meanwhile, so that the write buffer and garbage collection have work left.
    pub writing_s: f64,
    /// Duration of the prototype's deterministic window, and of the reads after the window.
    pub window_s: f64,
    pub after_s: f64,
    pub cycles: u32,
    pub isolation_s: f64,
    /// Reads at each point of the saturation curve.
    pub curve_reads: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                flush_s: 2.0,
                collection_writes: 50_000.0,
                collection_s: 16.0,
                hammered_blocks: 8,
                reclaim_s: 2.0,
                writing_s: 4.0,
                window_s: 16.0,
                after_s: 8.0,
                cycles: 2,
                isolation_s: 4.0,
                curve_reads: 100_000,
            },
            Scale::Paper => Self {
                flush_s: 10.0,
                collection_writes: 10_000.0,
                collection_s: 120.0,
                hammered_blocks: 64,
                reclaim_s: 10.0,
                writing_s: 4.0,
                window_s: 58.0,
                after_s: 40.0,
                cycles: 4,
                isolation_s: 30.0,
                curve_reads: 1_000_000,
            },
        }
    }
}

/// Returns the built-in drive of this name.
pub(super) fn profile(name: &str) -> Result<SsdProfile, Failure> {
    SsdProfile::load(name).map_err(|error| error.to_string())
}
