//! Helpers of the reproductions that use the bench.

use kvbench::Observer;
use stacks::design::Design;

/// An observer that ignores all progress.
pub(super) struct Nobody;

impl Observer for Nobody {
    fn begin(&mut self, _: &'static str, _: u64) {}
    fn progress(&mut self, _: u64) {}
    fn end(&mut self, _: bool) {}
}

/// Divides the sizes of a design with tables: memtables, tables, levels, and the limits of pending
/// compaction.
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
