//! A table of a running store: its metadata, its index and its filter.

use std::cell::Cell;
use std::rc::Rc;

use super::level::Chunk;
use super::pool::Pool;
use super::table::{Described, TableIndex, TableMeta};
use crate::compaction::leveled::score::Candidate;
use crate::medium::Shape;

/// An open table: its index and filter are in memory.
pub(crate) struct Table {
    pub meta: Rc<TableMeta>,
    pub chunk: Rc<Chunk>,
    /// Whether a compaction reads it.
    pub is_busy: Cell<bool>,
}

impl Table {
    /// Returns the table that `meta` and its index describe.
    pub(crate) fn new(
        meta: Rc<TableMeta>,
        index: &TableIndex,
        shape: &Shape,
        prefix_bytes: usize,
        pool: &Rc<Pool>,
    ) -> Self {
        let pages = meta.page_numbers(shape);
        let chunk = Rc::new(Chunk::of_table(index, &meta.last_key, pages, prefix_bytes, pool));
        assert_eq!(chunk.len(), meta.data_pages as usize, "an index of another table");
        Self { meta, chunk, is_busy: Cell::new(false) }
    }
}

impl Described for Rc<Table> {
    fn meta(&self) -> &TableMeta {
        &self.meta
    }
}

impl Candidate for Rc<Table> {
    fn is_busy(&self) -> bool {
        self.is_busy.get()
    }
}
