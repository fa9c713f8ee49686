//! What reproductions that use the bench share.

use design::Design;

use crate::bench::Observer;

/// Nobody hears how far it is.
pub(super) struct Nobody;

impl Observer for Nobody {
    fn begin(&mut self, _: &'static str, _: u64) {}
    fn progress(&mut self, _: u64) {}
    fn end(&mut self, _: bool) {}
}

/// A tree of tables whose memtables, tables, levels and what compactions may be behind are divided.
pub(super) fn divided(design: Design, divisor: u64) -> Design {
    design.with(|engine| {
        let tables = &mut engine.tables;
        for bytes in [
            &mut tables.table_bytes,
            &mut tables.level_base_bytes,
            &mut tables.max_compaction_bytes,
            &mut tables.soft_pending_bytes,
            &mut tables.hard_pending_bytes,
            &mut engine.memtable_bytes,
        ] {
            *bytes /= divisor;
        }
    })
}
