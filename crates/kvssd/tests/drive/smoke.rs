//! First light: what is stored comes back.

use engine::Value;
use kvssd::{KvDrive, Status, StoreMode};
use runtime::Runtime;

use crate::harness::{small_device, small_options};

#[test]
fn what_is_stored_comes_back() {
    let rt = Runtime::new(7);
    let handle = rt.handle();
    rt.block_on(async move {
        let drive = KvDrive::format(&handle, &small_device(), small_options());
        let key = |i: u32| format!("k{i:06}").into_bytes();
        for round in 0..20_u8 {
            for i in 0..400_u32 {
                let value = Value::from_bytes(&vec![round; (i % 150) as usize]);
                drive
                    .store(&key(i * 7919 % 400), value, StoreMode::Upsert)
                    .await
                    .expect("room");
            }
        }
        for i in 0..400_u32 {
            let found = drive
                .retrieve(&key(i * 7919 % 400), u32::MAX)
                .await
                .expect("stored");
            assert_eq!(
                found.value,
                Value::from_bytes(&vec![19; (i % 150) as usize])
            );
        }
        assert_eq!(drive.exist(b"nothing").await, Err(Status::KeyDoesNotExist));
        drive.settle().await;
        let stats = drive.engine_stats();
        println!(
            "{stats:#?} {:?} plan {:?}",
            drive.engine().levels(),
            drive.engine().plan()
        );
    });
}
