//! One command at a time takes what plain arithmetic says.

use runtime::{Nanos, Runtime};
use ssd::nvme::SetId;
use ssd::{Block, BlockDevice, Precondition, Ssd};

use crate::small;

fn set(id: u16) -> SetId {
    SetId::new(id).expect("not zero")
}

#[test]
fn what_is_written_is_read() {
    let rt = Runtime::new(1);
    let ssd = Ssd::new(&rt.handle(), &small::profile(1), Precondition::Empty);
    rt.block_on(async move {
        for round in 0..6_u64 {
            for lba in 0..14_000_u64 {
                let block = Block::new(&(lba * 7 + round + 1).to_le_bytes());
                ssd.write(set(1), (lba * 37) % 14_000, vec![block]).await.unwrap();
            }
            for lba in 0..14_000_u64 {
                let read = ssd.read(set(1), (lba * 37) % 14_000, 1).await.unwrap();
                assert_eq!(read[0], Block::new(&(lba * 7 + round + 1).to_le_bytes()), "{lba}");
            }
        }
        println!("{:#?}", ssd.report(set(1)));
    });
}

#[test]
fn a_read_takes_the_sum_of_its_steps() {
    let rt = Runtime::new(1);
    let profile = ssd::SsdProfile::load("vigil-1.92tb").expect("built in");
    let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Random(1.0));
    let handle = rt.handle();
    rt.block_on(async move {
        let mut total = Nanos::ZERO;
        for i in 0..3_000_u64 {
            let start = handle.now();
            ssd.read(set(2), i * 38_989, 1).await.unwrap();
            total = total + (handle.now() - start);
        }
        println!("mean {}", total.0 / 3_000);
    });
}
