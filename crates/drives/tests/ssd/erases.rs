//! Erases of a superblock, sequential or parallel.

use block::Block;
use drives::nand::FlashStats;
use drives::ssd::specimens::small;
use drives::ssd::{Precondition, Ssd, SsdProfile};
use runtime::{IoClass, Nanos, Runtime};

use crate::harness::ClientIo;
use crate::load::set;

/// Superblocks that may be collected at a time.
const LEAVING: u64 = 2;

/// Overwrites a full drive. Returns the most blocks whose erase ended within one millisecond, and
/// all erased blocks.
fn erased_at_a_time(profile: &SsdProfile) -> (u64, u64) {
    let rt = Runtime::new(3);
    let ssd = Ssd::new(&rt.handle(), profile, Precondition::Random(1.0));
    let (handle, blocks) = (rt.handle(), profile.blocks_per_set());
    let writer = ssd.clone();
    drop(handle.spawn("writer", {
        let mut rng = handle.rng("places");
        async move {
            loop {
                let write = writer.client_write(set(1), rng.below(blocks), vec![Block::ZERO]);
                write.await.expect("it can be written");
            }
        }
    }));
    let erased = |stats: &FlashStats| stats.of(IoClass::GcWrite).blocks_erased;
    rt.block_on(async move {
        let (mut most, mut before) = (0, 0);
        for _ in 0..2_000 {
            handle.sleep(Nanos::from_millis(1)).await;
            let now = erased(&ssd.report(set(1)).expect("it exists").flash);
            most = most.max(now - before);
            before = now;
        }
        (most, before)
    })
}

#[test]
fn the_dies_of_a_superblock_erase_as_many_at_a_time_as_the_profile_says() {
    for (at_once, expected) in [(None, 4), (Some(2), 2), (Some(1), 1), (Some(100), 4)] {
        let mut profile = small::profile(1);
        profile.background.erases_at_once = at_once;
        let (most, all) = erased_at_a_time(&profile);
        assert!(all >= 40, "{all} were erased");
        assert!((expected..=LEAVING * expected).contains(&most), "{most} with {at_once:?}");
    }
}

#[test]
fn each_set_has_its_share_of_the_erases_and_at_least_one() {
    for (at_once, expected) in [(4, 2), (1, 1)] {
        let mut profile = small::profile(2);
        profile.background.erases_at_once = Some(at_once);
        let (most, _) = erased_at_a_time(&profile);
        assert!((expected..=LEAVING * expected).contains(&most), "{most} with {at_once}");
    }
}
