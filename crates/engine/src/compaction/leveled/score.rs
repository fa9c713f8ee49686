//! Compaction scores of levels, and pending compaction bytes, by the rules of `RocksDB` 6.23
//! (`ComputeCompactionScore`, `EstimateCompactionBytesNeeded`).

use crate::options::tables::TableOptions;
use crate::version::table::Described;
use crate::version::tree::Tree;

/// A table that a compaction may have in use.
pub(crate) trait Candidate: Described + Clone {
    fn is_busy(&self) -> bool;
}

/// The parameters for the weights of tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    pub page_bytes: u32,
    /// The approximate bytes of an entry that is not a tombstone.
    pub entry_bytes: f64,
}

impl Weights {
    /// Returns the parameters for the tables of `tree`.
    pub(crate) fn of<T: Candidate>(tree: &Tree<T>, page_bytes: u32) -> Self {
        let (mut pages, mut entries) = (0_u64, 0_u64);
        for table in tree.tables() {
            let meta = table.meta();
            pages += u64::from(meta.data_pages);
            entries += meta.entries - meta.tombstones;
        }
        let entry_bytes = pages as f64 * f64::from(page_bytes) / entries.max(1) as f64;
        Self { page_bytes, entry_bytes }
    }

    /// Returns the bytes of a table's pages with entries.
    pub(crate) fn bytes<T: Described>(&self, table: &T) -> f64 {
        f64::from(table.meta().data_pages) * f64::from(self.page_bytes)
    }

    /// Like [`Self::bytes`], but larger if more than half of the entries are tombstones, so that
    /// these are compacted early.
    pub(crate) fn compensated<T: Described>(&self, table: &T) -> f64 {
        const COMPENSATION: f64 = 2.0;
        let meta = table.meta();
        let surplus = (2 * meta.tombstones).saturating_sub(meta.entries);
        self.bytes(table) + surplus as f64 * self.entry_bytes * COMPENSATION
    }

    pub(crate) fn sum<'t, T: Described + 't>(
        &self,
        tables: impl IntoIterator<Item = &'t T>,
    ) -> f64 {
        tables.into_iter().map(|table| self.bytes(table)).sum()
    }
}

/// Returns the score of each level except the last: a level is due from 1 on. Busy tables do not
/// count.
pub(crate) fn scores<T: Candidate>(
    tree: &Tree<T>,
    options: &TableOptions,
    weights: &Weights,
) -> Vec<f64> {
    let upper = 0..tree.levels().len() - 1;
    upper.map(|n| score(tree, n, options, weights)).collect()
}

fn score<T: Candidate>(tree: &Tree<T>, n: usize, options: &TableOptions, weights: &Weights) -> f64 {
    let idle = || tree.level(n).iter().filter(|table| !table.is_busy());
    let bytes: f64 = idle().map(|table| weights.compensated(table)).sum();
    let by_bytes = bytes / options.target_bytes(n);
    match n {
        0 => by_bytes.max(idle().count() as f64 / f64::from(options.l0_compaction_trigger)),
        _ => by_bytes,
    }
}

/// Whether L0 is due for a compaction.
pub(crate) fn l0_is_due<T: Candidate>(
    tree: &Tree<T>,
    options: &TableOptions,
    weights: &Weights,
) -> bool {
    score(tree, 0, options, weights) >= 1.0
}

/// Returns the approximate number of bytes to rewrite until no level exceeds its size. Busy tables
/// count.
pub(crate) fn pending_bytes<T: Candidate>(
    tree: &Tree<T>,
    options: &TableOptions,
    weights: &Weights,
) -> u64 {
    let sizes: Vec<f64> = tree.levels().iter().map(|level| weights.sum(level)).collect();
    let l0_is_due = tree.level(0).len() >= options.l0_compaction_trigger as usize
        || sizes[0] >= options.target_bytes(0);
    let mut carried = if l0_is_due { sizes[0] } else { 0.0 };
    let mut pending = if l0_is_due { sizes[0] + sizes[1] } else { 0.0 };
    for n in 1..sizes.len() - 1 {
        let size = sizes[n] + carried;
        let target = options.target_bytes(n);
        carried = (size - target).max(0.0);
        if carried > 0.0 && sizes[n + 1] > 0.0 {
            pending += carried * (sizes[n + 1] / size + 1.0);
        }
    }
    pending as u64
}

#[cfg(test)]
pub(crate) mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::version::table::TableMeta;
    use crate::version::tree::tests::table;

    /// A table, and whether a compaction reads it.
    #[derive(Clone, Debug)]
    pub(crate) struct Shown(pub Rc<TableMeta>, pub bool);

    impl Described for Shown {
        fn meta(&self) -> &TableMeta {
            &self.0
        }
    }

    impl Candidate for Shown {
        fn is_busy(&self) -> bool {
            self.1
        }
    }

    /// Returns tables of 64 pages of 1 MiB with these first keys; each ends before the next one.
    pub(crate) fn level(first_id: u64, starts: &[u8]) -> Vec<Shown> {
        let ends = starts.iter().skip(1).map(|next| next - 1).chain([255]);
        let tables = (first_id..).zip(starts.iter().zip(ends));
        tables.map(|(id, (first, last))| Shown(table(id, *first, last, 64), false)).collect()
    }

    /// Returns tables of L0 that each cover all keys.
    pub(crate) fn l0(count: u64) -> Vec<Shown> {
        (0..count).map(|id| Shown(table(1_000 + id, 0, 255, 64), false)).collect()
    }

    pub(crate) const WEIGHTS: Weights = Weights { page_bytes: 1 << 20, entry_bytes: 1e5 };

    pub(crate) fn tree(levels: &[Vec<Shown>]) -> Tree<Shown> {
        Tree::of(levels.to_vec()).expect("in order")
    }

    #[test]
    fn l0_is_weighed_by_its_tables_and_others_by_their_bytes() {
        let options = TableOptions::default();
        let tree = tree(&[l0(6), level(0, &[0, 50, 100, 150, 200]), level(100, &[0])]);
        let scores = scores(&tree, &options, &WEIGHTS);
        assert_eq!(scores, [1.5, 320.0 / 256.0]);
    }

    #[test]
    fn what_is_busy_does_not_count_and_tombstones_count_twice() {
        let options = TableOptions::default();
        let mut tables = level(0, &[0, 50, 100, 150, 200]);
        tables[0].1 = true;
        let meta = (*tables[1].0).clone();
        tables[1].0 = Rc::new(TableMeta { tombstones: meta.entries, ..meta });
        let scores = scores(&tree(&[l0(0), tables, level(100, &[0])]), &options, &WEIGHTS);
        let surplus = 640.0 * 1e5 * 2.0 / f64::from(256 << 20);
        assert!((scores[1] - (1.0 + surplus)).abs() < 1e-9, "{scores:?}");
    }

    #[test]
    fn pending_bytes_are_carried_down() {
        let options = TableOptions::default();
        let mib = |bytes: u64| bytes >> 20;
        let pending = |levels: &[Vec<Shown>]| mib(pending_bytes(&tree(levels), &options, &WEIGHTS));
        let l1 = level(0, &[0, 50, 100, 150]);
        assert_eq!(pending(&[l0(3), l1.clone(), level(100, &[0])]), 0);
        // 256 + 256 MiB make 512 MiB in L1, of which 256 MiB move into a level of 64 MiB.
        let and_on = 256 + 256 * 64 / 512;
        assert_eq!(pending(&[l0(4), l1.clone(), level(100, &[0])]), 512 + and_on);
        assert_eq!(pending(&[l0(4), l1, Vec::new()]), 512);
    }
}
