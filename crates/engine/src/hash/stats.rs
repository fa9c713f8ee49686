//! The counters of a hash table, in addition to those of every index.

use runtime::{Carrier, IoClass};

use crate::stats::ReadCounts;

/// The counters of a hash table since it was opened, and its current state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HashStats {
    /// Accesses of clients to bucket pages that were in memory.
    pub bucket_hits: u64,
    /// Accesses of clients to bucket pages that were not in memory. The page is read, or the client
    /// waits for the read of another task. A page that was never written needs no read.
    pub bucket_misses: u64,
    /// As [`Self::bucket_hits`], for flushes and garbage collection.
    pub background_hits: u64,
    /// As [`Self::bucket_misses`], for flushes and garbage collection.
    pub background_misses: u64,
    /// Bucket pages written to make room in memory, including those that fill up an append unit.
    pub dirty_evictions: u64,
    /// The part of [`Self::dirty_evictions`] for which a client's read waited.
    pub dirty_evictions_in_reads: u64,
    /// Lookups of clients in the table, by the number of slots that they probed.
    pub slots_per_lookup: ReadCounts,
    /// Objects that clients read although they belong to another key with the same signature.
    pub false_matches: u64,
    /// The maximum number of slots that a lookup may probe now.
    pub longest_search: u32,
    /// Bucket pages of the table.
    pub bucket_pages: u32,
    /// Slots of the table.
    pub slots: u64,
    /// Slots in use.
    pub keys: u64,
    /// Bucket pages in memory.
    pub cached_pages: u64,
    /// Dirty bucket pages in memory: those with changes that no write has picked up yet.
    pub dirty_pages: u64,
}

impl HashStats {
    /// Carries the counters. The state of the table is computed on request.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        let Self {
            bucket_hits,
            bucket_misses,
            background_hits,
            background_misses,
            dirty_evictions,
            dirty_evictions_in_reads,
            slots_per_lookup,
            false_matches,
            longest_search: _,
            bucket_pages: _,
            slots: _,
            keys: _,
            cached_pages: _,
            dirty_pages: _,
        } = self;
        let counts = [
            bucket_hits,
            bucket_misses,
            background_hits,
            background_misses,
            dirty_evictions,
            dirty_evictions_in_reads,
            false_matches,
        ];
        counts.into_iter().try_for_each(|count| by.u64(count))?;
        slots_per_lookup.carry(by)
    }

    pub(crate) fn count_load(&mut self, class: IoClass, is_hit: bool) {
        let is_client = class == IoClass::ClientRead;
        *match (is_client, is_hit) {
            (true, true) => &mut self.bucket_hits,
            (true, false) => &mut self.bucket_misses,
            (false, true) => &mut self.background_hits,
            (false, false) => &mut self.background_misses,
        } += 1;
    }

    pub(crate) fn count_evictions(&mut self, class: IoClass, pages: usize) {
        self.dirty_evictions += pages as u64;
        if class == IoClass::ClientRead {
            self.dirty_evictions_in_reads += pages as u64;
        }
    }
}
