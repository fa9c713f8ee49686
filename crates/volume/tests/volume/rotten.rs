//! A store on a volume with a rotting member: pages of the index are rebuilt for every reader.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{
    Engine, EngineIterator, IteratorOptions, Options as TreeOptions, Shape, Step, Value,
    WriteOptions,
};
use runtime::{Cores, Nanos, Runtime, mix64};
use volume::{Layout, Options, Planted, Setup, Volume};

use crate::memory::{Disk, MemoryMedium};
use crate::store::tree_setup;

type Store = Engine<Volume<MemoryMedium>>;

const SHAPE: Shape = Shape {
    payload_bytes: 4_096,
    page_bytes: 4_096,
    pages_per_extent: 33,
    extents: 44,
    grows_to: 0,
    append_unit: 1,
    parallelism: 2,
};

const KEYS: u64 = 5_000;

/// Flips a bit of every page of a member.
fn rot(disk: &RefCell<Disk>) {
    let mut disk = disk.borrow_mut();
    let places = 0..disk.shape.extents * SHAPE.pages_per_extent;
    let flipped = places.filter(|place| place % SHAPE.pages_per_extent != 0 && disk.flip(*place));
    assert!(flipped.count() > 100, "hardly anything is there");
}

/// Writes all keys in the first round, and every fourth of them in each later round.
async fn write(engine: &Store, round: u64) {
    for key in (0..KEYS).filter(|key| round < 1 || mix64(key ^ round << 32).is_multiple_of(4)) {
        let value = Value::Synthetic { seed: key + round, len: 300 };
        let name = (key * 7_919 % KEYS).to_be_bytes();
        let put = engine.put(&name, value, WriteOptions::default(), Nanos::ZERO).await;
        put.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
}

async fn scan(iterator: &mut EngineIterator<Volume<MemoryMedium>>) -> u64 {
    let mut pairs = 0;
    let mut step = iterator.seek(&0_u64.to_be_bytes(), Nanos::ZERO).await;
    while let Step::Pair(..) = step.unwrap_or_else(|error| panic!("pair {pairs}: {error}")) {
        pairs += 1;
        step = iterator.next(0, Nanos::ZERO).await;
    }
    pairs
}

#[test]
fn a_store_merges_scans_and_collects_rotten_pages_of_its_index() {
    run(44, true);
}

/// With little space, memtables are flushed while their last groups are still being written to the
/// log, and snapshots expire.
#[test]
fn a_store_with_little_space_goes_on_with_rotten_pages() {
    run(36, false);
}

fn run(extents: u32, scans: bool) {
    let shape = Shape { extents, ..SHAPE };
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let cores = Rc::new(Cores::new(handle.clone(), 1, Nanos(10_000)));
    let disks: Vec<_> =
        (0..3).map(|seed| Rc::new(RefCell::new(Disk::new(shape, true, seed)))).collect();
    let setup = Setup {
        handle: handle.clone(),
        cores: Rc::clone(&cores),
        members: disks.iter().map(|disk| MemoryMedium::new(&handle, disk)).collect(),
        options: Options::new(Layout::Parity { chunk_pages: 2 }, 11),
        planted: Planted::default(),
    };
    let volume = Volume::create(setup).expect("they fit");
    let mut tree = tree_setup(&handle, &cores, &volume);
    // No level is pinned, so that every part of the index is read.
    tree.options = TreeOptions { pinned_levels: Some(0), ..tree.options };
    tree.surroundings.index_dram_bytes = 256 << 10;
    tree.surroundings.iterator_dram_bytes = 64 << 10;
    let engine = Engine::create(tree).expect("it fits");
    engine.set_iterator_options(IteratorOptions { index_prefetch: false, ..Default::default() });
    rt.block_on(async move {
        for round in 0..40 {
            write(&engine, round).await;
            rot(&disks[0]);
            if scans && round % 8 == 7 {
                let mut iterator = engine.create_iterator(None).expect("there is memory");
                assert_eq!(scan(&mut iterator).await, KEYS);
            }
        }
        let stats = engine.stats();
        let did = [
            stats.compactions.iter().sum(),
            stats.gc_data_extents,
            stats.gc_meta_extents,
            stats.gc_pages_moved,
            stats.rebuilt_reads,
        ];
        assert!(did.iter().all(|count| *count > 0), "not everything happened: {did:?}");
        assert_eq!(stats.iterators.next_index_reads > 0, scans);
    });
}
