//! Configurations, workloads, rates and sizes of Vigil-KV's experiments.

use crate::plan::Scale;

/// The paper's configurations and their names in the paper, in its order. Each adds one mechanism
/// to the previous one.
pub(crate) const CONFIGURATIONS: [(&str, &str); 6] = [
    ("base", "Base"),
    ("silk", "SILK"),
    ("plm", "PLM"),
    ("i-plm", "I-PLM"),
    ("r-vigil", "R-Vigil"),
    ("o-vigil", "O-Vigil"),
];
/// Configurations that the paper lacks: windows kept by the host alone, a second read instead of
/// waiting, drives in which nothing delays clients, and all three papers in one store.
pub(crate) const BEYOND: [(&str, &str); 4] =
    [("rails", "rails"), ("hedged", "hedged"), ("ideal", "ideal"), ("levelhead", "levelhead")];
/// Base and SILK if the paper's md had parity, which the paper does not state; for YCSB-A.
pub(crate) const WITH_PARITY: [(&str, &str); 2] =
    [("base-parity", "Base, parity"), ("silk-parity", "SILK, parity")];
/// Configurations for YCSB-E: two of the paper, and levelhead.
pub(crate) const SCANNING: [(&str, &str); 3] =
    [("silk", "SILK"), ("o-vigil", "O-Vigil"), ("levelhead", "levelhead")];
/// Configurations that also run YCSB-A on fresh drives, which collect no garbage.
pub(crate) const FRESH: [(&str, &str); 3] =
    [("base", "Base"), ("o-vigil", "O-Vigil"), ("levelhead", "levelhead")];
/// The paper's workloads and their names in the paper, in its order.
pub(crate) const WORKLOADS: [(&str, &str); 6] = [
    ("userdb", "UserDB"),
    ("zippydb", "ZippyDB"),
    ("a", "YCSB-A"),
    ("b", "YCSB-B"),
    ("d", "YCSB-D"),
    ("f", "YCSB-F"),
];
/// Operations per second, open loop. The paper does not give the rate. Its table 2 and the time
/// axis of figure 12 allow about ten thousand at most.
pub(crate) const RATE: f64 = 10_000.0;
/// Operations per second of YCSB-E, whose range queries read about fifty pairs.
pub(crate) const SCAN_RATE: f64 = 2_000.0;
/// Gets per second at which the cost of reconstruction is measured.
pub(crate) const READ_RATES: [f64; 4] = [60_000.0, 90_000.0, 120_000.0, 150_000.0];
/// Default limit of `plm_cache`: 2 GB (section 7.1).
pub(crate) const PLM_CACHE_BYTES: u64 = 2_000_000_000;
/// Limits of `plm_cache` at the paper's size, in MB.
pub(crate) const CACHE_LIMITS_MB: [u64; 6] = [50, 100, 200, 400, 800, 1_600];

/// Returns all configurations of the matrix.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CONFIGURATIONS.into_iter().chain(BEYOND)
}

/// Size of the experiments.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Divisor of the bytes of memtables, tables, levels and `plm_cache`, and of the times of
    /// windows. A rotation has as many flushes and compactions as at full size, at the same rates
    /// and on the same flash.
    pub divisor: u64,
    /// Number of loaded pairs, in all workloads: 4 GB of YCSB's, 0.6 GB of `UserDB`'s, 0.4 GB of
    /// `ZippyDB`'s at the paper's size. According to table 2, a flushed byte is compacted 5 to 6
    /// times in YCSB, and 2 to 4 times in the other two.
    pub records: u64,
    /// Seconds of each run of YCSB-A and F, and of each run of the workloads with fewer or smaller
    /// puts. Each run has at least a dozen flushes.
    pub seconds: f64,
    pub quiet_seconds: f64,
    /// Seconds of gets without writes, at each rate.
    pub read_seconds: f64,
}

impl Size {
    pub(crate) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                divisor: 16,
                records: 250_000,
                seconds: 40.0,
                quiet_seconds: 120.0,
                read_seconds: 2.0,
            },
            Scale::Paper => Self {
                divisor: 1,
                records: 4_000_000,
                seconds: 320.0,
                quiet_seconds: 960.0,
                read_seconds: 20.0,
            },
        }
    }
}
