//! Options of the hash table, kept as TOML files.

use std::ops::RangeInclusive;

use catalogue::bounds;
use serde::{Deserialize, Serialize};

use crate::options::surroundings::{FROZEN_MEMTABLES, MEMTABLE_BYTES};
use crate::wal::{Durability, LogSync};

/// Writes in a memtable of the hash table.
const BUFFER_ENTRIES: RangeInclusive<usize> = 1..=1 << 30;

/// Options of the hash table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HashOptions {
    /// Writes in a memtable before it is flushed.
    pub buffer_entries: usize,
    /// Bytes of keys and values in a memtable before it is flushed.
    pub buffer_bytes: u64,
    /// Full memtables that may wait for their flush.
    pub frozen_buffers: usize,
    /// Garbage collection starts when fewer extents than this share of all are free.
    pub gc_start: f64,
    /// What makes writes outlive a power cut.
    #[serde(default)]
    pub durability: Durability,
    /// When writes are acknowledged, where there is a log.
    #[serde(default)]
    pub log_sync: LogSync,
}

impl HashOptions {
    /// The drive that `PinK` was compared with: 256 writes are buffered as published,
    /// but no more bytes than `PinK` has.
    pub fn published() -> Self {
        Self {
            buffer_entries: 256,
            buffer_bytes: 1 << 20,
            frozen_buffers: 1,
            gc_start: 0.05,
            durability: Durability::default(),
            log_sync: LogSync::default(),
        }
    }

    /// Everything that is wrong with these options, in words.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(bounds::range("buffer_entries", self.buffer_entries, BUFFER_ENTRIES));
        problems.extend(bounds::range("buffer_bytes", self.buffer_bytes, MEMTABLE_BYTES));
        problems.extend(bounds::range("frozen_buffers", self.frozen_buffers, FROZEN_MEMTABLES));
        if !(self.gc_start > 0.0 && self.gc_start < 0.5) {
            problems
                .push(format!("gc_start is {}, must be more than 0, less than 0.5", self.gc_start));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_beyond_all_drives_are_refused() {
        assert_eq!(HashOptions::published().problems(), Vec::<String>::new());
        let hash =
            HashOptions { buffer_bytes: u64::MAX, frozen_buffers: 0, ..HashOptions::published() };
        assert_eq!(hash.problems().len(), 2);
    }
}
