//! The LSM engine: one engine, many designs. `PinK` is a preset of its options.
//!
//! ```text
//!  engine ........ Get, Put, Delete                     dump, open ... power cut and recovery
//!   |- memtable ... L0                                   flush ........ L0 -> data pages, L1
//!   |- search ..... down the levels in memory            compaction ... Ln -> Ln+1 (picker, merge)
//!   |- version .... immutable levels (level, key_index)  collect ...... extents become free again
//!   `- ranges ..... range pointers                       writer ....... pages out, paced (pacing)
//!  formats: page, meta_segment, data_page, object        arithmetic: sizing, packing, extents
//! ```
//!
//! The engine stores pages on a [`Medium`] and knows nothing of flash. It is generic over it, so
//! the same code runs on a simulated drive and on real ones. It never reads a clock except through
//! `runtime`, and charges the processor time its work would take ([`CpuCosts`]).

#![forbid(unsafe_code)]

mod codec;
mod collect;
mod compaction;
mod data_page;
mod dump;
mod effort;
mod engine;
mod epochs;
mod error;
mod extents;
mod flush;
mod key_index;
mod level;
mod medium;
mod memory;
mod memtable;
mod merge;
mod meta_segment;
mod object;
mod open;
mod options;
mod pacing;
mod packing;
mod page;
mod picker;
mod planted;
mod pointer;
mod ranges;
mod search;
mod shared_reads;
pub mod sizing;
mod stats;
mod value;
mod version;
mod writer;

pub use dump::DumpError;
pub use effort::CpuCosts;
pub use engine::{Condition, Cpu, Engine, Lookup};
pub use error::EngineError;
pub use medium::{ExtentId, Medium, PageNo, Shape, Unreadable};
pub use open::Setup;
pub use options::{Options, Surroundings};
pub use picker::Granularity;
pub use planted::{Fault, Planted};
pub use stats::{EngineStats, MemoryUse, ReadCounts};
pub use value::Value;

/// Longest key, in bytes (SNIA KV API; NVMe drives take 16).
pub const MAX_KEY_BYTES: usize = 255;
/// Longest value, in bytes, where the medium allows it.
pub const MAX_VALUE_BYTES: u32 = 2 << 20;
