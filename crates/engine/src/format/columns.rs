//! Columnar tables: adjacent pages that share an entry of their level's list. First the pages of a
//! Bloom filter, if there is one, then the pages of all keys, then those of all addresses
//! (docs/decisions/0048).
//!
//! ```text
//! header (entries: of the whole table; 26..28: see below; 28..30: number of this page in its
//!         column; 30..32: pages of the column)
//! bytes of the column, continued from page to page
//! filter:    number of hashes u8 | bits
//! keys:      keys in order, of the length in 26..28; if that is 0, each after its length, u8
//! addresses: pointers in order of keys, 26..28 bytes apart; bytes beyond the pointer are zero
//! ```
//! A column is never read in part: readers read all of its pages in parallel. So a column is one
//! run of bytes, and only its last page is not full. Merges and cursors read a whole table and
//! convert it to meta segments ([`segments_of`]).

pub(crate) mod builder;
#[cfg(test)]
#[path = "columns/tests.rs"]
mod tests;

pub(crate) use crate::format::columns::builder::{BuiltTable, Measure, TableBuilder};

use runtime::PageImage;

use super::entry::IndexEntry;
use super::key_heads;
use super::meta_segment::{MetaSegmentBuilder, search_effort};
use super::object::MAX_KEY_BYTES;
use super::page::{HEADER_BYTES, Page, PageKind};
use super::pointer::{Pointer, PointerFormat};
use crate::effort::Effort;

/// The number of pages of each column of a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ColumnPages {
    pub filter: u8,
    pub keys: u8,
    pub addresses: u8,
}

impl ColumnPages {
    /// Returns the number of pages of the table.
    pub(crate) fn all(self) -> u32 {
        u32::from(self.filter) + self.behind_filter()
    }

    /// Returns the number of pages of keys and addresses.
    pub(crate) fn behind_filter(self) -> u32 {
        u32::from(self.keys) + u32::from(self.addresses)
    }

    /// Returns the encoding in level lists.
    pub(crate) fn to_number(self) -> u32 {
        u32::from_le_bytes([self.filter, self.keys, self.addresses, 0])
    }

    /// Decodes the result of [`Self::to_number`]; `None` if it is invalid.
    pub(crate) fn of_number(number: u32) -> Option<Self> {
        let [filter, keys, addresses, rest] = number.to_le_bytes();
        let is_one = keys > 0 && addresses > 0 && rest == 0;
        is_one.then_some(Self { filter, keys, addresses })
    }
}

/// Returns the bytes of a page for a column.
pub(crate) fn room(payload_bytes: u32) -> usize {
    payload_bytes as usize - HEADER_BYTES
}

/// Encodes the position of a page in its column.
fn place(number: usize, pages: usize) -> u32 {
    (number as u32) | (pages as u32) << 16
}

/// A column, assembled from its pages.
struct Column {
    entries: usize,
    /// The header field 26..28.
    form: usize,
    bytes: Vec<u8>,
}

impl Column {
    /// Assembles a column; `None` if these are not the pages of one column of that kind.
    fn join(pages: &[PageImage], kind: PageKind) -> Option<Self> {
        let mut column: Option<Self> = None;
        for (number, image) in pages.iter().enumerate() {
            let page = Page::parse(image.bytes()).filter(|page| page.kind == kind)?;
            (page.large == place(number, pages.len())).then_some(())?;
            let (entries, form) = (usize::from(page.entries), usize::from(page.small));
            let column = column.get_or_insert_with(|| Self {
                entries,
                form,
                bytes: Vec::with_capacity(pages.len() * page.body().len()),
            });
            (column.entries == entries && column.form == form).then_some(())?;
            column.bytes.extend_from_slice(page.body());
        }
        column.filter(|column| column.entries > 0)
    }
}

/// Returns the bytes of a table's filter, in the form of `Filter::bytes`.
pub(crate) fn filter_of(pages: &[PageImage]) -> Option<Vec<u8>> {
    // A filter has the number of hashes and at least one byte of bits.
    let column = Column::join(pages, PageKind::FilterColumn)?;
    (column.bytes.len() > 1 && column.bytes[0] > 0).then_some(column.bytes)
}

/// The keys of a table.
pub(crate) struct KeyColumn {
    bytes: Vec<u8>,
    entries: usize,
    keys: Keys,
}

