//! What a bench gives, as `--json` prints it. Field names are the interface: change them with care.
//!
//! Everything but `host` is a function of the inputs and the seed: the same bytes every time. Of a store on files, in real
//! time, nothing is.

use std::collections::BTreeMap;

use engine::{CacheStats, IteratorStats, TableStats};
use limiter::LimiterStats;
use serde::{Deserialize, Serialize};
use workload::LatencySummary;

use crate::ageing::AgeingResult;
use crate::inputs::Inputs;
use crate::resolution;

/// One run of a workload on a design on a device.
#[derive(Clone, Debug, Serialize)]
pub struct BenchResult {
    /// Version of this program.
    pub levelhead: &'static str,
    /// The configuration that was named for design, device and what follows from them; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// Design by name.
    pub design: String,
    /// Device by name.
    pub device: String,
    /// Workload by name.
    pub workload: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// All that went in: files key by key, properties, options. Absent if whoever asked for the run did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// Pairs that were loaded.
    pub records: u64,
    /// Key length in bytes.
    pub key_bytes: u64,
    /// Longest value in bytes.
    pub value_bytes: u64,
    /// Mean length of the values that were loaded, in bytes.
    pub mean_value_bytes: f64,
    /// How far the run came, if it was interrupted: every number is of the operations done. Absent if
    /// it came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
    /// How operations were issued, in words.
    pub clients: String,
    /// The trace that was replayed; absent if a workload was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceResult>,
    /// Latencies by kind of operation, from intended start to end, of those that ran. A `scan` is one operation; its
    /// `seek` and each `next` (in bulk, each call) are listed besides and count as none.
    #[serde(serialize_with = "resolution::all")]
    pub operations: BTreeMap<&'static str, LatencySummary>,
    /// Operations per second of virtual time.
    pub throughput_ops_per_second: f64,
    /// How late the run's last operation began, in seconds; absent where that was within a hundredth of the time it took, and
    /// of closed loops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_s: Option<f64>,
    /// Gets by flash reads; the index is the number of reads.
    pub flash_reads_per_get: Vec<u64>,
    /// Flash reads that no Get of the run might exceed; null for a design without such a bound. Where the bound changed with
    /// the levels this is the largest that was in force.
    pub flash_reads_bound: Option<u32>,
    /// The least that was in force; absent where the bound did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash_reads_bound_least: Option<u32>,
    /// Flash bytes programmed per byte of keys and values written, load included; absent if
    /// nothing was written.
    pub write_amplification: Option<f64>,
    /// The same for the run alone.
    pub run_write_amplification: Option<f64>,
    /// Memory of the device by use, in bytes, at the end.
    pub memory_bytes: Memory,
    /// Levels at the end, L1 first; none for a design without levels.
    pub levels: Vec<LevelResult>,
    /// The number of the first of them; not told if it is 1.
    #[serde(skip_serializing_if = "is_one")]
    pub first_level: u32,
    /// The hash table, for designs with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexResult>,
    /// Virtual time of the run, in seconds.
    pub virtual_seconds: f64,
    /// The load.
    pub load: LoadResult,
    /// How the drive was brought to its steady state between load and run; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ageing: Option<AgeingResult>,
    /// The flash's work during the run.
    pub flash: FlashResult,
    /// What the caches of a design had for clients in the run; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<CacheStats>,
    /// What iterators did in the run, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterators: Option<IteratorResult>,
    /// What became of tables in the run, for designs whose levels are made of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<TableStats>,
    /// The host, and what its store did to the drive, where that is a block drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_drive: Option<BlockDriveResult>,
    /// What limits on background I/O did in the run, for designs with any. The longest waits are of load and run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiter: Option<LimiterStats>,
    /// What windows did in the run, where a volume's members are taken through them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowsResult>,
    /// The store on files, if it is one: then all times are real, and what only simulated flash can tell is empty or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreResult>,
    /// Whether what was read is what was written.
    pub verification: Verification,
    /// What depends on the machine; everything else does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
}

