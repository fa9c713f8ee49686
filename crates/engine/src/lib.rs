//! The engine: an LSM-tree, of whose options `PinK` is a preset.
//!
//! ```text
//!  lsm ....... Engine: Get, Put, Delete; version, search, flush, compaction, collection
//!  tables .... what a tree of tables decides: picking, cutting, merging, stalls
//!  format .... bytes of meta segments
//!  cache ..... what stays in memory of what was read
//!  sizing, options ... arithmetic and values
//! ```
//!
//! It stands on `pages`: the page store, memtables and their front, the frame of collection and the
//! journal, which other indexes share. It never reads a clock except through `runtime`, and charges the
//! processor time its work would take ([`pages::CpuCosts`]).

#![forbid(unsafe_code)]

mod cache;
mod format;
#[cfg(test)]
mod fuzz_tests;
mod lsm;
mod options;
mod planted;
pub mod sizing;
mod tables;

pub use lsm::Engine;
pub use lsm::accelerator::Accelerator;
pub use lsm::iterator::{EngineIterator, Step};
pub use lsm::look::{Look, ReadOutside};
pub use lsm::memory::{dumped_bytes_of_flush, dumped_bytes_of_lists};
pub use lsm::open::Setup;
pub use lsm::salvage::{IndexState, Salvage};
pub use lsm::snapshot::{SnapshotInfo, SnapshotMemory};
pub use lsm::snapshot_reads::{EngineSnapshot, IndexPart};
pub use options::{ColumnOptions, Filters, Granularity, IteratorOptions, MergeBy, Options};
pub use planted::{Fault, Planted};
pub use tables::options::{Preemption, TableOptions};