/// The positions of keys.
enum Keys {
    /// All keys have this length.
    Alike(usize),
    /// The start of each key, after its length.
    Each(Vec<u32>),
}

impl KeyColumn {
    /// Decodes keys; `None` if these are not all pages of a table's keys. Cost: reads each length
    /// if they differ.
    pub(crate) fn read(pages: &[PageImage]) -> Option<Self> {
        let Column { entries, form, bytes } = Column::join(pages, PageKind::KeyColumn)?;
        let keys = match form {
            0 => Keys::Each(starts_of(&bytes, entries)?),
            1..=MAX_KEY_BYTES if bytes.len() == entries * form => Keys::Alike(form),
            _ => return None,
        };
        Some(Self { bytes, entries, keys })
    }

    pub(crate) fn key(&self, index: usize) -> &[u8] {
        match &self.keys {
            Keys::Alike(length) => &self.bytes[index * length..][..*length],
            Keys::Each(starts) => {
                let start = starts[index] as usize;
                &self.bytes[start..][..usize::from(self.bytes[start - 1])]
            }
        }
    }

    /// Returns the index of `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        let at = key_heads::lower_bound(0..self.entries, |index| self.key(index).cmp(key));
        (at < self.entries && self.key(at) == key).then_some(at)
    }

    /// Returns the effort of [`Self::find`].
    pub(crate) fn effort(&self) -> Effort {
        search_effort(self.entries)
    }
}

/// Returns the start of each key; `None` if the bytes are not `entries` keys with their lengths.
fn starts_of(bytes: &[u8], entries: usize) -> Option<Vec<u32>> {
    let mut starts = Vec::with_capacity(entries);
    let mut at = 0;
    for _ in 0..entries {
        let length = usize::from(*bytes.get(at)?);
        (length > 0).then_some(())?;
        starts.push(at as u32 + 1);
        at += 1 + length;
    }
    (at == bytes.len()).then_some(starts)
}

/// The addresses of a table.
pub(crate) struct AddressColumn {
    bytes: Vec<u8>,
    entries: usize,
    /// The distance of consecutive addresses, in bytes.
    stride: usize,
    format: PointerFormat,
}

impl AddressColumn {
    /// Decodes addresses; `None` if these are not all pages of a table's addresses.
    pub(crate) fn read(pages: &[PageImage], format: PointerFormat) -> Option<Self> {
        let Column { entries, form: stride, bytes } = Column::join(pages, PageKind::AddressColumn)?;
        let is_one = stride >= format.bytes && bytes.len() == entries * stride;
        is_one.then_some(Self { bytes, entries, stride, format })
    }

    /// Returns the address at `index`; `None` past the end.
    pub(crate) fn get(&self, index: usize) -> Option<Pointer> {
        (index < self.entries).then(|| self.format.decode(&self.bytes[index * self.stride..]))
    }
}

/// Converts a table to meta segments. `pages` are the pages of its keys, then those of its
/// addresses. Returns `None` if they do not belong together, or if keys are out of order. Cost: a
/// copy of each entry.
pub(crate) fn segments_of(
    columns: ColumnPages,
    pages: &[PageImage],
    format: PointerFormat,
    payload_bytes: u32,
) -> Option<Vec<PageImage>> {
    (pages.len() == columns.behind_filter() as usize).then_some(())?;
    let (keys, addresses) = pages.split_at(usize::from(columns.keys));
    let (keys, addresses) = (KeyColumn::read(keys)?, AddressColumn::read(addresses, format)?);
    (keys.entries == addresses.entries).then_some(())?;
    let in_order = (1..keys.entries).all(|index| keys.key(index - 1) < keys.key(index));
    in_order.then_some(())?;
    let mut builder = MetaSegmentBuilder::new(format, payload_bytes);
    let mut segments = Vec::new();
    for index in 0..keys.entries {
        let pointer = addresses.get(index)?;
        let entry = IndexEntry { key: keys.key(index), pointer, tail: &[] };
        if !builder.push(&entry) {
            segments.push(PageImage::new(&builder.finish()));
            assert!(builder.push(&entry), "an entry does not fit in an empty segment");
        }
    }
    segments.push(PageImage::new(&builder.finish()));
    Some(segments)
}
