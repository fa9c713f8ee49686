//! The encoding of tables in manifests, and of their indexes in separate pages.
//!
//! ```text
//! table: number u64, entries u64, tombstones u64, data pages u32, pages u32, longest key u8,
//!        extents u32 each, first key, last key
//! tree:  levels u32 | for each: tables u32, tables
//! edit:  count u32, (level u32, number u64) removed | count u32, (level u32, table) added
//! index: pages u32, (first key, entries u32) each | filter
//! page of an index: header (28..32: place) | number of the table u64 | part of the index
//! ```

use std::rc::Rc;

use crate::format::codec::{Reader, Writer};
use crate::format::object::MAX_KEY_BYTES;
use crate::format::page;
use crate::format::page::{HEADER_BYTES, Page, PageKind, u64_at};
use crate::medium::{ExtentId, Shape};
use crate::read::filter::Filter;
use crate::space::apart::Stretches;
use crate::version::table::{Described, IndexedPage, TableId, TableIndex, TableMeta};
use crate::version::tree::{Tree, TreeEdit};

/// Bytes of a table besides its keys and extents.
const TABLE_BYTES: u64 = 3 * 8 + 2 * 4 + 1 + 2 * 4;

/// Returns the maximum number of bytes of a table in a checkpoint.
pub(crate) fn most_table_bytes(extents: usize) -> u64 {
    TABLE_BYTES + 4 * extents as u64 + 2 * MAX_KEY_BYTES as u64
}

/// Returns the number of bytes of a tree in a checkpoint.
pub(crate) fn tree_bytes<T: Described + Clone>(tree: &Tree<T>) -> u64 {
    let of = |meta: &TableMeta| {
        let keys = meta.first_key.len() + meta.last_key.len();
        TABLE_BYTES + (4 * meta.pages.extents.len() + keys) as u64
    };
    tree.tables().map(|table| of(table.meta())).sum()
}

fn write_table(out: &mut Writer, meta: &TableMeta) {
    out.u64(meta.id.0);
    out.u64(meta.entries);
    out.u64(meta.tombstones);
    out.u32(meta.data_pages);
    out.u32(meta.pages.pages);
    out.u8(meta.longest_key);
    for extent in &meta.pages.extents {
        out.u32(extent.0);
    }
    out.string(&meta.first_key);
    out.string(&meta.last_key);
}

fn read_table(input: &mut Reader<'_>, shape: &Shape) -> Option<Rc<TableMeta>> {
    let id = TableId(input.counter()?);
    let (entries, tombstones) = (input.counter()?, input.counter()?);
    let (data_pages, pages, longest_key) = (input.u32()?, input.u32()?, input.u8()?);
    let most = u64::from(shape.extents) * u64::from(shape.pages_per_extent);
    (u64::from(pages) <= most).then_some(())?;
    let extents = (0..shape.extents_of(pages)).map(|_| input.u32().map(ExtentId));
    let pages = Stretches { extents: extents.collect::<Option<_>>()?, pages };
    let mut key = || input.string().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
    let (first_key, last_key) = (key()?.into(), key()?.into());
    let meta =
        TableMeta { id, first_key, last_key, entries, tombstones, longest_key, pages, data_pages };
    meta.is_sound(shape).then(|| Rc::new(meta))
}

/// Encodes a tree for [`read_tree`].
pub(crate) fn write_tree<T: Described + Clone>(out: &mut Writer, tree: &Tree<T>) {
    out.u32(tree.levels().len() as u32);
    for level in tree.levels() {
        out.u32(level.len() as u32);
        for table in level {
            write_table(out, table.meta());
        }
    }
}

/// Decodes a tree of `levels` levels; `None` if the bytes are invalid.
pub(crate) fn read_tree(
    input: &mut Reader<'_>,
    levels: usize,
    shape: &Shape,
) -> Option<Tree<Rc<TableMeta>>> {
    (input.u32()? as usize == levels).then_some(())?;
    let mut tables = Vec::with_capacity(levels);
    for _ in 0..levels {
        let mut level = Vec::new();
        for _ in 0..input.u32()? {
            level.push(read_table(input, shape)?);
        }
        tables.push(level);
    }
    Tree::of(tables)
}

