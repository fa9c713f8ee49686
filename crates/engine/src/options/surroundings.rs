//! Options common to all indexes: resources, and limits of values.

use std::ops::RangeInclusive;

/// The allowed sizes of a memtable before its flush, in bytes. Whether a drive has room for its
/// memtables is checked at setup, because they are part of its dumps.
pub(crate) const MEMTABLE_BYTES: RangeInclusive<u64> = 1024..=1 << 40;
/// The allowed numbers of frozen memtables that wait for their flush.
pub const FROZEN_MEMTABLES: RangeInclusive<usize> = 1..=1024;

/// The resources that an index may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Memory for the index, in bytes. A tree uses it for level lists, prefixes, range pointers,
    /// pinned segments and caches; a hash table for its directory and cached bucket pages.
    pub index_dram_bytes: u64,
    /// Memory for snapshots and iterator buffers, in bytes.
    pub iterator_dram_bytes: u64,
    /// Key length for which the index is sized, in bytes.
    pub expected_key_bytes: u32,
    /// Value length for which the index is sized, in bytes.
    pub expected_value_bytes: u32,
}
