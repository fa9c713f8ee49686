//! Tables in columns, as firmware of `IterKVSSD`'s group has them: values of one type.

use std::ops::RangeInclusive;

use catalogue::bounds;
use serde::{Deserialize, Serialize};

use crate::format::columns::{Measure, room};
use crate::sizing::pair::Pair;

/// Entries of a table.
const ENTRIES: RangeInclusive<u32> = 16..=MOST_ENTRIES;
/// Entries of a table are counted in 16 bits.
pub(crate) const MOST_ENTRIES: u32 = u16::MAX as u32;
/// How many times as many entries tables of the next level have.
const GROWTH: RangeInclusive<u32> = 1..=256;
/// Bytes of an address.
const ADDRESS_BYTES: RangeInclusive<u32> = 0..=16;
/// Bits for each key of a table's filter.
const FILTER_BITS: RangeInclusive<u32> = 0..=40;

/// Levels are of tables that have all keys in some pages and all addresses in others. Whoever looks a key up reads one kind
/// after the other, each kind's pages side by side (docs/decisions/0048). Where an eighth of an extent has no room for the least table, levels
/// are of single pages as without this.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnOptions {
    /// Entries of a table of L1 at most.
    pub entries: u32,
    /// How many times as many tables of the next level may have.
    pub growth: u32,
    /// Bytes that an entry takes in pages of addresses, where that is more than a pointer has: 0 for no more.
    pub address_bytes: u32,
    /// Bits of a table's Bloom filter for each key, which is in pages of its own and read in front of keys: 0 for no filter.
    pub filter_bits: u32,
    /// Whether iterators that come to a table which was not read ahead go the way of Gets, and read its filter, though that tells
    /// them nothing.
    pub iterators_read_filters: bool,
}

impl ColumnOptions {
    /// Everything that is wrong with them, in words.
    pub(super) fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("columns.entries", self.entries, ENTRIES),
            bounds::range("columns.growth", self.growth, GROWTH),
            bounds::range("columns.address_bytes", self.address_bytes, ADDRESS_BYTES),
            bounds::range("columns.filter_bits", self.filter_bits, FILTER_BITS),
        ];
        problems.into_iter().flatten().collect()
    }

    /// Entries of a table of `level` at most, L1 being 0.
    pub(crate) fn entries_in(&self, level: usize) -> u32 {
        let grown =
            self.growth.checked_pow(level as u32).and_then(|by| self.entries.checked_mul(by));
        grown.unwrap_or(MOST_ENTRIES).min(MOST_ENTRIES)
    }

    /// Pages of filter, keys and addresses of a full table of `level`, L1 being 0, whose keys have `key_bytes` bytes, on pages of
    /// `payload_bytes` and with pointers that are no longer than addresses.
    pub fn pages_of_full_table(&self, level: u32, key_bytes: u32, payload_bytes: u32) -> [u32; 3] {
        let entries = self.entries_in(level as usize);
        let of = |bytes: u32| bytes.div_ceil(room(payload_bytes) as u32);
        let filter =
            if self.filter_bits == 0 { 0 } else { 1 + (entries * self.filter_bits).div_ceil(8) };
        [of(filter), of(entries * key_bytes), of(entries * self.address_bytes)]
    }

    /// Entries for each page of full tables of the last of so many levels, with pairs of that form.
    pub(crate) fn entries_per_page(&self, pair: &Pair, pointer_bytes: usize, levels: u32) -> u32 {
        let entries = self.entries_in(levels as usize - 1);
        let measure = Measure {
            room: room(pair.page_bytes),
            address_bytes: pointer_bytes.max(self.address_bytes as usize),
            filter_bits: self.filter_bits,
        };
        let key_bytes = entries as usize * pair.key_bytes as usize;
        (entries / measure.pages(entries as usize, key_bytes)).max(1)
    }
}
