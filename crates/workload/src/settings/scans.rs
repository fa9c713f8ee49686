//! Settings of scans.

use serde::Serialize;

use crate::generator::Pareto;

/// The form of scans. A scan creates an iterator, seeks the drawn key, reads on, and destroys the
/// iterator.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Scans {
    /// Records per scan.
    pub lengths: ScanLengths,
    /// `scanbatch`: the most records to request at a time after the Seek. 1 means one Next per
    /// record, more means bulk reads.
    pub batch: u64,
    /// `scanbound`: the end of a scan.
    pub end: ScanEnd,
}

/// The end of a scan, unless the end of the store comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScanEnd {
    /// Its length: a number of records is requested, as in YCSB.
    Length,
    /// An upper bound given to the iterator, which is then read to its end. The bound is the key
    /// that many records further, so that earlier deletes make the scan shorter.
    Bound,
}

/// Records per scan.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ScanLengths {
    /// `minscanlength`, in records. One more than `seeknexts` if that is set.
    pub min: u64,
    /// `maxscanlength`, or `mix_max_scan_len` for [`LengthDistribution::Pareto`], in records. One
    /// more than `seeknexts` if that is set.
    pub max: u64,
    /// `scanlengthdistribution`.
    pub distribution: LengthDistribution,
}

/// Distribution of lengths between their bounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthDistribution {
    /// Uniform.
    Uniform,
    /// Short lengths are the most frequent.
    Zipfian,
    /// As in `db_bench`'s mixgraph: the excess over the shortest length is the drawn number modulo
    /// the number of lengths.
    Pareto(Pareto),
}
