//! Planted faults of the engine: deliberate bugs that the model tests must catch. Compiled in
//! only with the feature `test-hooks`, which only tests enable.

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Accept pages with a wrong checksum or number.
    SkipChecksum,
    /// Release a collected extent before readers that may still use it have finished.
    ReleaseEarly,
    /// Read without entering an epoch.
    ReadWithoutEpoch,
    /// Garbage collection does not check whether a key was overwritten meanwhile.
    CollectWithoutRecheck,
    /// A flush publishes before its pages are durable.
    PublishBeforeDurable,
    /// The dump omits frozen memtables.
    DumpWithoutFrozen,
    /// Release segments although a snapshot may still read them.
    ReleaseUnderSnapshot,
    /// Move values although a snapshot refers to their old place.
    MoveUnderSnapshot,
    /// The WAL is trimmed when a memtable is frozen, instead of when it is flushed.
    TrimLogEarly,
    /// A recovery accepts the readable part of a torn group of the log or the manifest.
    TakeTornGroup,
    /// Recovery replays WAL groups that were trimmed but not erased yet.
    ReplayTrimmedLog,
    /// Accept intact pages of another place, of an earlier generation of their extent, or of
    /// another store.
    BelieveStalePages,
    /// An edit is committed before the segments that it refers to are durable.
    CommitBeforeSegments,
    /// An edit is committed before the tables that it refers to are durable.
    CommitBeforeTables,
    /// Deletes are not written to the WAL.
    DeleteNotLogged,
    /// A write is acknowledged before its WAL group is durable.
    AcknowledgeEarly,
    /// A collected extent is released before its moved objects are durable.
    ReleaseBeforeMoved,
    /// An unreadable page of log or manifest counts as old and not needed, whatever follows it.
    UnreadableIsOld,
    /// An old unreadable page counts as needed.
    UnreadableIsNeeded,
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
    /// The hash table takes a signature for the key.
    HashSkipsKeyCompare,
    /// The dump leaves out bucket pages that were changed in memory.
    HashForgetsDirtyPages,
    /// The hash table does not note which slots garbage collection has taken the object of.
    HashForgetsUprooted,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 37] = [
        Self::SkipChecksum,
        Self::ReleaseEarly,
        Self::ReadWithoutEpoch,
        Self::CollectWithoutRecheck,
        Self::PublishBeforeDurable,
        Self::DumpWithoutFrozen,
        Self::ReleaseUnderSnapshot,
        Self::MoveUnderSnapshot,
        Self::TrimLogEarly,
        Self::TakeTornGroup,
        Self::ReplayTrimmedLog,
        Self::BelieveStalePages,
        Self::CommitBeforeSegments,
        Self::CommitBeforeTables,
        Self::DeleteNotLogged,
        Self::AcknowledgeEarly,
        Self::ReleaseBeforeMoved,
        Self::UnreadableIsOld,
        Self::UnreadableIsNeeded,
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
        Self::HashSkipsKeyCompare,
        Self::HashForgetsDirtyPages,
        Self::HashForgetsUprooted,
    ];
}

/// The planted fault, if any.
pub type Planted = runtime::planted::Planted<Fault>;
