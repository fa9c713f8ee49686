//! Sizes and triggers of a tree of tables. Names and defaults are those of `RocksDB` 6.23.

use catalogue::bounds;
use serde::{Deserialize, Serialize};

/// Compactions out of L0 that have a worker of their own.
const L0_WORKERS: std::ops::RangeInclusive<usize> = 0..=8;

/// What compactions below L0 do for one out of L0 (SILK's pre-emption), between two steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// Nothing.
    #[default]
    None,
    /// They stop until it is done, and go on where they were. One that holds tables which L0 is to be merged
    /// with goes on in its place instead, as urgent as it would be.
    Keep,
    /// They stop as well; one that holds such tables ends, what it has written is thrown away and counted, and
    /// its merge begins anew later.
    Discard,
}

/// Options of a tree of tables.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TableOptions {
    /// Bytes of pages after which a table ends (`target_file_size_base`).
    pub table_bytes: u64,
    /// Bytes that L1 may have (`max_bytes_for_level_base`).
    pub level_base_bytes: u64,
    /// How many times as much each level may have as the one above it.
    pub level_multiplier: f64,
    /// Tables of L0 from which on it is compacted.
    pub l0_compaction_trigger: u32,
    /// Tables of L0 from which on writes are delayed.
    pub l0_slowdown_trigger: u32,
    /// Tables of L0 from which on writes are stopped.
    pub l0_stop_trigger: u32,
    /// Bytes that one compaction takes, about.
    pub max_compaction_bytes: u64,
    /// Bytes that compactions have before them from which on writes are delayed.
    pub soft_pending_bytes: u64,
    /// The same from which on they are stopped.
    pub hard_pending_bytes: u64,
    /// The most bytes a second that delayed writes get.
    pub delayed_write_bytes_per_s: u64,
    /// Bytes that a compaction reads at a time of each input.
    pub readahead_bytes: u64,
    /// Bytes that flush and compaction write at a time.
    pub write_bytes: u64,
    /// Workers that do nothing but compactions out of L0, besides those that do any. So these never wait
    /// until another compaction ends because all workers are in use.
    pub l0_workers: usize,
    /// What compactions below L0 do for one out of L0.
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

/// Bytes of tables, levels and compactions.
const SIZE: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 50;

impl TableOptions {
    /// Everything that is wrong with these options, in words.
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

    /// Bytes that level `n` may have; L0 as many as L1.
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
