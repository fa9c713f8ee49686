//! Builds columnar tables: entries in, pages out.

use super::{ColumnPages, place, room};
use crate::format::entry::IndexEntry;
use crate::format::page;
use crate::format::page::PageKind;
use crate::format::pointer::PointerFormat;
use crate::read::filter::{Filter, key_hash};

/// Computes the size of entries in columns. Pure arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Measure {
    /// Bytes of a page for a column.
    pub room: usize,
    pub address_bytes: usize,
    /// Bits of the filter per key; 0 for no filter.
    pub filter_bits: u32,
}

impl Measure {
    pub(crate) fn new(
        payload_bytes: u32,
        format: PointerFormat,
        address_bytes: u32,
        filter_bits: u32,
    ) -> Self {
        let address_bytes = format.bytes.max(address_bytes as usize);
        Self { room: room(payload_bytes), address_bytes, filter_bits }
    }

    /// Returns the bytes of a filter for `entries` keys, including the number of hashes.
    fn filter_bytes(&self, entries: usize) -> usize {
        if self.filter_bits == 0 {
            0
        } else {
            1 + (entries * self.filter_bits as usize).div_ceil(8)
        }
    }

    /// Returns the pages of a table of `entries` entries, whose keys take `key_bytes` bytes with
    /// their lengths.
    pub(crate) fn pages(&self, entries: usize, key_bytes: usize) -> u32 {
        let of = |bytes: usize| bytes.div_ceil(self.room) as u32;
        of(self.filter_bytes(entries)) + of(key_bytes) + of(entries * self.address_bytes)
    }

    /// Returns the maximum number of pages of several tables in all: the last page of each column
    /// may be nearly empty.
    pub(crate) fn most_pages(&self, entries: usize, key_bytes: usize, tables: usize) -> u32 {
        let filter = if self.filter_bits == 0 { 0 } else { 2 * tables };
        let of_all = self.pages(entries, key_bytes + filter);
        of_all + 3 * tables as u32
    }

    /// Returns the bytes of `entries` entries in all columns.
    pub(crate) fn bytes(&self, entries: usize, key_bytes: usize) -> usize {
        self.filter_bytes(entries) + key_bytes + entries * self.address_bytes
    }

    /// Returns the minimum number of bytes of a table that has no room for another entry in `pages`
    /// pages.
    pub(crate) fn least_bytes(&self, pages: u32) -> usize {
        // Each of three columns may leave nearly a page empty.
        let filled = (pages as usize).saturating_sub(2) * self.room;
        let entry = crate::format::object::MAX_KEY_BYTES
            + 1
            + self.address_bytes
            + self.filter_bits as usize / 8
            + 1;
        filled.saturating_sub(entry).max(1)
    }

    /// Returns the maximum number of entries in `pages` pages, in tables of up to `each` entries.
    pub(crate) fn most_entries(&self, pages: u32, each: usize) -> usize {
        let columns = if self.filter_bits == 0 { 2 } else { 3 };
        let tables = (pages / columns) as usize;
        (pages as usize * self.room / (1 + self.address_bytes)).min(tables * each)
    }
}

/// A built table that is not written yet.
pub(crate) struct BuiltTable {
    pub first_key: Box<[u8]>,
    pub entries: u16,
    pub columns: ColumnPages,
    /// The pages, unsealed.
    pub pages: Vec<Vec<u8>>,
}

/// Builds a table from entries in key order.
pub(crate) struct TableBuilder {
    measure: Measure,
    format: PointerFormat,
    first_key: Box<[u8]>,
    /// The keys, each after its length.
    keys: Vec<u8>,
    /// The length of all keys; `None` if lengths differ.
    key_len: Option<usize>,
    addresses: Vec<u8>,
    hashes: Vec<u64>,
    entries: usize,
}

impl TableBuilder {
    pub(crate) fn new(measure: Measure, format: PointerFormat) -> Self {
        Self {
            measure,
            format,
            first_key: Box::default(),
            keys: Vec::new(),
            key_len: None,
            addresses: Vec::new(),
            hashes: Vec::new(),
            entries: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// Returns the number of pages after adding one more entry of that key.
    pub(crate) fn pages_with(&self, key: &[u8]) -> u32 {
        self.measure.pages(self.entries + 1, self.keys.len() + 1 + key.len())
    }

    pub(crate) fn push(&mut self, entry: &IndexEntry<'_>) {
        let length = entry.key.len();
        if self.entries == 0 {
            (self.first_key, self.key_len) = (entry.key.into(), Some(length));
        }
        self.key_len = self.key_len.filter(|all| *all == length);
        self.entries += 1;
        self.keys.push(u8::try_from(length).expect("keys have 255 bytes at most"));
        self.keys.extend_from_slice(entry.key);
        self.format.encode(entry.pointer, &mut self.addresses);
        self.addresses.resize(self.entries * self.measure.address_bytes, 0);
        if self.measure.filter_bits > 0 {
            self.hashes.push(key_hash(entry.key));
        }
    }

    /// Returns the table of all pushed entries and empties the builder. `forgets` plants a bug: the
    /// filter does not contain the last key.
    pub(crate) fn finish(&mut self, forgets: bool) -> BuiltTable {
        let entries = u16::try_from(self.entries).expect("tables are cut before that");
        let keys = match self.key_len {
            Some(length) => without_lengths(&self.keys, length),
            None => std::mem::take(&mut self.keys),
        };
        if forgets {
            self.hashes.pop();
        }
        let filter = Filter::of_bytes(&self.hashes, self.measure.filter_bytes(self.entries));
        let of = |kind, form: usize, bytes: &[u8]| {
            pages_of(kind, entries, form as u16, bytes, self.measure.room)
        };
        let filter = filter.map_or(Vec::new(), |it| of(PageKind::FilterColumn, 0, it.bytes()));
        let keys = of(PageKind::KeyColumn, self.key_len.unwrap_or(0), &keys);
        let addresses = of(PageKind::AddressColumn, self.measure.address_bytes, &self.addresses);
        let count = |pages: &[Vec<u8>]| u8::try_from(pages.len()).expect("tables are cut before");
        let columns = ColumnPages {
            filter: count(&filter),
            keys: count(&keys),
            addresses: count(&addresses),
        };
        let first_key = std::mem::take(&mut self.first_key);
        *self = Self::new(self.measure, self.format);
        let pages = filter.into_iter().chain(keys).chain(addresses).collect();
        BuiltTable { first_key, entries, columns, pages }
    }
}

/// Returns keys of one length without their length bytes.
fn without_lengths(keys: &[u8], length: usize) -> Vec<u8> {
    keys.chunks_exact(1 + length).flat_map(|key| &key[1..]).copied().collect()
}

/// Returns the pages of a column, unsealed.
fn pages_of(kind: PageKind, entries: u16, form: u16, bytes: &[u8], room: usize) -> Vec<Vec<u8>> {
    let count = bytes.len().div_ceil(room);
    let page = |(number, part): (usize, &[u8])| {
        let mut page = page::start(kind, entries, form, place(number, count), part.len());
        page.extend_from_slice(part);
        page::finish(page)
    };
    bytes.chunks(room).enumerate().map(page).collect()
}
