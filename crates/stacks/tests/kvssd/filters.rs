//! The design with Bloom filters: memory is used as planned, reads are saved, and filters survive a
//! power cut.

use engine::{Options, Value};
use runtime::Rng;
use stacks::kvssd::{KvDrive, Status, StoreMode};

use crate::harness::{Machine, small_design, small_device};

const KEYS: u64 = 2_000;

fn key(i: u64) -> Vec<u8> {
    format!("user{:026}", runtime::mix64(i)).into_bytes()
}

async fn fill(drive: KvDrive) {
    for i in 0..KEYS {
        let value = Value::Synthetic { seed: i, len: 120 };
        drive.store(&key(i), value, StoreMode::Upsert).await.expect("there is room");
    }
    drive.settle().await;
}

/// Returns the mean flash reads of Gets of existing keys, and of absent keys.
async fn mean_reads(drive: KvDrive) -> (f64, f64) {
    let mut reads = 0;
    for i in 0..KEYS {
        let found = drive.retrieve(&key(i), u32::MAX).await.expect("it was stored");
        assert_eq!(found.value, Value::Synthetic { seed: i, len: 120 });
        reads += found.flash_reads;
    }
    let before = drive.engine_stats().vain_meta_reads;
    for i in KEYS..2 * KEYS {
        let outcome = drive.retrieve(&key(i), u32::MAX).await;
        assert_eq!(outcome.err(), Some(Status::KeyDoesNotExist));
    }
    let in_vain = drive.engine_stats().vain_meta_reads - before;
    (f64::from(reads) / KEYS as f64, in_vain as f64 / KEYS as f64)
}

#[test]
fn filters_spare_reads_stay_in_the_budget_and_outlive_a_power_cut() {
    let (mut device, options) = (small_device(), small_design(&Options::lightstore()));
    // Not so full that all entries are moved down.
    device.flash.geometry.blocks_per_plane += 8;
    let machine = Machine::format(1, &device, options.clone());
    machine.rt.block_on(fill(machine.drive.clone()));
    let (found, missing) = machine.rt.block_on(mean_reads(machine.drive.clone()));
    assert!((1.9..2.05).contains(&found), "{found} reads a Get");
    assert!(missing < 0.05, "{missing} reads a Get of nothing");
    assert_eq!(machine.drive.engine().read_bound(30, 120), Some(5));
    let before = machine.drive.memory();
    assert!(before.filters > 2_000, "{before:?}");
    let peak = machine.drive.engine_stats().peak_index_bytes;
    assert!(peak <= device.dram.index_bytes, "{peak} bytes at the most");

    let off = machine.power_cut(&mut Rng::new(2));
    let machine = Machine::recover(3, &device, options, off.array).expect("it comes back");
    assert_eq!(machine.drive.memory().filters, before.filters);
    assert_eq!(machine.rt.block_on(mean_reads(machine.drive.clone())), (found, missing));
}

#[test]
fn without_memory_for_filters_more_is_read_and_nothing_waits() {
    let mut device = small_device();
    // The level lists of these keys fit, and hardly more.
    device.dram.index_bytes = 9 << 10;
    let machine = Machine::format(1, &device, small_design(&Options::lightstore()));
    machine.rt.block_on(fill(machine.drive.clone()));
    let (found, missing) = machine.rt.block_on(mean_reads(machine.drive.clone()));
    let memory = machine.drive.memory();
    assert!(missing > 0.3, "{missing} reads a Get of nothing, {found} of something: {memory:?}");
    assert!(memory.index_bytes() <= device.dram.index_bytes, "{memory:?}");
}