/// Encodes an edit for [`read_edit`].
pub(crate) fn write_edit<T: Described>(out: &mut Writer, edit: &TreeEdit<T>) {
    out.u32(edit.removed.len() as u32);
    for (level, id) in &edit.removed {
        out.u32(*level as u32);
        out.u64(id.0);
    }
    out.u32(edit.added.len() as u32);
    for (level, table) in &edit.added {
        out.u32(*level as u32);
        write_table(out, table.meta());
    }
}

/// Decodes an edit of a tree; `None` if the bytes are invalid.
pub(crate) fn read_edit(input: &mut Reader<'_>, shape: &Shape) -> Option<TreeEdit<Rc<TableMeta>>> {
    let mut edit = TreeEdit::default();
    for _ in 0..input.u32()? {
        edit.removed.push((input.u32()? as usize, TableId(input.counter()?)));
    }
    for _ in 0..input.u32()? {
        edit.added.push((input.u32()? as usize, read_table(input, shape)?));
    }
    Some(edit)
}

/// Returns the bytes of the index in one of its pages.
fn room(payload_bytes: u32) -> usize {
    payload_bytes as usize - HEADER_BYTES - 8
}

/// Returns the number of pages of an index of `bytes` bytes.
pub(crate) fn index_pages(bytes: u64, payload_bytes: u32) -> u64 {
    bytes.div_ceil(room(payload_bytes) as u64)
}

/// Bytes of a page's entry in an index besides its first key.
pub(crate) const PAGE_BYTES: u64 = 8;

/// Returns the bytes of a filter for `keys` keys; 0 without filters.
pub(crate) fn filter_bytes(keys: u64, bits_per_key: u32) -> u64 {
    if bits_per_key == 0 { 0 } else { (keys * u64::from(bits_per_key)).div_ceil(8) + 1 }
}

/// Returns the bytes of an index whose page entries take `of_pages` bytes.
pub(crate) fn index_bytes(of_pages: u64, entries: u64, filter_bits_per_key: u32) -> u64 {
    8 + of_pages + filter_bytes(entries, filter_bits_per_key)
}

/// Returns the maximum number of bytes of a table's index.
pub(crate) fn most_index_bytes(
    data_pages: u32,
    longest_key: usize,
    entries: u64,
    filter_bits_per_key: u32,
) -> u64 {
    let of_pages = u64::from(data_pages) * (longest_key as u64 + PAGE_BYTES);
    index_bytes(of_pages, entries, filter_bits_per_key)
}

/// Returns the pages of a table's index, unsealed.
pub(crate) fn index_to_pages(id: TableId, index: &TableIndex, payload_bytes: u32) -> Vec<Vec<u8>> {
    let mut out = Writer::default();
    out.u32(index.pages.len() as u32);
    for page in &index.pages {
        out.string(&page.first_key);
        out.u32(u32::from(page.entries));
    }
    out.string(index.filter.as_ref().map_or(&[], Filter::bytes));
    let bytes = out.finish();
    let page = |(place, part): (u32, &[u8])| {
        let mut page = page::start(PageKind::TableIndex, 0, 0, place, 8 + part.len());
        page.extend_from_slice(&id.0.to_le_bytes());
        page.extend_from_slice(part);
        page
    };
    (0..).zip(bytes.chunks(room(payload_bytes))).map(page).collect()
}

