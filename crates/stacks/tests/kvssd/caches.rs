//! Caches: recently read data need no flash reads, the caches stay within their sizes, and scans do
//! not evict hot data.

use engine::{Filters, Options, Value};
use runtime::Rng;
use stacks::kvssd::{DeviceProfile, DriveOptions, KvDrive, StoreMode};

use crate::harness::{Machine, small, small_design, small_device, small_tables, tree};

const KEYS: u64 = 2_000;

/// Hot keys, each in a segment of its own.
const HOT: [u64; 8] = [3, 250, 500, 750, 1_000, 1_250, 1_500, 1_750];

/// Gets of hot keys for each Get of another key.
const ROUNDS: u64 = 60;

fn key(i: u64) -> Vec<u8> {
    format!("user{i:026}").into_bytes()
}

fn value(i: u64) -> Value {
    Value::Synthetic { seed: i, len: 120 }
}

/// Returns a drive with caches of these sizes in bytes, in addition to the memory of
/// `small_device`.
fn with_caches(options: &Options, pages: u64, values: u64) -> (DeviceProfile, DriveOptions) {
    let mut device = small_device();
    device.flash.geometry.blocks_per_plane += 40;
    device.dram.index_bytes += pages + values + (64 << 10);
    let (page_cache_bytes, value_cache_bytes) = (pages, values);
    (device, small(Options { page_cache_bytes, value_cache_bytes, ..options.clone() }))
}

/// All levels in flash; neither filters nor values beside keys.
fn in_flash() -> Options {
    Options { memtable_bytes: 4 << 10, filters: Filters::None, ..Options::lightstore() }
}

async fn fill(drive: KvDrive) {
    for i in 0..KEYS {
        drive
            .store(&key(i * 7 % KEYS), value(i * 7 % KEYS), StoreMode::Upsert)
            .await
            .expect("room");
    }
    drive.settle().await;
}

/// Returns the flash reads of a Get, and checks its value.
async fn reads_of(drive: &KvDrive, i: u64) -> u32 {
    let found = drive.retrieve(&key(i), u32::MAX).await.expect("it was stored");
    assert_eq!(found.value, value(i));
    found.flash_reads
}

async fn reads_of_hot(drive: &KvDrive) -> u32 {
    let mut reads = 0;
    for i in HOT {
        reads += reads_of(drive, i).await;
    }
    reads
}

#[test]
fn what_was_read_last_takes_no_flash_reads_within_the_budget() {
    for (design, pages, values) in [
        (in_flash(), 200 << 10, 200 << 10),
        (Options { inline_up_to: 0, ..small_tables() }, 200 << 10, 200 << 10),
        (small_tables(), 300 << 10, 0),
    ] {
        let (device, options) = with_caches(&design, pages, values);
        let machine = Machine::format(1, &device, options.clone());
        let drive = machine.drive.clone();
        machine.rt.block_on(async move {
            fill(drive.clone()).await;
            assert!(reads_of_hot(&drive).await >= 8, "they were not read before");
            assert_eq!(reads_of_hot(&drive).await, 0);
            for i in 0..KEYS {
                reads_of(&drive, i).await;
                assert!(drive.memory().caches <= pages + values, "{:?}", drive.memory());
            }
            let stats = drive.engine_stats();
            assert!(stats.peak_index_bytes <= device.dram.index_bytes, "{stats:?}");
            assert!(stats.caches.page_hits > 0 && stats.caches.page_misses > 0, "{stats:?}");
            assert_eq!(values > 0, stats.caches.value_hits > 0, "{stats:?}");
            assert!(2 * drive.memory().caches > pages + values, "{:?}", drive.memory());
        });
    }
}

#[test]
fn a_power_cut_leaves_nothing_in_the_caches() {
    let (device, options) = with_caches(&in_flash(), 200 << 10, 200 << 10);
    let machine = Machine::format(1, &device, options.clone());
    machine.rt.block_on(fill(machine.drive.clone()));
    let drive = machine.drive.clone();
    machine.rt.block_on(async move { reads_of_hot(&drive).await });
    let off = machine.power_cut(&mut Rng::new(2));
    let machine = Machine::recover(3, &device, options, off.array).expect("it comes back");
    assert_eq!(machine.drive.memory().caches, 0);
    let drive = machine.drive.clone();
    let reads = machine.rt.block_on(async move { reads_of_hot(&drive).await });
    assert!(reads >= 8, "{reads}");
}

