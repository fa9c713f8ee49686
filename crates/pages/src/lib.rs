//! The page layer: the parts of the engine that all indexes share.
//!
//! ```text
//!  front, memtable, operations ... write path: admission, memtables, types of client operations
//!  collector ..................... the part of garbage collection that all indexes share
//!  journal, records, dump ........ state that survives a power cut: log and manifest, or a dump
//!  salvage ....................... recovery from the pages alone, where the journal is damaged
//!  store ......................... pages and objects on a medium: extents, space, reads, writes
//!  format ........................ bytes of pages, objects, pointers
//!  medium ........................ the interface to the storage below
//!  options, stats, effort, error . plain values
//! ```
//!
//! An index owns a [`store::PageStore`] and a [`front::Front`]. It implements [`front::Index`] and
//! [`collector::Collected`] for decisions that only the index can make. It changes state only by
//! edits, of which [`store::changes::Changes`] is the part common to all indexes. This crate knows
//! no specific index.
//!
//! The items re-exported here are for code that implements a medium, creates a store or is a client
//! of one; the modules are for indexes. The store is generic over its [`Medium`] and knows nothing
//! of flash. It reads the clock only through `runtime`, and charges the processor time that its
//! work would take ([`CpuCosts`]).

#![forbid(unsafe_code)]

pub mod collector;
pub mod dump;
pub mod effort;
pub mod error;
pub mod format;
pub mod front;
#[cfg(test)]
mod fuzz_tests;
pub mod journal;
pub mod medium;
pub mod memtable;
pub mod operations;
pub mod options;
pub mod parked;
pub mod planted;
mod records;
pub mod salvage;
#[cfg(any(test, feature = "test-hooks"))]
pub mod specimens;
pub mod stats;
pub mod store;

pub use effort::CpuCosts;
pub use error::{EngineError, Expired, Failure, OpenError, WantOf};
pub use format::object::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
pub use format::page::{PageFault, StoreId};
pub use format::value::Value;
pub use front::batch::{BatchSize, BatchWrite};
pub use journal::{Durability, LogSync};
pub use medium::{ExtentId, Medium, MediumError, OpenedFor, PageNo, Shape, Stream};
pub use operations::{BatchOptions, Condition, Lookup, UsedUp, WriteOptions};
pub use options::Surroundings;
pub use parked::NotAtRest;
pub use planted::{Fault, Planted};
pub use stats::{
    AcceleratorWork, CacheStats, EngineStats, IteratorStats, MemoryUse, ReadCounts, TableStats,
};
pub use store::limits::max_value_bytes;
pub use store::{Cpu, Lack};
