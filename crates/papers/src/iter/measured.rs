//! Results of IterKVSSD's experiments, as plain values for the report.

use hdrhistogram::Histogram;
use report::units::bytes_text;
use serde::{Deserialize, Serialize};
use workload::LatencySummary;

use super::size::SIZES;
use crate::distribution;
use crate::words::micros;

/// Location of pairs that are neighbours in key order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Layout {
    /// Far apart, because the pairs were written in random order.
    Random,
    /// Side by side, because the pairs were written in key order.
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

    /// Returns the insert order of a workload that writes pairs in this layout.
    pub(super) fn insert_order(self) -> &'static str {
        match self {
            Self::Random => "hashed",
            Self::Sequential => "ordered",
        }
    }
}

/// Form of the index, and the way to read a unit of the index that was not prefetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Index {
    /// Segments of one page.
    Pages,
    /// Tables as in firmware of the same group, read in the order of a Get: filter, keys,
    /// addresses.
    Tables,
    /// Tables, read without the filter.
    WithoutFilter,
    /// Tables with filters. Tables of all levels have as many entries as those of the first level.
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

/// One run, with a degree and a scan length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub degree: u32,
    pub length: u64,
    pub bytes_per_second: f64,
    pub seek: LatencySummary,
    pub next: LatencySummary,
}

/// Long scans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LongRun {
    /// Latencies of the Nexts, in nanoseconds.
    #[serde(with = "distribution::of_histogram")]
    pub next: Histogram<u64>,
    /// Segments read while a Next waited, because they had not been prefetched.
    pub index_reads: u64,
    /// Prefetched segments that a Next still had to wait for.
    pub late_prefetches: u64,
}

/// Long scans without and with index prefetch, each without value prefetch and with the highest
/// degree (`ahead`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LongRuns {
    pub baseline: LongRun,
    pub with_index: LongRun,
    pub ahead: LongRun,
    pub ahead_with_index: LongRun,
}

impl LongRuns {
    /// Returns the runs without and with index prefetch. `is_ahead` selects those with value
    /// prefetch.
    pub(super) fn both(&self, is_ahead: bool) -> (&LongRun, &LongRun) {
        if is_ahead {
            (&self.ahead, &self.ahead_with_index)
        } else {
            (&self.baseline, &self.with_index)
        }
    }

    /// Returns the share of Nexts that wait for the index without index prefetch.
    pub(super) fn share_of_waits(&self) -> f64 {
        self.baseline.index_reads as f64 / self.baseline.next.len().max(1) as f64
    }

    /// Returns the quantile in the middle of the Nexts that wait for the index.
    pub(super) fn where_units_are_met(&self) -> f64 {
        1.0 - self.share_of_waits() / 2.0
    }

    /// Returns the latency of Next at a quantile without index prefetch over the latency with it.
    pub(super) fn ratio(&self, quantile: f64, is_ahead: bool) -> f64 {
        let (without, with) = self.both(is_ahead);
        without.next_us(quantile) / with.next_us(quantile)
    }
}

/// Long scans of 4 KiB values with a form of the index.
#[derive(Serialize, Deserialize)]
pub(crate) struct Tail {
    pub index: Index,
    pub layout: Layout,
    pub runs: LongRuns,
    /// Pages of each phase of reading a full table of the last level, or a segment.
    pub phases: Vec<u32>,
    /// Write cost of the index: bytes of the index per byte of pairs, during the load.
    pub index_bytes_per_byte: f64,
}

/// Gains of value prefetch with 16 KiB values and other times of the board.
#[derive(Serialize, Deserialize)]
pub(crate) struct Swept {
    /// Time of firmware and host, in microseconds.
    pub fixed_us: f64,
    /// Time of a page read, in microseconds; `None` for the time of the profile.
    #[serde(default)]
    pub read_us: Option<f64>,
    pub layout: Layout,
    /// Runs by degree.
    pub runs: Vec<Run>,
    /// Maximum gain by arithmetic.
    pub most: f64,
}

