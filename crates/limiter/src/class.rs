//! Whose an I/O is.

use runtime::IoClass;

/// The queues in which limited I/O waits, the most urgent one first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Lane {
    /// Flushes: writers wait for them first.
    Flush = 0,
    /// Compactions out of L0, into L1 or L0.
    L0 = 1,
    /// All other compactions, and collection.
    Rest = 2,
}

impl Lane {
    pub(crate) const ALL: [Self; 3] = [Self::Flush, Self::L0, Self::Rest];
}

/// What an I/O means to a limiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// A client waits for it, or will: it passes, and counts as what clients take.
    Client,
    /// The manifest's: it passes, and counts as nothing.
    Free,
    /// Internal work.
    Internal(Lane, Direction),
}

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// What an I/O of `class` means.
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