/// A trace that was replayed.
#[derive(Clone, Debug, Serialize)]
pub struct TraceResult {
    /// The last part of its path.
    pub file: String,
    /// Its format.
    pub format: &'static str,
    /// Operations in it.
    pub operations: u64,
    /// Operations of it that ran.
    pub replayed: u64,
    /// Keys in it.
    pub keys: u64,
    /// Gets in it.
    pub gets: u64,
    /// Puts in it.
    pub puts: u64,
    /// Operations in it that get and may put.
    pub read_modify_writes: u64,
    /// Deletes in it.
    pub deletes: u64,
    /// Operations in it that nothing was done for, by what they are.
    pub left_out: BTreeMap<&'static str, u64>,
    /// Operations that were recorded at an earlier time than the one before them, and were begun with it.
    pub out_of_order: u64,
    /// Column families in it, 256 at most.
    pub column_families: u64,
    /// From its beginning to its last operation, in seconds as recorded.
    pub span_s: f64,
    /// How fast it was replayed, in percent of the recorded speed; null where operations followed each other as fast as they
    /// might.
    pub speed_percent: Option<f64>,
    /// Gets of the run that found nothing, and were right to.
    pub not_found: u64,
}

/// A store on files. Bytes are those that this program has had drives read and write, as the system counts them; absent where
/// it does not.
#[derive(Clone, Debug, Serialize)]
pub struct StoreResult {
    /// How many directories it is over.
    pub directories: u64,
    /// When writes of the run were acknowledged.
    pub durability: &'static str,
    /// Bytes read in the run.
    pub disk_bytes_read: Option<u64>,
    /// Bytes written in the run.
    pub disk_bytes_written: Option<u64>,
    /// Bytes written after it, until nothing was left to do in the background.
    pub settling_disk_bytes_written: Option<u64>,
    /// Bytes written in the load and until it had settled.
    pub load_disk_bytes_written: Option<u64>,
    /// How long background work went on after the load, in seconds.
    pub load_settle_seconds: f64,
    /// The same after the run.
    pub settle_seconds: f64,
}

/// Windows on the sets of a host's data, in the run. Pages are the host's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WindowsResult {
    /// How they are kept.
    pub policy: &'static str,
    /// Pages read from `plm_cache`.
    pub cached_reads: u64,
    /// Pages that clients read from a set in its deterministic window.
    pub direct_reads: u64,
    /// Pages of clients that were rebuilt because their set was outside its window.
    pub rebuilt_reads: u64,
    /// The share of those among all three.
    pub rebuilt_share: f64,
    /// Against the rules: pages that clients read from a set outside its window.
    pub busy_reads: u64,
    /// Pages that internal tasks read in the slot of their set.
    pub slot_reads: u64,
    /// Pages that they read elsewhere.
    pub internal_reads: u64,
    /// Against the rules: writes that ended in a deterministic window.
    pub writes_in_dtwin: u64,
    /// Against the rules: sets found outside the window that they were taken to.
    pub lost_windows: u64,
    /// Stripes written, and those of them that waited for room in `plm_cache`.
    pub stripes: u64,
    /// How many waited for room.
    pub waits_for_room: u64,
    /// How long, together, in seconds.
    pub waited_seconds: f64,
    /// Most bytes in `plm_cache`.
    pub most_cached_bytes: u64,
    /// Slots.
    pub slots: u64,
    /// Those that were longer than the shortest.
    pub long_slots: u64,
    /// Those that ended with writes left to do.
    pub unfinished_slots: u64,
    /// Time in UDT, AND, UND and lockdown, all sets together, in seconds.
    pub udt_seconds: f64,
    /// Available NDWIN.
    pub and_seconds: f64,
    /// Unavailable NDWIN.
    pub und_seconds: f64,
    /// Lockdown.
    pub lockdown_seconds: f64,
    /// Bytes written in slots, parity and headers included.
    pub slot_bytes: u64,
}

