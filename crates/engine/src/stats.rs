//! Counters of a store.

use runtime::{Carrier, Nanos};
use serde::Serialize;

use crate::medium::Stream;

/// Counts of gets by their number of flash reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts(Vec<u64>);

impl ReadCounts {
    /// Counts a get with `reads` flash reads.
    pub fn add(&mut self, reads: u32) {
        let index = reads as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
    }

    /// Returns the number of gets for each number of flash reads, which is the index.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// Returns the largest number of reads of any get.
    pub fn max(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Returns the mean number of reads per get; 0 without any get.
    pub fn mean(&self) -> f64 {
        let gets: u64 = self.0.iter().sum();
        let reads: u64 = self.0.iter().zip(0..).map(|(count, reads)| count * reads).sum();
        reads as f64 / gets.max(1) as f64
    }
}

/// The work of a merge accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorWork {
    /// Merges done.
    pub merges: u64,
    /// Merges left to the processor, because an entry was too long or a copy was damaged.
    pub left_to_processor: u64,
    /// Bytes of the inputs.
    pub bytes: u64,
    /// Pages written only as input for the accelerator.
    pub pages_copied: u64,
    /// Time in use.
    pub busy: Nanos,
}

impl AcceleratorWork {
    fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        let Self { merges, left_to_processor, bytes, pages_copied, busy } = self;
        let counts = [merges, left_to_processor, bytes, pages_copied, &mut busy.0];
        counts.into_iter().try_for_each(|count| by.u64(count))
    }
}

/// Counters since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Flash reads per get.
    pub reads_per_get: ReadCounts,
    /// Client reads that were served by another client's read of the same page.
    pub shared_reads: u64,
    /// Damaged pages that were rebuilt from the medium's redundancy.
    pub rebuilt_reads: u64,
    /// Meta segments that client commands read without finding the key.
    pub vain_meta_reads: u64,
    /// Bloom filters that client commands probed.
    pub filter_probes: u64,
    /// Gets that found a value.
    pub gets_found: u64,
    /// Gets that found no value.
    pub gets_missing: u64,
    /// Puts and deletes.
    pub writes: u64,
    /// Bytes of keys and values that clients wrote.
    pub user_bytes: u64,
    /// Writes that waited for space.
    pub stalls: u64,
    /// The total time that writes waited for room.
    pub stalled: Nanos,
    /// Memtables flushed.
    pub flushes: u64,
    /// Objects flushed to the value log.
    pub flushed_objects: u64,
    /// Compactions from each level, L1 first.
    pub compactions: Vec<u64>,
    /// Entries that passed through merges, including flushes.
    pub merged_entries: u64,
    /// Entries dropped because a newer entry of their key was found.
    pub dropped_duplicates: u64,
    /// The work of the merge accelerator; zeros without one.
    pub accelerator: AcceleratorWork,
    /// Data extents collected.
    pub gc_data_extents: u64,
    /// Meta extents collected.
    pub gc_meta_extents: u64,
    /// Data extents quarantined, because a page that is in use is damaged or cannot be read.
    pub gc_quarantined_extents: u64,
    /// Extents released without moving data.
    pub gc_empty_extents: u64,
    /// Objects that garbage collection examined.
    pub gc_objects_seen: u64,
    /// Objects that garbage collection re-inserted.
    pub gc_objects_moved: u64,
    /// Meta pages that garbage collection moved.
    pub gc_pages_moved: u64,
    /// Groups of segments that compactions wrote.
    pub groups_written: u64,
    /// Groups of segments that garbage collections copied.
    pub groups_moved: u64,
    /// Cache hits and misses of clients; zeros without caches.
    pub caches: CacheStats,
    /// The work of iterators.
    pub iterators: IteratorStats,
    /// Snapshots that expired because memory or space ran out.
    pub snapshots_expired: u64,
    /// The work on tables, in designs whose levels consist of them.
    pub tables: TableStats,
    /// The number of times that the level plan was recomputed because level lists outgrew it.
    pub replans: u64,
    /// The highest use of index memory, in bytes.
    pub peak_index_bytes: u64,
}

impl ReadCounts {
    /// Carries all counts.
    pub fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.list(&mut self.0, Carrier::u64)
    }
}

