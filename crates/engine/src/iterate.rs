//! Reads of many keys: snapshots, and iterators over them (IterKVSSD, SYSTOR'23).
//!
//! ```text
//!  snapshot ........ the memtables and the version of one instant
//!  snapshot_reads .. a snapshot that a client holds: Gets and iterators of one instant
//!  cursor .......... a position in each memtable and level, merged in key order
//!  iterator ........ Seek and Next, with prefetch of index pages and values
//!  value_reads ..... reads of values for an iterator
//! ```

pub(crate) mod cursor;
pub(crate) mod iterator;
pub(crate) mod snapshot;
pub(crate) mod snapshot_reads;
pub(crate) mod value_reads;
