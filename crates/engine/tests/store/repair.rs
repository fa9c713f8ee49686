//! Salvage of stores whose index does not consist of single pages.

use std::collections::BTreeSet;
use std::rc::Rc;

use engine::{
    Durability, Engine, IndexPart, IndexState, Options, Salvage, Setup, Shape, StoreId,
    Surroundings, Value, WriteOptions,
};
use runtime::{Nanos, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::{COLUMNS, cpu};

const KEYS: u64 = 3_000;
const LARGE: Shape = Shape { extents: 200, pages_per_extent: 64, ..SHAPE };

fn forms() -> [(&'static str, Options); 2] {
    let options = Options {
        durability: Durability::Log,
        memtable_bytes: 16 << 10,
        pinned_levels: Some(0),
        ..Options::pink()
    };
    [
        ("columns", Options { columns: Some(COLUMNS), ..options.clone() }),
        ("groups", Options { group_pages: 5, ..options }),
    ]
}

fn setup(rt: &Runtime, medium: &MemoryMedium, options: &Options) -> Setup<MemoryMedium> {
    Setup {
        handle: rt.handle(),
        medium: medium.clone(),
        options: options.clone(),
        surroundings: Surroundings {
            index_dram_bytes: 1 << 20,
            iterator_dram_bytes: 8 << 20,
            expected_key_bytes: 8,
            expected_value_bytes: 80,
        },
        cpu: cpu(rt),
        accelerator: None,
        planted: engine::Planted::default(),
        id: StoreId(7),
    }
}

/// Writes a store in which every third key was deleted. Its log is not needed.
fn write(rt: &Runtime, medium: &MemoryMedium, options: &Options) -> Engine<MemoryMedium> {
    let engine = Engine::create(setup(rt, medium, options)).expect("it fits");
    let writing = engine.clone();
    rt.block_on(async move {
        for n in 0..KEYS {
            let (key, value) = (n.to_be_bytes(), Value::Synthetic { seed: n, len: 80 });
            let put = writing.put(&key, value, WriteOptions::default(), Nanos::ZERO);
            put.await.expect("there is room");
        }
        for n in (0..KEYS).step_by(3) {
            let key = n.to_be_bytes();
            let deleted = writing.delete(&key, WriteOptions::default(), Nanos::ZERO);
            deleted.await.expect("there is room");
        }
        writing.flush().await;
        writing.settle().await;
        writing.sync().await.expect("it can be written");
    });
    engine
}

/// Returns the keys that salvage finds, and how many of them are in doubt.
fn saved(cells: &Rc<Cells>, options: &Options) -> (BTreeSet<u64>, u64) {
    let rt = Runtime::new(2);
    let medium = MemoryMedium::new(&rt.handle(), cells, None);
    let setup = setup(&rt, &medium, options);
    rt.block_on(async move {
        let mut salvage: Salvage<_> =
            Engine::salvage(setup, |_| {}).await.expect("it can be set up");
        assert!(salvage.index == IndexState::Whole && salvage.lost.is_empty());
        let mut keys = BTreeSet::new();
        while let Some(some) = salvage.next().await {
            keys.extend(some.into_iter().map(|saved| number(&saved.0)));
        }
        (keys, salvage.unsure())
    })
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("keys have eight bytes"))
}

fn live() -> BTreeSet<u64> {
    (0..KEYS).filter(|n| n % 3 != 0).collect()
}

#[test]
fn what_was_deleted_stays_so_where_the_index_can_be_read() {
    for (name, options) in forms() {
        let (rt, cells) = (Runtime::new(1), Cells::new(LARGE));
        let medium = MemoryMedium::new(&rt.handle(), &cells, None);
        drop(write(&rt, &medium, &options));
        assert!(saved(&cells, &options) == (live(), 0), "{name}");
    }
}

#[test]
fn where_a_page_of_the_index_is_lost_its_keys_are_saved_all_the_same() {
    for (name, options) in forms() {
        let (rt, cells) = (Runtime::new(1), Cells::new(LARGE));
        let medium = MemoryMedium::new(&rt.handle(), &cells, None);
        let engine = write(&rt, &medium, &options);
        let iterator = engine.create_iterator(None).expect("there is memory");
        let part_in = |page| iterator.part_in(page).expect("it is new");
        let parts: Vec<_> =
            cells.written().into_iter().filter_map(|page| Some((page, part_in(page)?))).collect();
        let (last, part): &(_, IndexPart) = parts.last().expect("there is an index");
        cells.lose(*last);
        drop((iterator, engine));
        let (keys, unsure) = saved(&cells, &options);
        let live = live();
        assert!(keys.is_superset(&live), "{name}");
        let mut back = keys.difference(&live);
        assert!(back.all(|n| part.covers(&n.to_be_bytes())), "{name}: others are back too");
        assert!((1..KEYS).contains(&unsure), "{name}: {unsure}");
    }
}
