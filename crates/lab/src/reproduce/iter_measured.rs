//! What is measured in IterKVSSD's experiments: plain values, from which the report is made.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use workload::LatencySummary;

use super::distribution;
use super::words::micros;
use crate::bytes_text;

/// Where pairs that follow one another by key lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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

/// How the index of a store lies, and how it is read where it was not read ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Index {
    /// Segments of a page.
    Pages,
    /// Tables as firmware of the same group has them, by the way of a Get: filter, keys, addresses.
    Tables,
    /// The same, without the filter.
    WithoutFilter,
    /// Tables with filters, of as many entries in each level as in the first.
    SmallTables,
}

impl Index {
    pub(super) const ALL: [Self; 4] =
        [Self::Pages, Self::Tables, Self::WithoutFilter, Self::SmallTables];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pages => "single pages",
            Self::Tables => "tables, filter read",
            Self::WithoutFilter => "tables, filter not read",
            Self::SmallTables => "tables of 4,096, filter read",
        }
    }
}

/// One run: a degree and a scan length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub degree: u32,
    pub length: u64,
    pub bytes_per_second: f64,
    pub seek: LatencySummary,
    pub next: LatencySummary,
}

/// Long scans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LongRun {
    /// Latencies of their Nexts, in nanoseconds.
    #[serde(with = "distribution::of_histogram")]
    pub next: Histogram<u64>,
    /// Segments that a Next waited for.
    pub index_reads: u64,
    /// Prefetched segments that a Next waited for all the same.
    pub late_prefetches: u64,
}

/// Long scans without and with index prefetch, and both again with the highest degree of value prefetch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LongRuns {
    pub baseline: LongRun,
    pub with_index: LongRun,
    pub ahead: LongRun,
    pub ahead_with_index: LongRun,
}

impl LongRuns {
    /// Without and with index prefetch, where values are read ahead or not.
    pub(super) fn both(&self, is_ahead: bool) -> (&LongRun, &LongRun) {
        if is_ahead {
            (&self.ahead, &self.ahead_with_index)
        } else {
            (&self.baseline, &self.with_index)
        }
    }

    /// The share of Nexts that wait for the index without prefetch.
    pub(super) fn share_of_waits(&self) -> f64 {
        self.baseline.index_reads as f64 / self.baseline.next.len().max(1) as f64
    }

    /// The quantile in the middle of those that wait.
    pub(super) fn where_units_are_met(&self) -> f64 {
        1.0 - self.share_of_waits() / 2.0
    }

    /// How many times as long a Next takes at a quantile without index prefetch as with it.
    pub(super) fn ratio(&self, quantile: f64, is_ahead: bool) -> f64 {
        let (without, with) = self.both(is_ahead);
        without.next_us(quantile) / with.next_us(quantile)
    }
}

/// Long scans of 4 KiB values on a store with its index in one of the ways.
#[derive(Serialize, Deserialize)]
pub(super) struct Tail {
    pub index: Index,
    pub layout: Layout,
    pub runs: LongRuns,
    /// Pages of each phase of reading a full table of the last level, or a segment.
    pub phases: Vec<u32>,
    /// What it costs to write: bytes of the index for each byte of pairs, while they were loaded.
    pub index_bytes_per_byte: f64,
}

/// The gains of value prefetch with 16 KiB values, where the board takes so long.
#[derive(Serialize, Deserialize)]
pub(super) struct Swept {
    /// Firmware and host.
    pub fixed_us: f64,
    /// A page read, where it is not the profile's.
    #[serde(default)]
    pub read_us: Option<f64>,
    pub layout: Layout,
    /// By degree.
    pub runs: Vec<Run>,
    /// What the board allows.
    pub most: f64,
}

impl Swept {
    /// What differs from the profile, in words.
    pub(super) fn times(&self) -> String {
        let fixed = micros(self.fixed_us);
        self.read_us.map_or(fixed.clone(), |read_us| format!("{fixed}, tR {}", micros(read_us)))
    }

    /// The run that gains most, and how much.
    pub(super) fn best(&self) -> (&Run, f64) {
        let base = self.runs[0].bytes_per_second;
        let best =
            self.runs.iter().max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
        let best = best.expect("there are runs");
        (best, best.bytes_per_second / base)
    }
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
#[derive(Serialize, Deserialize)]
pub(super) struct OnStand {
    pub size: u64,
    pub layout: Layout,
    /// By degree, at one scan length.
    pub by_degree: Vec<Run>,
    /// By scan length, without value prefetch and with the highest degree.
    pub by_length: Vec<Run>,
    /// Long scans without and with index prefetch.
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

    /// Throughput by scan length at a degree, from the shortest on.
    pub(super) fn by_length_at(&self, degree: u32) -> Vec<f64> {
        let runs = self.by_length.iter().filter(|run| run.degree == degree);
        runs.map(|run| run.bytes_per_second).collect()
    }

    /// What the best degree gains.
    pub(super) fn most_gained(&self) -> f64 {
        self.gains().map(|(_, gain)| gain).fold(0.0, f64::max)
    }
}

/// Memory when the `n`th iterator is open, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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
    /// By index and layout.
    pub tails: Vec<Tail>,
    /// By time of firmware and host, and layout.
    pub swept: Vec<Swept>,
    /// Segments of the store in the experiment on version memory.
    pub segments: u64,
    pub versions: Vec<VersionMemory>,
}

impl Measured {
    /// Long scans on a store with its index in one of the ways.
    pub(super) fn tail(&self, index: Index, layout: Layout) -> &Tail {
        let mut tails = self.tails.iter();
        let tail = tails.find(|tail| tail.index == index && tail.layout == layout);
        tail.expect("every index was run in every layout")
    }

    /// The stand with values of a size in a layout.
    pub(super) fn stand(&self, size: u64, layout: Layout) -> &OnStand {
        let mut stands = self.stands.iter();
        let stand = stands.find(|stand| stand.size == size && stand.layout == layout);
        stand.expect("every size was run in every layout")
    }
}
