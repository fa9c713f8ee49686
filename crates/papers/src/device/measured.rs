//! Results of the experiments on Vigil-KV's hardware, as plain values for the report. Instants are
//! in seconds since the first read of their series.

use serde::{Deserialize, Serialize};

use super::arithmetic::Bounds;
use super::samples::{Latency, Met};

/// Latencies of the reads of an experiment, and the counters of the drive.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Watched {
    /// All reads.
    pub all: Latency,
    /// The instant that divides `before` and `after`; 0 if the experiment has none.
    pub turn_s: f64,
    pub before: Latency,
    pub after: Latency,
    /// Time in seconds, and latency in microseconds.
    pub longest_over_time: Vec<(f64, f64)>,
    pub mean_over_time: Vec<(f64, f64)>,
    /// Waits of flash reads after `turn_s`, or in the whole experiment if the counters at `turn_s`
    /// were not recorded.
    pub met: Met,
    /// Blocks whose data moved because they were read often (read reclaim).
    pub reclaims: u64,
    /// Deterministic windows entered, and those of them that the drive ended, not the host.
    pub windows_entered: u64,
    pub windows_broken: u64,
}

/// Start and end of each period of an activity, in seconds.
pub(crate) type Stretches = Vec<(f64, f64)>;

/// Reads while DTWIN and NDWIN alternate.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Alternating {
    pub watched: Watched,
    /// Instants at which the window changed. The first change is to DTWIN.
    pub turns_s: Vec<f64>,
    /// The longest read before each change and after the last one.
    pub longest_us: Vec<f64>,
}

/// A point of the saturation curve.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Point {
    pub depth: u32,
    pub reads_per_second: f64,
    pub mean_us: f64,
}

/// Duration of a lockdown, by the bytes written before.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Lockdown {
    pub written_bytes: u64,
    pub took_ms: f64,
}

/// Results of all experiments.
pub(crate) struct Measured {
    /// Figure 2a.
    pub buffer_flush: Watched,
    /// Figure 2b, and the periods in which garbage was collected.
    pub collection: Watched,
    pub collecting: Stretches,
    /// Figure 2c.
    pub reclaim: Watched,
    /// Figure 7b.
    pub lockdowns: Vec<Lockdown>,
    /// Figure 8a: the drive that became the prototype.
    pub plain: Watched,
    /// Figure 8a: the prototype in DTWIN, then in NDWIN.
    pub windowed: Watched,
    /// Figure 8b.
    pub alternating: Alternating,
    /// Figure 8c: reads and writes in one set.
    pub mixed: Watched,
    /// Figure 8c: reads and writes in two sets.
    pub isolated: Watched,
    /// The same reads without any writes.
    pub undisturbed: Watched,
    /// Random reads by queue depth.
    pub curve: Vec<Point>,
    /// Upper bounds of the rate of these reads on the baseline, by arithmetic.
    pub bounds: Bounds,
    /// Latency of a read alone by arithmetic, for each page type, on the baseline and on the
    /// prototype.
    pub alone_us: Vec<f64>,
    pub alone_in_set_us: Vec<f64>,
}
