//! What every index is told: what it runs on, and bounds that all options share.

use std::ops::RangeInclusive;

/// Bytes of a memtable before it is flushed. What a drive has room for is found out when it is set
/// up: memtables are part of its dumps.
pub const MEMTABLE_BYTES: RangeInclusive<u64> = 1024..=1 << 40;
/// Full memtables that may wait.
pub const FROZEN_MEMTABLES: RangeInclusive<usize> = 1..=1024;

/// What an index has to be told about its surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Memory for the index, in bytes: level lists, prefixes, range pointers, pinned segments and
    /// caches; or directory and cached bucket pages.
    pub index_dram_bytes: u64,
    /// Memory for snapshots and the buffers of iterators, in bytes.
    pub iterator_dram_bytes: u64,
    /// Key length that the index is sized for, in bytes.
    pub expected_key_bytes: u32,
    /// Value length that the index is sized for, in bytes.
    pub expected_value_bytes: u32,
}
