//! Planted faults of the tree: deliberate bugs that the model tests must catch. Compiled in only with
//! the feature `planted-faults`, which nothing but tests asks for.

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Compaction drops tombstones above the last level.
    DropTombstonesEarly,
    /// A filter does not know the last key of its segment.
    FilterForgetsKeys,
    /// A write does not keep the version it replaces for snapshots.
    OverwriteUnderSnapshot,
    /// A recovery counts writes from where the checkpoint was, although later ones were flushed.
    SequenceGoesBack,
    /// An extent is released before the manifest says that it is.
    ReleaseBeforeNoted,
    /// An iterator reads what memtables hold now, not what they held when it was made.
    ReadPastSnapshot,
    /// The newest table of L0 is compacted alone, and comes to lie below older ones.
    CompactNewestAlone,
    /// Tables that L0's are merged into take the place of the newest, not of those that went.
    MergedL0GoesFirst,
    /// Caches take pages of an extent that was released for those of its next life.
    CacheForgetsGenerations,
    /// What a compaction wrote before it gave way to L0 takes the place of all that it was to merge.
    DiscardedIsPublished,
    /// A compaction that gave way to L0 keeps its tables for itself.
    DiscardedKeepsClaim,
    /// A flush is published as soon as its data is written, although older memtables are not flushed.
    FlushOutOfTurn,
    /// The log is trimmed when a flush is in force in memory, not when that is committed.
    TrimLogBeforeCommit,
    /// The filter of a table in columns does not know the table's last key.
    ColumnForgetsKeys,
    /// A checkpoint does not wait until all that can be read is durable.
    CheckpointBeforeDurable,
}

impl Fault {
    /// Every fault there is.
    pub const ALL: [Self; 15] = [
        Self::DropTombstonesEarly,
        Self::FilterForgetsKeys,
        Self::OverwriteUnderSnapshot,
        Self::SequenceGoesBack,
        Self::ReleaseBeforeNoted,
        Self::ReadPastSnapshot,
        Self::CompactNewestAlone,
        Self::MergedL0GoesFirst,
        Self::CacheForgetsGenerations,
        Self::DiscardedIsPublished,
        Self::DiscardedKeepsClaim,
        Self::FlushOutOfTurn,
        Self::TrimLogBeforeCommit,
        Self::ColumnForgetsKeys,
        Self::CheckpointBeforeDurable,
    ];
}

/// Which faults are planted, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    /// In what every index stands on.
    pub pages: pages::Planted,
    /// In the tree.
    pub tree: planted::Planted<Fault>,
}
