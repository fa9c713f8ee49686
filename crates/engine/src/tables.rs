//! Tables: sorted runs of pages that are written, read and dropped as a whole, and the tree of
//! tables, by `RocksDB`'s rules (`compaction = "leveled"`). Pure: no I/O here.
//!
//! ```text
//!  options ... sizes and triggers
//!  table ..... one table: its pages, its index, its filter
//!  tree ...... the tables of each level; edits of the tree
//!  score ..... compaction scores of levels; pending bytes
//!  picker .... the tables to compact next
//!  preempt ... preemption by compactions out of L0
//!  stall ..... write stalls and the rate of delayed writes
//!  builder ... builds the pages of a table from entries
//!  cut ....... the ends of a compaction's output tables
//!  space ..... the number of extents of tables
//!  merge ..... merges many runs into one, step by step
//!  codec ..... encoding of tables and edits
//! ```
//! L0 is a list of tables that may overlap, newest first; from L1 on the tables of a level are in
//! key order and share no key.

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
