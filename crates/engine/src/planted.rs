//! Planted faults: deliberate bugs that the model tests must catch. Compiled in only with the
//! feature `planted-faults`, which nothing but tests asks for.

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Accept pages whose checksum or number is wrong.
    SkipChecksum,
    /// Release a collected extent before readers that may still use it are gone.
    ReleaseEarly,
    /// Do not hold an epoch while reading.
    ReadWithoutEpoch,
    /// Garbage collection does not look whether a key was overwritten while it worked.
    CollectWithoutRecheck,
    /// Compaction drops tombstones above the last level.
    DropTombstonesEarly,
    /// A flush publishes before its pages are durable.
    PublishBeforeDurable,
    /// The dump leaves out frozen memtables.
    DumpWithoutFrozen,
    /// The hash table takes a signature for the key.
    HashSkipsKeyCompare,
    /// The dump leaves out bucket pages that were changed in memory.
    HashForgetsDirtyPages,
    /// The hash table does not note which slots garbage collection has taken the object of.
    HashForgetsUprooted,
    /// A filter does not know the last key of its segment.
    FilterForgetsKeys,
    /// Release segments although a snapshot may still read them.
    ReleaseUnderSnapshot,
    /// Move values away although a snapshot leads to where they were.
    MoveUnderSnapshot,
    /// A write does not keep the version it replaces for snapshots.
    OverwriteUnderSnapshot,
    /// A flush of the hash table does not wait for the log.
    TableBeforeLog,
    /// The log is trimmed when a memtable is frozen, not when it is flushed.
    TrimLogEarly,
    /// A recovery takes what is there of a torn group of the log or the manifest.
    TakeTornGroup,
    /// A recovery replays groups of the log that were trimmed and not erased yet.
    ReplayTrimmedLog,
    /// Believe whole pages from elsewhere, from another life of their extent, or of another store.
    BelieveStalePages,
    /// An edit is committed before the segments that it refers to are durable.
    CommitBeforeSegments,
    /// A recovery counts writes from where the checkpoint was, although later ones were flushed.
    SequenceGoesBack,
    /// Deletes are not logged.
    DeleteNotLogged,
    /// A write is acknowledged before its group of the log is durable.
    AcknowledgeEarly,
    /// A collected extent is released before what was moved out of it is durable.
    ReleaseBeforeMoved,
    /// An extent is released before the manifest says that it is.
    ReleaseBeforeNoted,
    /// An iterator reads what memtables hold now, not what they held when it was made.
    ReadPastSnapshot,
}

impl Fault {
    /// Every fault there is.
    pub const ALL: [Self; 26] = [
        Self::SkipChecksum,
        Self::ReleaseEarly,
        Self::ReadWithoutEpoch,
        Self::CollectWithoutRecheck,
        Self::DropTombstonesEarly,
        Self::PublishBeforeDurable,
        Self::DumpWithoutFrozen,
        Self::HashSkipsKeyCompare,
        Self::HashForgetsDirtyPages,
        Self::HashForgetsUprooted,
        Self::FilterForgetsKeys,
        Self::ReleaseUnderSnapshot,
        Self::MoveUnderSnapshot,
        Self::OverwriteUnderSnapshot,
        Self::TableBeforeLog,
        Self::TrimLogEarly,
        Self::TakeTornGroup,
        Self::ReplayTrimmedLog,
        Self::BelieveStalePages,
        Self::CommitBeforeSegments,
        Self::SequenceGoesBack,
        Self::DeleteNotLogged,
        Self::AcknowledgeEarly,
        Self::ReleaseBeforeMoved,
        Self::ReleaseBeforeNoted,
        Self::ReadPastSnapshot,
    ];
}

/// Which fault is planted, if any.
pub type Planted = planted::Planted<Fault>;
