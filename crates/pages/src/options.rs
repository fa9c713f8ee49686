//! Settings that every index needs: its environment, and bounds that all options share.

use std::ops::RangeInclusive;

/// Allowed size of a memtable at its flush, in bytes. Whether a drive has enough memory for it is
/// checked at set-up, because memtables are part of a drive's dumps.
pub const MEMTABLE_BYTES: RangeInclusive<u64> = 1024..=1 << 40;
/// Allowed number of full memtables that wait for their flush.
pub const FROZEN_MEMTABLES: RangeInclusive<usize> = 1..=1024;

/// The environment of an index.
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
