//! The distribution of operations over records.

use serde::Serialize;

use crate::generator::KeyRanges;

/// The distribution of operations over records.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestDistribution {
    /// All records with the same probability.
    Uniform,
    /// A few very popular records, scattered over all keys, with YCSB's skew, 0.99.
    Zipfian,
    /// Zipfian with another skew.
    ZipfianOf {
        /// `zipfian.theta`: the record of rank i has probability proportional to `1 / i^theta`.
        theta: f64,
    },
    /// Newer records are more popular, with YCSB's skew, 0.99.
    Latest,
    /// Latest with another skew.
    LatestOf {
        /// `zipfian.theta`: the record of age i has probability proportional to `1 / i^theta`.
        theta: f64,
    },
    /// In order, cyclically.
    Sequential,
    /// A hot set gets most operations.
    Hotspot {
        /// `hotspotdatafraction`: the hot part of the records.
        data_fraction: f64,
        /// `hotspotopnfraction`: the part of the operations that goes to the hot set.
        operation_fraction: f64,
    },
    /// Newer records are more popular, exponentially.
    Exponential {
        /// `exponential.percentile`: the part of the operations, in percent, that goes to the
        /// newest records.
        percentile: f64,
        /// `exponential.frac`: the newest records, as a part of all.
        fraction: f64,
    },
    /// Some ranges of keys are hot, and some keys within each, as in `db_bench`'s mixgraph.
    /// Neighbours by number are neighbours by key if keys are ordered
    /// ([`crate::InsertOrder::Ordered`]); keys inserted by the run are not read.
    KeyRanges(KeyRanges),
}