impl EngineStats {
    /// Saves or restores all counters.
    pub fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        let Self {
            reads_per_get,
            shared_reads,
            rebuilt_reads,
            vain_meta_reads,
            filter_probes,
            gets_found,
            gets_missing,
            writes,
            user_bytes,
            stalls,
            stalled,
            flushes,
            flushed_objects,
            compactions,
            merged_entries,
            dropped_duplicates,
            accelerator,
            gc_data_extents,
            gc_meta_extents,
            gc_quarantined_extents,
            gc_empty_extents,
            gc_objects_seen,
            gc_objects_moved,
            gc_pages_moved,
            groups_written,
            groups_moved,
            caches,
            iterators,
            snapshots_expired,
            tables,
            replans,
            peak_index_bytes,
        } = self;
        reads_per_get.carry(by)?;
        by.list(compactions, Carrier::u64)?;
        let counts = [
            shared_reads,
            rebuilt_reads,
            vain_meta_reads,
            filter_probes,
            gets_found,
            gets_missing,
            writes,
            user_bytes,
            stalls,
            &mut stalled.0,
            flushes,
            flushed_objects,
            merged_entries,
            dropped_duplicates,
            gc_data_extents,
            gc_meta_extents,
            gc_quarantined_extents,
            gc_empty_extents,
            gc_objects_seen,
            gc_objects_moved,
            gc_pages_moved,
            groups_written,
            groups_moved,
            snapshots_expired,
            replans,
            peak_index_bytes,
        ];
        counts.into_iter().try_for_each(|count| by.u64(count))?;
        accelerator.carry(by)?;
        caches.carry(by)?;
        iterators.carry(by)?;
        tables.carry(by)
    }

    /// Counts a collected extent of `stream`.
    pub(crate) fn count_collected(&mut self, stream: Stream) {
        match stream {
            Stream::Objects => self.gc_data_extents += 1,
            _ => self.gc_meta_extents += 1,
        }
    }
}

/// Cache hits and misses of clients of an LSM-tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheStats {
    /// Index pages found in the cache.
    pub page_hits: u64,
    /// Index pages read from the medium.
    pub page_misses: u64,
    /// Values found in a cache, alone or in a cached page.
    pub value_hits: u64,
    /// Values read from the medium.
    pub value_misses: u64,
    /// Values found in a cached page of values.
    pub value_page_hits: u64,
}

impl CacheStats {
    fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        let Self { page_hits, page_misses, value_hits, value_misses, value_page_hits } = self;
        let counts = [page_hits, page_misses, value_hits, value_misses, value_page_hits];
        counts.into_iter().try_for_each(|count| by.u64(count))
    }

    /// Returns the counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            page_hits: self.page_hits - before.page_hits,
            page_misses: self.page_misses - before.page_misses,
            value_hits: self.value_hits - before.value_hits,
            value_misses: self.value_misses - before.value_misses,
            value_page_hits: self.value_page_hits - before.value_page_hits,
        }
    }
}

/// The work of flushes and compactions on tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableStats {
    /// Table pages written by flushes.
    pub flushed_pages: u64,
    /// Table pages written by compactions.
    pub written_pages: u64,
    /// Table pages read by compactions.
    pub read_pages: u64,
    /// Tables that were moved to the next level without rewriting.
    pub moves: u64,
    /// Compactions of L0 into L0.
    pub intra_l0: u64,
    /// The largest number of tables in L0.
    pub most_in_l0: u64,
    /// The number of pauses of compactions below L0, for a compaction out of L0 or for clients.
    pub yields: u64,
    /// The total duration of these pauses, in nanoseconds.
    pub yielded_ns: u64,
    /// Compactions that were aborted for a compaction out of L0.
    pub discarded_jobs: u64,
    /// Pages of tables that the aborted compactions had written; not counted in `written_pages`.
    pub discarded_written_pages: u64,
    /// Pages that the aborted compactions had read.
    pub discarded_read_pages: u64,
}

