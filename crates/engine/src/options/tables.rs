//! Sizes and triggers of a tree of tables. Names and defaults are those of `RocksDB` 6.23.

use catalogue::bounds;
use serde::{Deserialize, Serialize};

/// The number of workers reserved for compactions out of L0.
const L0_WORKERS: std::ops::RangeInclusive<usize> = 0..=8;

/// How compactions below L0 give way to a compaction out of L0 (SILK's preemption), between two
/// steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// They do not give way.
    #[default]
    None,
    /// They stop until it is done, then continue. A compaction that holds tables with which L0 is
    /// to be merged does not stop; it continues with the urgency of L0's compaction.
    Keep,
    /// They stop too; a compaction that holds such tables ends, its output is discarded and
    /// counted, and its merge starts again later.
    Discard,
}

/// Options of a tree of tables.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TableOptions {
    /// Bytes of pages after which a table ends (`target_file_size_base`).
    pub table_bytes: u64,
    /// Target size of L1, in bytes (`max_bytes_for_level_base`).
    pub level_base_bytes: u64,
    /// The ratio of the target sizes of neighbouring levels.
    pub level_multiplier: f64,
    /// The number of L0 tables at which L0 is compacted.
    pub l0_compaction_trigger: u32,
    /// The number of L0 tables at which writes are delayed.
    pub l0_slowdown_trigger: u32,
    /// The number of L0 tables at which writes stop.
    pub l0_stop_trigger: u32,
    /// The approximate limit of one compaction, in bytes.
    pub max_compaction_bytes: u64,
    /// Pending compaction bytes at which writes are delayed.
    pub soft_pending_bytes: u64,
    /// Pending compaction bytes at which writes stop.
    pub hard_pending_bytes: u64,
    /// The highest rate of delayed writes, in bytes per second.
    pub delayed_write_bytes_per_s: u64,
    /// Bytes that a compaction reads of each input at a time.
    pub readahead_bytes: u64,
    /// Bytes that flush and compaction write at a time.
    pub write_bytes: u64,
    /// The number of workers reserved for compactions out of L0, in addition to the general
    /// workers, so that these compactions never wait because all workers are busy.
    pub l0_workers: usize,
    /// How compactions below L0 give way to a compaction out of L0.
    pub preemption: Preemption,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            table_bytes: 64 << 20,
            level_base_bytes: 256 << 20,
            level_multiplier: 10.0,
            l0_compaction_trigger: 4,
            l0_slowdown_trigger: 20,
            l0_stop_trigger: 36,
            max_compaction_bytes: 25 * (64 << 20),
            soft_pending_bytes: 64 << 30,
            hard_pending_bytes: 256 << 30,
            delayed_write_bytes_per_s: 16 << 20,
            readahead_bytes: 2 << 20,
            write_bytes: 1 << 20,
            l0_workers: 0,
            preemption: Preemption::None,
        }
    }
}

/// The valid range of sizes of tables, levels and compactions, in bytes.
const SIZE: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 50;

impl TableOptions {
    /// Returns a message for each invalid option.
    pub(crate) fn problems(&self) -> Vec<String> {
        let sizes = [
            ("tables.table_bytes", self.table_bytes),
            ("tables.level_base_bytes", self.level_base_bytes),
            ("tables.max_compaction_bytes", self.max_compaction_bytes),
            ("tables.soft_pending_bytes", self.soft_pending_bytes),
            ("tables.hard_pending_bytes", self.hard_pending_bytes),
            ("tables.delayed_write_bytes_per_s", self.delayed_write_bytes_per_s),
            ("tables.readahead_bytes", self.readahead_bytes),
            ("tables.write_bytes", self.write_bytes),
        ];
        let mut problems: Vec<String> = sizes
            .into_iter()
            .filter_map(|(name, bytes)| bounds::range(name, bytes, SIZE))
            .collect();
        if !(1.0..=1_000.0).contains(&self.level_multiplier) {
            let multiplier = self.level_multiplier;
            problems.push(format!("tables.level_multiplier is {multiplier}, must be 1 to 1000"));
        }
        let triggers = [self.l0_compaction_trigger, self.l0_slowdown_trigger, self.l0_stop_trigger];
        if triggers[0] == 0 || !triggers.is_sorted() || triggers[2] > 10_000 {
            problems.push(format!(
                "tables: L0 is compacted at {} tables, writes are delayed at {} and stopped at {}; \
                 none may be less than the one before, the first not less than 1, the last not more \
                 than 10000",
                triggers[0], triggers[1], triggers[2]
            ));
        }
        problems.extend(bounds::range("tables.l0_workers", self.l0_workers, L0_WORKERS));
        if self.preemption != Preemption::None && self.l0_workers == 0 {
            problems.push(
                "tables.preemption is for a worker of L0's own, and there is none: set l0_workers to 1"
                    .to_owned(),
            );
        }
        if self.max_compaction_bytes < self.table_bytes {
            problems.push(format!(
                "tables.max_compaction_bytes is {}, must not be less than table_bytes, {}",
                self.max_compaction_bytes, self.table_bytes
            ));
        }
        if self.hard_pending_bytes < self.soft_pending_bytes {
            problems.push(format!(
                "tables.hard_pending_bytes is {}, must not be less than soft_pending_bytes, {}",
                self.hard_pending_bytes, self.soft_pending_bytes
            ));
        }
        problems
    }

    /// Returns the target size of level `n` in bytes; L0 has the same as L1.
    pub(crate) fn target_bytes(&self, n: usize) -> f64 {
        self.level_base_bytes as f64 * self.level_multiplier.powi(n.max(1) as i32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        let rocksdb = TableOptions::default();
        assert_eq!(rocksdb.problems(), Vec::<String>::new());
        let targets = [0, 1, 3].map(|n| rocksdb.target_bytes(n) as u64 >> 20);
        assert_eq!(targets, [256, 256, 25_600]);
        let triggers = TableOptions { l0_slowdown_trigger: 40, ..rocksdb }.problems();
        assert!(triggers[0].contains("delayed at 40 and stopped at 36"), "{triggers:?}");
        let pending = TableOptions { hard_pending_bytes: 1 << 20, ..rocksdb }.problems();
        assert!(pending[0].contains("soft_pending_bytes"), "{pending:?}");
        assert!(!TableOptions { table_bytes: 0, ..rocksdb }.problems().is_empty());
        let preemption = TableOptions { preemption: Preemption::Keep, ..rocksdb };
        assert!(preemption.problems()[0].contains("set l0_workers to 1"));
        assert!(TableOptions { l0_workers: 1, ..preemption }.problems().is_empty());
    }
}
