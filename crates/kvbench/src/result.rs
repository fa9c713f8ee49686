//! The result of a bench, as `--json` prints it. Field names are a public interface: change them
//! with care.
//!
//! Everything except `host` is a function of the inputs and the seed, byte for byte. This does not
//! hold for a store on files, which runs in real time.

mod device;

use std::collections::BTreeMap;

use blockbench::inputs::Inputs;
use engine::{CacheStats, TableStats};
use report::resolution;
use serde::{Deserialize, Serialize};
use stacks::limiter::LimiterStats;
use workload::LatencySummary;

use crate::ageing::AgeingResult;

pub use device::{
    AcceleratorResult, FlashResult, IndexResult, IteratorResult, LevelResult, Memory,
};

/// One run of a workload on a design on a device.
#[derive(Clone, Debug, Serialize)]
pub struct BenchResult {
    /// Version of this program.
    pub levelhead: &'static str,
    /// The configuration by name; absent if none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// Name of the design.
    pub design: String,
    /// Name of the device.
    pub device: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// The inputs: files with all keys, properties and options. Absent if the caller did not set
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// Number of loaded pairs.
    pub records: u64,
    /// Length of the longest key, in bytes.
    pub key_bytes: u64,
    /// Length of the longest value, in bytes.
    pub value_bytes: u64,
    /// Mean length of the loaded values, in bytes.
    pub mean_value_bytes: f64,
    /// The progress of an interrupted run: all numbers cover only the operations done. Absent if
    /// the run was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
    /// The clients as text.
    pub clients: String,
    /// The replayed trace; absent for a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceResult>,
    /// Latencies by kind of operation, from intended start to end. A `scan` is one operation. Its
    /// `seek` and each `next` (in bulk, each call) have their own entries and do not count as
    /// operations.
    #[serde(serialize_with = "resolution::all")]
    pub operations: BTreeMap<&'static str, LatencySummary>,
    /// Operations per second of virtual time.
    pub throughput_ops_per_second: f64,
    /// Delay of the run's last operation, in seconds. Absent for closed loops, and if the delay is
    /// at most a hundredth of the run's duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_s: Option<f64>,
    /// Number of Gets by flash reads; the index is the number of reads.
    pub flash_reads_per_get: Vec<u64>,
    /// Maximum number of flash reads that a Get of the run may take; null for a design without such
    /// a bound. If the bound changed with the levels, its largest value in the run.
    pub flash_reads_bound: Option<u32>,
    /// Smallest value of the bound in the run; absent if the bound did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash_reads_bound_least: Option<u32>,
    /// Flash bytes programmed per byte of keys and values written, including the load; null if
    /// nothing was written.
    pub write_amplification: Option<f64>,
    /// Flash bytes programmed per byte of keys and values written in the run; null if nothing was
    /// written.
    pub run_write_amplification: Option<f64>,
    /// Memory of the device at the end by use, in bytes.
    pub memory_bytes: Memory,
    /// Levels at the end, beginning with `first_level`; empty for a design without levels.
    pub levels: Vec<LevelResult>,
    /// Number of the first of the `levels`; absent if 1.
    #[serde(skip_serializing_if = "is_one")]
    pub first_level: u32,
    /// The hash table; absent for other designs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexResult>,
    /// Virtual time of the run, in seconds.
    pub virtual_seconds: f64,
    /// The load.
    pub load: LoadResult,
    /// The ageing of the drive between load and run; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ageing: Option<AgeingResult>,
    /// Work of the flash in the run.
    pub flash: FlashResult,
    /// Counters of caches for clients in the run; absent for a design without caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<CacheStats>,
    /// Counters of iterators in the run; absent if there were no iterators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterators: Option<IteratorResult>,
    /// Counters of tables in the run; absent for designs without tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<TableStats>,
    /// The host and the I/O of its store to the block drive; absent on a KV drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_drive: Option<BlockDriveResult>,
    /// Counters of limits on background I/O in the run; absent for designs without limits. The
    /// longest waits are those of load and run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiter: Option<LimiterStats>,
    /// Counters of windows in the run; absent without windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowsResult>,
    /// The store on files; absent for simulations. With a store on files all times are real, and
    /// numbers that only simulated flash has are empty or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreResult>,
    /// Verification of the values read against the values written.
    pub verification: Verification,
    /// The numbers that depend on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
}

