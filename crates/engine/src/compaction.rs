//! Compaction: moves entries to lower levels, in one of two ways.
//!
//! ```text
//!  sliced ... `PinK`: meta segments of one level are merged into the next, slice by slice
//!  leveled .. tables, by the rules of `RocksDB`'s leveled compaction
//!  manual ... compaction that a client asks for
//!  groups, columns .. forms of the last level: segments behind an index, tables in columns
//! ```

pub(crate) mod columns;
pub(crate) mod groups;
pub(crate) mod leveled;
pub(crate) mod manual;
pub(crate) mod sliced;
