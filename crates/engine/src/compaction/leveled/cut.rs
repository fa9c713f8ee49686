//! Decides at which keys the output tables of a compaction end.

use crate::version::table::{Described, TableMeta};

/// Ends the tables of one compaction when they are long enough, or before they overlap with so much
/// two levels down that their own compaction would be too large.
pub(crate) struct Cutter {
    /// Maximum number of pages of a table in all; `None` in L0.
    pages: Option<u32>,
    /// Maximum number of bytes of a table together with its overlap two levels down.
    most_bytes: f64,
    page_bytes: f64,
    /// The tables two levels down, in order: last key and bytes.
    beyond: Vec<(Box<[u8]>, f64)>,
    /// The number of those tables that were passed.
    passed: usize,
    /// Bytes of those tables that the current table overlaps with.
    met_bytes: f64,
}

impl Cutter {
    /// Creates a cutter. `pages` is `None` if all output goes into one table.
    pub(crate) fn new<'t, T: Described + 't>(
        pages: Option<u32>,
        most_bytes: f64,
        page_bytes: u32,
        beyond: impl IntoIterator<Item = &'t T>,
    ) -> Self {
        let page_bytes = f64::from(page_bytes);
        let ends =
            |meta: &TableMeta| (meta.last_key.clone(), f64::from(meta.data_pages) * page_bytes);
        let beyond = beyond.into_iter().map(|table| ends(table.meta())).collect();
        Self { pages, most_bytes, page_bytes, beyond, passed: 0, met_bytes: 0.0 }
    }

    /// Returns whether the table ends before `key`. The table has `pages` pages of entries; with
    /// one more entry it could have `most` pages in all.
    pub(crate) fn ends_before(&mut self, key: &[u8], pages: u32, most: u32) -> bool {
        while let Some((last, bytes)) = self.beyond.get(self.passed)
            && **last < *key
        {
            self.met_bytes += bytes;
            self.passed += 1;
        }
        let is_long = self.pages.is_some_and(|allowed| most > allowed);
        let own_bytes = f64::from(pages) * self.page_bytes;
        let meets_much = pages > 0 && own_bytes + self.met_bytes > self.most_bytes;
        if meets_much {
            self.met_bytes = 0.0;
        }
        is_long || meets_much
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::tree::tests::table;

    #[test]
    fn a_table_ends_when_it_is_long_enough() {
        let mut cutter =
            Cutter::new(Some(4), f64::INFINITY, 1024, &Vec::<std::rc::Rc<TableMeta>>::new());
        assert!(!cutter.ends_before(b"a", 0, 3) && !cutter.ends_before(b"b", 1, 4));
        assert!(cutter.ends_before(b"c", 2, 5));
        let mut l0 = Cutter::new(None, f64::INFINITY, 1024, &Vec::<std::rc::Rc<TableMeta>>::new());
        assert!(!l0.ends_before(b"c", 4000, 4005));
    }

    #[test]
    fn a_table_ends_before_it_meets_too_much() {
        let beyond: Vec<_> = (0..20).map(|i| table(i, 10 * i as u8, 10 * i as u8 + 9, 4)).collect();
        let mut cutter = Cutter::new(Some(100), 10_240.0, 1024, &beyond);
        assert!(!cutter.ends_before(&[5], 1, 4));
        assert!(!cutter.ends_before(&[25], 2, 5), "two were passed: 8 pages and 2 of its own");
        assert!(cutter.ends_before(&[35], 2, 5), "three were passed");
        assert!(!cutter.ends_before(&[45], 2, 5), "counted anew");
    }
}
