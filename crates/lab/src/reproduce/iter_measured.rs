//! What is measured in IterKVSSD's experiments: plain values, from which the report is made.

use hdrhistogram::Histogram;
use workload::LatencySummary;

use crate::bytes_text;

/// Where pairs that follow one another by key lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// Far apart: they were written in random order.
    Random,
    /// Side by side: they were written in key order.
    Sequential,
}

impl Layout {
    pub(super) const ALL: [Self; 2] = [Self::Random, Self::Sequential];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Sequential => "sequential",
        }
    }

    /// The insert order of a workload that writes pairs so.
    pub(super) fn insert_order(self) -> &'static str {
        match self {
            Self::Random => "hashed",
            Self::Sequential => "ordered",
        }
    }
}

/// One run: a degree and a scan length.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub degree: u32,
    pub length: u64,
    pub bytes_per_second: f64,
    pub seek: LatencySummary,
    pub next: LatencySummary,
}

/// Long scans.
#[derive(Clone, Debug)]
pub(super) struct LongRun {
    /// Latencies of their Nexts, in nanoseconds.
    pub next: Histogram<u64>,
    /// Segments that a Next waited for.
    pub index_reads: u64,
    /// Prefetched segments that a Next waited for all the same.
    pub late_prefetches: u64,
}

impl LongRun {
    /// A quantile of the latencies of Nexts, in microseconds.
    pub(super) fn next_us(&self, quantile: f64) -> f64 {
        self.next.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The longest Next, in microseconds.
    pub(super) fn longest_next_us(&self) -> f64 {
        self.next.max() as f64 / 1e3
    }
}

/// Everything that was measured on one stand.
pub(super) struct OnStand {
    pub size: u64,
    pub layout: Layout,
    /// By degree, at one scan length.
    pub by_degree: Vec<Run>,
    /// By scan length, without value prefetch and with the highest degree.
    pub by_length: Vec<Run>,
    /// Without and with index prefetch.
    pub baseline: LongRun,
    pub with_index: LongRun,
}

impl OnStand {
    /// The size of its values and their layout.
    pub(super) fn name(&self) -> String {
        format!("{} {}", bytes_text(self.size), self.layout.name())
    }

    /// Its runs by degree: each degree, and its throughput over that without value prefetch.
    pub(super) fn gains(&self) -> impl Iterator<Item = (u32, f64)> {
        let base = self.by_degree[0].bytes_per_second;
        self.by_degree.iter().map(move |run| (run.degree, run.bytes_per_second / base))
    }

    /// What the best degree gains.
    pub(super) fn most_gained(&self) -> f64 {
        self.gains().map(|(_, gain)| gain).fold(0.0, f64::max)
    }
}

/// Memory when the `n`th iterator is open, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionMemory {
    /// Descriptors in the pool beyond those of the current version, and chunks of references.
    pub pooled: u64,
    /// Memtables that only snapshots hold.
    pub memtables: u64,
    /// What a summary for each iterator would take, at the published 44 bytes a table.
    pub summaries: u64,
}

/// What was measured.
pub(super) struct Measured {
    pub stands: Vec<OnStand>,
    /// Segments of the store in the experiment on version memory.
    pub segments: u64,
    pub versions: Vec<VersionMemory>,
}

impl Measured {
    /// The stand with values of a size in a layout.
    pub(super) fn stand(&self, size: u64, layout: Layout) -> &OnStand {
        let mut stands = self.stands.iter();
        let stand = stands.find(|stand| stand.size == size && stand.layout == layout);
        stand.expect("every size was run in every layout")
    }
}
