//! Counters and state of an open store, for programs.

use std::path::PathBuf;
use std::time::Duration;

use crate::directory::state::DirectoryState;
use crate::root::Root;
use crate::set_up::ITERATOR_BYTES;
use crate::store::Store;
use crate::windows::WindowStatistics;

/// Counters of a store since it was opened, and its present state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Gets that found a value.
    pub gets_found: u64,
    /// Gets that found no value.
    pub gets_missing: u64,
    /// Gets by number of reads: the index into the vector is the number of reads.
    pub reads_per_get: Vec<u64>,
    /// Puts and deletes.
    pub writes: u64,
    /// Bytes of keys and values that were written.
    pub user_bytes: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Writes that had to wait for space (write stalls).
    pub stalls: u64,
    /// Value cache hits.
    pub value_cache_hits: u64,
    /// Value cache misses.
    pub value_cache_misses: u64,
    /// Memory for index and caches, in bytes.
    pub index_bytes: u64,
    /// Memory in memtables, in bytes.
    pub memtable_bytes: u64,
    /// Instants that snapshots and ranges keep.
    pub snapshots: u64,
    /// The age of the oldest instant. It is the first to be dropped
    /// ([`Error::TooOld`](crate::Error::TooOld)): when `snapshot_bytes` reaches
    /// `most_snapshot_bytes`, or when writers have used up `free_bytes` and garbage collection
    /// cannot free anything else.
    pub oldest_snapshot: Option<Duration>,
    /// Memory of snapshots and ranges, in bytes.
    pub snapshot_bytes: u64,
    /// The limit of `snapshot_bytes`.
    pub most_snapshot_bytes: u64,
    /// Bytes of the files that are reusable as soon as the oldest instant (and possibly later ones)
    /// is dropped. Counts only extents whose contents were replaced completely.
    pub held_bytes: u64,
    /// Free bytes in the files, without parity. A part of them is reserved for background work.
    pub free_bytes: u64,
    /// Troubles of the files since the last call: file, offset and the system's message.
    pub troubles: Vec<String>,
    /// Counters of windows; `None` without windows.
    pub windows: Option<WindowStatistics>,
    /// The store's directories in the order given to `open_over`, with their states.
    pub directories: Vec<(PathBuf, DirectoryState)>,
}

impl Statistics {
    fn of(root: &Root) -> Self {
        let (stats, memory) = (root.engine.stats(), root.engine.memory());
        let snapshots = root.engine.snapshots();
        let oldest = snapshots.first();
        Self {
            gets_found: stats.gets_found,
            gets_missing: stats.gets_missing,
            reads_per_get: stats.reads_per_get.counts().to_vec(),
            writes: stats.writes,
            user_bytes: stats.user_bytes,
            flushes: stats.flushes,
            stalls: stats.stalls,
            value_cache_hits: stats.caches.value_hits,
            value_cache_misses: stats.caches.value_misses,
            index_bytes: memory.index_bytes(),
            memtable_bytes: memory.memtables,
            snapshots: snapshots.len() as u64,
            oldest_snapshot: oldest.map(|oldest| Duration::from_nanos(oldest.age.0)),
            snapshot_bytes: root.engine.snapshot_bytes(),
            most_snapshot_bytes: ITERATOR_BYTES,
            held_bytes: oldest.map_or(0, |oldest| root.engine.extent_bytes() * oldest.extents_held),
            free_bytes: root.engine.free_bytes(),
            troubles: root.troubles(),
            windows: root.window_statistics(),
            directories: root.directories(),
        }
    }
}

impl Store {
    /// Returns the store's directories in the order given to `open_over`, with their states.
    pub fn directories(&self) -> Vec<(PathBuf, DirectoryState)> {
        self.call(|root| {
            let directories = root.directories();
            async move { directories }
        })
    }

    /// Returns the counters and the state of the store. Clears [`Statistics::troubles`].
    pub fn statistics(&self) -> Statistics {
        self.call(|root| {
            let statistics = Statistics::of(root);
            async move { statistics }
        })
    }
}
