//! Options of the hash table, read from TOML files.

use std::ops::RangeInclusive;

use catalogue::bounds;
use serde::{Deserialize, Serialize};

use crate::options::surroundings::{FROZEN_MEMTABLES, MEMTABLE_BYTES};

/// The valid number of writes in a memtable.
const BUFFER_ENTRIES: RangeInclusive<usize> = 1..=1 << 30;

/// The options of a hash table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HashOptions {
    /// The number of writes at which a memtable is flushed.
    pub buffer_entries: usize,
    /// Bytes of keys and values at which a memtable is flushed.
    pub buffer_bytes: u64,
    /// The maximum number of full memtables that wait for their flush or are being flushed.
    pub frozen_buffers: usize,
    /// Garbage collection starts when the share of free extents falls below this value. It starts
    /// earlier if the free extents approach the number that clients leave to background work.
    pub gc_start: f64,
}

impl HashOptions {
    /// Returns the options of the drive that `PinK` was compared with. A memtable has 256 writes,
    /// as published, but no more bytes than a memtable of `PinK`.
    pub fn published() -> Self {
        Self { buffer_entries: 256, buffer_bytes: 1 << 20, frozen_buffers: 1, gc_start: 0.05 }
    }

    /// Returns the problems of these options as messages.
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
