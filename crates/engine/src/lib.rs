//! The engine: an LSM-tree; `PinK` is a preset of its options.
//!
//! ```text
//!  lsm ....... Engine: Get, Put, Delete; version, search, flush, compaction, collection
//!  tables .... decisions of a tree of tables: picking, cutting, merging, stalls
//!  format .... encoding of meta segments
//!  cache ..... read cache policy
//!  sizing, options ... arithmetic and values
//! ```
//!
//! It builds on `pages`: the page store, memtables and their front, the frame of collection and the
//! journal, which other indexes share. It reads clocks only through `runtime`, and charges the
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
