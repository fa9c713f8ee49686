//! Memory and space held by snapshots, and their release.

use engine::{Granularity, IteratorOptions, Value};
use runtime::{Handle, Nanos};
use stacks::kvssd::{DeviceProfile, IteratorHandle, KvDrive, Status, StoreMode};

use crate::harness::{Machine, small_device, tree, tree_of};
use crate::iterators::{PLAIN, with_iterators};

fn key(i: u64) -> Vec<u8> {
    format!("key{i:06}").into_bytes()
}

fn value(seed: u64) -> Value {
    Value::Synthetic { seed, len: 200 }
}

async fn store(drive: &KvDrive, keys: impl Iterator<Item = u64>, round: u64) {
    for i in keys {
        let stored = drive.store(&key(i), value(round * 10_000 + i), StoreMode::Upsert).await;
        assert_eq!(stored, Ok(()), "key {i} of round {round}");
    }
}

fn on_a_drive<F: Future<Output = ()> + 'static>(
    device: &DeviceProfile,
    iterators: IteratorOptions,
    scenario: impl FnOnce(KvDrive, Handle) -> F,
) {
    let machine = Machine::format(1, device, with_iterators(iterators));
    machine.rt.block_on(scenario(machine.drive.clone(), machine.rt.handle()));
}

async fn create(drive: &KvDrive) -> IteratorHandle {
    drive.create_iterator(None).await.expect("there is room")
}

#[test]
fn iterators_of_one_version_cost_no_more_than_one_of_them() {
    let iterators = IteratorOptions { buffer_bytes: 0, ..PLAIN };
    on_a_drive(&small_device(), iterators, async |drive, handle| {
        let engine = tree(&drive).clone();
        store(&drive, 0..400, 0).await;
        drive.settle().await;
        let mut open = vec![create(&drive).await];
        let one = engine.snapshot_memory();
        assert_eq!(one.total(), 0, "the version is the current one: {one:?}");
        store(&drive, 0..30, 1).await;
        drive.settle().await;
        let changed = engine.snapshot_memory();
        assert!(changed.descriptors > 0 && changed.views > 0, "{changed:?}");
        for _ in 0..7 {
            open.push(create(&drive).await);
        }
        assert_eq!(engine.snapshot_memory(), changed, "what they share is counted once");
        store(&drive, 0..400, 2).await;
        drive.settle().await;
        let rewritten = engine.snapshot_memory();
        assert!(rewritten.descriptors > 2 * changed.descriptors, "{rewritten:?} after {changed:?}");
        assert!(rewritten.views >= changed.views, "{rewritten:?} after {changed:?}");
        for iterator in open {
            drive.destroy_iterator(iterator).await.expect("open");
        }
        assert_eq!(engine.snapshot_memory().total(), 0);
        handle.sleep(Nanos::from_millis(20)).await;
        assert!(engine.background().contains(" 0 held by snapshots"), "{}", engine.background());
    });
}

#[test]
fn memtables_that_were_flushed_count_as_long_as_a_snapshot_shares_them() {
    on_a_drive(&small_device(), PLAIN, async |drive, _| {
        let engine = tree(&drive).clone();
        store(&drive, 0..5, 0).await;
        let iterator = create(&drive).await;
        assert_eq!(engine.snapshot_memory().memtables, 0);
        store(&drive, 100..140, 0).await;
        drive.settle().await;
        let memory = engine.snapshot_memory();
        assert!(memory.memtables >= 4 << 10, "{memory:?}");
        assert_eq!(memory.buffers, PLAIN.buffer_bytes);
        drive.destroy_iterator(iterator).await.expect("open");
        assert_eq!(engine.snapshot_memory().total(), 0);
    });
}

#[test]
fn without_memory_create_is_refused_and_writes_go_on() {
    on_a_drive(&small_device(), PLAIN, async |drive, _| {
        // The budget is 256 KiB, and each iterator has buffers of 16 KiB.
        let mut open = Vec::new();
        for _ in 0..16 {
            store(&drive, 0..1, open.len() as u64).await;
            match drive.create_iterator(None).await {
                Ok(iterator) => open.push(iterator),
                Err(status) => assert_eq!(status, Status::IteratorMemory),
            }
        }
        assert!((10..=16).contains(&open.len()), "{} iterators", open.len());
        let refused = drive.destroy_iterator(open.pop().expect("there are some")).await;
        assert_eq!(refused, Ok(()));
        create(&drive).await;
    });
    let mut device = small_device();
    device.dram.iterator_bytes = 3 * PLAIN.buffer_bytes;
    on_a_drive(&device, PLAIN, async |drive, _| {
        let open = [create(&drive).await, create(&drive).await, create(&drive).await];
        assert_eq!(drive.create_iterator(None).await, Err(Status::IteratorMemory));
        for round in 0..10 {
            store(&drive, 0..900, round).await;
        }
        // Old versions exceeded the budget: the oldest snapshot had to expire, but not all.
        assert_eq!(drive.seek(open[0], &key(0)).await, Err(Status::SnapshotTooOld));
        assert_eq!(drive.next(open[0]).await, Err(Status::SnapshotTooOld));
        let memory = tree(&drive).snapshot_memory();
        assert!(memory.total() <= 3 * PLAIN.buffer_bytes, "{memory:?}");
        assert_eq!(drive.destroy_iterator(open[0]).await, Ok(()));
    });
}

