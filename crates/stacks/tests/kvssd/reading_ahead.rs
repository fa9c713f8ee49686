//! Read-ahead: it must change only the times of reads; its gains and costs.

use engine::{IteratorOptions, Value};
use runtime::{Handle, IoClass, Nanos, Rng};
use stacks::kvssd::{DeviceProfile, DriveOptions, IteratorHandle, KvDrive, Status, StoreMode};

use crate::harness::{Machine, small_device, tree_of};
use crate::iterators::{PLAIN, ways_of_reading, with_iterators};

fn key(i: u64) -> Vec<u8> {
    format!("key{i:06}").into_bytes()
}

/// A value that gets a page of its own: a page has less than 1 KiB for values.
fn page_long(i: u64) -> Value {
    Value::Synthetic { seed: i, len: 900 }
}

async fn store(drive: &KvDrive, i: u64, value: Value) {
    drive.store(&key(i), value, StoreMode::Upsert).await.expect("there is room");
}

type Scenario<T> = std::pin::Pin<Box<dyn Future<Output = T>>>;

fn on_a_drive<T: 'static>(
    device: &DeviceProfile,
    options: DriveOptions,
    scenario: impl FnOnce(KvDrive, Handle) -> Scenario<T>,
) -> T {
    let machine = Machine::format(1, device, options);
    machine.rt.block_on(scenario(machine.drive.clone(), machine.rt.handle()))
}

/// Fills a store at random, and opens an iterator on it.
async fn fill_at_random(drive: &KvDrive, seed: u64) -> IteratorHandle {
    let mut rng = Rng::new(seed);
    for _ in 0..900 {
        let i = rng.below(400);
        if rng.chance(0.2) {
            drive.delete(&key(i)).await.expect("there is room");
            continue;
        }
        // Most values share a page with others, some have pages of their own, some span several.
        let len = [30, 200, 900, 3000][rng.below(40).saturating_sub(36) as usize];
        store(drive, i, Value::Synthetic { seed: rng.next_u64(), len }).await;
    }
    drive.create_iterator(None).await.expect("there is room")
}

type Contents = Vec<(Box<[u8]>, Vec<u8>)>;

async fn read_all(drive: &KvDrive, iterator: IteratorHandle) -> Contents {
    let mut all = Vec::new();
    let mut answer = drive.seek(iterator, b"k").await;
    loop {
        match answer {
            Ok(pair) => all.push((pair.key, pair.value.to_bytes().to_vec())),
            Err(Status::AskAgain) => {}
            Err(status) => {
                assert_eq!(status, Status::EndOfRange);
                return all;
            }
        }
        answer = drive.next(iterator).await;
    }
}

/// Reads all pairs in batches, with a buffer of `buffer_bytes`.
async fn read_in_bulk(drive: &KvDrive, iterator: IteratorHandle, buffer_bytes: u64) -> Contents {
    let mut all = Vec::new();
    if let Ok(pair) = drive.seek(iterator, b"k").await {
        all.push((pair.key, pair.value.to_bytes().to_vec()));
    }
    loop {
        match drive.next_many(iterator, 25, buffer_bytes).await {
            Ok(batch) => {
                let is_last = batch.is_last;
                let pairs = batch.pairs.into_iter();
                all.extend(pairs.map(|pair| (pair.key, pair.value.to_bytes().to_vec())));
                if is_last {
                    return all;
                }
            }
            Err(Status::AskAgain) => {}
            Err(status) => {
                assert_eq!(status, Status::EndOfRange);
                return all;
            }
        }
    }
}

#[test]
fn reading_ahead_and_in_bulk_does_not_show_in_what_is_read() {
    for seed in 0..6 {
        let mut first: Option<Contents> = None;
        for iterators in ways_of_reading() {
            let iterators = IteratorOptions { skip_budget: 1 + 7 * seed as u32, ..iterators };
            let read = on_a_drive(&small_device(), with_iterators(iterators), |drive, _| {
                Box::pin(async move {
                    let iterator = fill_at_random(&drive, seed).await;
                    let mut read = vec![read_all(&drive, iterator).await];
                    for buffer_bytes in [0, 100, 1000, 1 << 20] {
                        read.push(read_in_bulk(&drive, iterator, buffer_bytes).await);
                    }
                    read
                })
            });
            let first = first.get_or_insert_with(|| read[0].clone());
            assert!(first.len() > 200, "seed {seed}: {} pairs", first.len());
            for (way, read) in read.iter().enumerate() {
                assert!(read == first, "seed {seed}: {iterators:?} differs, read in way {way}");
            }
        }
    }
}

