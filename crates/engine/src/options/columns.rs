//! Options of columnar tables, as in the firmware of the `IterKVSSD` group.

use std::ops::RangeInclusive;

use catalogue::bounds;
use serde::{Deserialize, Serialize};

use crate::format::columns::{Measure, room};
use crate::sizing::pair::Pair;

/// The valid number of entries of a table.
const ENTRIES: RangeInclusive<u32> = 16..=MOST_ENTRIES;
/// The maximum number of entries of a table: they are counted in 16 bits.
pub(crate) const MOST_ENTRIES: u32 = u16::MAX as u32;
/// The valid ratio of the table sizes of neighbouring levels.
const GROWTH: RangeInclusive<u32> = 1..=256;
/// The valid number of bytes of an address.
const ADDRESS_BYTES: RangeInclusive<u32> = 0..=16;
/// The valid number of bits per key of a table's filter.
const FILTER_BITS: RangeInclusive<u32> = 0..=40;

/// Options of levels of columnar tables, which store all keys in some pages and all addresses in
/// others. A lookup reads one kind after the other, and the pages of each kind in parallel
/// (docs/decisions/0048). If an eighth of an extent has no room for the smallest table, levels
/// consist of single pages, as without these options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnOptions {
    /// Maximum number of entries of a table of L1.
    pub entries: u32,
    /// The ratio of the maximum numbers of entries of tables in neighbouring levels.
    pub growth: u32,
    /// Bytes of an entry in address pages, if that is more than a pointer has; 0 for the pointer's
    /// length.
    pub address_bytes: u32,
    /// Bits per key of a table's Bloom filter, which has separate pages and is read before the
    /// keys; 0 for no filter.
    pub filter_bits: u32,
    /// Whether iterators that reach a table that was not read ahead read its filter, as Gets do,
    /// although iterators do not use it.
    pub iterators_read_filters: bool,
}

impl ColumnOptions {
    /// Returns a message for each invalid option.
    pub(super) fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("columns.entries", self.entries, ENTRIES),
            bounds::range("columns.growth", self.growth, GROWTH),
            bounds::range("columns.address_bytes", self.address_bytes, ADDRESS_BYTES),
            bounds::range("columns.filter_bits", self.filter_bits, FILTER_BITS),
        ];
        problems.into_iter().flatten().collect()
    }

    /// Returns the maximum number of entries of a table of `level`; L1 is 0.
    pub(crate) fn entries_in(&self, level: usize) -> u32 {
        let grown =
            self.growth.checked_pow(level as u32).and_then(|by| self.entries.checked_mul(by));
        grown.unwrap_or(MOST_ENTRIES).min(MOST_ENTRIES)
    }

    /// Returns the pages of filter, keys and addresses of a full table of `level` (L1 is 0), with
    /// keys of `key_bytes` bytes, on pages of `payload_bytes`, and with pointers no longer than
    /// addresses.
    pub fn pages_of_full_table(&self, level: u32, key_bytes: u32, payload_bytes: u32) -> [u32; 3] {
        let entries = self.entries_in(level as usize);
        let of = |bytes: u32| bytes.div_ceil(room(payload_bytes) as u32);
        let filter =
            if self.filter_bits == 0 { 0 } else { 1 + (entries * self.filter_bits).div_ceil(8) };
        [of(filter), of(entries * key_bytes), of(entries * self.address_bytes)]
    }

    /// Returns the entries per page of full tables in the last of `levels` levels, with pairs like
    /// `pair`.
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
