//! Automatic readahead of iterators over trees of tables: fewer reads, the same pairs, within the
//! memory limit.

use engine::{
    Engine, IteratorOptions, Options, Planted, Setup, Shape, Step, StoreId, Surroundings,
    TableOptions, Value, WriteOptions,
};
use runtime::{Nanos, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::cpu;

const KEYS: u32 = 2_000;

type Pairs = Vec<(Box<[u8]>, Value)>;

fn setup(rt: &Runtime, medium: &MemoryMedium, iterators: IteratorOptions) -> Setup<MemoryMedium> {
    let options = Options {
        memtable_bytes: 16 << 10,
        page_cache_bytes: 0,
        tables: TableOptions {
            table_bytes: 16 << 10,
            level_base_bytes: 64 << 10,
            ..TableOptions::default()
        },
        iterators,
        ..Options::rocksdb()
    };
    Setup {
        handle: rt.handle(),
        medium: medium.clone(),
        options,
        surroundings: Surroundings {
            index_dram_bytes: 1 << 20,
            iterator_dram_bytes: 1 << 20,
            expected_key_bytes: 4,
            expected_value_bytes: 100,
        },
        cpu: cpu(rt),
        accelerator: None,
        planted: Planted::default(),
        id: StoreId(7),
    }
}

/// Loads a store and reads all pairs in order, or those from the middle to `end`. Returns the pairs
/// and the number of index reads of the Nexts.
fn scan(readahead_bytes: u64, buffer_bytes: u64, end: Option<u32>) -> (Pairs, u64) {
    let rt = Runtime::new(5);
    let shape = Shape { extents: 200, ..SHAPE };
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(shape), None);
    let iterators = IteratorOptions { buffer_bytes, readahead_bytes, ..IteratorOptions::default() };
    let engine = Engine::create(setup(&rt, &medium, iterators)).expect("it fits");
    rt.block_on(async move {
        for key in 0..KEYS {
            let name = key.wrapping_mul(1_999).wrapping_rem(KEYS).to_be_bytes();
            let value = Value::Synthetic { seed: u64::from(key), len: 100 };
            let put = engine.put(&name, value, WriteOptions::default(), Nanos::ZERO).await;
            put.expect("there is room");
        }
        engine.settle().await;
        let end = end.map(u32::to_be_bytes);
        let end = end.as_ref().map(|end| &end[..]);
        let mut iterator = engine.create_iterator(end).expect("there is memory");
        let mut pairs = Vec::new();
        let mut step = iterator.seek(&500_u32.to_be_bytes(), Nanos::ZERO).await;
        while let Step::Pair(key, value) = step.expect("all is whole") {
            pairs.push((key, value));
            step = iterator.next(0, Nanos::ZERO).await;
        }
        (pairs, engine.stats().iterators.next_index_reads)
    })
}

#[test]
fn iterators_read_ahead_and_give_the_same() {
    let (plain, reads) = scan(0, 64 << 10, None);
    assert_eq!(plain.len(), 1_500);
    let (ahead, fewer) = scan(256 << 10, 64 << 10, None);
    assert!(ahead == plain, "other pairs");
    assert!(fewer * 3 < reads, "{fewer} reads instead of {reads}");
    // With room for two pages, a read reads at most two more pages; without room, none.
    let (ahead, some) = scan(256 << 10, 2 << 10, None);
    assert!(ahead == plain && fewer < some && some * 3 >= reads, "{some} of {reads} reads");
    assert_eq!(scan(256 << 10, 0, None), (plain, reads));
}

#[test]
fn nothing_is_read_beyond_an_upper_bound() {
    let (plain, reads) = scan(0, 64 << 10, Some(520));
    let (ahead, fewer) = scan(256 << 10, 64 << 10, Some(520));
    assert!(ahead == plain && plain.len() == 20 && fewer <= reads, "{fewer} of {reads}");
}