/// A host's store on a block drive. Blocks have 4 KiB; those of parity count.
#[derive(Clone, Debug, Serialize)]
pub struct BlockDriveResult {
    /// Host by name.
    pub host: String,
    /// What happened to the drive before; not told if nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<&'static str>,
    /// Into how many partitions each of the drive's sets is cut; not told if it is not.
    #[serde(skip_serializing_if = "is_one")]
    pub partitions: u32,
    /// How the store lies on the drive's sets.
    pub layout: &'static str,
    /// Where the store's journal lies, if not beside its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<&'static str>,
    /// Blocks that the store read in the run.
    pub blocks_read: u64,
    /// Blocks that it wrote in the run.
    pub blocks_written: u64,
    /// Blocks that it wrote in the load.
    pub load_blocks_written: u64,
    /// Bytes written to the drive per byte of keys and values, in the load.
    pub load_store_write_amplification: Option<f64>,
    /// The same in the run.
    pub run_store_write_amplification: Option<f64>,
    /// Blocks' worth of flash programmed for each block that the store wrote, load included.
    pub drive_write_amplification: f64,
    /// Hedged reads in the run, if reads are hedged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedges: Option<HedgesResult>,
    /// Where the time of Gets went in the run, of designs that tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gets: Option<GetTimesResult>,
}

/// Where the time of Gets went, from their begin in the store to their end: reads that they waited for, or the host's
/// processor.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GetTimesResult {
    /// Mean of all.
    pub mean_us: f64,
    /// Share of all their time that was waiting for storage.
    pub storage_share: f64,
    /// How many the slowest thousandth is.
    pub slowest: u64,
    /// Their mean.
    pub slowest_mean_us: f64,
    /// Share of their time that was waiting for storage.
    pub slowest_storage_share: f64,
}

/// Client reads that were begun a second time, from the other sets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HedgesResult {
    /// After how many microseconds.
    pub after_us: u32,
    /// How many.
    pub reads: u64,
    /// Those that came from the other sets first.
    pub won: u64,
}

/// How far a run came that was interrupted.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Interrupted {
    /// Operations that were done.
    pub done: u64,
    /// Operations that were planned.
    pub planned: u64,
}

/// Memory of the device by use, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Memory {
    /// Level lists.
    pub level_lists: u64,
    /// Prefix arrays.
    pub prefixes: u64,
    /// Range pointers.
    pub range_pointers: u64,
    /// Pinned meta segments.
    pub pinned_segments: u64,
    /// Directory of bucket pages.
    pub directory: u64,
    /// Bloom filters.
    pub filters: u64,
    /// Caches.
    pub caches: u64,
    /// Sum of the above: what the budget bounds, but for a flush that goes beyond it.
    pub index: u64,
    /// The budget. Levels are sized to it, and puts wait while the index takes more.
    pub index_budget: u64,
    /// Most of the index at any time. A flush brings the entries of a whole memtable into it at once, and may go beyond the
    /// budget by what those take, until compactions have moved that to flash.
    pub index_peak: u64,
    /// Memtables, outside the budget.
    pub memtables: u64,
    /// Pages that compactions have in hand, outside the budget.
    pub compaction_buffers: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// One level.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LevelResult {
    /// Meta segments in it.
    pub segments: u64,
    /// Entries in it.
    pub entries: u64,
    /// Segments it may have.
    pub capacity_segments: u64,
    /// Whether it is kept in memory.
    pub is_pinned: bool,
}

/// A hash table: its state at the end, and its work during the run.
#[derive(Clone, Debug, Serialize)]
pub struct IndexResult {
    /// Bucket pages of the table.
    pub bucket_pages: u32,
    /// Slots of the table.
    pub slots: u64,
    /// Slots in use.
    pub keys: u64,
    /// Bucket pages in memory.
    pub cached_pages: u64,
    /// Those of them that differ from the flash.
    pub dirty_pages: u64,
    /// Most slots that a lookup may have to look at.
    pub longest_search: u32,
    /// Looks at bucket pages for clients that found them in memory.
    pub bucket_hits: u64,
    /// Those that did not.
    pub bucket_misses: u64,
    /// The same for flushes and garbage collection.
    pub background_hits: u64,
    /// The same for flushes and garbage collection.
    pub background_misses: u64,
    /// Bucket pages written to make room in memory.
    pub dirty_evictions: u64,
    /// Those of them that a client's read waited for.
    pub dirty_evictions_in_reads: u64,
    /// Objects of other keys that clients read because the signatures are the same.
    pub false_matches: u64,
    /// Lookups of clients that went to the table, by slots looked at; the index is their number.
    pub slots_per_lookup: Vec<u64>,
}

