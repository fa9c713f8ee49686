//! Tables: trees and their edits, and indexes in pages.

use std::rc::Rc;

use runtime::Rng;
use testkit::fuzz::{Answer, unsealed};

use super::fuzz;
use crate::format::codec::{Reader, Writer};
use crate::format::page;
use crate::format::page::MAX_PAGE_BYTES;
use crate::manifest::table_codec::{
    index_of_pages, index_to_pages, read_edit, read_tree, write_edit, write_tree,
};
use crate::read::filter::{Filter, key_hash};
use crate::specimens::{SHAPE, keys};
use crate::version::table::{IndexedPage, TableId, TableIndex, TableMeta};
use crate::version::tree::tests::table;
use crate::version::tree::{Tree, TreeEdit};

/// Returns tables in two levels, at locations that a small medium has.
fn tree(rng: &mut Rng) -> Tree<Rc<TableMeta>> {
    let mut id = 0;
    let mut next = |first: u8, last: u8, rng: &mut Rng| {
        id += 1;
        table(id, first, last, 1 + rng.below(5) as u32)
    };
    let l0 = (0..rng.below(4)).map(|_| next(0, 200, rng)).collect();
    let l1 = (0..rng.below(6) as u8).map(|i| next(20 * i, 20 * i + 9, rng)).collect();
    Tree::of(vec![l0, l1]).expect("in order")
}

fn walk(tree: &Tree<Rc<TableMeta>>) {
    for table in tree.tables() {
        let _ = tree.overlapping(1, &table.first_key, &table.last_key);
        assert_eq!(table.page_numbers(&SHAPE).count() as u32, table.pages.pages);
    }
}

#[test]
fn fuzz_tree_of_tables() {
    let encoding = |rng: &mut Rng| {
        let mut out = Writer::default();
        write_tree(&mut out, &tree(rng));
        out.finish()
    };
    fuzz("fuzz_tree_of_tables", &unsealed, &encoding, &|bytes| {
        let Some(tree) = read_tree(&mut Reader::new(bytes), 2, &SHAPE) else {
            return Answer::Refused;
        };
        walk(&tree);
        let mut out = Writer::default();
        write_tree(&mut out, &tree);
        assert!(read_tree(&mut Reader::new(&out.finish()), 2, &SHAPE).is_some());
        Answer::Taken
    });
}

#[test]
fn fuzz_edit_of_tables() {
    let l1 = (0..6).map(|i| table(i, 20 * i as u8, 20 * i as u8 + 9, 2)).collect();
    let base = Tree::of(vec![vec![table(9, 0, 200, 3)], l1]).expect("in order");
    let encoding = |rng: &mut Rng| {
        let gone = rng.below(6);
        let at = gone as u8;
        let edit = TreeEdit {
            removed: vec![(1, TableId(gone))],
            added: vec![(1, table(20, 20 * at, 20 * at + 9, 2)), (0, table(21, 0, 9, 1))],
        };
        let mut out = Writer::default();
        write_edit(&mut out, &edit);
        out.finish()
    };
    fuzz("fuzz_edit_of_tables", &unsealed, &encoding, &|bytes| {
        let Some(edit) = read_edit(&mut Reader::new(bytes), &SHAPE) else { return Answer::Refused };
        let next = base.edited(&edit);
        next.iter().for_each(walk);
        Answer::from(next.is_some())
    });
}

#[test]
fn fuzz_table_index() {
    let meta = |index: &TableIndex| TableMeta {
        first_key: index.pages[0].first_key.clone(),
        entries: index.pages.iter().map(|page| u64::from(page.entries)).sum(),
        data_pages: index.pages.len() as u32,
        longest_key: 255,
        ..(*table(3, 0, 255, 1)).clone()
    };
    let index = |rng: &mut Rng| {
        let keys = keys(rng, 40);
        let page = |key: &Vec<u8>| IndexedPage { first_key: key[..].into(), entries: 7 };
        let hashes: Vec<u64> = keys.iter().map(|key| key_hash(key)).collect();
        TableIndex { pages: keys.iter().map(page).collect(), filter: Filter::of_bytes(&hashes, 60) }
    };
    let expected = meta(&index(&mut Rng::new(1)));
    let encoding = |_: &mut Rng| {
        let index = index(&mut Rng::new(1));
        let mut pages = index_to_pages(expected.id, &index, MAX_PAGE_BYTES);
        assert_eq!(pages.len(), 1);
        page::finish(pages.remove(0))
    };
    fuzz("fuzz_table_index", &unsealed, &encoding, &|bytes| {
        let Some(index) = index_of_pages(&expected, [bytes]) else { return Answer::Refused };
        assert_eq!(meta(&index).entries, expected.entries);
        Answer::Taken
    });
}