/// Returns the mean latency of a Next in an undisturbed scan over `keys` values of about a page,
/// and the counters.
fn quiet_scan(iterators: IteratorOptions, keys: u64) -> (Nanos, engine::IteratorStats) {
    on_a_drive(&small_device(), with_iterators(iterators), |drive, handle| {
        Box::pin(async move {
            for i in 0..keys {
                store(&drive, i, page_long(i)).await;
            }
            drive.settle().await;
            let iterator = drive.create_iterator(None).await.expect("there is room");
            drive.seek(iterator, &key(0)).await.expect("stored");
            let start = handle.now();
            for i in 1..keys {
                let pair = drive.next(iterator).await.expect("stored");
                assert_eq!(pair.value, page_long(i));
            }
            (Nanos((handle.now() - start).0 / (keys - 1)), drive.engine_stats().iterators)
        })
    })
}

#[test]
fn with_index_prefetch_no_next_of_a_quiet_scan_reads_the_index() {
    let (slow, without) = quiet_scan(PLAIN, 300);
    let (fast, with) = quiet_scan(IteratorOptions { index_prefetch: true, ..PLAIN }, 300);
    assert!(without.next_index_reads > 0, "{without:?}");
    assert_eq!((with.next_index_reads, with.index_prefetch_waits), (0, 0), "{with:?}");
    assert!(with.index_prefetches >= without.next_index_reads, "{with:?}");
    assert!(fast < slow);
}

#[test]
fn the_further_values_are_read_ahead_the_less_a_next_waits() {
    let of_degree = |value_prefetch| {
        let iterators = IteratorOptions { index_prefetch: true, value_prefetch, ..PLAIN };
        quiet_scan(iterators, 300)
    };
    let (mean, stats): (Vec<_>, Vec<_>) = [0, 1, 2, 4, 8].map(of_degree).into_iter().unzip();
    assert!(mean.is_sorted_by(|shallow, deep| shallow >= deep), "mean latencies {mean:?}");
    assert!(mean[4].0 * 2 < mean[0].0, "mean latencies {mean:?}");
    assert_eq!((stats[0].value_prefetches, stats[0].value_prefetch_waits), (0, 0));
    assert!(stats[4].value_prefetch_waits < stats[1].value_prefetch_waits / 2, "{stats:?}");
    for stats in &stats[1..] {
        assert_eq!(stats.value_prefetches_wasted, 0, "{stats:?}");
        assert!((290..300).contains(&stats.value_prefetches), "{stats:?}");
    }
}

/// Returns the time of a read of one page: tR, its command, and the transfer.
fn page_read(device: &DeviceProfile) -> Nanos {
    let (geometry, timing) = (&device.flash.geometry, &device.flash.timing);
    let transfer = f64::from(geometry.transfer_bytes) / timing.channel_mb_per_s;
    Nanos::from_micros_f64(timing.command_us + timing.read_us[0] + transfer)
}

/// Returns the latency of a command that needs one page and transfers `bytes` to the host.
fn command_with_one_read(device: &DeviceProfile, bytes: u64) -> Nanos {
    let (controller, host) = (&device.controller, &device.host);
    let transfer_us = (64 + bytes) as f64 / host.read_mb_per_s;
    let fixed = controller.command_us + controller.pipeline_us + host.latency_us;
    page_read(device) + Nanos::from_micros_f64(fixed + transfer_us)
}

/// Returns a device whose processor takes time only for commands.
fn plain_device() -> DeviceProfile {
    let mut device = small_device();
    let costs = &mut device.controller.costs;
    (costs.memtable_ns, costs.prefix_compare_ns, costs.key_compare_ns) = (0.0, 0.0, 0.0);
    device
}