/// A replayed trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceResult {
    /// Name of the file, without its directory.
    pub file: String,
    /// Name of the format.
    pub format: &'static str,
    /// Number of operations in the trace.
    pub operations: u64,
    /// Number of operations replayed.
    pub replayed: u64,
    /// Number of keys in the trace.
    pub keys: u64,
    /// Number of Gets in the trace.
    pub gets: u64,
    /// Number of Puts in the trace.
    pub puts: u64,
    /// Number of operations in the trace that get and may put.
    pub read_modify_writes: u64,
    /// Number of Deletes in the trace.
    pub deletes: u64,
    /// Operations in the trace that are not replayed, by type.
    pub left_out: BTreeMap<&'static str, u64>,
    /// Number of operations with an earlier recorded time than the previous one; they begin with
    /// it.
    pub out_of_order: u64,
    /// Number of column families in the trace, at most 256.
    pub column_families: u64,
    /// Recorded time from the beginning to the last operation, in seconds.
    pub span_s: f64,
    /// Speed of the replay in percent of the recorded speed; null if operations do not wait for
    /// their recorded times.
    pub speed_percent: Option<f64>,
    /// Number of Gets in the run that correctly found no value.
    pub not_found: u64,
}

/// A store on files. Bytes are those that drives read and wrote for this program, as counted by the
/// system; null if the system does not count them.
#[derive(Clone, Debug, Serialize)]
pub struct StoreResult {
    /// Number of directories.
    pub directories: u64,
    /// Durability of acknowledged writes in the run.
    pub durability: &'static str,
    /// Bytes read in the run.
    pub disk_bytes_read: Option<u64>,
    /// Bytes written in the run.
    pub disk_bytes_written: Option<u64>,
    /// Bytes written after the run, until background work ended.
    pub settling_disk_bytes_written: Option<u64>,
    /// Bytes written in the load, and until background work ended.
    pub load_disk_bytes_written: Option<u64>,
    /// Duration of background work after the load, in seconds.
    pub load_settle_seconds: f64,
    /// Duration of background work after the run, in seconds.
    pub settle_seconds: f64,
}

/// Windows on the sets of a host's data in the run. Pages are those of the host's store.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WindowsResult {
    /// The policy of windows.
    pub policy: &'static str,
    /// Pages read from `plm_cache`.
    pub cached_reads: u64,
    /// Client pages read from a set in its deterministic window.
    pub direct_reads: u64,
    /// Client pages rebuilt because their set was outside its window.
    pub rebuilt_reads: u64,
    /// `rebuilt_reads` as a share of cached, direct and rebuilt reads.
    pub rebuilt_share: f64,
    /// Violations: client pages read from a set outside its window.
    pub busy_reads: u64,
    /// Pages that internal tasks read in the slot of their set.
    pub slot_reads: u64,
    /// Pages that internal tasks read from sets outside their slot, or rebuilt.
    pub internal_reads: u64,
    /// Violations: writes that ended in a deterministic window.
    pub writes_in_dtwin: u64,
    /// Violations: sets found outside the window that they had entered, or that refused a window
    /// command.
    pub lost_windows: u64,
    /// Stripes acknowledged.
    pub stripes: u64,
    /// Stripes that waited for room in `plm_cache`.
    pub waits_for_room: u64,
    /// Total time that stripes waited for room, in seconds.
    pub waited_seconds: f64,
    /// Maximum of bytes in `plm_cache`.
    pub most_cached_bytes: u64,
    /// Number of slots.
    pub slots: u64,
    /// Slots that were longer than the shortest, because of their work.
    pub long_slots: u64,
    /// Slots that ended with writes still pending.
    pub unfinished_slots: u64,
    /// Total time in unavailable DTWIN, summed over all sets, in seconds.
    pub udt_seconds: f64,
    /// Total time in available NDWIN, in seconds.
    pub and_seconds: f64,
    /// Total time in unavailable NDWIN, in seconds.
    pub und_seconds: f64,
    /// Total time in lockdown, in seconds.
    pub lockdown_seconds: f64,
    /// Bytes written in slots, including parity and headers.
    pub slot_bytes: u64,
}

