//! Planted faults of the page layer: deliberate bugs that the model tests must catch. Compiled in
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
    /// A flush of the hash table does not wait for the WAL.
    TableBeforeLog,
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
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 20] = [
        Self::SkipChecksum,
        Self::ReleaseEarly,
        Self::ReadWithoutEpoch,
        Self::CollectWithoutRecheck,
        Self::PublishBeforeDurable,
        Self::DumpWithoutFrozen,
        Self::ReleaseUnderSnapshot,
        Self::MoveUnderSnapshot,
        Self::TableBeforeLog,
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
    ];
}

/// The planted fault, if any.
pub type Planted = planted::Planted<Fault>;
