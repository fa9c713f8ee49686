//! The parameters of level sizes.

use super::pair::Pair;
use crate::options::{Filters, Options};
use crate::wal::Durability;

/// Bytes of a page address in a level list entry, in addition to its key.
pub(crate) const PAGE_ADDRESS_BYTES: u64 = 4;
/// Bytes of a range pointer: the number of a segment in the next level.
pub(crate) const RANGE_POINTER_BYTES: u64 = 4;

/// The parameters of level sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizingInput {
    /// Bytes of user data (keys and values) that the store is laid out for.
    pub fill_bytes: u64,
    /// Bytes of flash; the level list is budgeted for all of it.
    pub capacity_bytes: u64,
    /// The number of segments for which levels and level lists are planned, if it differs from a
    /// full store's.
    pub stored_segments: Option<u64>,
    /// Bytes of one key and value.
    pub pair_bytes: u64,
    /// Key length in bytes.
    pub key_bytes: u64,
    /// Bytes of a stored pointer.
    pub pointer_bytes: u64,
    /// Entries in a meta segment, or per page of a columnar table: lists of the latter are planned
    /// as if each page had a separate entry.
    pub entries_per_segment: u64,
    /// Bytes of a pinned segment.
    pub segment_bytes: u64,
    /// Bytes per segment for prefixes; 0 without prefixes.
    pub prefix_bytes: u64,
    /// The number of segments of the last level per entry of its level list: more than one with
    /// groups.
    pub group_segments: u64,
    /// Bytes per segment of an upper level for range pointers; 0 without range pointers.
    pub range_pointer_bytes: u64,
    /// Whether levels that are not pinned have Bloom filters, which get the remaining memory.
    pub has_filters: bool,
    /// Memory for all of this, without caches, in bytes.
    pub dram_bytes: u64,
    /// The number of levels below the memtable.
    pub levels: u32,
    /// Bytes of pairs in a memtable that is flushed.
    pub memtable_bytes: u64,
    /// Bytes written to the value log per pair.
    pub value_log_bytes: f64,
    /// Whether pinned levels are also written to flash, because memory does not survive a power
    /// cut.
    pub writes_pinned: bool,
}

/// The resources of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of flash.
    pub capacity_bytes: u64,
    /// Nominal size of a page, in bytes.
    pub page_bytes: u32,
    /// Bytes of a pointer to a value.
    pub pointer_bytes: usize,
    /// Memory for the index, including caches, in bytes.
    pub dram_bytes: u64,
}

impl SizingInput {
    /// Creates the parameters of a design without groups, if all pairs are like `pair`.
    pub(crate) fn new(options: &Options, pair: &Pair, room: &Room) -> Self {
        Self {
            fill_bytes: (room.capacity_bytes as f64 * options.fill) as u64,
            capacity_bytes: room.capacity_bytes,
            stored_segments: None,
            pair_bytes: pair.bytes().max(1),
            key_bytes: u64::from(pair.key_bytes),
            pointer_bytes: PAGE_ADDRESS_BYTES,
            entries_per_segment: options
                .columns
                .map_or_else(
                    || pair.entries_per_segment(room.pointer_bytes),
                    |columns| columns.entries_per_page(pair, room.pointer_bytes, options.levels),
                )
                .into(),
            segment_bytes: u64::from(room.page_bytes),
            prefix_bytes: options.prefix_bytes as u64,
            group_segments: 1,
            range_pointer_bytes: if options.range_pointers { RANGE_POINTER_BYTES } else { 0 },
            has_filters: options.filters != Filters::None,
            dram_bytes: room.dram_bytes.saturating_sub(options.cache_bytes()),
            levels: options.levels,
            memtable_bytes: options.memtable_bytes,
            value_log_bytes: pair.bytes_in_value_log(),
            writes_pinned: options.durability == Durability::Log,
        }
    }

    /// Returns the approximate number of segments per list entry with groups of `pages` pages:
    /// merges divide their output into new groups and leave them three quarters full. 1 without
    /// groups.
    pub(crate) fn in_groups_of(pages: u32) -> u64 {
        let segments = u64::from(pages.saturating_sub(1));
        let least = if segments > 1 { 2 } else { 1 };
        (segments * 3 / 4).max(least)
    }

    /// Returns the number of segments when the store is filled as laid out.
    pub fn segments_at_fill(&self) -> u64 {
        if let Some(stored) = self.stored_segments {
            return stored;
        }
        let full = self.fill_bytes / (self.entries_per_segment * self.pair_bytes);
        full.min(self.fill_bytes / self.segment_bytes)
    }

    /// Returns the number of segments that the level list is budgeted for.
    pub fn segments_at_capacity(&self) -> u64 {
        if let Some(stored) = self.stored_segments {
            return stored;
        }
        // There are no more segments than pages: entries with values may take more than their
        // pairs.
        let full = self.capacity_bytes / (self.entries_per_segment * self.pair_bytes);
        full.min(self.capacity_bytes / self.segment_bytes)
    }

    /// Returns the bytes of a segment in level lists and prefixes.
    pub(crate) fn list_bytes_per_segment(&self) -> u64 {
        self.key_bytes + self.pointer_bytes + self.prefix_bytes
    }

    /// Returns the number of segments whose lists fit in memory if nothing is pinned.
    pub fn segments_in_memory(&self) -> u64 {
        self.dram_bytes / self.list_bytes_per_segment() * self.group_segments
    }

    /// Returns the entries of level lists when the drive is full; with groups, those of the last
    /// level alone.
    pub(crate) fn listed_at_capacity(&self) -> u64 {
        self.segments_at_capacity().div_ceil(self.group_segments)
    }

    /// Returns the bytes of the level lists when the drive is full; with groups, those of the last
    /// level alone.
    pub fn level_list_bytes(&self) -> u64 {
        self.listed_at_capacity() * (self.key_bytes + self.pointer_bytes)
    }

    /// Returns the segments of upper levels that have additional list entries.
    pub(crate) fn listed_besides(&self, upper: u64) -> u64 {
        if self.group_segments > 1 { upper } else { 0 }
    }

    /// Returns the bytes of a segment of an upper level in addition to the lists of a full drive.
    pub(crate) fn bytes_per_upper_segment(&self) -> u64 {
        self.range_pointer_bytes + self.listed_besides(1) * self.list_bytes_per_segment()
    }

    /// Returns the bytes written to the value log per byte of pairs.
    pub fn value_amplification(&self) -> f64 {
        self.value_log_bytes / self.pair_bytes as f64
    }

    /// Returns the memory left for pinned segments, in bytes.
    pub fn bytes_for_pinning(&self) -> u64 {
        let prefixes = self.listed_at_capacity() * self.prefix_bytes;
        self.dram_bytes.saturating_sub(self.level_list_bytes() + prefixes)
    }
}
