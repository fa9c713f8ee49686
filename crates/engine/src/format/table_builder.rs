//! Builds the pages of a table from entries in key order.

use super::entry::IndexEntry;
use super::meta_segment::MetaSegmentBuilder;
use super::pointer::PointerFormat;
use crate::manifest::table_codec;
use crate::manifest::table_codec::PAGE_BYTES;
use crate::medium::Shape;
use crate::read::filter::{Filter, key_hash};
use crate::version::table::{IndexedPage, TableIndex};

/// A table with all its entries.
#[derive(Debug, Default)]
pub(crate) struct BuiltTable {
    pub index: TableIndex,
    pub last_key: Box<[u8]>,
    pub entries: u64,
    pub tombstones: u64,
    pub longest_key: u8,
}

/// Builds tables one after the other.
pub(crate) struct TableBuilder {
    page: MetaSegmentBuilder,
    filter_bits_per_key: u32,
    hashes: Vec<u64>,
    first_key: Box<[u8]>,
    last_key: Vec<u8>,
    /// Bytes of the pages' entries in the index.
    keys_bytes: u64,
    payload_bytes: u32,
    table: BuiltTable,
    /// Pages that are full and were not taken yet.
    full: Vec<Vec<u8>>,
    /// Whether filters are built without the last key (a planted fault).
    forgets_keys: bool,
}

impl TableBuilder {
    pub(crate) fn new(
        format: PointerFormat,
        shape: &Shape,
        filter_bits_per_key: u32,
        forgets_keys: bool,
    ) -> Self {
        Self {
            page: MetaSegmentBuilder::new(format, shape.payload_bytes),
            filter_bits_per_key,
            hashes: Vec::new(),
            first_key: Box::default(),
            last_key: Vec::new(),
            keys_bytes: 0,
            payload_bytes: shape.payload_bytes,
            table: BuiltTable::default(),
            full: Vec::new(),
            forgets_keys,
        }
    }

    /// Returns the number of full pages of the table.
    pub(crate) fn pages(&self) -> u32 {
        self.table.index.pages.len() as u32
    }

    /// Returns the maximum number of pages of the table, including its index, if it ends after one
    /// more entry of `key`.
    pub(crate) fn most_pages_with(&self, key: &[u8]) -> u32 {
        // The current page, and the page that the entry may begin.
        let (data_pages, keys) = (self.pages() + 2, self.first_key.len() + key.len());
        let keys = self.keys_bytes + keys as u64 + 2 * PAGE_BYTES;
        let bytes =
            table_codec::index_bytes(keys, self.table.entries + 1, self.filter_bits_per_key);
        data_pages + table_codec::index_pages(bytes, self.payload_bytes) as u32
    }

    /// Whether the table has no entry yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages() == 0 && self.page.len() == 0
    }

    /// Adds the next entry.
    pub(crate) fn push(&mut self, entry: &IndexEntry<'_>) {
        if !self.page.push(entry) {
            self.end_page();
            assert!(self.page.push(entry), "an entry does not fit in an empty page");
        }
        if self.page.len() == 1 {
            assert!(*self.last_key < *entry.key, "a table got keys out of order");
            self.first_key = entry.key.into();
        }
        if self.filter_bits_per_key > 0 {
            self.hashes.push(key_hash(entry.key));
        }
        self.table.entries += 1;
        self.table.longest_key = self.table.longest_key.max(entry.key.len() as u8);
        self.table.tombstones += u64::from(entry.is_tombstone());
        self.last_key.clear();
        self.last_key.extend_from_slice(entry.key);
    }

    fn end_page(&mut self) {
        let entries = self.page.len() as u16;
        if entries > 0 {
            let first_key = std::mem::take(&mut self.first_key);
            self.keys_bytes += first_key.len() as u64 + PAGE_BYTES;
            self.table.index.pages.push(IndexedPage { first_key, entries });
            self.full.push(self.page.finish());
        }
    }

    /// Returns the pages that have become full.
    pub(crate) fn take_full(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.full)
    }

    /// Ends the table. Returns its last pages and the contents of its index. The next entry begins
    /// a new table.
    pub(crate) fn finish(&mut self) -> (Vec<Vec<u8>>, BuiltTable) {
        self.end_page();
        let mut hashes = std::mem::take(&mut self.hashes);
        let bytes = table_codec::filter_bytes(hashes.len() as u64, self.filter_bits_per_key);
        if self.forgets_keys {
            hashes.pop();
        }
        let mut table = std::mem::take(&mut self.table);
        self.keys_bytes = 0;
        table.last_key = std::mem::take(&mut self.last_key).into();
        let has_filter = self.filter_bits_per_key > 0;
        table.index.filter =
            has_filter.then(|| Filter::of_bytes(&hashes, bytes as usize)).flatten();
        (self.take_full(), table)
    }
}
