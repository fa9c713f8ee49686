//! The requirements of a tree of tables of a given size: level sizes, memory, writes, reads.

use super::SizingInput;
use crate::options::Options;
use crate::options::tables::TableOptions;

/// A tree of tables at its expected size.
#[derive(Clone, Debug, PartialEq)]
pub struct TablePlan {
    /// Bytes of pages in each level, L0 first, each as full as its trigger or target; the last one
    /// holds the rest.
    pub level_bytes: Vec<u64>,
    /// Memory for the indexes of tables, in bytes.
    pub index_bytes: u64,
    /// Memory for filters, in bytes.
    pub filter_bytes: u64,
    /// The approximate maximum of bytes of tables that flush and compaction write per byte of
    /// pairs: as if each level were at its target, and each compaction overlapped with everything
    /// below its range.
    pub most_amplification: f64,
    /// The maximum number of table pages that a Get reads while L0 does not exceed its trigger,
    /// without filters.
    pub reads: u32,
    /// The maximum number of table pages that a Get reads when L0 has as many tables as stop
    /// writes.
    pub most_reads: u32,
}

/// Returns the tree that `options` produce when pairs fill the medium of `input` as laid out.
pub fn plan(options: &Options, input: &SizingInput) -> TablePlan {
    let tables = &options.tables;
    let pages = input.segments_at_fill();
    let pairs = pages * input.entries_per_segment;
    let bytes = pages * input.segment_bytes;
    // Bytes of pages per byte of pairs.
    let bulk = input.segment_bytes as f64 / (input.entries_per_segment * input.pair_bytes) as f64;
    let flushed = options.memtable_bytes as f64 * bulk;
    let level_bytes = level_bytes(tables, options.levels as usize, bytes, flushed);
    let filled = level_bytes.iter().skip(1).filter(|bytes| **bytes > 0).count() as u32;
    let bits = u64::from(options.filter_bits_per_key());
    TablePlan {
        most_amplification: bulk * writes_of_a_page(&level_bytes),
        index_bytes: pages * input.list_bytes_per_segment(),
        filter_bytes: pairs * bits / 8,
        reads: tables.l0_compaction_trigger + filled,
        most_reads: tables.l0_stop_trigger + filled,
        level_bytes,
    }
}

/// Returns the approximate number of bytes that a full tree of tables leaves free on a medium: the
/// output of its smallest compaction, which is a table with its overlap one level down, and twice
/// the contents of memtables, for their tables and again for their log.
pub fn kept_free(options: &Options) -> u64 {
    let tables = &options.tables;
    let met = (tables.level_multiplier + 2.0) * tables.table_bytes as f64;
    let memtables = options.frozen_memtables as u64 + 1;
    met as u64 + 4 * memtables * options.memtable_bytes
}

fn level_bytes(tables: &TableOptions, levels: usize, bytes: u64, flushed: f64) -> Vec<u64> {
    let mut left = bytes;
    let mut take = |most: f64| {
        let taken = left.min(most as u64);
        left -= taken;
        taken
    };
    let mut sizes = vec![take(flushed * f64::from(tables.l0_compaction_trigger))];
    sizes.extend((1..levels).map(|level| take(tables.target_bytes(level))));
    sizes.push(take(f64::INFINITY));
    sizes
}

/// Returns how often a page is written from its memtable to the last level: once in the flush, and
/// in each level in proportion to the overlap with the level's size.
fn writes_of_a_page(level_bytes: &[u64]) -> f64 {
    let steps = level_bytes.windows(2).filter(|pair| pair[0] > 0 && pair[1] > 0);
    1.0 + steps.map(|pair| 1.0 + pair[1] as f64 / pair[0] as f64).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn levels_fill_from_the_top_and_the_last_takes_the_rest() {
        let tables = TableOptions::default();
        let sizes = level_bytes(&tables, 6, 10_000 * MIB, 64.0 * MIB as f64);
        let mib: Vec<u64> = sizes.iter().map(|bytes| bytes / MIB).collect();
        assert_eq!(mib, [256, 256, 2_560, 6_928, 0, 0, 0]);
        let few = level_bytes(&tables, 2, 10_000 * MIB, 64.0 * MIB as f64);
        assert_eq!(few.iter().map(|bytes| bytes / MIB).collect::<Vec<_>>(), [256, 256, 9_488]);
    }

    #[test]
    fn a_page_is_written_once_and_then_as_often_as_levels_differ() {
        assert!((writes_of_a_page(&[256, 0, 0]) - 1.0).abs() < 1e-9);
        // Into L1 with as much as it has, then into L2 with ten times as much as arrives.
        assert!((writes_of_a_page(&[256, 256, 2_560]) - (1.0 + 2.0 + 11.0)).abs() < 1e-9);
    }
}
