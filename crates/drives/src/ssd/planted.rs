//! Planted faults: deliberate bugs that the model tests must catch. Compiled in only with the
//! feature `test-hooks`, which only tests enable.

/// A deliberate bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The mapping points to a program's slots before the program has ended.
    MapBeforeProgram,
    /// Blocks buffered when a deterministic window begins are lost.
    ForgetBufferAtWindow,
    /// A moved block is mapped to its copy although it was overwritten meanwhile.
    MoveWithoutRecheck,
    /// A copy counts as newer than writes made before the copy.
    CopyAsNew,
    /// Superblocks are erased while clients read them.
    EraseUnderReaders,
    /// Discards are not saved.
    ForgetDiscards,
    /// Superblocks are erased before the copies of their blocks are programmed.
    EraseBeforeCopied,
    /// Read reclaim is disabled.
    NoReclaim,
    /// Internal jobs continue in deterministic windows.
    JobsInWindow,
    /// The read cache keeps blocks that were overwritten.
    StaleCache,
    /// Superblocks are erased before the discards of their blocks are durable.
    EraseBeforeSaved,
    /// Flush does not wait for programs.
    FlushTooEarly,
    /// A forced write is acknowledged before it is durable.
    IgnoreForce,
    /// Capacitors do not save the buffer.
    DumpWithoutBuffer,
    /// Sequence numbers restart after a power cut.
    SequenceRestarts,
    /// A superblock that lost power during its erase is padded and kept.
    FillErased,
    /// A recovery erases the dump that it used.
    EraseDumpInUse,
    /// An unreadable block reads as zeros after it was moved.
    LostAsZeros,
    /// A lockdown begins without room for the buffer.
    LockdownWithoutRoom,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 19] = [
        Self::MapBeforeProgram,
        Self::ForgetBufferAtWindow,
        Self::MoveWithoutRecheck,
        Self::CopyAsNew,
        Self::EraseUnderReaders,
        Self::ForgetDiscards,
        Self::EraseBeforeCopied,
        Self::NoReclaim,
        Self::JobsInWindow,
        Self::StaleCache,
        Self::EraseBeforeSaved,
        Self::FlushTooEarly,
        Self::IgnoreForce,
        Self::DumpWithoutBuffer,
        Self::SequenceRestarts,
        Self::FillErased,
        Self::EraseDumpInUse,
        Self::LostAsZeros,
        Self::LockdownWithoutRoom,
    ];
}

/// The planted fault, if any.
pub type Planted = runtime::planted::Planted<Fault>;
