//! Bit rot: a damaged page is reported, and never passed off as data.

use engine::Value;
use kvssd::{Status, StoreMode};
use runtime::Rng;

use crate::harness::{Machine, small_device, with_fault};

const KEYS: u64 = 600;

fn key(i: u64) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

fn value(i: u64) -> Value {
    Value::from_bytes(&Value::Synthetic { seed: i, len: 100 }.to_bytes())
}

/// Fills a drive, flips bits in random pages, and reads everything. `Err` if a read returned
/// something that was never written.
pub(crate) fn damage_is_caught(seed: u64, fault: Option<engine::Fault>) -> Result<(), String> {
    let device = small_device();
    let machine = Machine::format(seed, &device, with_fault(fault));
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        for i in 0..KEYS {
            drive.store(&key(i), value(i), StoreMode::Upsert).await.expect("there is room");
        }
        drive.settle().await;
        let mut rng = Rng::derive(seed, "damage");
        drive.flash().with_array(|array| {
            for _ in 0..200 {
                let page = rng.below(u64::from(array.geometry().pages())) as u32;
                array.flip_bit(flash::PageAddress(page), rng.next_u64());
            }
        });
        let mut damaged = 0;
        for i in 0..KEYS {
            match drive.retrieve(&key(i), u32::MAX).await {
                Ok(found) if found.value == value(i) => {}
                Err(Status::UnrecoveredError) => damaged += 1,
                other => return Err(format!("key {i}: {other:?}")),
            }
        }
        if damaged == 0 { Err("no damage was seen".to_owned()) } else { Ok(()) }
    })
}

#[test]
fn damaged_pages_are_reported_and_never_served() {
    for seed in 0..20 {
        damage_is_caught(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
