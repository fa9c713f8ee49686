//! The metadata of one table.

use std::rc::Rc;

use crate::medium::{ExtentId, PageNo, Shape};
use crate::read::filter::Filter;
use crate::space::apart::Stretches;

/// The number of a table, unique at any time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TableId(pub u64);

/// A range of keys, both ends inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub first: Box<[u8]>,
    pub last: Box<[u8]>,
}

impl KeyRange {
    /// Whether the range overlaps with `first..=last`.
    pub(crate) fn meets(&self, first: &[u8], last: &[u8]) -> bool {
        *self.first <= *last && *first <= *self.last
    }

    /// Returns the smallest range that covers both.
    pub(crate) fn joined(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// The metadata of a table in a manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableMeta {
    pub id: TableId,
    pub first_key: Box<[u8]>,
    pub last_key: Box<[u8]>,
    pub entries: u64,
    pub tombstones: u64,
    /// Length of the longest key, in bytes.
    pub longest_key: u8,
    /// The table's pages: first those with entries, then those of its index.
    pub pages: Stretches,
    /// The number of pages with entries.
    pub data_pages: u32,
}

impl TableMeta {
    /// Returns the table's key range.
    pub(crate) fn keys(&self) -> KeyRange {
        KeyRange { first: self.first_key.clone(), last: self.last_key.clone() }
    }

    /// Returns all pages of the table, including its index.
    pub(crate) fn page_numbers(&self, shape: &Shape) -> impl Iterator<Item = PageNo> {
        let per_extent = shape.pages_per_extent;
        (0..self.pages.pages).map(move |index| self.pages.page(index, per_extent))
    }

    /// Whether a table with this metadata is possible on a medium of this `shape`.
    pub(crate) fn is_sound(&self, shape: &Shape) -> bool {
        let Stretches { extents, pages } = &self.pages;
        let is_there = |id: &ExtentId| id.0 < shape.extents;
        let longest = usize::from(self.longest_key);
        self.first_key <= self.last_key
            && self.first_key.len().max(self.last_key.len()) <= longest
            && (1..*pages).contains(&self.data_pages)
            && self.entries >= u64::from(self.data_pages)
            && self.tombstones <= self.entries
            && extents.iter().all(is_there)
            && extents.len() == shape.extents_of(*pages)
    }
}

/// An element of a tree: a table with its metadata.
pub(crate) trait Described {
    fn meta(&self) -> &TableMeta;
}

impl Described for Rc<TableMeta> {
    fn meta(&self) -> &TableMeta {
        self
    }
}

/// A page of a table in the table's index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexedPage {
    pub first_key: Box<[u8]>,
    pub entries: u16,
}

/// The contents of a table's index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TableIndex {
    pub pages: Vec<IndexedPage>,
    pub filter: Option<Filter>,
}
