//! What windows are told, and what they did.

use runtime::Nanos;

use super::slot::{Rules, SlotPolicy};

/// Who keeps the windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeper {
    /// The devices, by NVMe's Predictable Latency Mode; they say what they ask for.
    Device,
    /// The host alone, on devices that know nothing of windows: it keeps writes off all members but one,
    /// which has a sync at the end of its slot. As Flash on Rails (ATC'14) does, with parity for copies.
    Host(Rules),
}

/// What happens to writes that find `plm_cache` full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// They wait. Reads never do.
    Wait,
    /// They go to the members whatever window those are in, and break it.
    Write,
}

/// When internal tasks read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InternalReads {
    /// In the slot of the member they read from, and at no other time.
    InSlots,
    /// In that slot freely, from other members with at most so many bytes a second, a piece at a time, so that a client
    /// waits behind no more than one.
    AnyTime {
        /// Bytes a second.
        bytes_per_second: u64,
        /// Bytes of a piece; whole pages are read at least.
        piece_bytes: u64,
    },
}

/// When log and manifest are written, where they lie beside the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum JournalWrites {
    /// In slots, as everything else: whoever waits for the log waits for a rotation of the members.
    #[default]
    InSlots,
    /// At once, on every member, whatever window that is in: a read may meet such a write, and a device may leave its window
    /// for it. They are counted (`journal_writes`).
    AtOnce,
}

/// What windows are told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowOptions {
    /// Who keeps them.
    pub keeper: Keeper,
    /// How long slots are.
    pub slots: SlotPolicy,
    /// Bytes that `plm_cache` may hold, parity included.
    pub cache_bytes: u64,
    /// What happens beyond that.
    pub overflow: Overflow,
    /// When internal tasks read.
    pub internal_reads: InternalReads,
    /// When log and manifest are written.
    pub journal: JournalWrites,
    /// Whether all members stay in their deterministic windows for as long as nothing urges. Otherwise one slot
    /// follows the other.
    pub pauses: bool,
    /// Bytes a second that a member writes, as far as nothing was measured yet.
    pub write_bytes_per_second: u64,
}

impl WindowOptions {
    /// O-Vigil's, on devices with windows: 2 GB of cache and slots by need. What the paper does not give is
    /// assumed: internal tasks read 100 MB/s outside slots in pieces of 16 KiB (a page of the flash), and a member is taken to write 100 MB/s until it
    /// was seen to.
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

    /// R-Vigil's: slots of the shortest length, one after the other, and what does not fit into them is
    /// written all the same.
    pub const R_VIGIL: Self = Self {
        slots: SlotPolicy::Constant(Nanos::ZERO),
        overflow: Overflow::Write,
        pauses: false,
        ..Self::O_VIGIL
    };
}

/// What windows did, counted since they began.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct WindowStats {
    /// Pages that were read from `plm_cache`.
    pub cached_reads: u64,
    /// Pages that clients read from a member in its deterministic window.
    pub direct_reads: u64,
    /// Pages of clients that were rebuilt because their member was outside its window.
    pub rebuilt_reads: u64,
    /// Against the rules: pages that clients read from a member outside its window.
    pub busy_reads: u64,
    /// Pages that internal tasks read in the slot of their member.
    pub slot_reads: u64,
    /// Pages that they read from other members, or rebuilt.
    pub internal_reads: u64,
    /// Against the rules: writes that ended in a deterministic window.
    pub writes_in_dtwin: u64,
    /// Writes of log and manifest that passed a member outside its slot, as [`JournalWrites::AtOnce`] has them.
    pub journal_writes: u64,
    /// Against the rules: devices found outside the window that they were taken to.
    pub lost_windows: u64,
    /// Stripes that were acknowledged.
    pub stripes: u64,
    /// Those that waited for room in `plm_cache`.
    pub waits_for_room: u64,
    /// How long they waited, together.
    pub waited: Nanos,
    /// Bytes in `plm_cache` now.
    pub cached: u64,
    /// Most bytes that were in `plm_cache`.
    pub most_cached: u64,
    /// Slots.
    pub slots: u64,
    /// Those that were longer than they had to be, for the work.
    pub long_slots: u64,
    /// Those that ended with writes left to do.
    pub unfinished_slots: u64,
    /// Time that members were in each part of their slots, together.
    pub udt: Nanos,
    /// Available NDWIN.
    pub and: Nanos,
    /// Unavailable NDWIN.
    pub und: Nanos,
    /// Lockdown.
    pub lockdown: Nanos,
    /// Bytes that were written in slots.
    pub slot_bytes: u64,
}
