//! Stores with groups, filled until they refuse writes: they report that they are full, and accept
//! writes again after deletes.

use engine::{
    Durability, Engine, EngineError, Medium, Options, Planted, Setup, Shape, StoreId, Surroundings,
    Value, WriteOptions,
};
use runtime::{Handle, Nanos, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::cpu;

/// The parameters of a store.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Pages of an append unit, units of an extent, extents.
    shape: (u32, u32, u32),
    /// Pages of a group; 0 for no groups.
    group_pages: u32,
    value_bytes: u32,
    expected_value_bytes: u32,
    durability: Durability,
}

impl Case {
    fn shape(self) -> Shape {
        let (append_unit, units, extents) = self.shape;
        Shape { append_unit, pages_per_extent: append_unit * units, extents, ..SHAPE }
    }

    fn setup(self, rt: &Runtime, medium: &MemoryMedium) -> Setup<MemoryMedium> {
        let options = Options {
            memtable_bytes: u64::from(self.shape.0.max(2)) * (4 << 10),
            inline_up_to: 128,
            group_pages: self.group_pages,
            durability: self.durability,
            ..Options::pink()
        };
        // Too little memory for a list of single segments, about enough for a list of groups.
        let pages = u64::from(medium.shape().extents * medium.shape().pages_per_extent);
        Setup {
            handle: rt.handle(),
            medium: medium.clone(),
            options,
            surroundings: Surroundings {
                index_dram_bytes: 16 * pages,
                iterator_dram_bytes: 0,
                expected_key_bytes: 16,
                expected_value_bytes: self.expected_value_bytes,
            },
            cpu: cpu(rt),
            accelerator: None,
            planted: Planted::default(),
            id: StoreId(7),
        }
    }
}

fn name(key: u32) -> [u8; 16] {
    let mut name = [b'k'; 16];
    name[..4].copy_from_slice(&key.wrapping_mul(0x9e37_79b1).to_be_bytes());
    name
}

/// Puts new keys from `first` on until the store is full. Returns the first key refused.
async fn fill(engine: &Engine<MemoryMedium>, first: u32, case: Case) -> u32 {
    for key in first.. {
        match put(engine, key, case).await {
            Ok(_) => {}
            Err(EngineError::Full(_)) => return key,
            Err(other) => panic!("{case:?}: key {key}: {other}"),
        }
    }
    unreachable!("it cannot take them all")
}

async fn put(engine: &Engine<MemoryMedium>, key: u32, case: Case) -> Result<bool, EngineError> {
    let value = Value::Synthetic { seed: u64::from(key), len: case.value_bytes };
    engine.put(&name(key), value, WriteOptions::default(), Nanos::ZERO).await
}

/// Fills the store, deletes a third and fills it again, three times. All remaining keys must be
/// readable.
async fn fill_and_delete(engine: Engine<MemoryMedium>, handle: Handle, case: Case) {
    let mut stored: Vec<u32> = Vec::new();
    let mut next = 0;
    for round in 0..3 {
        // Space of deleted keys is not free at once.
        while put(&engine, next, case).await.is_err() {
            handle.sleep(Nanos::from_millis(10)).await;
        }
        let end = fill(&engine, next + 1, case).await;
        stored.extend(next..end);
        next = end;
        let (gone, left): (Vec<u32>, Vec<u32>) = stored.iter().partition(|key| **key % 3 == round);
        stored = left;
        for key in gone {
            let deleted = engine.delete(&name(key), WriteOptions::default(), Nanos::ZERO).await;
            let is_there = deleted.unwrap_or_else(|error| panic!("{case:?}: key {key}: {error}"));
            assert!(is_there, "{case:?}: key {key} was not there to be deleted");
        }
    }
    for key in 0..next {
        let found = engine.get(&name(key), Nanos::ZERO).await.expect("it is whole").value;
        let expected = stored.binary_search(&key).is_ok();
        assert_eq!(found.is_some(), expected, "{case:?}: key {key}");
    }
}

/// Returns the numbers of groups written and of groups copied.
fn run(case: Case) -> (u64, u64) {
    let rt = Runtime::new(11);
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(case.shape()), None);
    let engine = Engine::create(case.setup(&rt, &medium));
    let engine = engine.unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let client = fill_and_delete(engine.clone(), rt.handle(), case);
    let client = rt.handle().spawn("client", client);
    let latest = Nanos::from_millis(300_000);
    rt.run_until_true(|| client.is_finished() || rt.handle().now() > latest);
    assert!(client.is_finished(), "{case:?} hangs: {}", engine.background());
    let stats = engine.stats();
    (stats.groups_written, stats.groups_moved)
}

#[test]
fn full_stores_with_groups_say_so_and_take_deletes() {
    let (mut groups, mut moved) = (0, 0);
    for (append_unit, units, extents, group_pages) in [
        (1, 24, 60, 0),
        (1, 24, 60, 3),
        (1, 64, 40, 9),
        (2, 40, 40, 32),
        (6, 8, 60, 3),
        (6, 8, 60, 9),
        (48, 4, 60, 32),
    ] {
        for value_bytes in [20, 300] {
            for durability in [Durability::Capacitors, Durability::Log] {
                let shape = (append_unit, units, extents);
                let (written, copied) = run(Case {
                    shape,
                    group_pages,
                    value_bytes,
                    expected_value_bytes: 20,
                    durability,
                });
                groups += written;
                moved += copied;
            }
        }
    }
    assert!(groups > 1_000 && moved > 1_000, "{groups} groups written, {moved} copied");
}

/// Groups keep lists short: if pairs are much shorter than expected, only the number of pages shows
/// it.
#[test]
fn plans_follow_a_last_level_that_outgrows_its_factor() {
    let rt = Runtime::new(12);
    let case = Case {
        shape: (1, 64, 60),
        group_pages: 9,
        value_bytes: 20,
        expected_value_bytes: 100,
        durability: Durability::Capacitors,
    };
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(case.shape()), None);
    let engine = Engine::create(case.setup(&rt, &medium)).expect("it fits");
    let filled = engine.clone();
    rt.block_on(async move {
        for key in 0..20_000 {
            put(&filled, key, case).await.expect("there is room");
            let planned = *filled.plan().capacities.last().expect("there are levels");
            let (last, _) = *filled.levels().last().expect("there are levels");
            let most = planned + planned.div_ceil(8);
            assert!(last <= most, "key {key}: {last} pages in a level of {planned}");
        }
    });
    assert!(engine.stats().groups_written > 100);
}
