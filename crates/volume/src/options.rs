//! What a volume is told.

use pages::ExtentId;
use runtime::Nanos;

use crate::layout::Layout;

/// What a volume is told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// How pages lie on the members.
    pub layout: Layout,
    /// Its identity: members of other volumes are told by it.
    pub id: u64,
    /// Whether members that lack something are filled.
    pub fills: bool,
    /// Bytes a second that a member is filled with in the background.
    pub refill_bytes_per_second: u64,
    /// How often the filling of a member reads again what the others could not give of an extent, a second later each time, before it takes
    /// pages for lost. What they cannot read for a moment is not lost.
    pub refill_retries: u32,
    /// Processor time for the exclusive or of a KiB with another.
    pub xor_ns_per_kib: f64,
    /// After how long a client's read of a page that has not come is rebuilt from the others as well, where there is
    /// redundancy; whichever comes first is taken. Never, if nothing is said.
    pub hedge_after: Option<Nanos>,
    /// Whether all is read that members have, also of extents and members that nobody relies on: for whoever saves what is left, and goes by what each
    /// page says of itself. A member that holds something else counts as gone.
    pub last_resort: bool,
}

impl Options {
    /// A volume of that layout and identity.
    ///
    /// A member is filled with 100 MB/s (assumed: a tenth of what a drive writes), and tries five seconds long to read what the
    /// others cannot (assumed: a path that comes back). Parity costs 60 ns a
    /// KiB (assumed: one core reads twice and writes once at 17 GB/s each).
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

    /// What it costs to add so many bytes to a parity.
    pub(crate) fn xor_cost(&self, bytes: u64) -> Nanos {
        Nanos((bytes as f64 / 1024.0 * self.xor_ns_per_kib).round() as u64)
    }
}

/// What a volume did, counted since it was put together.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct VolumeStats {
    /// Pages that were read, those of runs included.
    pub reads: u64,
    /// Those that were rebuilt from others.
    pub rebuilt_reads: u64,
    /// Client reads that had not come in time, and were begun a second time from the others.
    pub hedged_reads: u64,
    /// Those of them that came from there first.
    pub hedges_won: u64,
    /// Pages of parity that were written.
    pub parity_pages: u64,
    /// Stripes that were written without some member.
    pub degraded_writes: u64,
    /// Extents of members that turned out to be of another opening, or incomplete.
    pub stale_extents: u64,
    /// Extents of members that keep a hole, because a page would be lost if they were filled again. The stripe
    /// with the hole is without redundancy until the extent is released.
    pub kept_holes: u64,
    /// Bytes that members were filled with, nominal.
    pub refilled_bytes: u64,
    /// Pages that could not be rebuilt when a member was filled.
    pub lost_pages: u64,
    /// Members that were lost, or took no more writes.
    pub lost_members: u64,
}

/// How far a member is filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The extent that it is being filled with.
    pub extent: Option<ExtentId>,
    /// Stripes it was filled with.
    pub done: u64,
    /// Stripes in all, as far as is known now.
    pub of: u64,
}
