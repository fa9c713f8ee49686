//! The design with a merge accelerator: merges that go through flash for it, and merges that it
//! does not do.

use engine::{AcceleratorWork, Options, Value};
use runtime::Runtime;
use stacks::kvssd::{KvDrive, StoreMode};

use crate::harness::{Machine, small_design, small_device};

const KEYS: u64 = 1_500;

fn key(i: u64) -> Vec<u8> {
    format!("{:030}", runtime::mix64(i)).into_bytes()
}

/// Fills a drive whose accelerator accepts entries of up to `max_entry_bytes`, and reads all keys.
/// Returns the accelerator's counters.
fn fill_and_read(max_entry_bytes: u32) -> AcceleratorWork {
    let mut device = small_device();
    device.accelerator.as_mut().expect("it has one").max_entry_bytes = max_entry_bytes;
    let machine = Machine::format(1, &device, small_design(&Options::pink_hw()));
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        for i in 0..KEYS {
            let value = Value::Synthetic { seed: i, len: 60 };
            drive.store(&key(i), value, StoreMode::Upsert).await.expect("there is room");
        }
        drive.settle().await;
        for i in 0..KEYS {
            let found = drive.retrieve(&key(i), u32::MAX).await.expect("it was stored");
            assert_eq!(found.value, Value::Synthetic { seed: i, len: 60 });
            assert!(found.flash_reads <= 2);
        }
    });
    machine.drive.engine_stats().accelerator
}

#[test]
fn what_is_pinned_goes_through_flash_to_the_accelerator() {
    let work = fill_and_read(256);
    assert!(work.merges > 10 && work.left_to_processor == 0, "{work:?}");
    assert!(work.pages_copied >= work.merges, "{work:?}");
    // The last pinned level is entirely in memory, so each merge has its copy as input, and the
    // overlapping pages below.
    assert!(work.bytes > work.pages_copied * 1024, "{work:?}");
    // 16 bytes a cycle at 175 MHz; each merge ends on a whole nanosecond.
    let least = work.bytes as f64 / 2.8;
    assert!((least..least + 2.0 * work.merges as f64).contains(&(work.busy.0 as f64)), "{work:?}");
}

#[test]
fn entries_that_are_too_long_are_left_to_the_processor() {
    let work = fill_and_read(33);
    assert!(work.left_to_processor > 0, "{work:?}");
    assert_eq!((work.merges, work.pages_copied), (0, 0), "{work:?}");
}

#[test]
fn a_device_without_an_accelerator_says_so() {
    let mut device = small_device();
    device.accelerator = None;
    let rt = Runtime::new(1);
    let format = |design: Options| {
        KvDrive::format(&rt.handle(), &device, small_design(&design))
            .map(drop)
            .map_err(|e| e.to_string())
    };
    assert_eq!(format(Options::pink()), Ok(()));
    assert!(format(Options::pink_hw()).is_err_and(|text| text.contains("[accelerator]")));
}
