//! What all connections of a server share.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::client::Clients;
use crate::cluster::Cluster;
use crate::commits::Commits;
use crate::cursors::Cursors;
use crate::data::database::Database;
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
    /// The port for TCP, as it turned out.
    pub port: u16,
    pub drawn: AtomicU64,
}

impl State {
    /// A number that nobody can foretell.
    pub(crate) fn random(&self) -> u64 {
        RandomState::new().hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    /// What the dashboard shows besides latencies.
    pub(crate) fn gauges(&self) -> [u64; GAUGES.len()] {
        let store = self.database.store.statistics();
        [
            self.clients.count() as u64,
            self.clients.bytes() as u64,
            store.index_bytes,
            store.memtable_bytes,
            store.flushes,
            store.stalls,
            store.value_cache_hits,
            store.value_cache_misses,
            self.database.count(),
        ]
    }
}