impl Swept {
    /// Returns the times as text.
    pub(super) fn times(&self) -> String {
        let fixed = micros(self.fixed_us);
        self.read_us.map_or(fixed.clone(), |read_us| format!("{fixed}, tR {}", micros(read_us)))
    }

    /// Returns the run with the highest gain, and the gain.
    pub(super) fn best(&self) -> (&Run, f64) {
        let base = self.runs[0].bytes_per_second;
        let best =
            self.runs.iter().max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
        let best = best.expect("there are runs");
        (best, best.bytes_per_second / base)
    }
}

impl LongRun {
    /// Returns a quantile of the latencies of Nexts, in microseconds.
    pub(super) fn next_us(&self, quantile: f64) -> f64 {
        self.next.value_at_quantile(quantile) as f64 / 1e3
    }

    /// Returns the latency of the longest Next, in microseconds.
    pub(super) fn longest_next_us(&self) -> f64 {
        self.next.max() as f64 / 1e3
    }
}

/// Results of one stand.
#[derive(Serialize, Deserialize)]
pub(crate) struct OnStand {
    pub size: u64,
    pub layout: Layout,
    /// Runs by degree, at one scan length.
    pub by_degree: Vec<Run>,
    /// Runs by scan length, without value prefetch and with the highest degree.
    pub by_length: Vec<Run>,
    /// Long scans without and with index prefetch.
    pub baseline: LongRun,
    pub with_index: LongRun,
}

impl OnStand {
    /// Returns the value size and the layout.
    pub(super) fn name(&self) -> String {
        format!("{} {}", bytes_text(self.size), self.layout.name())
    }

    /// Returns each degree with its throughput over the throughput without value prefetch.
    pub(super) fn gains(&self) -> impl Iterator<Item = (u32, f64)> {
        let base = self.by_degree[0].bytes_per_second;
        self.by_degree.iter().map(move |run| (run.degree, run.bytes_per_second / base))
    }

    /// Returns the throughput at a degree by scan length, in ascending order of length.
    pub(super) fn by_length_at(&self, degree: u32) -> Vec<f64> {
        let runs = self.by_length.iter().filter(|run| run.degree == degree);
        runs.map(|run| run.bytes_per_second).collect()
    }

    /// Returns the gain of the best degree.
    pub(super) fn most_gained(&self) -> f64 {
        self.gains().map(|(_, gain)| gain).fold(0.0, f64::max)
    }
}

/// Memory when the `n`th iterator is open, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct VersionMemory {
    /// Descriptors in the pool that do not belong to the current version, and chunks of references.
    pub pooled: u64,
    /// Memtables that only snapshots hold.
    pub memtables: u64,
    /// Memory of a summary for each iterator, at the published 44 bytes per table.
    pub summaries: u64,
}

/// Results of all experiments.
pub(crate) struct Measured {
    pub stands: Vec<OnStand>,
    /// By index and layout.
    pub tails: Vec<Tail>,
    /// By times of the board and layout.
    pub swept: Vec<Swept>,
    /// Segments of the store in the experiment on version memory.
    pub segments: u64,
    pub versions: Vec<VersionMemory>,
}

impl Measured {
    /// Returns the value size with the highest gain in a layout, and the gain.
    pub(super) fn most_gained(&self, layout: Layout) -> (u64, f64) {
        let gains = SIZES.map(|size| (size, self.stand(size, layout).most_gained()));
        gains.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are sizes")
    }

    /// Returns the long scans with a form of the index in a layout.
    pub(super) fn tail(&self, index: Index, layout: Layout) -> &Tail {
        let mut tails = self.tails.iter();
        let tail = tails.find(|tail| tail.index == index && tail.layout == layout);
        tail.expect("every index was run in every layout")
    }

    /// Returns the results of the stand with a value size and a layout.
    pub(super) fn stand(&self, size: u64, layout: Layout) -> &OnStand {
        let mut stands = self.stands.iter();
        let stand = stands.find(|stand| stand.size == size && stand.layout == layout);
        stand.expect("every size was run in every layout")
    }
}
