//! Results of one run of Vigil-KV's experiments, as plain values that can be saved in a file.

use kvbench::result::{BenchResult, GetTimesResult, WindowsResult};
use kvbench::{BenchOutcome, MemorySample};
use serde::{Deserialize, Serialize};
use workload::{LatencySummary, OpKind, RunReport};

use crate::distribution::Distribution;

/// Results of one workload with one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub name: String,
    pub get: LatencySummary,
    pub put: LatencySummary,
    pub scan: LatencySummary,
    pub gets: Distribution,
    pub scans: Distribution,
    /// The longest Get that ended in each second of the run, in microseconds; 0 if none ended.
    pub longest_get_us: Vec<f64>,
    /// Counters of the windows; `None` without windows.
    pub windows: Option<Windowed>,
    /// Bytes of tables that flushes wrote.
    pub flushed_bytes: u64,
    /// Bytes of tables that compactions wrote.
    pub compacted_bytes: u64,
    /// Bytes in L0 at the end of the run.
    pub l0_bytes: u64,
    /// Share of index pages that were found in the block cache.
    pub cache_hits: f64,
    /// Bytes written to the drive per byte of pairs that were put.
    pub written: f64,
    /// Blocks of 4 KiB programmed in flash per block written to the drive.
    pub drive_written: f64,
    /// Memory of the index and of caches, in bytes.
    pub index_bytes: u64,
    /// Blocks of 4 KiB read from the drive per operation, including reads of background tasks.
    pub blocks_per_operation: f64,
    /// Parts of the time of Gets.
    pub get_times: GetTimes,
    /// Flash reads by the operation that occupied their die, including reads of compactions.
    pub met: Met,
    /// Total time that writes were stalled, in seconds.
    pub stalled_seconds: f64,
    /// Memory over time: seconds, bytes of memtables, bytes in `plm_cache`. Empty unless the run
    /// samples memory.
    pub memory: Vec<(f64, u64, u64)>,
}

impl Cell {
    pub(super) fn of(
        name: String,
        page_bytes: u64,
        operations: u64,
        outcome: &BenchOutcome,
    ) -> Self {
        let (run, result) = (&outcome.run, &outcome.result);
        let drive = result.block_drive.as_ref().expect("it runs on a block drive");
        let summary = |kind| run.summary(kind).unwrap_or_default();
        let tables = result.tables.unwrap_or_default();
        let l0_pages = result.levels.first().map_or(0, |level| level.segments);
        Self {
            name,
            get: summary(OpKind::Get),
            put: summary(OpKind::Put),
            scan: summary(OpKind::Scan),
            gets: Distribution::of(run.histogram(OpKind::Get)),
            scans: Distribution::of(run.histogram(OpKind::Scan)),
            longest_get_us: longest_by_second(run),
            windows: result.windows.as_ref().map(Windowed::of),
            flushed_bytes: tables.flushed_pages * page_bytes,
            compacted_bytes: tables.written_pages * page_bytes,
            l0_bytes: l0_pages * page_bytes,
            cache_hits: cache_hits(result),
            written: drive.run_store_write_amplification.unwrap_or(0.0),
            drive_written: drive.drive_write_amplification,
            index_bytes: result.memory_bytes.index,
            blocks_per_operation: drive.blocks_read as f64 / operations as f64,
            get_times: drive.gets.as_ref().map(GetTimes::of).unwrap_or_default(),
            met: Met::of(result),
            stalled_seconds: result.flash.write_stall_seconds,
            memory: outcome.samples.iter().map(sampled).collect(),
        }
    }

    /// Returns the share of Gets among Gets and Puts.
    pub(crate) fn get_share(&self) -> f64 {
        let (gets, puts) = (self.get.count as f64, self.put.count as f64);
        gets / (gets + puts).max(1.0)
    }
}

fn sampled(sample: &MemorySample) -> (f64, u64, u64) {
    (sample.at.as_secs_f64(), sample.memtables, sample.plm_cache)
}

fn longest_by_second(run: &RunReport) -> Vec<f64> {
    let mut seconds: Vec<f64> = Vec::new();
    for window in &run.timeline.windows {
        let second = window.start.saturating_since(run.started).as_secs_f64() as usize;
        seconds.resize(seconds.len().max(second + 1), 0.0);
        seconds[second] = seconds[second].max(window.gets.max_us);
    }
    seconds
}

fn cache_hits(result: &BenchResult) -> f64 {
    let caches = result.caches.unwrap_or_default();
    caches.page_hits as f64 / (caches.page_hits + caches.page_misses).max(1) as f64
}

/// Counters of the windows that the report uses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Windowed {
    pub busy_reads: u64,
    pub writes_in_dtwin: u64,
    pub slots: u64,
    pub unfinished_slots: u64,
    pub rebuilt_share: f64,
    pub most_cached_bytes: u64,
    /// Stripes that waited for room in `plm_cache`.
    pub waits_for_room: u64,
    /// Pages that internal tasks read in the slot of the set, and outside it.
    pub slot_reads: u64,
    pub internal_reads: u64,
}

impl Windowed {
    fn of(result: &WindowsResult) -> Self {
        Self {
            busy_reads: result.busy_reads,
            writes_in_dtwin: result.writes_in_dtwin,
            slots: result.slots,
            unfinished_slots: result.unfinished_slots,
            rebuilt_share: result.rebuilt_share,
            most_cached_bytes: result.most_cached_bytes,
            waits_for_room: result.waits_for_room,
            slot_reads: result.slot_reads,
            internal_reads: result.internal_reads,
        }
    }
}

/// Mean time and storage share of all Gets and of the slowest thousandth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GetTimes {
    pub mean_us: f64,
    pub storage_share: f64,
    pub slowest_mean_us: f64,
    pub slowest_storage_share: f64,
}

impl GetTimes {
    fn of(result: &GetTimesResult) -> Self {
        Self {
            mean_us: result.mean_us,
            storage_share: result.storage_share,
            slowest_mean_us: result.slowest_mean_us,
            slowest_storage_share: result.slowest_storage_share,
        }
    }
}

/// Share of flash reads that found their die occupied, and their mean wait in microseconds, by
/// operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Met {
    pub read: (f64, f64),
    pub program: (f64, f64),
    pub erase: (f64, f64),
}

impl Met {
    fn of(result: &BenchResult) -> Self {
        let (counts, waits) =
            (&result.flash.client_reads_behind, &result.flash.client_reads_waited_us);
        let all = counts.values().sum::<u64>().max(1) as f64;
        let of = |name| (counts[name] as f64 / all, waits[name]);
        Self { read: of("read"), program: of("program"), erase: of("erase") }
    }
}