/// A host's store on a block drive. Blocks are of 4 KiB; blocks of parity are included.
#[derive(Clone, Debug, Serialize)]
pub struct BlockDriveResult {
    /// Name of the host.
    pub host: String,
    /// Preconditioning of the drive; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<&'static str>,
    /// Number of partitions of each of the drive's sets; absent if 1.
    #[serde(skip_serializing_if = "is_one")]
    pub partitions: u32,
    /// The layout of the store's data on the drive's sets.
    pub layout: &'static str,
    /// The place of the store's journal; absent if with the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<&'static str>,
    /// Blocks that the store read in the run.
    pub blocks_read: u64,
    /// Blocks that the store wrote in the run.
    pub blocks_written: u64,
    /// Blocks that the store wrote in the load.
    pub load_blocks_written: u64,
    /// Bytes written to the drive in the load per byte of keys and values; null if none were
    /// written.
    pub load_store_write_amplification: Option<f64>,
    /// Bytes written to the drive in the run per byte of keys and values; null if none were
    /// written.
    pub run_store_write_amplification: Option<f64>,
    /// Blocks programmed in the flash per block that the store wrote, including the load.
    pub drive_write_amplification: f64,
    /// Hedged reads in the run; absent without hedging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedges: Option<HedgesResult>,
    /// The time of Gets in the run; absent if there were no Gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gets: Option<GetTimesResult>,
}

/// The time of Gets in the host's store. A Get waits for its reads, or for the host's processor.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GetTimesResult {
    /// Mean duration of a Get, in microseconds.
    pub mean_us: f64,
    /// Share of the duration of all Gets that was spent waiting for storage.
    pub storage_share: f64,
    /// Number of Gets that count as the slowest: at least a thousandth of all.
    pub slowest: u64,
    /// Mean duration of the slowest Gets, in microseconds.
    pub slowest_mean_us: f64,
    /// Share of the duration of the slowest Gets that was spent waiting for storage.
    pub slowest_storage_share: f64,
}

/// Client reads that were issued a second time, from the other sets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HedgesResult {
    /// Delay of the second read, in microseconds.
    pub after_us: u32,
    /// Number of hedged reads.
    pub reads: u64,
    /// Hedged reads that the other sets answered first.
    pub won: u64,
}

/// The progress of an interrupted run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Interrupted {
    /// Number of operations done.
    pub done: u64,
    /// Number of operations planned.
    pub planned: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// The load phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadResult {
    /// Duration in virtual time, in seconds.
    pub virtual_seconds: f64,
    /// Puts per second of virtual time.
    pub throughput_ops_per_second: f64,
    /// Flash bytes programmed per byte of keys and values; null if none were written.
    pub write_amplification: Option<f64>,
    /// Pages read by class of I/O.
    pub pages_read: BTreeMap<String, u64>,
    /// Pages programmed by class of I/O.
    pub pages_programmed: BTreeMap<String, u64>,
    /// Work of the merge accelerator; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<AcceleratorResult>,
    /// Latency of the Puts.
    #[serde(serialize_with = "resolution::one")]
    pub put: LatencySummary,
}

/// Verification of the values read against the values written.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Number of Gets whose value was verified.
    pub checked: u64,
    /// Number of pairs that scans returned. Each pair is verified, and so is the gap before the
    /// next pair.
    pub checked_pairs: u64,
    /// Wrong answers of Gets and scans.
    pub mismatches: u64,
    /// The first wrong answer as text.
    pub first_mismatch: Option<String>,
    /// Number of operations that failed.
    pub errors: u64,
    /// The first error as text.
    pub first_error: Option<String>,
}

/// The numbers that depend on the machine.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// Wall time of load, ageing and run, in seconds.
    pub wall_seconds: f64,
    /// Wall time of the load, in seconds.
    pub load_wall_seconds: f64,
    /// Wall time of the run, in seconds.
    pub run_wall_seconds: f64,
    /// Operations of the run per second of its wall time.
    pub simulated_ops_per_wall_second: f64,
    /// Puts of the load per second of its wall time.
    pub loaded_per_wall_second: f64,
    /// Maximum memory of this program, in bytes.
    pub peak_rss_bytes: u64,
}
