//! What level sizes follow from.

use pages::Durability;

use crate::options::{Filters, Options};
use crate::sizing::pair::Pair;

/// A level list entry holds a key and the address of a page.
pub(crate) const PAGE_ADDRESS_BYTES: u64 = 4;
/// A range pointer is the number of a segment in the next level.
pub(crate) const RANGE_POINTER_BYTES: u64 = 4;

/// What level sizes follow from.
#[derive(Clone, Debug, PartialEq)]
pub struct SizingInput {
    /// Bytes of user data (keys and values) the store is laid out for.
    pub fill_bytes: u64,
    /// Bytes of flash; the level list is budgeted for all of it.
    pub capacity_bytes: u64,
    /// Segments that levels and level lists are planned for, where that is not what a full store has.
    pub stored_segments: Option<u64>,
    /// Bytes of one key and value.
    pub pair_bytes: u64,
    /// Key length in bytes.
    pub key_bytes: u64,
    /// Bytes of a stored pointer.
    pub pointer_bytes: u64,
    /// Entries in a meta segment, or for each page of a table in columns: then lists are planned for as if each page had
    /// an entry of its own.
    pub entries_per_segment: u64,
    /// Bytes that a pinned segment takes.
    pub segment_bytes: u64,
    /// Bytes per segment for prefixes; 0 if there are none.
    pub prefix_bytes: u64,
    /// Segments of the last level that share an entry of its level list: more than one in groups.
    pub group_segments: u64,
    /// Bytes per segment of an upper level for range pointers; 0 if there are none.
    pub range_pointer_bytes: u64,
    /// Whether levels that are not pinned have Bloom filters; they get what memory is left.
    pub has_filters: bool,
    /// Memory for all of this, in bytes: what caches leave.
    pub dram_bytes: u64,
    /// Levels below the memtable.
    pub levels: u32,
    /// Bytes of pairs in a memtable that is flushed.
    pub memtable_bytes: u64,
    /// Bytes that are written to the value log for a pair.
    pub value_log_bytes: f64,
    /// Whether pinned levels are written to flash besides, because memory does not survive.
    pub writes_pinned: bool,
}

/// What a store has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of flash.
    pub capacity_bytes: u64,
    /// Nominal size of a page, in bytes.
    pub page_bytes: u32,
    /// Bytes of a pointer to a value.
    pub pointer_bytes: usize,
    /// Memory for the index, caches among it, in bytes.
    pub dram_bytes: u64,
}

impl SizingInput {
    /// What a design without groups starts from where all pairs are like this one.
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

    /// Segments that share an entry of a level list in groups of so many pages, about: what merges write is cut into
    /// groups anew, and leaves them three quarters full. One if there are none.
    pub(crate) fn in_groups_of(pages: u32) -> u64 {
        let segments = u64::from(pages.saturating_sub(1));
        let least = if segments > 1 { 2 } else { 1 };
        (segments * 3 / 4).max(least)
    }

    /// Segments when the store is filled as laid out.
    pub fn segments_at_fill(&self) -> u64 {
        if let Some(stored) = self.stored_segments {
            return stored;
        }
        let full = self.fill_bytes / (self.entries_per_segment * self.pair_bytes);
        full.min(self.fill_bytes / self.segment_bytes)
    }

    /// Segments that the level list is budgeted for.
    pub fn segments_at_capacity(&self) -> u64 {
        if let Some(stored) = self.stored_segments {
            return stored;
        }
        // There are no more than there are pages: entries with values may take more than their pairs.
        let full = self.capacity_bytes / (self.entries_per_segment * self.pair_bytes);
        full.min(self.capacity_bytes / self.segment_bytes)
    }

    /// Bytes that a segment takes in level lists and prefixes.
    pub(crate) fn list_bytes_per_segment(&self) -> u64 {
        self.key_bytes + self.pointer_bytes + self.prefix_bytes
    }

    /// Segments whose lists fit the memory, if nothing is pinned.
    pub fn segments_in_memory(&self) -> u64 {
        self.dram_bytes / self.list_bytes_per_segment() * self.group_segments
    }

    /// Entries of level lists when the drive is full; where the last level has groups, of that level alone.
    pub(crate) fn listed_at_capacity(&self) -> u64 {
        self.segments_at_capacity().div_ceil(self.group_segments)
    }

    /// Bytes of the level lists when the drive is full; where the last level has groups, of that level's list alone.
    pub fn level_list_bytes(&self) -> u64 {
        self.listed_at_capacity() * (self.key_bytes + self.pointer_bytes)
    }

    /// Segments of upper levels that have entries of their own besides.
    pub(crate) fn listed_besides(&self, upper: u64) -> u64 {
        if self.group_segments > 1 { upper } else { 0 }
    }

    /// Bytes that a segment of an upper level takes besides what is in the lists of a full drive.
    pub(crate) fn bytes_per_upper_segment(&self) -> u64 {
        self.range_pointer_bytes + self.listed_besides(1) * self.list_bytes_per_segment()
    }

    /// Bytes written to the value log for each byte of pairs that comes in.
    pub fn value_amplification(&self) -> f64 {
        self.value_log_bytes / self.pair_bytes as f64
    }

    /// Memory left for pinned segments, in bytes.
    pub fn bytes_for_pinning(&self) -> u64 {
        let prefixes = self.listed_at_capacity() * self.prefix_bytes;
        self.dram_bytes.saturating_sub(self.level_list_bytes() + prefixes)
    }
}
