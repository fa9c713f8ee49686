//! Options and statistics of windows.

use runtime::Nanos;

use super::slot::{Rules, SlotPolicy};

/// The component that enforces windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeper {
    /// The devices, by NVMe's Predictable Latency Mode; they report their requirements.
    Device,
    /// The host alone, on devices without windows. It sends writes to one member at a time, and
    /// syncs that member at the end of its slot. Like Flash on Rails (ATC'14), with parity instead
    /// of copies.
    Host(Rules),
}

/// The handling of writes when `plm_cache` is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// Writes wait. Reads never do.
    Wait,
    /// Writes go to the members in any window, and break it.
    Write,
}

/// The times of internal reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InternalReads {
    /// Only in the slot of the member that is read.
    InSlots,
    /// In that slot without a limit; outside it at a limited rate and in pieces, so that a client
    /// waits for one piece at most.
    AnyTime {
        /// Rate outside the slot, in bytes per second.
        bytes_per_second: u64,
        /// Bytes of a piece; at least a whole page is read.
        piece_bytes: u64,
    },
}

/// The time of log and manifest writes, if these are on the same volume as the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum JournalWrites {
    /// In slots, like all other writes: a client that waits for the log waits for a rotation of the
    /// members.
    #[default]
    InSlots,
    /// At once, on every member and in any window. A read may be delayed by such a write, and a
    /// device may leave its window because of it. These writes are counted (`journal_writes`).
    AtOnce,
}

/// Options of windows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowOptions {
    /// The component that enforces windows.
    pub keeper: Keeper,
    /// The length of slots.
    pub slots: SlotPolicy,
    /// Capacity of `plm_cache` in bytes, including parity.
    pub cache_bytes: u64,
    /// The handling of writes beyond that.
    pub overflow: Overflow,
    /// The times of internal reads.
    pub internal_reads: InternalReads,
    /// The time of log and manifest writes.
    pub journal: JournalWrites,
    /// Whether all members stay in their deterministic windows until a slot is needed. Otherwise
    /// slots follow one another without pauses.
    pub pauses: bool,
    /// Write bandwidth of a member in bytes per second, until it has been measured.
    pub write_bytes_per_second: u64,
}

impl WindowOptions {
    /// O-Vigil, on devices with windows: a cache of 2 GB and slots by need. Assumed, because the
    /// paper does not specify them: internal tasks read 100 MB/s outside slots, in pieces of 16 KiB
    /// (a flash page), and a member writes 100 MB/s until measured.
    pub const O_VIGIL: Self = Self {
        keeper: Keeper::Device,
        slots: SlotPolicy::Dynamic,
        cache_bytes: 2_000_000_000,
        overflow: Overflow::Wait,
        internal_reads: InternalReads::AnyTime {
            bytes_per_second: 100_000_000,
            piece_bytes: 16 << 10,
        },
        journal: JournalWrites::InSlots,
        pauses: true,
        write_bytes_per_second: 100_000_000,
    };

    /// R-Vigil: slots of the shortest length without pauses; writes that do not fit into them are
    /// written in any window.
    pub const R_VIGIL: Self = Self {
        slots: SlotPolicy::Constant(Nanos::ZERO),
        overflow: Overflow::Write,
        pauses: false,
        ..Self::O_VIGIL
    };
}

/// Statistics of windows since they were turned on.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct WindowStats {
    /// Pages read from `plm_cache`.
    pub cached_reads: u64,
    /// Client pages read from a member in its deterministic window.
    pub direct_reads: u64,
    /// Client pages rebuilt because their member was outside its window.
    pub rebuilt_reads: u64,
    /// Violations: client pages read from a member outside its window.
    pub busy_reads: u64,
    /// Pages that internal tasks read in the slot of their member.
    pub slot_reads: u64,
    /// Pages that internal tasks read from members outside their slot, or rebuilt.
    pub internal_reads: u64,
    /// Violations: writes that ended in a deterministic window.
    pub writes_in_dtwin: u64,
    /// Log and manifest writes submitted to a member outside its slot, with
    /// [`JournalWrites::AtOnce`].
    pub journal_writes: u64,
    /// Violations: devices found outside the window that they had entered, or that refused a window
    /// command.
    pub lost_windows: u64,
    /// Stripes acknowledged.
    pub stripes: u64,
    /// Stripes that waited for room in `plm_cache`.
    pub waits_for_room: u64,
    /// Total time that stripes waited for room.
    pub waited: Nanos,
    /// Bytes in `plm_cache` now.
    pub cached: u64,
    /// Maximum of bytes in `plm_cache`.
    pub most_cached: u64,
    /// Number of slots.
    pub slots: u64,
    /// Slots that were longer than minNDWIN plus the margin, because of their work.
    pub long_slots: u64,
    /// Slots that ended with writes left.
    pub unfinished_slots: u64,
    /// Total time that members spent in unavailable DTWIN.
    pub udt: Nanos,
    /// Total time in available NDWIN.
    pub and: Nanos,
    /// Total time in unavailable NDWIN.
    pub und: Nanos,
    /// Total time in lockdown.
    pub lockdown: Nanos,
    /// Bytes written in slots.
    pub slot_bytes: u64,
}
