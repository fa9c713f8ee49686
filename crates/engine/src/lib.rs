//! The engines: an LSM-tree, of whose options `PinK` is a preset, and the hash table it is compared
//! with.
//!
//! ```text
//!  lsm ....... Engine: Get, Put, Delete; memtable, version, search, flush, compaction, collection
//!  hash ...... HashEngine: the same commands on a flat table of slots in bucket pages
//!  front, memtable, operations, dump ... what both have: who may write, writes in memory, what
//!              clients ask and are told, what a power cut leaves
//!  store ..... pages and objects on a medium: extents, space, reads, writes, releases
//!  format .... bytes of pages, segments, objects, pointers
//!  sizing, options, stats, effort ... arithmetic and values
//! ```
//!
//! The engine stores pages on a [`Medium`] and knows nothing of flash. It is generic over it, so
//! the same code runs on a simulated drive and on real ones. It never reads a clock except through
//! `runtime`, and charges the processor time its work would take ([`CpuCosts`]).

#![forbid(unsafe_code)]

mod collector;
mod dump;
mod effort;
mod error;
mod format;
mod front;
#[cfg(test)]
mod fuzz_tests;
mod hash;
mod journal;
mod lsm;
mod memtable;
mod operations;
mod options;
mod planted;
mod records;
pub mod sizing;
mod stats;
mod store;

pub use effort::CpuCosts;
pub use error::{EngineError, Failure, OpenError};
pub use format::page::{PageFault, StoreId};
pub use format::value::Value;
pub use hash::HashEngine;
pub use hash::open::HashSetup;
pub use journal::{Durability, LogSync};
pub use lsm::Engine;
pub use lsm::accelerator::Accelerator;
pub use lsm::iterator::{EngineIterator, Step};
pub use lsm::open::Setup;
pub use lsm::snapshot::{SnapshotInfo, SnapshotMemory};
pub use operations::{Condition, Lookup, WriteOptions};
pub use options::{
    Filters, Granularity, HashOptions, IteratorOptions, MergeBy, Options, Surroundings,
};
pub use planted::{Fault, Planted};
pub use stats::{AcceleratorWork, EngineStats, HashStats, IteratorStats, MemoryUse, ReadCounts};
pub use store::Cpu;
pub use store::limits::max_value_bytes;
pub use store::medium::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};

/// Longest key, in bytes (SNIA KV API; NVMe drives take 16).
pub const MAX_KEY_BYTES: usize = 255;
/// Longest value, in bytes, where the medium allows it.
pub const MAX_VALUE_BYTES: u32 = 2 << 20;