/// Decodes the index of the table that `meta` describes; `None` if these are not its pages.
pub(crate) fn index_of_pages<'p>(
    meta: &TableMeta,
    pages: impl IntoIterator<Item = &'p [u8]>,
) -> Option<TableIndex> {
    let mut bytes = Vec::new();
    for (place, page) in (0..).zip(pages) {
        let page = Page::parse(page)?;
        let is_next = page.kind == PageKind::TableIndex && page.large == place;
        let (id, part) = page.body().split_at_checked(8).filter(|_| is_next)?;
        (u64_at(id, 0) == meta.id.0).then_some(())?;
        bytes.extend_from_slice(part);
    }
    let input = &mut Reader::new(&bytes);
    let count = input.u32()?;
    (count == meta.data_pages).then_some(())?;
    let mut index = TableIndex::default();
    for _ in 0..count {
        let longest = usize::from(meta.longest_key);
        let first_key = input.string().filter(|key| (1..=longest).contains(&key.len()))?;
        let entries = u16::try_from(input.u32()?).ok()?;
        let before = index.pages.last().map(|page: &IndexedPage| &page.first_key);
        before.is_none_or(|before| **before < *first_key).then_some(())?;
        index.pages.push(IndexedPage { first_key: first_key.into(), entries });
    }
    index.filter = Filter::from_bytes(input.string()?);
    let first = &index.pages.first()?.first_key;
    let entries: u64 = index.pages.iter().map(|page| u64::from(page.entries)).sum();
    let is_it = *first == meta.first_key && entries == meta.entries && input.is_at_end();
    is_it.then_some(index)
}

#[cfg(test)]
mod tests {
    use crate::specimens::SHAPE;

    use super::*;
    use crate::read::filter::key_hash;
    use crate::version::tree::tests::table;

    fn meta() -> TableMeta {
        TableMeta { entries: 90, ..(*table(3, 1, 90, 9)).clone() }
    }

    fn index() -> TableIndex {
        let page = |n: u8| IndexedPage { first_key: [1 + 10 * n].into(), entries: 10 };
        let filter = Filter::of_bytes(&[key_hash(b"a")], 3_000);
        TableIndex { pages: (0..9).map(page).collect(), filter }
    }

    #[test]
    fn trees_and_edits_come_back() {
        let tree =
            Tree::of(vec![vec![table(5, 0, 9, 2), table(4, 0, 9, 3)], vec![table(1, 7, 8, 1)]]);
        let tree = tree.expect("in order");
        let mut out = Writer::default();
        write_tree(&mut out, &tree);
        let bytes = out.finish();
        assert_eq!(bytes.len() as u64, tree_bytes(&tree) + 4 * (1 + 2));
        let back = read_tree(&mut Reader::new(&bytes), 2, &SHAPE).expect("a tree");
        assert_eq!(back.levels(), tree.levels());
        assert!(read_tree(&mut Reader::new(&bytes), 3, &SHAPE).is_none(), "another depth");
        let edit = TreeEdit { removed: vec![(0, TableId(5))], added: vec![(1, table(6, 0, 6, 2))] };
        let mut out = Writer::default();
        write_edit(&mut out, &edit);
        let back = read_edit(&mut Reader::new(&out.finish()), &SHAPE).expect("an edit");
        assert_eq!((back.removed, back.added), (edit.removed, edit.added));
    }

    #[test]
    fn an_index_comes_back_from_its_pages_and_no_other_does() {
        let (meta, index) = (meta(), index());
        let pages = index_to_pages(meta.id, &index, SHAPE.payload_bytes);
        assert!(pages.len() > 1);
        let pages: Vec<Vec<u8>> = pages.into_iter().map(page::finish).collect();
        let read = |meta: &TableMeta, pages: &[Vec<u8>]| {
            index_of_pages(meta, pages.iter().map(|page| &page[..]))
        };
        assert_eq!(read(&meta, &pages), Some(index));
        assert_eq!(read(&meta, &pages[1..]), None, "the first page is missing");
        assert_eq!(read(&meta, &pages[..1]), None, "the last page is missing");
        assert_eq!(read(&TableMeta { id: TableId(4), ..meta.clone() }, &pages), None);
        assert_eq!(read(&TableMeta { entries: 91, ..meta.clone() }, &pages), None);
        assert_eq!(read(&TableMeta { data_pages: 8, ..meta }, &pages), None);
    }
}
