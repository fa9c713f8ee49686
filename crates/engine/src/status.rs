//! The status of a store: counters, memory, levels, and the state of background work.

use runtime::{Nanos, PageImage};

use crate::compaction::leveled::Tables;
use crate::compaction::sliced::accelerator::MergeUnit;
use crate::engine::Engine;
use crate::iterate::snapshot::{SnapshotInfo, SnapshotMemory};
use crate::manifest::Manifest;
use crate::medium::{Medium, PageNo, Stream};
use crate::sizing::LevelPlan;
use crate::space::extent::State;
use crate::stats::{EngineStats, MemoryUse};
use crate::version::level::Level;

impl<M: Medium> Engine<M> {
    /// Returns the counters.
    pub fn stats(&self) -> EngineStats {
        let inner = &self.inner;
        inner.note_done();
        let mut stats = inner.front.add_to(inner.stats.borrow().clone());
        stats.shared_reads = inner.store.shared_reads();
        stats.rebuilt_reads = inner.store.rebuilt_reads();
        stats.caches = inner.caches.stats();
        if inner.caches.are_there() {
            // Caches fill between the edits at which the peak is recorded.
            stats.peak_index_bytes = stats.peak_index_bytes.max(inner.memory().index_bytes());
        }
        stats.accelerator.busy = inner.merge_unit.as_ref().map_or(Nanos::ZERO, MergeUnit::busy);
        stats
    }

    /// Returns the memory in use now.
    pub fn memory(&self) -> MemoryUse {
        self.inner.memory()
    }

    /// Returns the memory used by snapshots now.
    pub fn snapshot_memory(&self) -> SnapshotMemory {
        self.inner.snapshot_memory()
    }

    /// Returns all live snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.inner.snapshot_infos()
    }

    /// Returns the epoch of the manifest, which grows with each checkpoint and each recovery; 0
    /// without a manifest.
    pub fn epoch(&self) -> u32 {
        self.inner.manifest.as_ref().map_or(0, Manifest::epoch)
    }

    /// Returns the level sizes in force. With tables, the target sizes in pages, L0 first.
    pub fn plan(&self) -> LevelPlan {
        let plan = self.inner.plan.borrow().clone();
        match &self.inner.tables {
            None => plan,
            Some(tables) => {
                LevelPlan { capacities: tables.capacities(&self.inner.store.shape), ..plan }
            }
        }
    }

    /// Returns the pages with entries and the entries of each level, L1 first; with tables, L0
    /// first.
    pub fn levels(&self) -> Vec<(u64, u64)> {
        if let Some(tables) = &self.inner.tables {
            return tables.sizes();
        }
        let version = self.inner.version.borrow();
        let of = |level: &Level| (u64::from(level.totals().pages()), level.totals().entries);
        version.levels().iter().map(|level| of(level)).collect()
    }

    /// Returns the number of extents.
    pub fn extents(&self) -> u32 {
        self.inner.store.shape.extents
    }

    /// Returns the bytes of extents that hold live data or garbage, without those about to be free.
    pub fn used_bytes(&self) -> u64 {
        let extents = self.inner.store.extents.borrow();
        let kept: usize = Stream::ALL.into_iter().map(|stream| extents.kept(stream)).sum();
        kept as u64 * self.inner.store.shape.extent_bytes()
    }

    /// Returns the bytes of an extent.
    pub fn extent_bytes(&self) -> u64 {
        self.inner.store.shape.extent_bytes()
    }

    /// Returns the bytes of free extents.
    pub fn free_bytes(&self) -> u64 {
        self.inner.store.extents.borrow().free() as u64 * self.extent_bytes()
    }

    /// Whether levels are made of tables: then [`Self::levels`] and [`Self::plan`] begin with L0.
    pub fn is_leveled(&self) -> bool {
        self.inner.tables.is_some()
    }

    /// Returns whether a page that was read is intact; `None` if no index can refer to it.
    pub fn is_whole(&self, page: PageNo, image: &PageImage) -> Option<bool> {
        let store = &self.inner.store;
        // Pages that pad an append unit are empty.
        let is_of_use = store.may_be_referred_to(page) && !image.bytes().is_empty();
        is_of_use.then(|| store.check_page(page, Ok(image.clone())).is_ok())
    }

    /// Returns the state of background work as one line, for diagnosing a store that makes no
    /// progress.
    pub fn background(&self) -> String {
        let inner = &*self.inner;
        let extents = inner.store.extents.borrow();
        let memtables = inner.front.memtables.borrow();
        let count = |state| extents.iter().filter(|(_, extent)| extent.state == state).count();
        format!(
            "extents: {} free, {} releasing, {} held by snapshots, {} collecting, {} quarantined; in use {:?} of {}, set aside {:?}, {} for a step, {} for clients to leave; \
             promised pages {:?}; \
             memtable {} B and {} frozen; levels {}; busy {:?}; {:?}, squeezing {}, flush \
             starved {}, compaction starved {}; {}",
            extents.free(),
            inner.store.releasing(),
            inner.store.held(),
            count(State::Collecting),
            count(State::Quarantined),
            Stream::ALL.map(|stream| extents.in_use(stream)),
            inner.store.shape.extents,
            Stream::ALL.map(|stream| inner.store.set_aside[stream as usize].get()),
            inner.store.step_extents.get(),
            inner.front.client_reserve(&extents),
            inner.store.promised_pages(),
            memtables.active_bytes(),
            memtables.frozen.len(),
            inner
                .tables
                .as_ref()
                .map_or_else(|| format!("{:?}", inner.level_states()), Tables::background,),
            inner.busy.borrow(),
            inner.front.fullness.get(),
            inner.is_squeezing.get(),
            inner.front.flush_is_starved(),
            inner.compaction_is_starved(),
            inner.front.log.borrow().as_ref().map_or("no log".to_owned(), |log| log.background()),
        )
    }
}
