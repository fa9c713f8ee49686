//! What is measured in the experiments on Vigil-KV's hardware: plain values, from which the report is made. Instants are in
//! seconds since the first read of their series.

use serde::{Deserialize, Serialize};

use super::device_arithmetic::Bounds;
use super::device_samples::{Latency, Met};

/// Reads that were watched, and what the drive did meanwhile.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Watched {
    /// All of them.
    pub all: Latency,
    /// The instant that divides before from after, where there is one.
    pub turn_s: f64,
    pub before: Latency,
    pub after: Latency,
    /// Seconds and microseconds.
    pub longest_over_time: Vec<(f64, f64)>,
    pub mean_over_time: Vec<(f64, f64)>,
    /// What reads of the flash met from the turn on, or from the beginning where nobody asks for less.
    pub met: Met,
    /// Blocks whose data moved because they were read so often.
    pub reclaims: u64,
    /// Deterministic windows entered, and of them, left by the drive and not by the host.
    pub windows_entered: u64,
    pub windows_broken: u64,
}

/// From when to when something went on.
pub(super) type Stretches = Vec<(f64, f64)>;

/// Reads through windows in turns.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Alternating {
    pub watched: Watched,
    /// Instants at which the window changed, DTWIN first.
    pub turns_s: Vec<f64>,
    /// The longest read before each of them, and behind the last.
    pub longest_us: Vec<f64>,
}

/// A point of the saturation curve.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    pub depth: u32,
    pub reads_per_second: f64,
    pub mean_us: f64,
}

/// What a lockdown took.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Lockdown {
    pub written_bytes: u64,
    pub took_ms: f64,
}

/// Everything that was measured.
pub(super) struct Measured {
    /// Figure 2a.
    pub buffer_flush: Watched,
    /// Figure 2b, and from when to when garbage was collected.
    pub collection: Watched,
    pub collecting: Stretches,
    /// Figure 2c.
    pub reclaim: Watched,
    /// Figure 7b.
    pub lockdowns: Vec<Lockdown>,
    /// Figure 8a: the drive the prototype was made from.
    pub plain: Watched,
    /// Figure 8a: the prototype in DTWIN, then in NDWIN.
    pub windowed: Watched,
    /// Figure 8b.
    pub alternating: Alternating,
    /// Figure 8c: reads and writes in one space.
    pub mixed: Watched,
    /// Figure 8c: in two sets.
    pub isolated: Watched,
    /// The same reads without any writes.
    pub undisturbed: Watched,
    /// Reads at several depths.
    pub curve: Vec<Point>,
    /// What arithmetic says of such reads, on the baseline.
    pub bounds: Bounds,
    /// What it says of a read alone, by page type, on the baseline and on the prototype.
    pub alone_us: Vec<f64>,
    pub alone_in_set_us: Vec<f64>,
}