#[test]
fn a_forgotten_iterator_never_fills_the_drive() {
    on_a_drive(&small_device(), PLAIN, async |drive, _| {
        store(&drive, 0..1500, 0).await;
        let forgotten = create(&drive).await;
        assert_eq!(drive.seek(forgotten, &key(3)).await.map(|pair| pair.value), Ok(value(3)));
        for round in 1..12 {
            store(&drive, 0..1500, round).await;
        }
        assert_eq!(drive.next(forgotten).await, Err(Status::SnapshotTooOld));
        assert_eq!(drive.engine_stats().snapshots_expired, 1);
        assert_eq!(tree(&drive).snapshots(), []);
        let iterator = create(&drive).await;
        assert_eq!(drive.seek(iterator, &key(9)).await.map(|p| p.value), Ok(value(110_009)));
    });
}

#[test]
fn space_is_taken_from_the_oldest_snapshot_and_from_no_more_than_needed() {
    on_a_drive(&small_device(), PLAIN, async |drive, _| {
        store(&drive, 0..700, 0).await;
        let old = create(&drive).await;
        // The data that the old snapshot retains are garbage when the young one is created.
        store(&drive, 0..700, 1).await;
        drive.settle().await;
        let young = create(&drive).await;
        let mut i = 0;
        while drive.engine_stats().snapshots_expired == 0 {
            store(&drive, std::iter::once(i % 700), 2 + i / 700).await;
            i += 1;
        }
        assert_eq!(drive.engine_stats().snapshots_expired, 1, "after {i} stores");
        assert_eq!(drive.seek(old, &key(0)).await, Err(Status::SnapshotTooOld));
        let pair = drive.seek(young, &key(50)).await.expect("its space is not needed yet");
        assert_eq!(pair.value, value(10_050));
    });
}

#[test]
fn each_snapshot_shows_the_extents_that_it_keeps() {
    on_a_drive(&small_device(), PLAIN, async |drive, handle| {
        store(&drive, 0..300, 0).await;
        drive.settle().await;
        let old = create(&drive).await;
        for round in 1..4 {
            store(&drive, 0..300, round).await;
        }
        drive.settle().await;
        let young = create(&drive).await;
        handle.sleep(Nanos::from_millis(20)).await;
        let held: Vec<u64> = tree(&drive).snapshots().iter().map(|s| s.extents_held).collect();
        assert!(held[0] > 0 && held[1] == 0, "the young one sees what is current: {held:?}");
        drive.destroy_iterator(old).await.expect("open");
        handle.sleep(Nanos::from_millis(50)).await;
        assert_eq!(tree(&drive).snapshots().len(), 1);
        assert_eq!(tree(&drive).snapshots()[0].extents_held, 0);
        drive.destroy_iterator(young).await.expect("open");
    });
}

#[test]
fn while_the_oldest_snapshot_is_still_read_no_other_expires_for_it() {
    let mut device = small_device();
    device.dram.iterator_bytes = 2 * PLAIN.buffer_bytes + (24 << 10);
    let mut options = with_iterators(PLAIN);
    // Levels in memory that are rewritten as a whole: a compaction leaves much memory to snapshots.
    tree_of(&mut options).pinned_levels = None;
    tree_of(&mut options).compaction = Granularity::Whole;
    let machine = Machine::format(1, &device, options);
    let (drive, handle) = (machine.drive.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        store(&drive, 0..900, 0).await;
        drive.settle().await;
        let old = create(&drive).await;
        let reader = drive.clone();
        // Always in the middle of a command with many reads.
        let reading = handle.spawn("reader", async move {
            loop {
                let sought = reader.seek(old, &key(0)).await;
                let read = reader.next_many(old, 500, u64::MAX).await;
                if sought == Err(Status::SnapshotTooOld) || read == Err(Status::SnapshotTooOld) {
                    return;
                }
            }
        });
        store(&drive, 0..50, 1).await;
        let young = create(&drive).await;
        let mut i = 0;
        while drive.engine_stats().snapshots_expired == 0 {
            store(&drive, std::iter::once(i % 900), 2 + i / 900).await;
            i += 1;
        }
        assert_eq!(drive.engine_stats().snapshots_expired, 1, "after {i} stores");
        drive.seek(young, &key(0)).await.expect("one was enough");
        reading.await;
    });
}
