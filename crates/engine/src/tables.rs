//! Tables: sorted runs of pages that are written, read and dropped as a whole, and the tree of them, by
//! `RocksDB`'s rules (`compaction = "leveled"`). Pure: no I/O here.
//!
//! ```text
//!  options ... sizes and triggers
//!  table ..... one table: its pages, its index, its filter
//!  tree ...... which tables stand in which level; edits of that
//!  score ..... how much each level wants to be compacted; bytes that are pending
//!  picker .... which tables to compact next
//!  preempt ... which compactions give way to L0's
//!  stall ..... when writes wait, and how fast they go
//!  builder ... entries in, pages of a table out
//!  cut ....... where the tables of a compaction end
//!  space ..... how many extents tables take
//!  merge ..... many runs into one, step by step
//!  codec ..... tables and edits as bytes
//! ```
//! L0 is a list of tables that may overlap, the newest first; from L1 on the tables of a level are in key
//! order and share no key.

pub(crate) mod builder;
pub(crate) mod codec;
pub(crate) mod cut;
pub(crate) mod merge;
pub(crate) mod options;
pub(crate) mod picker;
pub(crate) mod preempt;
pub(crate) mod score;
pub(crate) mod space;
pub(crate) mod stall;
pub(crate) mod table;
pub(crate) mod tree;
