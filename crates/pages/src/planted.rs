//! Planted faults of what every index stands on: deliberate bugs that the model tests must catch.
//! Compiled in only with the feature `test-hooks`, which nothing but tests asks for.

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
    /// A flush publishes before its pages are durable.
    PublishBeforeDurable,
    /// The dump leaves out frozen memtables.
    DumpWithoutFrozen,
    /// Release segments although a snapshot may still read them.
    ReleaseUnderSnapshot,
    /// Move values away although a snapshot leads to where they were.
    MoveUnderSnapshot,
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
    /// An edit is committed before the tables that it refers to are durable.
    CommitBeforeTables,
    /// Deletes are not logged.
    DeleteNotLogged,
    /// A write is acknowledged before its group of the log is durable.
    AcknowledgeEarly,
    /// A collected extent is released before what was moved out of it is durable.
    ReleaseBeforeMoved,
    /// A page of log or manifest that cannot be read is held for old, and not needed, whatever lies behind it.
    UnreadableIsOld,
    /// One that is old is held for needed.
    UnreadableIsNeeded,
}

impl Fault {
    /// Every fault there is.
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

/// Which fault is planted, if any.
pub type Planted = planted::Planted<Fault>;
