//! What Vigil-KV's experiments are: configurations, workloads, rates, and how large they are.

use crate::reproduce::Scale;

/// The configurations of the paper and what it calls them, in its order; each adds one thing to the one before.
pub(in crate::reproduce) const CONFIGURATIONS: [(&str, &str); 6] = [
    ("base", "Base"),
    ("silk", "SILK"),
    ("plm", "PLM"),
    ("i-plm", "I-PLM"),
    ("r-vigil", "R-Vigil"),
    ("o-vigil", "O-Vigil"),
];
/// What the paper lacks: windows that the host keeps alone, a second read instead of waiting, drives in which nothing
/// disturbs clients, and all three papers in one store.
pub(in crate::reproduce) const BEYOND: [(&str, &str); 4] =
    [("rails", "rails"), ("hedged", "hedged"), ("ideal", "ideal"), ("levelhead", "levelhead")];
/// Base and SILK if the paper's md kept parity, which it does not say; in YCSB-A.
pub(in crate::reproduce) const WITH_PARITY: [(&str, &str); 2] =
    [("base-parity", "Base, parity"), ("silk-parity", "SILK, parity")];
/// Those that YCSB-E is run with: the paper's two, and ours.
pub(in crate::reproduce) const SCANNING: [(&str, &str); 3] =
    [("silk", "SILK"), ("o-vigil", "O-Vigil"), ("levelhead", "levelhead")];
/// Those that YCSB-A is run with on fresh drives, too, in which no garbage is collected.
pub(in crate::reproduce) const FRESH: [(&str, &str); 3] =
    [("base", "Base"), ("o-vigil", "O-Vigil"), ("levelhead", "levelhead")];
/// The workloads of the paper and what it calls them, in its order.
pub(in crate::reproduce) const WORKLOADS: [(&str, &str); 6] = [
    ("userdb", "UserDB"),
    ("zippydb", "ZippyDB"),
    ("a", "YCSB-A"),
    ("b", "YCSB-B"),
    ("d", "YCSB-D"),
    ("f", "YCSB-F"),
];
/// Operations a second, open loop. The paper does not say; its table 2 and the time axis of figure 12 leave no more than
/// about ten thousand.
pub(in crate::reproduce) const RATE: f64 = 10_000.0;
/// The same of YCSB-E, whose range queries take some fifty pairs.
pub(in crate::reproduce) const SCAN_RATE: f64 = 2_000.0;
/// Requests a second at which the cost of reconstruction is measured.
pub(in crate::reproduce) const READ_RATES: [f64; 4] = [60_000.0, 90_000.0, 120_000.0, 150_000.0];
/// Its limit where nothing else is said: 2 GB (section 7.1).
pub(in crate::reproduce) const PLM_CACHE_BYTES: u64 = 2_000_000_000;
/// Limits of `plm_cache` at the paper's size, in MB.
pub(in crate::reproduce) const CACHE_LIMITS_MB: [u64; 6] = [50, 100, 200, 400, 800, 1_600];

/// All configurations of the matrix.
pub(in crate::reproduce) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CONFIGURATIONS.into_iter().chain(BEYOND)
}

/// How large the experiments are.
#[derive(Clone, Copy)]
pub(in crate::reproduce) struct Size {
    /// Bytes of memtables, tables, levels and `plm_cache` are divided by this, and so are the times of windows: a
    /// rotation has as many flushes and compactions as at full size, at the same rates and on the same flash.
    pub divisor: u64,
    /// Pairs to begin with, in all workloads: 4 GB of YCSB's, 0.6 GB of `UserDB`'s, 0.4 GB of `ZippyDB`'s at the paper's
    /// size. By table 2 a byte that is flushed is compacted 5 to 6 times in YCSB, and 2 to 4 times in those two.
    pub records: u64,
    /// Seconds of each run of YCSB-A and F, and of those that have fewer puts or smaller ones. Each has a dozen flushes
    /// and more.
    pub seconds: f64,
    pub quiet_seconds: f64,
    /// Seconds of gets alone at each rate.
    pub read_seconds: f64,
}

impl Size {
    pub(in crate::reproduce) fn of(scale: Scale) -> Self {
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
