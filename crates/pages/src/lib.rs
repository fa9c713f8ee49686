//! Pages: what every index stores, and what it needs around that.
//!
//! ```text
//!  front, memtable, operations ... who may write and when, writes in memory, what clients ask
//!  collector ..................... the frame of garbage collection
//!  journal, records, dump ........ what a power cut leaves: log and manifest, or memory as bytes
//!  salvage ....................... what every page says by itself, where the journal is damaged
//!  store ......................... pages and objects on a medium: extents, space, reads, writes
//!  format ........................ bytes of pages, objects, pointers
//!  medium ........................ the seam: what pages are stored on
//!  options, stats, effort, error . values
//! ```
//!
//! An index owns a [`store::PageStore`] and a [`front::Front`], says through [`front::Index`] and
//! [`collector::Collected`] what only it knows, and changes nothing but by an edit, of which
//! [`store::changes::Changes`] is the part that all indexes share. This crate knows no index.
//!
//! What is re-exported here is for those who make a medium, set a store up or talk to one; the modules
//! are for indexes. The store is generic over its [`Medium`] and knows nothing of flash. It never reads
//! a clock except through `runtime`, and charges the processor time its work would take
//! ([`CpuCosts`]).

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
