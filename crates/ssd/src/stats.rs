//! What a set did.

use std::ops::AddAssign;

/// Counters of a set since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetStats {
    /// Blocks that clients read.
    pub blocks_read: u64,
    /// Of them, found in the write buffer.
    pub buffer_hits: u64,
    /// Of them, read ahead.
    pub cache_hits: u64,
    /// Blocks that clients wrote.
    pub blocks_written: u64,
    /// Of them, kept waiting by the pace of writes.
    pub blocks_paced: u64,
    /// How long these waited for it, all together, in nanoseconds.
    pub paced_ns: u64,
    /// Slots programmed with what clients wrote.
    pub slots_flushed: u64,
    /// Slots programmed with blocks that were moved.
    pub slots_moved: u64,
    /// Slots programmed with nothing, to fill up a unit.
    pub slots_wasted: u64,
    /// Superblocks collected because space ran low.
    pub collections: u64,
    /// Superblocks collected because they lagged behind in wear.
    pub wear_moves: u64,
    /// Blocks whose data moved because they were read so often.
    pub reclaims: u64,
    /// Times that emptying the buffer had to wait for garbage collection.
    pub starvations: u64,
    /// Logical blocks that the flash lost.
    pub blocks_lost: u64,
    /// Discards that were ignored for want of room to remember them.
    pub discards_ignored: u64,
    /// Mapping pages read, because they were not in memory.
    pub mapping_reads: u64,
    /// Mapping pages programmed, because they were changed and left memory.
    pub mapping_writes: u64,
    /// Deterministic windows entered.
    pub windows_entered: u64,
    /// Of them, left by the drive and not by the host.
    pub windows_broken: u64,
}

impl AddAssign for SetStats {
    fn add_assign(&mut self, more: Self) {
        self.blocks_read += more.blocks_read;
        self.buffer_hits += more.buffer_hits;
        self.cache_hits += more.cache_hits;
        self.blocks_written += more.blocks_written;
        self.blocks_paced += more.blocks_paced;
        self.paced_ns += more.paced_ns;
        self.slots_flushed += more.slots_flushed;
        self.slots_moved += more.slots_moved;
        self.slots_wasted += more.slots_wasted;
        self.collections += more.collections;
        self.wear_moves += more.wear_moves;
        self.reclaims += more.reclaims;
        self.starvations += more.starvations;
        self.blocks_lost += more.blocks_lost;
        self.discards_ignored += more.discards_ignored;
        self.mapping_reads += more.mapping_reads;
        self.mapping_writes += more.mapping_writes;
        self.windows_entered += more.windows_entered;
        self.windows_broken += more.windows_broken;
    }
}

impl SetStats {
    /// Slots programmed for each block that clients wrote.
    pub fn write_amplification(&self) -> f64 {
        let programmed = self.slots_flushed + self.slots_moved + self.slots_wasted;
        programmed as f64 / self.blocks_written.max(1) as f64
    }
}
