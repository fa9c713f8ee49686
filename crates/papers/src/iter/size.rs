//! The board of the experiments, their sizes, and the parameters that vary.

use serde::Serialize;
use stacks::kvssd::DeviceProfile;

use crate::failure::Failure;
use crate::plan::Scale;

/// The board of the paper's group.
pub(super) const DEVICE: &str = "cosmos-plus-4ch";
/// Value sizes of the paper, in bytes.
pub(super) const SIZES: [u64; 4] = [128, 4 << 10, 16 << 10, 128 << 10];
/// Scan lengths of the paper, in pairs per range query.
pub(super) const LENGTHS: [u64; 5] = [128, 256, 512, 1024, 2048];
/// Degrees of value prefetch in the paper.
pub(super) const DEGREES: std::ops::RangeInclusive<u32> = 0..=8;
/// The scan length at which degrees are compared.
pub(super) const DEGREE_SCAN: u64 = 1024;
/// The length of long scans, in pairs: according to the paper, long enough to read index segments
/// on the way.
pub(super) const LONG_SCAN: u64 = 200_000;
/// The value size of the experiments on tails, in bytes.
pub(super) const TAIL_BYTES: u64 = 4 << 10;
/// Times of firmware and host that the experiments compare, in microseconds. No source gives the
/// times of the board.
pub(super) const FIXED_US: [f64; 3] = [13.0, 20.0, 40.0];
/// Times of a page read besides the time of the profile, in microseconds: 40 as in FEMU, 90 as in a
/// TLC part of that time. No source gives the flash part of the board.
pub(super) const READ_US: [f64; 2] = [40.0, 90.0];
/// The time of firmware and host in the runs with [`READ_US`], in microseconds: the middle one.
pub(super) const FIXED_BESIDE_READ_US: f64 = 20.0;
/// The value size in the runs with other times, in bytes. Each value takes a page.
pub(super) const SWEPT_BYTES: u64 = 16 << 10;
/// Number of iterators in the experiment on version memory.
pub(super) const ITERATORS: usize = 16;

/// Size of the experiments.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Size {
    pub records: u64,
    /// Range queries of each run.
    pub queries: u64,
    /// Long range queries of each run with values of different sizes.
    pub long_queries: u64,
    /// Long range queries of each run with different forms of the index.
    pub tail_queries: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => {
                Self { records: 500_000, queries: 50, long_queries: 3, tail_queries: 3 }
            }
            Scale::Paper => {
                Self { records: 3_000_000, queries: 100, long_queries: 20, tail_queries: 10 }
            }
        }
    }
}

/// Bytes of a summary entry, as published.
pub(super) const SUMMARY_ENTRY_BYTES: u64 = 44;

/// Returns the board.
pub(super) fn device() -> Result<DeviceProfile, Failure> {
    DeviceProfile::load(DEVICE).map_err(|error| error.to_string())
}
