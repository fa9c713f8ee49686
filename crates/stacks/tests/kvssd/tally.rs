//! Counters of trials: a mechanism that never ran was not tested.

use std::fmt;

use drives::nand::CutReport;
use engine::MergeBy;
use stacks::design::IndexOptions;
use stacks::kvssd::KvDrive;

use crate::shape::Shape;

/// Counters of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub commands: u64,
    pub power_cuts: u64,
    pub torn: u64,
    /// Power cuts during a recovery.
    pub cuts_of_recoveries: u64,
    pub flushes: u64,
    pub compactions: Vec<u64>,
    pub data_extents: u64,
    pub meta_extents: u64,
    pub empty_extents: u64,
    pub objects_moved: u64,
    /// Dirty bucket pages that were written to make room in memory.
    pub evictions: u64,
    /// Pages and values that clients found in caches.
    pub cached: u64,
    /// Merges by the accelerator.
    pub accelerated: u64,
    pub most_reads: usize,
    /// Stores that were refused for lack of space.
    pub refused: u64,
    /// Pairs that iterators returned, their snapshots, and the snapshots that expired.
    pub scanned: u64,
    pub snapshots: u64,
    pub expired: u64,
    /// Compactions that stopped for others, and that were abandoned.
    pub yields: u64,
    pub discarded: u64,
    /// Groups of segments that were written, and that were copied.
    pub groups: u64,
    pub groups_moved: u64,
    pub trace: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.commands += other.commands;
        self.power_cuts += other.power_cuts;
        self.torn += other.torn;
        self.cuts_of_recoveries += other.cuts_of_recoveries;
        self.flushes += other.flushes;
        self.compactions.resize(self.compactions.len().max(other.compactions.len()), 0);
        for (sum, more) in self.compactions.iter_mut().zip(&other.compactions) {
            *sum += more;
        }
        self.data_extents += other.data_extents;
        self.meta_extents += other.meta_extents;
        self.empty_extents += other.empty_extents;
        self.objects_moved += other.objects_moved;
        self.evictions += other.evictions;
        self.cached += other.cached;
        self.accelerated += other.accelerated;
        self.most_reads = self.most_reads.max(other.most_reads);
        self.refused += other.refused;
        self.scanned += other.scanned;
        self.snapshots += other.snapshots;
        self.expired += other.expired;
        self.yields += other.yields;
        self.discarded += other.discarded;
        self.groups += other.groups;
        self.groups_moved += other.groups_moved;
        self.trace ^= other.trace;
    }

    pub(crate) fn count_cut(&mut self, cut: CutReport) {
        self.power_cuts += 1;
        self.torn += u64::from(cut.torn);
    }

    pub(crate) fn count(&mut self, drive: &KvDrive, trace: u64) {
        let stats = drive.engine_stats();
        self.add(&Self {
            flushes: stats.flushes,
            compactions: stats.compactions,
            data_extents: stats.gc_data_extents,
            meta_extents: stats.gc_meta_extents,
            empty_extents: stats.gc_empty_extents,
            objects_moved: stats.gc_objects_moved,
            evictions: drive.engine().hash_stats().map_or(0, |stats| stats.dirty_evictions),
            cached: stats.caches.page_hits + stats.caches.value_hits,
            accelerated: stats.accelerator.merges,
            most_reads: stats.reads_per_get.max(),
            scanned: stats.iterators.seeks + stats.iterators.nexts,
            snapshots: stats.iterators.created,
            yields: stats.tables.yields,
            discarded: stats.tables.discarded_jobs,
            groups: stats.groups_written,
            groups_moved: stats.groups_moved,
            trace,
            ..Self::default()
        });
    }

    /// Asserts that every mechanism ran.
    pub(crate) fn assert_everything_happened(&self, seed: u64, shape: &Shape) {
        assert!(!shape.is_filled || self.refused > 0, "seed {seed}: never full in {self}");
        assert!(self.flushes > 0, "seed {seed}: no flush in {self}");
        if let Some((_, levels)) = self.compactions.split_last() {
            assert!(levels.iter().all(|count| *count > 0), "seed {seed}: no compaction in {self}");
        } else {
            assert!(self.evictions > 0, "seed {seed}: no dirty page was evicted in {self}");
            assert!(self.meta_extents > 0, "seed {seed}: no bucket page was moved in {self}");
        }
        assert!(self.data_extents > 0, "seed {seed}: no data was collected in {self}");
        assert!(self.objects_moved > 0, "seed {seed}: nothing was moved in {self}");
        let has_accelerator = match &shape.engine {
            IndexOptions::Lsm(options) => options.merge == MergeBy::Accelerator,
            IndexOptions::Hash(_) => false,
        };
        assert_eq!(self.accelerated > 0, has_accelerator, "seed {seed}: {self}");
        assert!(self.power_cuts > 0, "seed {seed}: no power cut in {self}");
    }

    /// Asserts that every mechanism ran in the sum over many shapes.
    pub(crate) fn assert_everything_happened_somewhere(&self) {
        let counts = [
            ("flush", self.flushes),
            ("compaction", self.compactions.iter().sum()),
            ("accelerated merge", self.accelerated),
            ("collection of data", self.data_extents),
            ("collection of index pages", self.meta_extents),
            ("object moved", self.objects_moved),
            ("dirty page evicted", self.evictions),
            ("page or value cached", self.cached),
            ("torn program", self.torn),
            ("pair scanned", self.scanned),
        ];
        for (what, count) in counts {
            assert!(count > 0, "no {what} in {self}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} commands, {} power cuts ({} torn operations, {} in recoveries), {} flushes, compactions {:?} ({} accelerated), \
             collected {} data and {} meta extents ({} objects moved), {} released empty, {} dirty \
             pages evicted, {} found in caches, at most {} reads a Get, {} stores refused on full drives, {} pairs \
             scanned in {} snapshots ({} expired), compactions stopped {} times and were given up {} times, \
             {} groups written and {} copied",
            self.commands,
            self.power_cuts,
            self.torn,
            self.cuts_of_recoveries,
            self.flushes,
            self.compactions,
            self.accelerated,
            self.data_extents,
            self.meta_extents,
            self.objects_moved,
            self.empty_extents,
            self.evictions,
            self.cached,
            self.most_reads,
            self.refused,
            self.scanned,
            self.snapshots,
            self.expired,
            self.yields,
            self.discarded,
            self.groups,
            self.groups_moved
        )
    }
}
