//! The internal state of an open store, in the engine's terms, for benchmarks and diagnosis.
//!
//! [`Store::statistics`] is a stable interface for programs; this one changes with the engine.

use engine::{EngineStats, MemoryUse};

use crate::root::Root;
use crate::store::Store;

/// The engine's counters, memory and levels at one moment.
#[derive(Clone, Debug)]
pub struct Inside {
    /// Counters since the store was opened.
    pub stats: EngineStats,
    /// Memory by use, in bytes.
    pub memory: MemoryUse,
    /// Levels, L1 first.
    pub levels: Vec<Level>,
    /// The maximum size of each of the store's files, in bytes.
    pub capacity_bytes: u64,
    /// Bytes of the extents in use, including garbage, log and manifest, but not parity.
    pub used_bytes: u64,
    /// Memory of snapshots and ranges, buffers included, in bytes.
    pub snapshot_bytes: u64,
    /// Instants that snapshots and ranges keep.
    pub snapshots: u64,
}

/// One level of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Meta segments in the level.
    pub segments: u64,
    /// Entries in the level: newest versions of keys, older versions that a deeper level still has,
    /// and tombstones.
    pub entries: u64,
    /// The maximum number of segments.
    pub capacity_segments: u64,
    /// Whether the level is kept in memory.
    pub is_pinned: bool,
}

impl Inside {
    fn of(root: &Root) -> Self {
        let (plan, levels) = root.engine.levels();
        let levels = levels.into_iter().zip(plan.capacities).zip(0..);
        let levels = levels.map(|(((segments, entries), capacity_segments), n)| Level {
            segments,
            entries,
            capacity_segments,
            is_pinned: n < plan.pinned,
        });
        Self {
            stats: root.engine.stats(),
            memory: root.engine.memory(),
            levels: levels.collect(),
            capacity_bytes: root.capacity_bytes(),
            used_bytes: root.engine.used_bytes(),
            snapshot_bytes: root.engine.snapshot_bytes(),
            snapshots: root.engine.snapshots().len() as u64,
        }
    }

    /// Returns the number of entries above the last level, which [`Store::compact`] moves down.
    pub fn entries_above_last(&self) -> u64 {
        let upper = self.levels.split_last().map_or(&[][..], |(_, upper)| upper);
        upper.iter().map(|level| level.entries).sum()
    }

    /// Returns the number of entries in all levels: the number of keys if no key was overwritten or
    /// deleted, else more.
    pub fn entries(&self) -> u64 {
        self.levels.iter().map(|level| level.entries).sum()
    }
}

impl Store {
    /// Returns the internal state of the store.
    pub fn inside(&self) -> Inside {
        self.call(|root| {
            let inside = Inside::of(root);
            async move { inside }
        })
    }
}
