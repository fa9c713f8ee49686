//! The tree's admission of writes.

use runtime::Nanos;

use super::{Admission, Index};
use crate::compaction::leveled::Tables;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::object::Sequence;
use crate::medium::Medium;
use crate::operations::Reads;
use crate::planted::Fault;
use crate::read::locate::Located;

impl<M: Medium> Index for Inner<M> {
    async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        // The epoch is left before a write waits for room: that may mean waiting for readers to
        // leave.
        let _guard = self.store.epochs.enter();
        Ok(match self.locate(key, work, &mut Reads::default()).await? {
            Located::Absent => false,
            Located::Known(entry) => entry.is_some(),
            Located::At(_) => true,
        })
    }

    /// Clients leave the last extents to the background work that frees space, and wait while
    /// pinned levels are over the memory budget.
    fn admits_put(&self) -> Admission {
        let has_space = self.front.has_space_for_clients() && !self.is_over_budget();
        if has_space && !self.is_stopped() { Admission::Now } else { Admission::Later }
    }

    /// Deletes wait too: otherwise deletes of long absent keys would make upper levels grow without
    /// bound, and in a full store their index entries would take the space needed to collect
    /// objects.
    fn admits_delete(&self) -> Admission {
        let is_behind = || {
            let is_over = self.is_over_budget() && !self.is_settled() || self.is_stopped();
            is_over || self.is_crowded_out.get()
        };
        if is_behind() && !self.is_at_rest() { Admission::Later } else { Admission::Now }
    }

    fn delay(&self, bytes: u64) -> Nanos {
        let now = || self.store.handle.now();
        self.tables.as_ref().map_or(Nanos::ZERO, |tables| tables.delay(now(), bytes))
    }

    fn is_delayed(&self) -> bool {
        self.tables.as_ref().is_some_and(Tables::delays_writes)
    }

    fn has_rested(&self) -> bool {
        self.rested_after.get() == self.front.writes()
    }

    fn wants_flush(&self) -> bool {
        self.is_squeezing.get()
    }

    fn newest_snapshot(&self) -> Option<Sequence> {
        let newest = self.snapshots.newest();
        newest.filter(|_| !self.planted.has(Fault::OverwriteUnderSnapshot))
    }
}

impl<M: Medium> Inner<M> {
    /// Whether compactions of tables lag so far that writes stop.
    fn is_stopped(&self) -> bool {
        self.tables.as_ref().is_some_and(Tables::stops_writes)
    }
}
