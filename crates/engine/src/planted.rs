//! Planted faults of the tree: deliberate bugs that the model tests must catch. Compiled only with
//! the feature `test-hooks`, which only tests enable.

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Compaction drops tombstones above the last level.
    DropTombstonesEarly,
    /// A filter does not contain the last key of its segment.
    FilterForgetsKeys,
    /// A write does not keep the version it replaces for snapshots.
    OverwriteUnderSnapshot,
    /// Recovery continues sequence numbers from the checkpoint, although later writes were flushed.
    SequenceGoesBack,
    /// An extent is released before the manifest records it.
    ReleaseBeforeNoted,
    /// An iterator reads the current contents of memtables, not those at its creation.
    ReadPastSnapshot,
    /// The newest table of L0 is compacted alone, and ends up below older ones.
    CompactNewestAlone,
    /// The output of a merge within L0 takes the newest position, not that of its inputs.
    MergedL0GoesFirst,
    /// Caches mistake pages of a released extent for pages of its next generation.
    CacheForgetsGenerations,
    /// The partial output of a compaction that gave way to L0 replaces all of its inputs.
    DiscardedIsPublished,
    /// A compaction that gave way to L0 does not release its tables.
    DiscardedKeepsClaim,
    /// A flush is published as soon as its data is written, although older memtables are not
    /// flushed.
    FlushOutOfTurn,
    /// The log is trimmed when a flush takes effect in memory, not when it is committed.
    TrimLogBeforeCommit,
    /// The filter of a columnar table does not contain the table's last key.
    ColumnForgetsKeys,
    /// A checkpoint does not wait until all readable data is durable.
    CheckpointBeforeDurable,
}

impl Fault {
    /// All faults.
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

/// The planted faults, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    /// Faults in the page store and other parts that all indexes share.
    pub pages: pages::Planted,
    /// Faults in the tree.
    pub tree: planted::Planted<Fault>,
}