#[test]
fn a_cold_next_takes_what_its_parts_take() {
    let device = plain_device();
    let mut options = with_iterators(PLAIN);
    // The index is in memory.
    tree_of(&mut options).pinned_levels = None;
    let expected = command_with_one_read(&device, 8 + 9 + 900);
    on_a_drive(&device, options, |drive, handle| {
        Box::pin(async move {
            for i in 0..200 {
                store(&drive, i, page_long(i)).await;
            }
            drive.settle().await;
            handle.sleep(Nanos::from_millis(50)).await;
            let iterator = drive.create_iterator(None).await.expect("there is room");
            drive.seek(iterator, &key(0)).await.expect("stored");
            for i in 1..100 {
                let start = handle.now();
                drive.next(iterator).await.expect("stored");
                let took = handle.now() - start;
                // Rounding of each part to a nanosecond.
                assert!(took.0.abs_diff(expected.0) <= 4, "Next {i}: {took}, not {expected}");
            }
        })
    });
}

/// Returns the latency of a Get of `key(wanted)` directly after 8 iterators have requested values
/// ahead.
fn get_among_prefetches(device: &DeviceProfile, wanted: u64) -> (Nanos, u64) {
    let iterators = IteratorOptions { value_prefetch: 8, index_prefetch: true, ..PLAIN };
    let mut options = with_iterators(iterators);
    tree_of(&mut options).pinned_levels = None;
    on_a_drive(device, options, |drive, handle| {
        Box::pin(async move {
            for i in 0..400 {
                store(&drive, i, page_long(i)).await;
            }
            drive.settle().await;
            handle.sleep(Nanos::from_millis(50)).await;
            let mut seeks = Vec::new();
            for at in 0..8 {
                let iterator = drive.create_iterator(None).await.expect("there is room");
                let drive = drive.clone();
                seeks.push(handle.spawn("seek", async move {
                    drive.seek(iterator, &key(40 * at)).await.expect("stored")
                }));
            }
            for seek in seeks {
                seek.await;
            }
            let start = handle.now();
            drive.retrieve(&key(wanted), u32::MAX).await.expect("stored");
            let took = handle.now() - start;
            let counts = drive.flash_stats().of(IoClass::ValuePrefetch);
            (took, counts.pages_read)
        })
    })
}

#[test]
fn demand_reads_wait_for_no_more_than_the_prefetch_that_has_started() {
    let mut device = plain_device();
    device.flash.geometry.channels = 1;
    device.flash.geometry.dies_per_channel = 2;
    device.flash.geometry.pages_per_block = 16;
    // The Get's own read, one that has started on its die, and one page on the bus before each.
    let transfers = Nanos(2 * (page_read(&device).0 - 75_300));
    let bound = command_with_one_read(&device, 900) + page_read(&device) + transfers;
    for wanted in [399, 39] {
        let (took, prefetched) = get_among_prefetches(&device, wanted);
        assert!(prefetched < 40, "{prefetched} of 64 prefetches were done before the Get ended");
        assert!(took <= bound, "a Get took {took}, not {bound}");
    }
}

#[test]
fn whoever_needs_a_page_that_is_being_prefetched_makes_that_urgent() {
    let mut device = plain_device();
    device.flash.geometry.channels = 1;
    device.flash.geometry.dies_per_channel = 2;
    device.flash.geometry.pages_per_block = 16;
    let transfers = Nanos(2 * (page_read(&device).0 - 75_300));
    let bound = command_with_one_read(&device, 900) + page_read(&device) + transfers;
    // The last value requested by the last iterator.
    let (took, _) = get_among_prefetches(&device, 288);
    assert!(took <= bound, "a Get took {took}, not {bound}");
}

#[test]
fn seek_after_seek_does_not_pile_up_prefetches() {
    let mut device = plain_device();
    device.flash.geometry.channels = 1;
    device.flash.geometry.dies_per_channel = 1;
    device.flash.geometry.pages_per_block = 32;
    let iterators = IteratorOptions { value_prefetch: 8, ..PLAIN };
    on_a_drive(&device, with_iterators(iterators), |drive, _| {
        Box::pin(async move {
            for i in 0..300 {
                store(&drive, i, page_long(i)).await;
            }
            drive.settle().await;
            let iterator = drive.create_iterator(None).await.expect("there is room");
            for i in 0..60 {
                drive.seek(iterator, &key(i * 37 % 290)).await.expect("stored");
                let asked_for = drive.engine_stats().iterators.value_prefetches;
                let read = drive.flash_stats().of(IoClass::ValuePrefetch).pages_read;
                // Some find their page among those the iterator keeps.
                let kept = drive.engine_stats().iterators.page_hits;
                let outstanding = asked_for.saturating_sub(read + kept);
                assert!(outstanding <= 9, "{outstanding} prefetches are outstanding");
            }
        })
    });
}
