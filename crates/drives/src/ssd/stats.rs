//! Counters of a set.

use std::ops::AddAssign;

/// Counters of a set since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetStats {
    /// Blocks read by clients.
    pub blocks_read: u64,
    /// Blocks read that were in the write buffer.
    pub buffer_hits: u64,
    /// Blocks read that were read ahead.
    pub cache_hits: u64,
    /// Blocks written by clients.
    pub blocks_written: u64,
    /// Blocks written that were delayed by write pacing.
    pub blocks_paced: u64,
    /// Total delay by write pacing, in nanoseconds.
    pub paced_ns: u64,
    /// Slots programmed with client data.
    pub slots_flushed: u64,
    /// Slots programmed with moved blocks.
    pub slots_moved: u64,
    /// Slots programmed with padding.
    pub slots_wasted: u64,
    /// Superblocks collected because space ran low.
    pub collections: u64,
    /// Superblocks collected because they lagged behind in wear.
    pub wear_moves: u64,
    /// Blocks of flash whose data moved because of many reads (read reclaim).
    pub reclaims: u64,
    /// Times that the flush of the buffer waited for garbage collection.
    pub starvations: u64,
    /// Logical blocks lost by the flash.
    pub blocks_lost: u64,
    /// Discards ignored because there was no room to remember them.
    pub discards_ignored: u64,
    /// Mapping pages read because they were not in memory.
    pub mapping_reads: u64,
    /// Mapping pages programmed because they were modified and evicted from memory.
    pub mapping_writes: u64,
    /// Deterministic windows entered.
    pub windows_entered: u64,
    /// Deterministic windows ended by the drive, not by the host.
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
    /// Returns the slots programmed per block written by clients.
    pub fn write_amplification(&self) -> f64 {
        let programmed = self.slots_flushed + self.slots_moved + self.slots_wasted;
        programmed as f64 / self.blocks_written.max(1) as f64
    }
}
