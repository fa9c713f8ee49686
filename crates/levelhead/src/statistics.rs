//! What a program may want to know of its store as it goes on.

use std::path::PathBuf;
use std::time::Duration;

use crate::root::Root;
use crate::set_up::ITERATOR_BYTES;
use crate::store::Store;
use crate::windows::WindowStatistics;

/// Counters of a store since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Gets that found a value.
    pub gets_found: u64,
    /// Gets that found none.
    pub gets_missing: u64,
    /// Gets by how many reads they took: the index is the number of reads.
    pub reads_per_get: Vec<u64>,
    /// Puts and deletes.
    pub writes: u64,
    /// Bytes of keys and values that were written.
    pub user_bytes: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Writes that had to wait for room.
    pub stalls: u64,
    /// Values found in memory.
    pub value_cache_hits: u64,
    /// Values looked for there in vain.
    pub value_cache_misses: u64,
    /// Bytes of memory for index and caches.
    pub index_bytes: u64,
    /// Bytes in memtables.
    pub memtable_bytes: u64,
    /// Instants that snapshots and ranges hold.
    pub snapshots: u64,
    /// How old the oldest of them is, which is the first to go ([`Error::TooOld`](crate::Error::TooOld)): where `snapshot_bytes` come to
    /// `most_snapshot_bytes`, or writers find nothing of `free_bytes` left and collection has nothing else to give them.
    pub oldest_snapshot: Option<Duration>,
    /// Bytes of memory that snapshots and ranges take.
    pub snapshot_bytes: u64,
    /// Bytes of memory that they may take.
    pub most_snapshot_bytes: u64,
    /// Bytes of the files that nothing but the oldest instant, and maybe others, keeps from being written again, as far as it was
    /// replaced as a whole.
    pub held_bytes: u64,
    /// Bytes of the files in which there is nothing, without parity. Some of them are kept for background work.
    pub free_bytes: u64,
    /// What files have had to complain of since this was last asked: file, place, and what the system said.
    pub troubles: Vec<String>,
    /// What windows did; nothing where there are none.
    pub windows: Option<WindowStatistics>,
    /// The store's directories, in the order in which they are given, and how each of them is.
    pub directories: Vec<(PathBuf, DirectoryState)>,
}

/// How one of a store's directories is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DirectoryState {
    /// It has all that it is to have. If it is one of several, any other one may be lost.
    Whole,
    /// It lacks what was written without it, and is being filled: if another one is lost meanwhile, so is what it lacks.
    Behind,
    /// It is away, or takes no writes: the store goes on without it, and no other one may be lost.
    Lost,
}

impl DirectoryState {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::Whole, Self::Behind, Self::Lost];

    /// `whole`, `behind` or `lost`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Behind => "behind",
            Self::Lost => "lost",
        }
    }
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
    /// The directories, in the order in which they are given, and how each of them is.
    pub fn directories(&self) -> Vec<(PathBuf, DirectoryState)> {
        self.call(|root| {
            let directories = root.directories();
            async move { directories }
        })
    }

    /// Counters.
    pub fn statistics(&self) -> Statistics {
        self.call(|root| {
            let statistics = Statistics::of(root);
            async move { statistics }
        })
    }
}
