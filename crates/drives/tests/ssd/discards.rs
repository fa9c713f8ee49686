//! Discards: their cost, and independence from unrelated events.

use block::nvme::{PlmConfig, WindowSelect};
use block::{Block, BlockDevice};
use drives::nand::Geometry;
use drives::ssd::specimens::shape::{most_blocks, set_blocks};
use drives::ssd::specimens::small;
use drives::ssd::{PlmProfile, PlmRules, Precondition, Ssd, SsdProfile};
use runtime::{Nanos, Rng};

use crate::harness::{ClientIo, Machine, planted, set_id};

/// Returns a drive with one die and superblocks of 16 pages of one block each.
fn narrow(superblocks: u32) -> SsdProfile {
    let mut profile = small::profile(1);
    profile.flash.geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: superblocks,
        pages_per_block: 16,
        page_bytes: 4_096,
        one_shot: false,
        bits_per_cell: 1,
        ..profile.flash.geometry
    };
    profile.flash.timing.read_us = vec![50.0];
    profile.flash.timing.program_us = vec![500.0];
    profile.buffer.bytes = 4 * 4_096;
    let most = most_blocks(&profile);
    set_blocks(&mut profile, most);
    profile
}

async fn expect(ssd: &Ssd, lba: u64, block: &Block) {
    let found = ssd.client_read(set_id(0), lba, 1).await;
    assert_eq!(found.as_deref(), Ok(std::slice::from_ref(block)), "block {lba}");
}

#[test]
fn who_empties_the_buffer_goes_on_when_all_that_waited_was_discarded() {
    let mut profile = narrow(40);
    (profile.buffer.stop_percent, profile.buffer.start_percent) = (0.0, 0.0);
    profile.plm = Some(PlmProfile {
        rules: PlmRules::Standard,
        dtwin_time_max_ms: 1_000,
        ndwin_time_min_low_ms: 0,
        ndwin_time_min_high_ms: 0,
        dtwin_reads_typical: 0,
        dtwin_writes_typical: 10,
    });
    let machine = Machine::format(1, &profile, Precondition::Empty, planted(None));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        let config = PlmConfig { enabled: true, ..PlmConfig::default() };
        ssd.configure_plm(set_id(0), config).await.expect("it has windows");
        ssd.select_window(set_id(0), WindowSelect::Dtwin).await.expect("it has windows");
        // The blocks stay in the buffer, and the flusher waits at the gate.
        ssd.client_write(set_id(0), 0, vec![Block::new(b"new"); 2]).await.expect("there is room");
        ssd.discard(set_id(0), 0, 2).await.expect("it never fails");
        ssd.select_window(set_id(0), WindowSelect::Ndwin).await.expect("it has windows");
        let begun = handle.now();
        for lba in 0..20 {
            ssd.client_write(set_id(0), lba, vec![Block::new(b"newer")])
                .await
                .expect("there is room");
        }
        assert!(handle.now() - begun < Nanos::from_millis(100));
    });
}

#[test]
fn a_flush_waits_for_discards_that_another_is_saving() {
    let mut profile = narrow(40);
    profile.buffer.has_capacitors = false;
    let machine = Machine::format(1, &profile, Precondition::Empty, planted(None));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        ssd.client_write(set_id(0), 7, vec![Block::new(b"old")]).await.expect("there is room");
        ssd.flush(set_id(0)).await.expect("it never fails");
        ssd.discard(set_id(0), 7, 1).await.expect("it never fails");
        let other = ssd.clone();
        handle.spawn("flush", async move { other.flush(set_id(0)).await });
        handle.sleep(Nanos(1_000)).await;
        ssd.flush(set_id(0)).await.expect("it never fails");
    });
    let (image, _) = machine.power_cut(&mut Rng::new(1));
    let machine = Machine::recover(2, &profile, image, planted(None));
    let ssd = machine.ssd.clone();
    machine.rt.block_on(async move { expect(&ssd, 7, &Block::ZERO).await });
}

#[test]
fn what_is_written_after_a_discard_is_found_wherever_it_lies() {
    let mut profile = narrow(40);
    profile.buffer.has_capacitors = false;
    let blocks = profile.blocks_per_set();
    // Some of these orders put blocks into the slots in which they were prefilled.
    for offset in (0..blocks).step_by(15) {
        let machine = Machine::format(1, &profile, Precondition::Sequential(1.0), planted(None));
        let ssd = machine.ssd.clone();
        let new = |lba: u64| Block::new(&(lba + 1).to_le_bytes());
        machine.rt.block_on(async move {
            ssd.discard(set_id(0), 0, blocks).await.expect("it never fails");
            ssd.flush(set_id(0)).await.expect("it never fails");
            for lba in (offset..blocks).chain(0..offset) {
                ssd.client_write(set_id(0), lba, vec![new(lba)]).await.expect("there is room");
            }
            ssd.flush(set_id(0)).await.expect("it never fails");
        });
        let (image, _) = machine.power_cut(&mut Rng::new(1));
        let machine = Machine::recover(2, &profile, image, planted(None));
        let ssd = machine.ssd.clone();
        machine.rt.block_on(async move {
            for lba in 0..blocks {
                expect(&ssd, lba, &new(lba)).await;
            }
        });
    }
}

#[test]
fn writes_do_not_cut_a_discard_into_more_ranges_than_are_remembered() {
    let mut profile = narrow(800);
    profile.background.discarded_ranges = 4;
    for has_capacitors in [true, false] {
        profile.buffer.has_capacitors = has_capacitors;
        let machine = Machine::format(1, &profile, Precondition::Sequential(1.0), planted(None));
        let (ssd, blocks) = (machine.ssd.clone(), profile.blocks_per_set());
        let new = || Block::new(b"new");
        machine.rt.block_on(async move {
            ssd.discard(set_id(0), 0, blocks).await.expect("it never fails");
            for lba in (0..blocks).step_by(2) {
                ssd.client_write(set_id(0), lba, vec![new()]).await.expect("there is room");
            }
            ssd.flush(set_id(0)).await.expect("it never fails");
        });
        let (image, _) = machine.power_cut(&mut Rng::new(1));
        let machine = Machine::recover(2, &profile, image, planted(None));
        let ssd = machine.ssd.clone();
        machine.rt.block_on(async move {
            for lba in 0..blocks {
                let expected = if lba % 2 == 0 { new() } else { Block::ZERO };
                expect(&ssd, lba, &expected).await;
            }
        });
    }
}
