//! What an I/O is for. Every I/O carries its class; schedulers and statistics go by it.

/// The purpose of one I/O, after the classes that Vigil-KV schedules by: its "internal task" is flush,
/// compaction and garbage collection together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum IoClass {
    /// A read that a client waits for.
    ClientRead,
    /// A write-ahead log append.
    Log,
    /// A manifest append, or the dump and recovery of capacitor-backed memory.
    Journal,
    /// Memtable contents on their way to flash.
    Flush,
    /// Input of a compaction.
    CompactionRead,
    /// Output of a compaction.
    CompactionWrite,
    /// Input of a compaction out of L0, into L1 or L0: writes may come to wait for it.
    L0CompactionRead,
    /// Output of a compaction out of L0.
    L0CompactionWrite,
    /// Garbage collection: reading victims and looking their keys up.
    GcRead,
    /// Garbage collection: moving pages that are still in use, and erasing victims.
    GcWrite,
    /// An index page that an iterator will need soon.
    IndexPrefetch,
    /// A value that an iterator will need soon.
    ValuePrefetch,
    /// Blocks behind those that a client of a block drive reads in order.
    ReadAhead,
}

/// How urgent an I/O is at a resource it shares with others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Priority {
    /// A client waits for it.
    Demand,
    /// A client will probably ask for it soon.
    Prefetch,
    /// Nobody waits for it yet.
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

    /// A dense number for tables of per-class counters.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name used in reports.
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

    /// Whether it is done for a client, who waits for it or will, and not for a task in the background.
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

    /// How this class ranks where it competes.
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
