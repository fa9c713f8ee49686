//! Operations on a block drive.

use runtime::Nanos;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A flush, which makes earlier writes durable.
    Flush,
    /// A trim, which allows the drive to drop blocks.
    Trim,
}

impl Direction {
    /// All directions.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Trim];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
        }
    }
}

/// An operation of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Operation {
    /// The intended start.
    pub at: Nanos,
    pub direction: Direction,
    /// The index of the set, in the sets of the stream.
    pub set: usize,
    /// The first block.
    pub first: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// Whether the same blocks are written once the operation has ended.
    pub is_written_after: bool,
}
