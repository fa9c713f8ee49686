//! The classes of I/O for the limiter.

use runtime::IoClass;

/// The queues of limited I/O, the most urgent one first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Lane {
    /// Flushes, for which writers wait first.
    Flush = 0,
    /// Compactions out of L0, into L1 or L0.
    L0 = 1,
    /// All other compactions, and garbage collection.
    Rest = 2,
}

impl Lane {
    pub(crate) const ALL: [Self; 3] = [Self::Flush, Self::L0, Self::Rest];
}

/// The treatment of an I/O by a limiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// A client waits for it, or will: it is not limited, and counts as client bandwidth.
    Client,
    /// I/O of the manifest: it is not limited, and not counted.
    Free,
    /// Internal work, which is limited.
    Internal(Lane, Direction),
}

/// The direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Returns the treatment of an I/O of `class`.
pub(crate) const fn use_of(class: IoClass) -> Use {
    use Direction::{Read, Write};
    match class {
        IoClass::ClientRead
        | IoClass::Log
        | IoClass::IndexPrefetch
        | IoClass::ValuePrefetch
        | IoClass::ReadAhead => Use::Client,
        IoClass::Journal => Use::Free,
        IoClass::Flush => Use::Internal(Lane::Flush, Write),
        IoClass::L0CompactionRead => Use::Internal(Lane::L0, Read),
        IoClass::L0CompactionWrite => Use::Internal(Lane::L0, Write),
        IoClass::CompactionRead | IoClass::GcRead => Use::Internal(Lane::Rest, Read),
        IoClass::CompactionWrite | IoClass::GcWrite => Use::Internal(Lane::Rest, Write),
    }
}