/// The load phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadResult {
    /// Virtual time, in seconds.
    pub virtual_seconds: f64,
    /// Puts per second of virtual time.
    pub throughput_ops_per_second: f64,
    /// Flash bytes programmed per byte of keys and values.
    pub write_amplification: Option<f64>,
    /// Pages read by class of I/O.
    pub pages_read: BTreeMap<String, u64>,
    /// Pages programmed by class of I/O.
    pub pages_programmed: BTreeMap<String, u64>,
    /// The merge accelerator's work; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<AcceleratorResult>,
    /// Latency of its Puts.
    #[serde(serialize_with = "resolution::one")]
    pub put: LatencySummary,
}

/// The flash's work.
#[derive(Clone, Debug, Serialize)]
pub struct FlashResult {
    /// Pages read by class of I/O.
    pub pages_read: BTreeMap<&'static str, u64>,
    /// Pages programmed by class of I/O.
    pub pages_programmed: BTreeMap<&'static str, u64>,
    /// The merge accelerator's work; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<AcceleratorResult>,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Share of the time that dies were occupied.
    pub die_utilisation: f64,
    /// Client reads by what occupied their die when they came. A block drive does not know who reads: those of a host's
    /// background tasks are among them.
    pub client_reads_behind: BTreeMap<&'static str, u64>,
    /// How long these waited for their die on average, in microseconds.
    pub client_reads_waited_us: BTreeMap<&'static str, f64>,
    /// Client reads served by another client's read of the same page.
    pub client_reads_shared: u64,
    /// Meta segments that clients read and that did not have their key.
    pub vain_meta_reads: u64,
    /// Programs and erases suspended for a read.
    pub suspends: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Compactions from each level, L1 first.
    pub compactions: Vec<u64>,
    /// Extents collected or released.
    pub extents_collected: u64,
    /// Objects that garbage collection re-inserted.
    pub objects_moved: u64,
    /// Writes that waited for room.
    pub write_stalls: u64,
    /// Time they waited in total, in seconds of virtual time.
    pub write_stall_seconds: f64,
}

/// What a merge accelerator did in the run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AcceleratorResult {
    /// Merges it did.
    pub merges: u64,
    /// Merges left to the processor.
    pub left_to_processor: u64,
    /// Bytes of its inputs.
    pub merged_bytes: u64,
    /// Pages written for it alone.
    pub pages_copied: u64,
    /// Time it was at work, in seconds of virtual time.
    pub busy_seconds: f64,
}

/// What iterators did, in counts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IteratorResult {
    /// Their counters.
    #[serde(flatten)]
    pub counts: IteratorStats,
    /// Snapshots that were taken away for want of memory or space.
    pub snapshots_expired: u64,
    /// Memory of snapshots and buffers at the end, in bytes.
    pub memory: u64,
}

/// Whether what was read is what was written.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Gets whose value was checked.
    pub checked: u64,
    /// Pairs that scans gave, each checked, and what lies between two as well.
    pub checked_pairs: u64,
    /// Answers that are wrong, of gets and scans.
    pub mismatches: u64,
    /// The first of them, in words.
    pub first_mismatch: Option<String>,
    /// Operations that failed.
    pub errors: u64,
    /// The first failure, in words.
    pub first_error: Option<String>,
}

/// What depends on the machine.
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
    /// Most memory this program had, in bytes.
    pub peak_rss_bytes: u64,
}
