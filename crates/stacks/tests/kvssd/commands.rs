//! Results of each command; invalid input must lose no data.

use engine::{Options, Value};
use runtime::{Nanos, Runtime};
use stacks::kvssd::{DriveOptions, KeyFormat, KvDrive, Status, StoreMode};

use crate::harness::{
    for_hash, small, small_device, small_hash, small_hash_options, small_lsm, small_options,
    small_tlc_device, tree,
};

/// Runs `scenario` on a fresh small drive with each index.
fn on_a_drive<F: Future<Output = ()> + 'static>(
    options: DriveOptions,
    scenario: impl Fn(KvDrive) -> F,
) {
    let with_hash = DriveOptions { engine: small_hash().into(), ..options.clone() };
    for (device, options) in [(small_device(), options), (for_hash(small_device()), with_hash)] {
        let rt = Runtime::new(1);
        let drive = KvDrive::format(&rt.handle(), &device, options).expect("it fits");
        rt.block_on(scenario(drive));
    }
}

fn bytes(text: &str) -> Value {
    Value::from_bytes(text.as_bytes())
}

#[test]
fn store_retrieve_exist_delete() {
    on_a_drive(small_options(), async |drive| {
        assert_eq!(drive.exist(b"k").await, Err(Status::KeyDoesNotExist));
        assert_eq!(
            drive.store(b"k", bytes("v"), StoreMode::MustExist).await,
            Err(Status::KeyDoesNotExist)
        );
        assert_eq!(drive.store(b"k", bytes("v"), StoreMode::MustNotExist).await, Ok(()));
        assert_eq!(
            drive.store(b"k", bytes("w"), StoreMode::MustNotExist).await,
            Err(Status::KeyExists)
        );
        assert_eq!(drive.retrieve(b"k", 100).await.map(|r| r.value), Ok(bytes("v")));
        assert_eq!(drive.store(b"k", bytes("w"), StoreMode::MustExist).await, Ok(()));
        assert_eq!(drive.retrieve(b"k", 100).await.map(|r| r.value), Ok(bytes("w")));
        assert_eq!(drive.exist(b"k").await, Ok(()));
        assert_eq!(drive.delete(b"k").await, Ok(()));
        assert_eq!(drive.retrieve(b"k", 100).await, Err(Status::KeyDoesNotExist));
        assert_eq!(drive.delete(b"k").await, Ok(()), "deleting nothing is fine by default");
    });
}

#[test]
fn deleting_a_missing_key_can_be_an_error() {
    let options = DriveOptions { delete_must_exist: true, ..small_options() };
    on_a_drive(options, async |drive| {
        assert_eq!(drive.delete(b"k").await, Err(Status::KeyDoesNotExist));
        drive.store(b"k", bytes(""), StoreMode::Upsert).await.expect("room");
        assert_eq!(drive.delete(b"k").await, Ok(()));
    });
}

#[test]
fn keys_and_values_have_limits() {
    on_a_drive(small_options(), async |drive| {
        for key in [&b""[..], &[7; 256]] {
            assert_eq!(
                drive.store(key, bytes("v"), StoreMode::Upsert).await,
                Err(Status::InvalidKeySize)
            );
            assert_eq!(drive.retrieve(key, 9).await, Err(Status::InvalidKeySize));
            assert_eq!(drive.delete(key).await, Err(Status::InvalidKeySize));
            assert_eq!(drive.exist(key).await, Err(Status::InvalidKeySize));
        }
        let max = drive.max_value_bytes();
        let value = |len| Value::Synthetic { seed: 1, len };
        let store = async |len| drive.store(&[7; 255], value(len), StoreMode::Upsert).await;
        assert_eq!(store(max).await, Ok(()));
        assert_eq!(store(max + 1).await, Err(Status::InvalidValueSize));
        assert_eq!(drive.retrieve(&[7; 255], u32::MAX).await.map(|r| r.value), Ok(value(max)));
    });
    let options = DriveOptions { key_format: KeyFormat::Nvme, ..small_options() };
    on_a_drive(options, async |drive| {
        assert_eq!(drive.store(&[7; 16], bytes("v"), StoreMode::Upsert).await, Ok(()));
        assert_eq!(
            drive.store(&[7; 17], bytes("v"), StoreMode::Upsert).await,
            Err(Status::InvalidKeySize)
        );
    });
}

#[test]
fn keys_that_begin_alike_are_different_keys() {
    on_a_drive(small_options(), async |drive| {
        let keys: Vec<Vec<u8>> = (1..=255).map(|len| vec![0; len]).collect();
        for key in &keys {
            let value = Value::from_bytes(&key[..key.len() / 4]);
            drive.store(key, value, StoreMode::Upsert).await.expect("room");
        }
        for key in &keys {
            let value = Value::from_bytes(&key[..key.len() / 4]);
            assert_eq!(drive.retrieve(key, u32::MAX).await.map(|r| r.value), Ok(value));
        }
    });
}

#[test]
fn large_values_take_one_read_for_each_page() {
    on_a_drive(small_options(), async |drive| {
        let value = |len| Value::from_bytes(&Value::Synthetic { seed: 5, len }.to_bytes());
        for len in [900, 1020, 1100, 3000, 4000] {
            drive
                .store(format!("{len}").as_bytes(), value(len), StoreMode::Upsert)
                .await
                .expect("room");
        }
        for i in 0..200_u32 {
            drive
                .store(format!("f{i}").as_bytes(), value(100), StoreMode::Upsert)
                .await
                .expect("room");
        }
        for len in [900_u32, 1020, 1100, 3000, 4000] {
            let key = format!("{len}");
            let found = drive.retrieve(key.as_bytes(), u32::MAX).await.expect("stored");
            assert_eq!(found.value, value(len));
            if let Some(bound) = drive.engine().read_bound(key.len(), len) {
                assert!(found.flash_reads <= bound, "{} of {bound} reads", found.flash_reads);
            }
        }
    });
}

