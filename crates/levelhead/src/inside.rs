//! What is going on inside an open store, in the engine's own words: for benchmarks, and for people who look for causes.
//!
//! [`Store::statistics`] is for programs and stays as it is; what is here follows the engine.

use pages::{EngineStats, MemoryUse};

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
    /// Bytes of each of the store's files, at most.
    pub capacity_bytes: u64,
    /// Bytes of the parts of the files that hold anything, garbage and journal too; parity is not counted.
    pub used_bytes: u64,
    /// Memory that snapshots and ranges take, buffers included, in bytes.
    pub snapshot_bytes: u64,
    /// Instants that snapshots and ranges hold.
    pub snapshots: u64,
}

/// One level of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Meta segments in it.
    pub segments: u64,
    /// Entries in it: newest versions of keys, older ones that a deeper level still has, and deletions.
    pub entries: u64,
    /// Segments it may have.
    pub capacity_segments: u64,
    /// Whether it is kept in memory.
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

    /// Entries above the last level: what [`Store::compact`] brings down.
    pub fn entries_above_last(&self) -> u64 {
        let upper = self.levels.split_last().map_or(&[][..], |(_, upper)| upper);
        upper.iter().map(|level| level.entries).sum()
    }

    /// Entries of all levels: as many keys as the store has when nothing was written twice or deleted, else more.
    pub fn entries(&self) -> u64 {
        self.levels.iter().map(|level| level.entries).sum()
    }
}

impl Store {
    /// What is going on inside.
    pub fn inside(&self) -> Inside {
        self.call(|root| {
            let inside = Inside::of(root);
            async move { inside }
        })
    }
}
