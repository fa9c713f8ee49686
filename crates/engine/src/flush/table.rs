//! Flush: writes a frozen memtable as a table of L0.

use std::rc::Rc;

use runtime::IoClass;

use crate::compaction::leveled::STEP_ENTRIES;
use crate::compaction::leveled::space::Contents;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::entry::{NewEntry, OFFSET_BYTES};
use crate::medium::Medium;
use crate::space::apart::Apart;
use crate::space::priority::Claimant;
use crate::space::writing::Written;
use crate::version::open_table::Table;
use crate::version::tree::TreeEdit;
use crate::write::flushes::{FlushNo, Part};

impl<M: Medium> Inner<M> {
    /// Writes the entries of a flush as a table of L0, independently of earlier flushes.
    pub(crate) async fn write_to_l0(
        &self,
        number: FlushNo,
        entries: Vec<NewEntry>,
    ) -> Result<Rc<Table>, EngineError> {
        let extents = self.extents_of_flush(&entries);
        let need = || self.store.need_of_tables(extents, Claimant::Flush);
        let promise = self.front.promise_part(number, Part::Table, need).await;
        let mut apart = Apart::new(&self.store, promise);
        let mut builder = self.table_builder();
        for step in entries.chunks(STEP_ENTRIES) {
            for entry in step {
                builder.push(&entry.as_ref());
            }
            let cost = self.store.cpu.costs.of_merge(step.len());
            self.store.cpu.cores.spend_in_background(cost).await;
            self.write_full_pages(&mut builder, &mut apart, IoClass::Flush).await?;
        }
        let table = self.end_table(&mut builder, &mut apart, IoClass::Flush).await?;
        apart.make_durable().await?;
        Ok(table.expect("a memtable that is flushed holds something"))
    }

    /// Installs the table of a flush in the edit that drops its memtable, so that a reader finds
    /// the entries in exactly one of the two.
    pub(crate) async fn install_in_l0(
        &self,
        table: Rc<Table>,
        written: &Written,
    ) -> Result<(), EngineError> {
        self.stats.borrow_mut().tables.flushed_pages += u64::from(table.meta.pages.pages);
        let added = vec![(0, table)];
        let edit = self.edit_of_tables(TreeEdit { removed: Vec::new(), added });
        self.install(self.with_flushed(edit, written).await)?;
        Ok(())
    }

    /// Returns the number of extents of a table with these entries.
    fn extents_of_flush(&self, entries: &[NewEntry]) -> usize {
        let format = self.store.format;
        let bytes =
            entries.iter().map(|entry| OFFSET_BYTES + entry.as_ref().full_len(format)).sum();
        let longest = entries.iter().map(|entry| entry.as_ref().key.len()).max();
        self.tables_of().form.extents_of_one(&Contents {
            data_pages: self.inlining.most_pages(bytes),
            entries: entries.len() as u64,
            longest_key: longest.unwrap_or(0),
        })
    }
}
