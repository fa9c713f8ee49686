//! The engine: an LSM-tree on a medium; `PinK` is a preset of its options. Its folders follow the
//! life of data:
//!
//! ```text
//!  engine ...... Engine: the state of a store and its public operations
//!  write ....... admission of writes, batches, memtables in use; memtable
//!  wal ......... the write-ahead log: writes that are not in the levels yet
//!  flush ....... memtables become segments of L1 or tables of L0
//!  version ..... levels and tables at one moment
//!  manifest .... edits of the version, and their commit
//!  read ........ Gets: search of the levels, caches, reads of pages
//!  iterate ..... snapshots, cursors, iterators
//!  compaction .. sliced (`PinK`), leveled (tables), manual
//!  gc .......... garbage collection of values and segments
//!  space ....... extents of the medium: priorities, writes, releases
//!  format ...... bytes of pages, objects, segments, tables
//!  recovery .... opening: from a dump, or from WAL and manifest
//!  repair ...... opening from the pages alone, if WAL or manifest are damaged
//!  hash ........ the hash table that the tree is compared with (feature `baselines`)
//!  medium ...... the interface to the storage below
//!  options, sizing, stats, status, memory, effort, error, operations ... values and arithmetic
//! ```
//!
//! The engine is generic over its [`Medium`] and knows nothing of flash. It reads the clock only
//! through `runtime`, and charges the processor time that its work would take ([`CpuCosts`]).

#![forbid(unsafe_code)]

mod compaction;
mod effort;
mod engine;
mod error;
mod flush;
mod format;
#[cfg(test)]
mod fuzz_tests;
mod gc;
#[cfg(feature = "baselines")]
mod hash;
#[doc(hidden)]
pub mod internals;
mod iterate;
mod manifest;
mod medium;
mod memory;
mod memtable;
mod operations;
mod options;
mod planted;
mod read;
mod recovery;
mod repair;
pub mod sizing;
mod space;
#[cfg(test)]
mod specimens;
mod stats;
mod status;
mod version;
mod wal;
mod write;

pub use compaction::sliced::accelerator::Accelerator;
pub use effort::CpuCosts;
pub use engine::Engine;
pub use error::{BatchSize, EngineError, Expired, Failure, OpenError, UsedUp, WantOf};
pub use format::object::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
pub use format::page::{PageFault, StoreId, said_len};
pub use format::value::Value;
#[cfg(feature = "baselines")]
pub use hash::{HashEngine, open::HashSetup, options::HashOptions, stats::HashStats};
pub use iterate::iterator::{EngineIterator, Step};
pub use iterate::snapshot::{SnapshotInfo, SnapshotMemory};
pub use iterate::snapshot_reads::{EngineSnapshot, IndexPart};
pub use medium::{ExtentId, Medium, MediumError, OpenedFor, PageNo, Shape, Stream};
pub use memory::{dumped_bytes_of_flush, dumped_bytes_of_lists};
pub use operations::{BatchOptions, Condition, Lookup, WriteOptions};
pub use options::surroundings::{FROZEN_MEMTABLES, Surroundings};
pub use options::tables::{Preemption, TableOptions};
pub use options::{ColumnOptions, Filters, Granularity, IteratorOptions, MergeBy, Options};
pub use planted::{Fault, Planted};
pub use read::get_outside::{Look, ReadOutside};
pub use recovery::open::Setup;
pub use recovery::parked::NotAtRest;
pub use repair::store_of;
pub use repair::tree::{IndexState, Salvage};
pub use space::limits::max_value_bytes;
pub use space::{Cpu, Lack};
pub use stats::{
    AcceleratorWork, CacheStats, EngineStats, IteratorStats, MemoryUse, ReadCounts, TableStats,
};
pub use wal::{Durability, LogSync};
pub use write::batch::BatchWrite;
