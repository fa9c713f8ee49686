//! The assignment of tables to levels. Immutable; an edit makes a new tree.

use super::table::{Described, KeyRange, TableId};

/// L0, newest first, then L1, L2, ... in key order.
#[derive(Clone, Debug)]
pub(crate) struct Tree<T> {
    levels: Vec<Vec<T>>,
}

/// Tables removed and tables added. A table added to L0 takes the position of the newest table
/// removed from L0, or the first position if none is removed.
#[derive(Clone, Debug)]
pub(crate) struct TreeEdit<T> {
    /// Removed tables with their levels.
    pub removed: Vec<(usize, TableId)>,
    /// Added tables with their levels.
    pub added: Vec<(usize, T)>,
}

impl<T> Default for TreeEdit<T> {
    fn default() -> Self {
        Self { removed: Vec::new(), added: Vec::new() }
    }
}

impl<T> TreeEdit<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}

impl<T: Described + Clone> Tree<T> {
    /// Returns an empty tree of L0 and `below` levels below it.
    pub(crate) fn new(below: usize) -> Self {
        Self { levels: vec![Vec::new(); below + 1] }
    }

    /// Returns the tree of these tables; `None` if they are out of order.
    pub(crate) fn of(levels: Vec<Vec<T>>) -> Option<Self> {
        let tree = Self { levels };
        tree.is_in_order().then_some(tree)
    }

    /// Returns the levels, L0 first.
    pub(crate) fn levels(&self) -> &[Vec<T>] {
        &self.levels
    }

    pub(crate) fn level(&self, n: usize) -> &[T] {
        &self.levels[n]
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &T> {
        self.levels.iter().flatten()
    }

    /// Returns the tables of level `n`, which must not be L0, that overlap with `first..=last`.
    pub(crate) fn overlapping(&self, n: usize, first: &[u8], last: &[u8]) -> &[T] {
        assert!(n > 0, "L0 is not in key order");
        let level = &self.levels[n];
        let start = level.partition_point(|table| *table.meta().last_key < *first);
        let end = level.partition_point(|table| *table.meta().first_key <= *last);
        &level[start..end.max(start)]
    }

    /// Returns the tree that `edit` makes of this one; `None` if the edit does not fit this tree.
    pub(crate) fn edited(&self, edit: &TreeEdit<T>) -> Option<Self> {
        let mut levels = self.levels.clone();
        let mut newest_gone = None;
        for (n, id) in &edit.removed {
            let level = levels.get_mut(*n)?;
            let at = level.iter().position(|table| table.meta().id == *id)?;
            level.remove(at);
            if *n == 0 {
                newest_gone = Some(newest_gone.map_or(at, |newest: usize| newest.min(at)));
            }
        }
        for (n, table) in &edit.added {
            let level = levels.get_mut(*n)?;
            let at = match n {
                0 => newest_gone.unwrap_or(0),
                _ => level.partition_point(|other| other.meta().last_key < table.meta().first_key),
            };
            level.insert(at, table.clone());
        }
        Self::of(levels)
    }

    fn is_in_order(&self) -> bool {
        let is_before = |pair: &[T]| last(&pair[0]) < first(&pair[1]);
        self.levels.iter().skip(1).all(|level| level.windows(2).all(is_before))
    }
}

fn first<T: Described>(table: &T) -> &[u8] {
    &table.meta().first_key
}

fn last<T: Described>(table: &T) -> &[u8] {
    &table.meta().last_key
}

/// Returns the range from the first to the last key of these tables; `None` for no tables.
pub(crate) fn key_range<'t, T: Described + 't>(
    tables: impl IntoIterator<Item = &'t T>,
) -> Option<KeyRange> {
    tables.into_iter().map(|table| table.meta().keys()).reduce(KeyRange::joined)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::rc::Rc;

    use crate::medium::ExtentId;
    use crate::space::apart::Stretches;

    use super::*;
    use crate::version::table::TableMeta;

    /// Returns a table with these keys and `data_pages` pages with entries.
    pub(crate) fn table(id: u64, first: u8, last: u8, data_pages: u32) -> Rc<TableMeta> {
        Rc::new(TableMeta {
            id: TableId(id),
            first_key: [first].into(),
            last_key: [last].into(),
            entries: u64::from(data_pages) * 10,
            tombstones: 0,
            longest_key: 1,
            pages: Stretches { extents: vec![ExtentId(id as u32)], pages: data_pages + 1 },
            data_pages,
        })
    }

    fn ids(level: &[Rc<TableMeta>]) -> Vec<u64> {
        level.iter().map(|table| table.id.0).collect()
    }

    #[test]
    fn what_comes_into_l0_takes_the_place_of_what_goes_from_there() {
        let tree = Tree::new(2);
        let add = |id| TreeEdit { added: vec![(0, table(id, 0, 9, 4))], ..TreeEdit::default() };
        let tree = [1, 2, 3, 4].iter().fold(tree, |tree, id| tree.edited(&add(*id)).expect("new"));
        assert_eq!(ids(tree.level(0)), [4, 3, 2, 1]);
        let within = TreeEdit {
            removed: vec![(0, TableId(3)), (0, TableId(2))],
            added: vec![(0, table(9, 0, 9, 8))],
        };
        assert_eq!(ids(tree.edited(&within).expect("both are there").level(0)), [4, 9, 1]);
        assert!(tree.edited(&add(5)).expect("new").edited(&within).is_some());
        let twice = tree.edited(&within).expect("both are there").edited(&within);
        assert!(twice.is_none(), "they are gone");
    }

    #[test]
    fn levels_are_in_key_order_and_share_no_key() {
        let tree = Tree::new(2);
        let add = |id, first, last| TreeEdit {
            added: vec![(1, table(id, first, last, 4))],
            ..TreeEdit::default()
        };
        let tree = tree.edited(&add(1, 40, 60)).expect("empty");
        let tree = tree.edited(&add(2, 10, 20)).expect("in front");
        assert_eq!(ids(tree.level(1)), [2, 1]);
        assert!(tree.edited(&add(3, 20, 30)).is_none() && tree.edited(&add(3, 30, 40)).is_none());
        assert_eq!(ids(tree.overlapping(1, &[15], &[39])), [2]);
        assert_eq!(ids(tree.overlapping(1, &[20], &[40])), [2, 1]);
        assert_eq!(ids(tree.overlapping(1, &[21], &[39])), [0_u64; 0]);
        let keys = KeyRange { first: [10].into(), last: [60].into() };
        assert_eq!(key_range(tree.level(1)), Some(keys));
    }
}
