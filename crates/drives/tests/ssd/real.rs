//! A commercial drive, and another one derived from its profile.

use block::BLOCK_BYTES;
use catalogue::Entry;
use drives::ssd::{Precondition, Ssd, SsdProfile};
use runtime::{Nanos, Runtime};

use crate::load::{Command, closed_loop, set};

fn reads_and_writes(profile: &SsdProfile) -> (f64, f64) {
    let rt = Runtime::new(7);
    let ssd = Ssd::new(&rt.handle(), profile, Precondition::Random(1.0));
    let (handle, blocks) = (rt.handle(), profile.blocks_per_set());
    let one = |writes: bool| {
        let (handle, ssd) = (handle.clone(), ssd.clone());
        rt.block_on(async move {
            let times = (Nanos::from_millis(2), Nanos::from_millis(30));
            closed_loop(&handle, &ssd, 256, times, move |_, rng| {
                let (set, first) = (set(1), rng.below(blocks));
                if writes {
                    Command::Write { set, first, blocks: 1 }
                } else {
                    Command::Read { set, first, blocks: 1 }
                }
            })
            .await
            .per_second()
        })
    };
    (one(false), one(true))
}

/// A drive with twice the dies needs changes of capacity, spare and rates only: the memory of the
/// mapping grows with the capacity.
#[test]
fn another_drive_is_made_by_changing_capacity_spare_and_rates() {
    let small = SsdProfile::load("pm9a3-960gb").expect("built in");
    let mut large = small.clone();
    large.flash.geometry.dies_per_channel *= 2;
    large.flash.geometry.blocks_per_plane += 10;
    large.user_bytes = 1_920_383_410_176 / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
    large.dram.bytes *= 2;
    large.controller.command_us = 4.4;
    assert_eq!(large.problems(), [] as [&str; 0]);
    let ((reads, writes), (more_reads, more_writes)) =
        (reads_and_writes(&small), reads_and_writes(&large));
    println!("{reads:.0} and {writes:.0} a second, {more_reads:.0} and {more_writes:.0}");
    assert!(more_reads > 1.3 * reads && more_writes > writes, "{more_reads}, {more_writes}");
}
