use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;

use crate::compaction::leveled::merge::*;
use crate::format::entry::{Mapping, NewEntry};
use crate::format::meta_segment::MetaSegmentBuilder;
use crate::format::page;
use crate::format::page::{Identity, StoreId};
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::PageNo;
use crate::specimens::{SHAPE, pointers};
use crate::version::table::TableMeta;
use crate::version::tree::tests::table;

/// The entries of a run by key: a value of this length, or a deletion.
type Run = BTreeMap<u8, Option<u32>>;

fn entry(key: u8, value: Option<u32>) -> NewEntry {
    let key = vec![key].into();
    match value {
        None => NewEntry::of_pointer(key, Pointer::TOMBSTONE),
        Some(len) => NewEntry::inline(key, &Value::Synthetic { seed: 7, len }),
    }
}

fn sealed(bytes: Vec<u8>) -> PageImage {
    page::seal(bytes, Identity { page: PageNo(0), generation: 0, store: StoreId(1), run: 0 })
}

fn pages_of(run: &Run) -> Vec<PageImage> {
    let mut builder = MetaSegmentBuilder::new(pointers(), SHAPE.payload_bytes);
    let mut pages = Vec::new();
    for (key, value) in run {
        let entry = entry(*key, *value);
        if !builder.push(&entry.as_ref()) {
            pages.push(sealed(builder.finish()));
            assert!(builder.push(&entry.as_ref()));
        }
    }
    if builder.len() > 0 {
        pages.push(sealed(builder.finish()));
    }
    pages
}

fn entries_of(pages: &[Vec<u8>]) -> Vec<(u8, Option<u32>)> {
    let mut entries = Vec::new();
    for page in pages {
        let segment = MetaSegment::new(page, pointers()).expect("a segment");
        entries.extend((0..segment.len()).map(|index| {
            let len = match segment.mapping(index) {
                Mapping::Value(value) => Some(value.len()),
                Mapping::Deleted => None,
                Mapping::At(_) => panic!("there are no objects"),
            };
            (segment.key(index)[0], len)
        }));
    }
    entries
}

type Table = Vec<(u8, Option<u32>)>;

/// Returns the tables made by a merge of `runs`, newest first, a few pages and entries at a time.
fn merged(
    runs: &[Run],
    below: Below,
    table_pages: u32,
    budget: usize,
    at_once: usize,
) -> Vec<Table> {
    let (tables, rest) = merged_until(None, runs, below, table_pages, budget, at_once);
    assert!(rest.is_empty());
    tables
}

/// Like [`merged`], for entries before `until`; also returns the rest.
fn merged_until(
    until: Option<u8>,
    runs: &[Run],
    below: Below,
    table_pages: u32,
    budget: usize,
    at_once: usize,
) -> (Vec<Table>, Vec<Table>) {
    let mut left: Vec<_> = runs.iter().map(|run| pages_of(run).into_iter()).collect();
    let mut inputs: Vec<Input> = runs.iter().map(|_| Input::default()).collect();
    let beyond = Vec::<Rc<TableMeta>>::new();
    let mut out = Output {
        builder: TableBuilder::new(pointers(), &SHAPE, 10, false),
        cutter: Cutter::new(Some(table_pages), f64::INFINITY, SHAPE.page_bytes, &beyond),
        below,
        dead: Vec::new(),
        duplicates: 0,
        until: until.map(|key| [key].into()),
        cuts_rest: false,
        is_rest: false,
    };
    let (mut tables, mut rest, mut pages) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        for (input, left) in inputs.iter_mut().zip(&mut left) {
            if input.needs_pages() {
                let pages: Vec<_> = left.by_ref().take(at_once).collect();
                input.supply(pages, left.len() == 0);
            }
        }
        let (taken, stop) = step(&mut inputs, &mut out, pointers(), budget);
        assert!(taken < budget + runs.len(), "{taken} of {budget}");
        pages.extend(out.builder.take_full());
        if matches!(stop, Stop::Cut | Stop::Rest | Stop::End) {
            let (last, table) = out.builder.finish();
            pages.extend(last);
            if table.entries > 0 {
                assert_eq!(table.index.pages.len(), pages.len());
                assert!(table.index.filter.is_some());
                let of = if out.is_rest { &mut rest } else { &mut tables };
                of.push(entries_of(&std::mem::take(&mut pages)));
            }
            out.is_rest |= stop == Stop::Rest;
        }
        if stop == Stop::End {
            return (tables, rest);
        }
    }
}

fn run() -> impl Strategy<Value = Run> {
    prop::collection::btree_map(any::<u8>(), prop::option::weighted(0.8, 0..100_u32), 0..120)
}

proptest! {
    #[test]
    fn the_newest_entry_wins_and_tables_are_as_long_as_they_may_be(
        runs in prop::collection::vec(run(), 1..5),
        table_pages in 1..4_u32,
        budget in 1..50_usize,
        at_once in 1..4_usize,
        has_below in any::<bool>(),
    ) {
        let below = if has_below { Below::Any } else { Below::Levels(Vec::new()) };
        let tables = merged(&runs, below, table_pages, budget, at_once);
        let mut model = Run::new();
        for run in runs.iter().rev() {
            model.extend(run);
        }
        model.retain(|_, value| has_below || value.is_some());
        let all: Vec<_> = tables.iter().flatten().copied().collect();
        prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        for table in &tables {
            let own: Run = table.iter().copied().collect();
            prop_assert!(pages_of(&own).len() as u32 <= table_pages + 1);
        }
    }
}

#[test]
fn tombstones_stay_above_what_they_delete() {
    let run: Run = (0..40).map(|key| (key, None)).collect();
    let tables = [table(1, 5, 9, 4), table(2, 20, 20, 4)];
    let left = merged(&[run], Below::of([&tables[..]]), 9, 3, 1);
    let keys: Vec<u8> = left.concat().iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [5, 6, 7, 8, 9, 20]);
}

#[test]
fn a_part_of_a_table_is_merged_and_the_rest_stays_as_it_is() {
    let upper: Run = (0..100).map(|key| (key, (key % 2 == 0).then_some(5))).collect();
    let lower: Run = (10..30).map(|key| (key, Some(9))).collect();
    let none_below = || Below::Levels(Vec::new());
    for until in [35, 99, 100] {
        let runs = [upper.clone(), lower.clone()];
        let (tables, rest) = merged_until(Some(until), &runs, none_below(), 2, 7, 1);
        let merged: Table =
            (0..until).filter(|key| key % 2 == 0).map(|key| (key, Some(5))).collect();
        assert_eq!(tables.concat(), merged);
        let left: Table = upper.range(until..).map(|(key, value)| (*key, *value)).collect();
        assert_eq!(rest.concat(), left, "tombstones are kept there");
        assert_eq!(rest.len(), usize::from(until < 100), "one table");
    }
}
