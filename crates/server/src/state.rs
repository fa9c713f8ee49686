//! State that all connections of a server share.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use levelhead::WindowStatistics;
use tokio::sync::Semaphore;

use crate::client::Clients;
use crate::cluster::Cluster;
use crate::commits::Commits;
use crate::cursors::Cursors;
use crate::data::database::Database;
use crate::observed::Observer;
use crate::options::Options;
use crate::slowlog::Slowlog;
use crate::statistics::{GAUGES, Statistics};

/// See the module's documentation.
pub(crate) struct State {
    pub options: Options,
    pub database: Database,
    pub commits: Commits,
    pub clients: Clients,
    pub cluster: Option<Cluster>,
    pub cursors: Cursors,
    pub slowlog: Slowlog,
    pub statistics: Arc<Statistics>,
    pub begun_ms: u64,
    /// The TCP port that the server listens on; 0 if it does not listen on TCP.
    pub port: u16,
    pub drawn: AtomicU64,
    pub observer: Observer,
    /// Limits the threads that are in the store: one serving thread is always free for commands
    /// that need no store.
    pub in_store: Semaphore,
    /// Limits the long walks that run at a time: each occupies a thread of its own.
    pub far: Semaphore,
}

impl State {
    /// Returns an unpredictable number.
    pub(crate) fn random(&self) -> u64 {
        RandomState::new().hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the values of [`GAUGES`] for the dashboard.
    pub(crate) fn gauges(&self) -> [u64; GAUGES.len()] {
        let observed = self.observer.last();
        let (store, memory) = (&observed.inside.stats, &observed.inside.memory);
        let windows = observed.statistics.windows.as_ref();
        let of_windows = |value: fn(&WindowStatistics) -> u64| windows.map_or(0, value);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            self.clients.count() as u64,
            self.database.count(),
            self.clients.bytes() as u64,
            memory.index_bytes() - memory.caches,
            memory.caches,
            memory.memtables,
            memory.compaction_buffers,
            store.flushes,
            store.compactions.iter().sum(),
            store.gc_data_extents + store.gc_meta_extents + store.gc_empty_extents,
            store.stalls,
            store.caches.value_hits,
            store.caches.value_misses,
            count(&self.statistics.commits),
            count(&self.statistics.committed),
            of_windows(|windows| windows.direct_reads),
            of_windows(|windows| windows.rebuilt_reads),
            of_windows(|windows| windows.cached_reads),
            of_windows(|windows| windows.cached_bytes),
            of_windows(|windows| windows.waits_for_room),
        ]
    }
}
