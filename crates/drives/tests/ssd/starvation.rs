//! Starvation: speculative work must not block other work forever, and must itself proceed if data
//! depend on it.

use std::cell::Cell;
use std::rc::Rc;

use block::Block;
use drives::nand::{Geometry, ReadDisturb};
use drives::ssd::specimens::shape::{most_blocks, set_blocks};
use drives::ssd::specimens::small;
use drives::ssd::{Precondition, Ssd, SsdProfile};
use runtime::{Handle, Nanos, Rng};

use crate::harness::{ClientIo, Machine, planted, set_id};

/// Returns a full drive with one die that reads and programs page by page.
fn narrow() -> SsdProfile {
    let mut profile = small::profile(1);
    let flash = &mut profile.flash;
    flash.geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 40,
        pages_per_block: 16,
        page_bytes: 4_096,
        one_shot: false,
        bits_per_cell: 1,
        ..flash.geometry
    };
    flash.timing.read_us = vec![50.0];
    flash.timing.program_us = vec![500.0];
    flash.timing.erase_us = 900.0;
    flash.timing.background_deadline_us = 100.0;
    flash.read_disturb = None;
    profile.background.reclaim_reads = 1 << 40;
    profile.background.critical_reads = 1 << 41;
    profile.buffer.bytes = 8 * 4_096;
    fill(profile)
}

fn fill(mut profile: SsdProfile) -> SsdProfile {
    let most = most_blocks(&profile);
    set_blocks(&mut profile, most);
    profile
}

/// Reads one block again and again.
async fn hammer(ssd: Ssd, lba: u64) {
    loop {
        ssd.client_read(set_id(0), lba, 1).await.expect("nothing is damaged");
    }
}

async fn write(ssd: &Ssd, lba: u64) {
    ssd.client_write(set_id(0), lba, vec![Block::new(b"new")]).await.expect("there is room");
}

/// Runs `work`, which must end within `span` although other tasks run forever.
async fn within(handle: &Handle, span: Nanos, what: &'static str, work: impl Future<Output = ()>) {
    let is_done = Rc::new(Cell::new(false));
    let (watched, clock) = (Rc::clone(&is_done), handle.clone());
    handle.spawn("watchdog", async move {
        clock.sleep(span).await;
        assert!(watched.get(), "{what} takes longer than {span}");
    });
    work.await;
    is_done.set(true);
}

#[test]
fn reading_ahead_holds_nobody_up_where_demand_never_ends() {
    let profile = narrow();
    let blocks = profile.blocks_per_set();
    let machine = Machine::format(1, &profile, Precondition::Sequential(1.0), planted(None));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        for _ in 0..4 {
            handle.spawn("hammer", hammer(ssd.clone(), blocks - 1));
        }
        // After three sequential reads the client's next blocks are read ahead; then it waits.
        for lba in 0..3 {
            ssd.client_read(set_id(0), lba, 1).await.expect("nothing is damaged");
        }
        // Every superblock is collected, including those being read ahead: odd blocks are written,
        // even ones are moved.
        let before = ssd.report(set_id(0)).expect("it is there").firmware.slots_moved;
        within(&handle, Nanos::from_millis(20_000), "writing", async {
            for lba in (1..blocks - 1).step_by(2) {
                write(&ssd, lba).await;
            }
            for lba in (1..blocks - 1).step_by(2) {
                write(&ssd, lba).await;
            }
        })
        .await;
        let after = ssd.report(set_id(0)).expect("it is there").firmware.slots_moved;
        assert!(after - before > blocks / 3, "{} blocks were moved", after - before);
        within(&handle, Nanos::from_millis(1_000), "reading", async {
            for lba in (4..32).step_by(2) {
                ssd.client_read(set_id(0), lba, 1).await.expect("nothing is damaged");
            }
        })
        .await;
    });
}

#[test]
fn data_in_danger_are_moved_while_space_is_short() {
    let mut profile = narrow();
    profile.flash.geometry.channels = 4;
    profile.flash.read_disturb = Some(ReadDisturb { limit_reads: 4_000 });
    profile.background.reclaim_reads = 300;
    profile.background.critical_reads = 800;
    profile.background.start_free_percent = 0.0;
    profile.background.stop_free_percent = 0.0;
    let profile = fill(profile);
    let blocks = profile.blocks_per_set();
    let machine = Machine::format(1, &profile, Precondition::Sequential(1.0), planted(None));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        for number in 0..12 {
            let (ssd, mut rng) = (ssd.clone(), Rng::new(number));
            handle.spawn("writer", async move {
                loop {
                    write(&ssd, blocks / 2 + rng.below(blocks / 2)).await;
                }
            });
        }
        for _ in 0..2 {
            handle.spawn("hammer", hammer(ssd.clone(), 5));
        }
        handle.sleep(Nanos::from_millis(4_000)).await;
        let stats = ssd.report(set_id(0)).expect("it is there").firmware;
        assert!(stats.starvations > 100 && stats.blocks_read > 12_000, "{stats:?}");
    });
}

#[test]
fn a_drive_that_is_filled_to_the_brim_takes_writes_in_any_order() {
    for (planes_per_die, pages_per_block) in [(2, 24), (1, 12), (4, 12)] {
        let mut profile = narrow();
        profile.flash.geometry = Geometry {
            planes_per_die,
            pages_per_block,
            page_bytes: 16_384,
            one_shot: true,
            bits_per_cell: 3,
            ..profile.flash.geometry
        };
        profile.flash.timing.read_us = vec![50.0; 3];
        profile.buffer.bytes = 96 * 4_096;
        let profile = fill(profile);
        let blocks = profile.blocks_per_set();
        let machine = Machine::format(1, &profile, Precondition::Sequential(1.0), planted(None));
        let ssd = machine.ssd.clone();
        machine.rt.block_on(async move {
            let mut rng = Rng::new(1);
            for _ in 0..blocks * 8 {
                write(&ssd, rng.below(blocks)).await;
            }
        });
    }
}