/// Returns the flash reads of Gets of hot keys before and after `scans` iterators have read
/// everything.
fn hot_reads_around_scans(scans: u32, index_prefetch: bool) -> (u32, u32) {
    // About 24 of a hundred pages.
    let (device, mut options) = with_caches(&in_flash(), 26 << 10, 0);
    options.engine.lsm_mut().expect("a tree").iterators.index_prefetch = index_prefetch;
    let machine = Machine::format(1, &device, options);
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        fill(drive.clone()).await;
        let mut rng = Rng::new(7);
        for _ in 0..ROUNDS {
            reads_of_hot(&drive).await;
            reads_of(&drive, rng.below(KEYS)).await;
        }
        let before = reads_of_hot(&drive).await;
        for _ in 0..scans {
            let iterator = drive.create_iterator(None).await.expect("there is room");
            let mut pair = drive.seek(iterator, b"u").await.expect("there are keys");
            for i in 0..KEYS {
                assert_eq!((&*pair.key, &pair.value), (&*key(i), &value(i)));
                if i + 1 < KEYS {
                    pair = drive.next(iterator).await.expect("there are more");
                }
            }
            drive.destroy_iterator(iterator).await.expect("it is there");
        }
        assert_eq!(tree(&drive).snapshot_memory().total(), 0);
        (before, reads_of_hot(&drive).await)
    })
}

#[test]
fn scans_of_everything_leave_what_gets_want() {
    for index_prefetch in [false, true] {
        let (before, after) = hot_reads_around_scans(3, index_prefetch);
        assert!(before <= 9, "{before} reads of eight values, and of segments that are cached");
        assert!(after <= before + 2, "{after} reads after scans, {before} before");
    }
}

#[test]
fn scans_find_in_the_cache_what_gets_left() {
    let (device, options) = with_caches(&in_flash(), 1 << 20, 1 << 20);
    let machine = Machine::format(1, &device, options);
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        fill(drive.clone()).await;
        for i in 0..KEYS {
            reads_of(&drive, i).await;
        }
        let before = drive.flash_stats().total().pages_read;
        let iterator = drive.create_iterator(None).await.expect("there is room");
        let mut pair = drive.seek(iterator, b"u").await.expect("there are keys");
        for i in 0..500 {
            assert_eq!((&*pair.key, &pair.value), (&*key(i), &value(i)));
            pair = drive.next(iterator).await.expect("there are more");
        }
        assert_eq!(drive.flash_stats().total().pages_read, before, "all was in memory");
    });
}

/// Returns the flash reads of Gets of consecutively written keys. Values up to this length are
/// cached with their page.
fn reads_of_neighbours(value_pages_up_to: u32) -> u32 {
    let design = Options { value_pages_up_to, ..in_flash() };
    let (device, options) = with_caches(&design, 1 << 20, 1 << 20);
    let machine = Machine::format(1, &device, options);
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        fill(drive.clone()).await;
        let mut reads = 0;
        for i in (0..KEYS).step_by(7) {
            reads += reads_of(&drive, i).await;
        }
        let caches = drive.engine_stats().caches;
        assert_eq!(value_pages_up_to >= 120, caches.value_page_hits > 0, "{caches:?}");
        reads
    })
}

#[test]
fn neighbours_of_a_short_value_come_with_its_page() {
    let (alone, too_long) = (reads_of_neighbours(0), reads_of_neighbours(119));
    assert_eq!(alone, too_long);
    let with_pages = reads_of_neighbours(120);
    assert!(2 * with_pages < alone, "{with_pages} reads, {alone} without");
}

#[test]
fn short_scans_leave_their_values_and_long_ones_no_more_than_they_may() {
    let mut design = Options { value_pages_up_to: 1_000, ..in_flash() };
    design.iterators.cached_pairs = 50;
    let (device, options) = with_caches(&design, 1 << 20, 1 << 20);
    let machine = Machine::format(1, &device, options);
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        fill(drive.clone()).await;
        let mut read = Vec::new();
        for pairs in [40, 40, 60, 60] {
            let before = drive.flash_stats().total().pages_read;
            let iterator = drive.create_iterator(None).await.expect("there is room");
            let mut pair = drive.seek(iterator, &key(300)).await.expect("there are keys");
            for i in 300..300 + pairs {
                assert_eq!((&*pair.key, &pair.value), (&*key(i), &value(i)));
                pair = drive.next(iterator).await.expect("there are more");
            }
            drive.destroy_iterator(iterator).await.expect("it is there");
            read.push(drive.flash_stats().total().pages_read - before);
        }
        assert!(read[0] > 40 && read[1] == 0, "{read:?}");
        assert!(read[3] > 0 && read[3] < read[2], "those behind the 50th did not stay: {read:?}");
    });
}

#[test]
fn caches_larger_than_the_memory_are_refused_in_words() {
    let (device, options) = (small_device(), Options { page_cache_bytes: 1 << 20, ..in_flash() });
    let rt = runtime::Runtime::new(1);
    let Err(error) = KvDrive::format(&rt.handle(), &device, small_design(&options)) else {
        panic!("a MiB of 34 KiB");
    };
    let words = error.to_string();
    assert!(
        words.contains("the caches are to have 1048576 bytes") && words.contains("34816"),
        "{words}"
    );
}
