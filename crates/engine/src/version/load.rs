//! Opening of tables: reads their indexes.

use std::rc::Rc;

use runtime::{IoClass, PageImage};

use super::Version;
use super::open_table::Table;
use super::table::TableMeta;
use super::tree::Tree;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::page::PageFault;
use crate::manifest::table_codec;
use crate::medium::Medium;

impl<M: Medium> Inner<M> {
    /// Opens the tables of a manifest.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the index of a table is damaged; [`EngineError::Medium`] if it
    /// cannot be read.
    pub(crate) async fn open_tables(&self, tree: &Tree<Rc<TableMeta>>) -> Result<(), EngineError> {
        let tables = self.tables_of();
        let mut levels = Vec::with_capacity(tree.levels().len());
        for level in tree.levels() {
            let mut open = Vec::with_capacity(level.len());
            for meta in level {
                tables.newest.set(tables.newest.get().max(meta.id.0));
                open.push(Rc::new(self.open_table(meta).await?));
            }
            levels.push(open);
        }
        let tree = Tree::of(levels).expect("it was in order");
        *self.version.borrow_mut() = Rc::new(Version::of_tree(&tree, self.options.prefix_bytes));
        *tables.tree.borrow_mut() = tree;
        tables.throttle.borrow_mut().note(tables.load(&self.store.shape), &tables.options);
        self.reserve_step();
        Ok(())
    }

    async fn open_table(&self, meta: &Rc<TableMeta>) -> Result<Table, EngineError> {
        let range = meta.data_pages..meta.pages.pages;
        let pages = self.store.read_apart(&meta.pages, range.clone(), IoClass::ClientRead).await?;
        let index = table_codec::index_of_pages(meta, pages.iter().map(PageImage::bytes));
        let first = meta.pages.page(range.start, self.store.shape.pages_per_extent);
        let index = index.ok_or(EngineError::Corrupt(first, PageFault::Contents))?;
        Ok(self.table_of(Rc::clone(meta), &index))
    }
}