#[test]
fn a_full_drive_says_so_and_deletes_make_room() {
    on_a_drive(small_options(), async |drive| {
        let key = |i: u32| format!("key{i:06}").into_bytes();
        let value = |i: u32| Value::Synthetic { seed: u64::from(i), len: 400 };
        let mut stored = 0;
        while drive.store(&key(stored), value(stored), StoreMode::Upsert).await.is_ok() {
            stored += 1;
            assert!(stored < 10_000, "a drive of 1 MiB cannot hold this");
        }
        assert_eq!(
            drive.store(&key(stored), value(stored), StoreMode::Upsert).await,
            Err(Status::CapacityExceeded)
        );
        assert!(stored > 500, "full after {stored} values of 400 bytes");
        for i in 0..stored {
            let found = drive.retrieve(&key(i), u32::MAX).await.map(|r| r.value);
            assert_eq!(found, Ok(value(i)), "key {i} of {stored}");
        }
        for i in 0..stored {
            if i % 4 != 0 {
                drive.delete(&key(i)).await.expect("a full drive takes deletes");
            }
        }
        let mut refused = 0;
        for i in 0..stored / 4 {
            while drive.store(&key(10_000 + i), value(i), StoreMode::Upsert).await.is_err() {
                refused += 1;
                assert!(refused < 100_000, "deletes never made room");
            }
        }
        for i in (0..stored).step_by(4) {
            assert_eq!(drive.retrieve(&key(i), u32::MAX).await.map(|r| r.value), Ok(value(i)));
        }
    });
}

/// Overwrites `keys` values of `len` bytes until ten times the drive's capacity has been written.
fn overwrite_many_times(device: &stacks::kvssd::DeviceProfile, keys: u64, len: u32) {
    overwrite(device, small_options(), keys, len);
    overwrite(&for_hash(device.clone()), small_hash_options(), keys, len);
}

fn overwrite(device: &stacks::kvssd::DeviceProfile, options: DriveOptions, keys: u64, len: u32) {
    let options = DriveOptions { expected_value_bytes: len, ..options };
    let rt = Runtime::new(3);
    let drive = KvDrive::format(&rt.handle(), device, options).expect("it fits");
    let rounds = 10 * device.flash.geometry.capacity_bytes() / (u64::from(len) + 20);
    rt.block_on(async move {
        let key = |i: u64| format!("key{i:08}").into_bytes();
        for i in 0..rounds {
            let value = Value::Synthetic { seed: i, len };
            let stored = drive.store(&key(i % keys), value, StoreMode::Upsert).await;
            assert_eq!(stored, Ok(()), "overwrite {i} of {rounds}");
        }
        for i in rounds - keys..rounds {
            let found = drive.retrieve(&key(i % keys), u32::MAX).await.map(|r| r.value);
            assert_eq!(found, Ok(Value::Synthetic { seed: i, len }));
        }
    });
}

#[test]
fn a_drive_can_be_overwritten_for_ever_without_a_power_cycle() {
    overwrite_many_times(&small_device(), 900, 200);
    overwrite_many_times(&small_tlc_device(), 900, 200);
}

#[test]
fn short_values_do_not_stop_the_flush() {
    overwrite_many_times(&small_device(), 1500, 8);
}

/// Returns a small drive that stores values up to this length beside their keys. Its level lists
/// are longer.
fn inlining(up_to: u32) -> (stacks::kvssd::DeviceProfile, DriveOptions) {
    let mut device = small_device();
    device.dram.index_bytes *= 8;
    device.flash.geometry.blocks_per_plane *= 2;
    (device, small(Options { inline_up_to: up_to, ..small_lsm() }))
}

#[test]
fn a_drive_without_a_value_log_can_be_overwritten_for_ever() {
    let (device, options) = inlining(u32::MAX);
    overwrite(&device, options.clone(), 900, 200);
    overwrite(&device, options, 1500, 8);
}

#[test]
fn values_beside_their_keys_take_no_read_of_their_own() {
    let (device, options) = inlining(100);
    let rt = Runtime::new(4);
    let drive = KvDrive::format(&rt.handle(), &device, options).expect("it fits");
    let key = |i: u64| format!("key{i:08}").into_bytes();
    // Values move from the value log to the tree and back.
    let value = |i: u64, round: u64| Value::Synthetic {
        seed: i + round,
        len: if (i + round).is_multiple_of(3) { 200 } else { 100 - i as u32 % 50 },
    };
    rt.block_on(async move {
        for round in 0..4 {
            for i in 0..400 {
                let stored = drive.store(&key(i), value(i, round), StoreMode::Upsert).await;
                assert_eq!(stored, Ok(()), "round {round}, key {i}");
            }
        }
        let engine = tree(&drive);
        engine.settle().await;
        for i in 0..400 {
            let found = engine.get(&key(i), Nanos::ZERO).await.expect("nothing is damaged");
            assert_eq!(found.value, Some(value(i, 3)));
        }
        assert_eq!(engine.read_bound(11, 101), engine.read_bound(11, 100) + 1);
        let (stats, puts) = (engine.stats(), 4 * 400);
        assert!((puts / 4..puts / 2).contains(&stats.flushed_objects), "{}", stats.flushed_objects);
        assert!(stats.dropped_duplicates > puts / 2, "replaced values count, wherever they were");
    });
}
