//! Writing of tables.

use std::rc::Rc;

use runtime::IoClass;

use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::table_builder::{BuiltTable, TableBuilder};
use crate::manifest::table_codec;
use crate::medium::Medium;
use crate::planted::Fault;
use crate::space::apart::Apart;
use crate::version::open_table::Table;
use crate::version::table::{TableIndex, TableMeta};

impl<M: Medium> Inner<M> {
    pub(crate) fn table_builder(&self) -> TableBuilder {
        let bits = self.options.filter_bits_per_key();
        let forgets = self.planted.has(Fault::FilterForgetsKeys);
        TableBuilder::new(self.store.format, &self.store.shape, bits, forgets)
    }

    /// Returns the open table that `meta` describes.
    pub(crate) fn table_of(&self, meta: Rc<TableMeta>, index: &TableIndex) -> Table {
        Table::new(meta, index, &self.store.shape, self.options.prefix_bytes, &self.pool)
    }

    /// Writes the full pages once there are as many as are written at a time.
    pub(crate) async fn write_full_pages(
        &self,
        builder: &mut TableBuilder,
        apart: &mut Apart<'_, M>,
        class: IoClass,
    ) -> Result<(), EngineError> {
        for page in builder.take_full() {
            apart.push(page)?;
        }
        let most = self.tables_of().options.write_bytes / u64::from(self.store.shape.page_bytes);
        if apart.waiting() as u64 >= most.max(1) {
            apart.write(class).await?;
        }
        Ok(())
    }

    /// Ends and writes the current table, to which nothing refers yet. Returns `None` if it has no
    /// entries.
    pub(crate) async fn end_table(
        &self,
        builder: &mut TableBuilder,
        apart: &mut Apart<'_, M>,
        class: IoClass,
    ) -> Result<Option<Rc<Table>>, EngineError> {
        let (pages, built) = builder.finish();
        if built.entries == 0 {
            return Ok(None);
        }
        for page in pages {
            apart.push(page)?;
        }
        if built.index.filter.is_some() {
            let cost = self.store.cpu.costs.of_filters(built.entries);
            self.store.cpu.cores.spend_in_background(cost).await;
        }
        let id = self.tables_of().next_id();
        for page in table_codec::index_to_pages(id, &built.index, self.store.shape.payload_bytes) {
            apart.push(page)?;
        }
        let pages = apart.finish(class).await?;
        let BuiltTable { index, last_key, entries, tombstones, longest_key } = built;
        let meta = TableMeta {
            id,
            first_key: index.pages[0].first_key.clone(),
            last_key,
            entries,
            tombstones,
            longest_key,
            pages,
            data_pages: index.pages.len() as u32,
        };
        assert!(meta.is_sound(&self.store.shape), "a table was written like this: {meta:?}");
        Ok(Some(Rc::new(self.table_of(Rc::new(meta), &index))))
    }
}
