//! The purpose of an I/O. Every I/O carries its class, which schedulers and statistics use.

/// The purpose of one I/O, after the classes by which Vigil-KV schedules. Vigil-KV's "internal
/// task" comprises flush, compaction and garbage collection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum IoClass {
    /// A read that a client waits for.
    ClientRead,
    /// A write-ahead log append.
    Log,
    /// A manifest append, or the dump and recovery of capacitor-backed memory.
    Journal,
    /// Writing memtable contents to flash.
    Flush,
    /// Input of a compaction.
    CompactionRead,
    /// Output of a compaction.
    CompactionWrite,
    /// Input of a compaction of L0 into L1 or L0, for which writes may have to wait.
    L0CompactionRead,
    /// Output of a compaction of L0.
    L0CompactionWrite,
    /// Garbage collection: reading victims and looking up their keys.
    GcRead,
    /// Garbage collection: moving pages in use, and erasing victims.
    GcWrite,
    /// An index page that an iterator will need soon.
    IndexPrefetch,
    /// A value that an iterator will need soon.
    ValuePrefetch,
    /// The blocks after those that a client of a block drive reads sequentially.
    ReadAhead,
}

/// The urgency of an I/O at a shared resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Priority {
    /// A client waits for it.
    Demand,
    /// A client will probably need it soon.
    Prefetch,
    /// No client waits for it yet.
    Background,
}

impl IoClass {
    /// All classes, in the order of [`IoClass::index`].
    pub const ALL: [Self; 13] = [
        Self::ClientRead,
        Self::Log,
        Self::Journal,
        Self::Flush,
        Self::CompactionRead,
        Self::CompactionWrite,
        Self::L0CompactionRead,
        Self::L0CompactionWrite,
        Self::GcRead,
        Self::GcWrite,
        Self::IndexPrefetch,
        Self::ValuePrefetch,
        Self::ReadAhead,
    ];

    /// Returns a dense index for tables of per-class counters.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientRead => "client_read",
            Self::Log => "log",
            Self::Journal => "journal",
            Self::Flush => "flush",
            Self::CompactionRead => "compaction_read",
            Self::CompactionWrite => "compaction_write",
            Self::L0CompactionRead => "l0_compaction_read",
            Self::L0CompactionWrite => "l0_compaction_write",
            Self::GcRead => "gc_read",
            Self::GcWrite => "gc_write",
            Self::IndexPrefetch => "index_prefetch",
            Self::ValuePrefetch => "value_prefetch",
            Self::ReadAhead => "read_ahead",
        }
    }

    /// Whether the I/O is for a client that waits for it, now or later, and not for a background
    /// task.
    pub const fn is_for_clients(self) -> bool {
        match self {
            Self::ClientRead
            | Self::Log
            | Self::Journal
            | Self::IndexPrefetch
            | Self::ValuePrefetch
            | Self::ReadAhead => true,
            Self::Flush
            | Self::CompactionRead
            | Self::CompactionWrite
            | Self::L0CompactionRead
            | Self::L0CompactionWrite
            | Self::GcRead
            | Self::GcWrite => false,
        }
    }

    /// Returns the priority of this class.
    pub const fn priority(self) -> Priority {
        match self {
            Self::ClientRead | Self::Log => Priority::Demand,
            Self::IndexPrefetch | Self::ValuePrefetch | Self::ReadAhead => Priority::Prefetch,
            Self::Journal
            | Self::Flush
            | Self::CompactionRead
            | Self::CompactionWrite
            | Self::L0CompactionRead
            | Self::L0CompactionWrite
            | Self::GcRead
            | Self::GcWrite => Priority::Background,
        }
    }
}
