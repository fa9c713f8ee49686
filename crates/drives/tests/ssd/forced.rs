//! Commands are in flight from the call on; forced writes are durable when they are acknowledged.

use block::{Block, BlockDevice, Force};
use drives::ssd::specimens::small;
use drives::ssd::{Precondition, SsdProfile};
use runtime::{IoClass, Rng};

use crate::harness::{ClientIo, Machine, planted, set_id};

fn profile(has_capacitors: bool) -> SsdProfile {
    let mut profile = small::profile(1);
    profile.buffer.has_capacitors = has_capacitors;
    profile
}

#[test]
fn commands_are_under_way_while_another_is_awaited() {
    let machine = Machine::format(1, &profile(true), Precondition::Sequential(1.0), planted(None));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        let start = handle.now();
        ssd.client_read(set_id(0), 5_000, 1).await.expect("it is there");
        let alone = handle.now() - start;
        // Each read on a die of its own.
        let start = handle.now();
        let reads =
            [0, 1, 2, 3].map(|die| ssd.read(set_id(0), die * 12 * 4, 1, IoClass::ClientRead));
        for read in reads {
            read.await.expect("it is there");
        }
        let all = handle.now() - start;
        assert!(all.0 < 2 * alone.0, "four reads take {all}, one {alone}");
        // The command is executed although its future is dropped.
        drop(ssd.client_write(set_id(0), 7, vec![Block::new(b"unseen")]));
        handle.sleep(alone).await;
        let found = ssd.client_read(set_id(0), 7, 1).await;
        assert_eq!(found, Ok(vec![Block::new(b"unseen")]));
    });
}

#[test]
fn a_forced_write_survives_without_capacitors_and_without_a_flush() {
    for (force, is_kept) in [(Force::Unit, true), (Force::No, false)] {
        let profile = profile(false);
        let machine = Machine::format(1, &profile, Precondition::Empty, planted(None));
        let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
        machine.rt.block_on(async move {
            ssd.client_write(set_id(0), 1, vec![Block::new(b"old")]).await.expect("there is room");
            ssd.flush(set_id(0)).await.expect("it never fails");
            let start = handle.now();
            let data = vec![Block::new(b"new")];
            let write = ssd.write(set_id(0), 1, data, IoClass::Log, force);
            write.await.expect("there is room");
            let program_us = ssd.profile().flash.timing.program_us[0];
            let is_slow = (handle.now() - start).as_micros_f64() > program_us;
            assert_eq!(is_slow, is_kept, "it waits for its program");
        });
        let (image, _) = machine.power_cut(&mut Rng::new(1));
        let machine = Machine::recover(2, &profile, image, planted(None));
        let ssd = machine.ssd.clone();
        let found = machine.rt.block_on(async move { ssd.client_read(set_id(0), 1, 1).await });
        let expected: &[u8] = if is_kept { b"new" } else { b"old" };
        assert_eq!(found, Ok(vec![Block::new(expected)]), "{force:?}");
    }
}
