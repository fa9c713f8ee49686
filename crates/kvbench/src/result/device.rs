//! The part of a result about the inside of a device: memory, index, flash and iterators.

use std::collections::BTreeMap;

use engine::IteratorStats;
use serde::{Deserialize, Serialize};

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
    /// Sum of the fields above. The budget limits it, except during a flush.
    pub index: u64,
    /// The budget. Levels are sized for it, and Puts wait while the index exceeds it.
    pub index_budget: u64,
    /// Maximum of `index`. A flush inserts the entries of a whole memtable at once and may exceed
    /// the budget by their size, until compactions have moved as much to flash.
    pub index_peak: u64,
    /// Memtables, outside the budget.
    pub memtables: u64,
    /// Pages held by compactions, outside the budget.
    pub compaction_buffers: u64,
}

/// A level.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LevelResult {
    /// Number of meta segments; in a tree of tables, number of pages.
    pub segments: u64,
    /// Number of entries.
    pub entries: u64,
    /// Maximum number of segments.
    pub capacity_segments: u64,
    /// Whether the level is pinned in memory.
    pub is_pinned: bool,
}

/// A hash table: its state at the end, and its work in the run.
#[derive(Clone, Debug, Serialize)]
pub struct IndexResult {
    /// Number of bucket pages.
    pub bucket_pages: u32,
    /// Number of slots.
    pub slots: u64,
    /// Number of slots in use.
    pub keys: u64,
    /// Number of bucket pages in memory.
    pub cached_pages: u64,
    /// Number of bucket pages in memory that differ from the flash.
    pub dirty_pages: u64,
    /// Maximum number of slots that a lookup may examine.
    pub longest_search: u32,
    /// Accesses of clients to bucket pages in memory.
    pub bucket_hits: u64,
    /// Accesses of clients to bucket pages that were not in memory.
    pub bucket_misses: u64,
    /// Accesses of flushes and garbage collection to bucket pages in memory.
    pub background_hits: u64,
    /// Accesses of flushes and garbage collection to bucket pages that were not in memory.
    pub background_misses: u64,
    /// Bucket pages written to make room in memory.
    pub dirty_evictions: u64,
    /// Bucket pages written to make room in memory while a client's read waited.
    pub dirty_evictions_in_reads: u64,
    /// Objects of other keys that clients read because the signatures are equal.
    pub false_matches: u64,
    /// Number of client lookups in the table by slots examined; the index is the number of slots.
    pub slots_per_lookup: Vec<u64>,
}

/// Work of the flash and of the background tasks above it.
#[derive(Clone, Debug, Serialize)]
pub struct FlashResult {
    /// Pages read by class of I/O.
    pub pages_read: BTreeMap<&'static str, u64>,
    /// Pages programmed by class of I/O.
    pub pages_programmed: BTreeMap<&'static str, u64>,
    /// Work of the merge accelerator; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<AcceleratorResult>,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Share of the time that dies were busy.
    pub die_utilisation: f64,
    /// Number of client reads by the operation that occupied their die on arrival. A block drive
    /// cannot tell client reads from reads of a host's background tasks, which are included.
    pub client_reads_behind: BTreeMap<&'static str, u64>,
    /// Mean time that these reads waited for their die, in microseconds.
    pub client_reads_waited_us: BTreeMap<&'static str, f64>,
    /// Client reads that were served by another client's read of the same page.
    pub client_reads_shared: u64,
    /// Meta segments that clients read without finding the key.
    pub vain_meta_reads: u64,
    /// Programs and erases suspended for a read.
    pub suspends: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Number of compactions from each level, in the order of
    /// [`BenchResult::levels`](super::BenchResult::levels).
    pub compactions: Vec<u64>,
    /// Extents collected or released.
    pub extents_collected: u64,
    /// Objects re-inserted by garbage collection.
    pub objects_moved: u64,
    /// Writes that waited for space.
    pub write_stalls: u64,
    /// Total time that writes waited for space, in seconds of virtual time.
    pub write_stall_seconds: f64,
}

/// Work of a merge accelerator in the load or in the run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AcceleratorResult {
    /// Number of merges done.
    pub merges: u64,
    /// Number of merges left to the processor.
    pub left_to_processor: u64,
    /// Bytes of the inputs.
    pub merged_bytes: u64,
    /// Pages written only as input for the accelerator.
    pub pages_copied: u64,
    /// Time in use, in seconds of virtual time.
    pub busy_seconds: f64,
}

/// Counters of iterators.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IteratorResult {
    /// The counters.
    #[serde(flatten)]
    pub counts: IteratorStats,
    /// Snapshots that expired for lack of memory or space.
    pub snapshots_expired: u64,
    /// Memory of snapshots and buffers at the end, in bytes.
    pub memory: u64,
}