impl TableStats {
    fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        let Self {
            flushed_pages,
            written_pages,
            read_pages,
            moves,
            intra_l0,
            most_in_l0,
            yields,
            yielded_ns,
            discarded_jobs,
            discarded_written_pages,
            discarded_read_pages,
        } = self;
        let counts = [
            flushed_pages,
            written_pages,
            read_pages,
            moves,
            intra_l0,
            most_in_l0,
            yields,
            yielded_ns,
            discarded_jobs,
            discarded_written_pages,
            discarded_read_pages,
        ];
        counts.into_iter().try_for_each(|count| by.u64(count))
    }

    /// Returns the counts since `before`. `most_in_l0` stays the maximum since the start.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            flushed_pages: self.flushed_pages - before.flushed_pages,
            written_pages: self.written_pages - before.written_pages,
            read_pages: self.read_pages - before.read_pages,
            moves: self.moves - before.moves,
            intra_l0: self.intra_l0 - before.intra_l0,
            most_in_l0: self.most_in_l0,
            yields: self.yields - before.yields,
            yielded_ns: self.yielded_ns - before.yielded_ns,
            discarded_jobs: self.discarded_jobs - before.discarded_jobs,
            discarded_written_pages: self.discarded_written_pages - before.discarded_written_pages,
            discarded_read_pages: self.discarded_read_pages - before.discarded_read_pages,
        }
    }
}

/// The work of iterators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IteratorStats {
    /// Iterators created.
    pub created: u64,
    /// Seek calls.
    pub seeks: u64,
    /// Next calls.
    pub nexts: u64,
    /// Entries skipped without returning a pair: tombstones.
    pub skipped: u64,
    /// Commands that used up their skip budget.
    pub skips_cut_short: u64,
    /// Segments read while a Seek waited, from all levels in parallel.
    pub seek_index_reads: u64,
    /// Segments read while a Next waited, because they had not been prefetched.
    pub next_index_reads: u64,
    /// Segments prefetched.
    pub index_prefetches: u64,
    /// Segments prefetched that a command still had to wait for.
    pub index_prefetch_waits: u64,
    /// Values prefetched.
    pub value_prefetches: u64,
    /// Values prefetched that a command still had to wait for.
    pub value_prefetch_waits: u64,
    /// Values prefetched and not used.
    pub value_prefetches_wasted: u64,
    /// Values found in a page that the iterator still held.
    pub page_hits: u64,
}

impl IteratorStats {
    fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        let Self {
            created,
            seeks,
            nexts,
            skipped,
            skips_cut_short,
            seek_index_reads,
            next_index_reads,
            index_prefetches,
            index_prefetch_waits,
            value_prefetches,
            value_prefetch_waits,
            value_prefetches_wasted,
            page_hits,
        } = self;
        let counts = [
            created,
            seeks,
            nexts,
            skipped,
            skips_cut_short,
            seek_index_reads,
            next_index_reads,
            index_prefetches,
            index_prefetch_waits,
            value_prefetches,
            value_prefetch_waits,
            value_prefetches_wasted,
            page_hits,
        ];
        counts.into_iter().try_for_each(|count| by.u64(count))
    }

    /// Returns the counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            created: self.created - before.created,
            seeks: self.seeks - before.seeks,
            nexts: self.nexts - before.nexts,
            skipped: self.skipped - before.skipped,
            skips_cut_short: self.skips_cut_short - before.skips_cut_short,
            seek_index_reads: self.seek_index_reads - before.seek_index_reads,
            next_index_reads: self.next_index_reads - before.next_index_reads,
            index_prefetches: self.index_prefetches - before.index_prefetches,
            index_prefetch_waits: self.index_prefetch_waits - before.index_prefetch_waits,
            value_prefetches: self.value_prefetches - before.value_prefetches,
            value_prefetch_waits: self.value_prefetch_waits - before.value_prefetch_waits,
            value_prefetches_wasted: self.value_prefetches_wasted - before.value_prefetches_wasted,
            page_hits: self.page_hits - before.page_hits,
        }
    }
}

/// Memory in use by purpose, in bytes of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Keys and addresses of all level lists.
    pub level_lists: u64,
    /// Prefix arrays.
    pub prefixes: u64,
    /// Range pointers.
    pub range_pointers: u64,
    /// Pinned meta segments.
    pub pinned_segments: u64,
    /// Bloom filters of unpinned segments.
    pub filters: u64,
    /// The directory of a hash table: the place of each bucket page.
    pub directory: u64,
    /// Caches of the index: bucket pages of a hash table; pages and values of an LSM-tree.
    pub caches: u64,
    /// Objects in memtables; not part of the index budget (the paper's table leaves them out).
    pub memtables: u64,
    /// Pages held by compactions; not part of the index budget either.
    pub compaction_buffers: u64,
}

impl MemoryUse {
    /// Returns the bytes that count against the index budget.
    pub fn index_bytes(&self) -> u64 {
        let lists = self.level_lists + self.prefixes + self.range_pointers;
        lists + self.pinned_segments + self.filters + self.directory + self.caches
    }
}
