//! What a hash table did, counted, besides what every index counts.

use runtime::{Carrier, IoClass};

use crate::stats::ReadCounts;

/// What a hash table did since it was opened, and what it is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HashStats {
    /// Looks at bucket pages for clients that found them in memory.
    pub bucket_hits: u64,
    /// Those that had to read them, or wait for another's read.
    pub bucket_misses: u64,
    /// As [`Self::bucket_hits`], of flushes and garbage collection.
    pub background_hits: u64,
    /// As [`Self::bucket_misses`], of flushes and garbage collection.
    pub background_misses: u64,
    /// Bucket pages written to make room in memory.
    pub dirty_evictions: u64,
    /// Those of them that a client's read waited for.
    pub dirty_evictions_in_reads: u64,
    /// Lookups of clients that went to the table, by the number of slots they looked at.
    pub slots_per_lookup: ReadCounts,
    /// Objects that clients read although they are of another key with the same signature.
    pub false_matches: u64,
    /// Most slots that a lookup may have to look at now.
    pub longest_search: u32,
    /// Bucket pages of the table.
    pub bucket_pages: u32,
    /// Slots of the table.
    pub slots: u64,
    /// Slots in use.
    pub keys: u64,
    /// Bucket pages in memory.
    pub cached_pages: u64,
    /// Bucket pages in memory that differ from the medium.
    pub dirty_pages: u64,
}

impl HashStats {
    /// Carries what is counted. What the table is like is worked out when somebody asks.
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
