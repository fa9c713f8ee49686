//! Planted faults: deliberate bugs that the model tests must catch. Compiled in only with the
//! feature `planted-faults`, which nothing but tests asks for.

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The mapping points to a program's slots before it has ended.
    MapBeforeProgram,
    /// What is buffered when a deterministic window begins is forgotten.
    ForgetBufferAtWindow,
    /// A block that was moved is mapped to its new place although it was written meanwhile.
    MoveWithoutRecheck,
    /// A copy counts as newer than what was written before it was made.
    CopyAsNew,
    /// Superblocks are erased although clients read them.
    EraseUnderReaders,
    /// Discards are not remembered.
    ForgetDiscards,
    /// Superblocks are erased before the copies of their blocks have landed.
    EraseBeforeCopied,
    /// The data of blocks that are read often do not move.
    NoReclaim,
    /// Internal jobs go on in deterministic windows.
    JobsInWindow,
    /// The read cache keeps what was written meanwhile.
    StaleCache,
    /// Superblocks are erased before it is durable that their blocks were discarded.
    EraseBeforeSaved,
    /// Flush does not wait for programs.
    FlushTooEarly,
    /// A write that is forced is acknowledged like any other.
    IgnoreForce,
    /// Capacitors do not save the buffer.
    DumpWithoutBuffer,
    /// Versions are counted from the beginning again after a power cut.
    SequenceRestarts,
    /// A superblock that lost its power while it was erased is filled up and kept.
    FillErased,
    /// A recovery erases the dump that it read.
    EraseDumpInUse,
    /// What could not be read reads as zeros once it was moved.
    LostAsZeros,
    /// A lockdown begins without room for what is in the buffer.
    LockdownWithoutRoom,
}

impl Fault {
    /// Every fault there is.
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

/// Which fault is planted, if any.
pub type Planted = planted::Planted<Fault>;
