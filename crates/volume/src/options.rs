//! Options and statistics of a volume.

use engine::ExtentId;
use runtime::Nanos;

use crate::layout::Layout;

/// Options of a volume.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// How pages are distributed over the members.
    pub layout: Layout,
    /// Identity of the volume. It distinguishes its members from those of other volumes.
    pub id: u64,
    /// Whether members that lack data are filled (rebuilt) in the background.
    pub fills: bool,
    /// Rate of background filling, in bytes per second per member.
    pub refill_bytes_per_second: u64,
    /// Number of times that filling an extent rereads pages that the others could not read, one
    /// second apart, before it declares a page lost. A page that is unreadable for a moment is not
    /// lost.
    pub refill_retries: u32,
    /// Processor time, in nanoseconds, of the exclusive or of one KiB into another.
    pub xor_ns_per_kib: f64,
    /// Time after which a client's read of a page is also rebuilt from the others, where there is
    /// redundancy; the first result is used. `None`: never.
    pub hedge_after: Option<Nanos>,
    /// Whether all data of the members is read, including that of extents and members that are not
    /// relied on. This is for salvage tools, which judge each page by its own header. A member that
    /// holds another volume counts as gone.
    pub last_resort: bool,
}

impl Options {
    /// Returns the default options for a layout and identity.
    ///
    /// A member is filled at 100 MB/s (assumed: a tenth of a drive's write bandwidth). Filling
    /// retries for five seconds pages that the others cannot read (assumed: a path that comes
    /// back). Parity costs 60 ns per KiB (assumed: one core reads twice and writes once at 17 GB/s
    /// each).
    pub fn new(layout: Layout, id: u64) -> Self {
        Self {
            layout,
            id,
            fills: true,
            refill_bytes_per_second: 100_000_000,
            refill_retries: 5,
            xor_ns_per_kib: 60.0,
            hedge_after: None,
            last_resort: false,
        }
    }

    /// Returns the processor time for adding `bytes` bytes to a parity.
    pub(crate) fn xor_cost(&self, bytes: u64) -> Nanos {
        Nanos((bytes as f64 / 1024.0 * self.xor_ns_per_kib).round() as u64)
    }
}

/// Statistics of a volume, since it was assembled.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct VolumeStats {
    /// Pages read, including those of multi-page reads.
    pub reads: u64,
    /// Pages that were rebuilt from the other members.
    pub rebuilt_reads: u64,
    /// Client reads that took too long and were also started on the other members.
    pub hedged_reads: u64,
    /// Hedged reads that the other members answered first.
    pub hedges_won: u64,
    /// Parity pages written.
    pub parity_pages: u64,
    /// Stripes written without at least one member.
    pub degraded_writes: u64,
    /// Extents of members that turned out to be of another opening, or incomplete.
    pub stale_extents: u64,
    /// Extents of members that keep a hole, because refilling them would lose a page. The stripe
    /// with the hole has no redundancy until the extent is released.
    pub kept_holes: u64,
    /// Bytes that members were filled with, counted in whole pages.
    pub refilled_bytes: u64,
    /// Pages that could not be rebuilt while a member was filled.
    pub lost_pages: u64,
    /// Members that were lost, or stopped taking writes.
    pub lost_members: u64,
}

/// Progress of filling a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The extent that the member is being filled with.
    pub extent: Option<ExtentId>,
    /// Stripes filled so far.
    pub done: u64,
    /// Total number of stripes, as far as is known now.
    pub of: u64,
}
