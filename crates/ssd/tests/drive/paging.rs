//! A mapping of which memory holds a part: what reads and writes cost then.

use runtime::{Nanos, Runtime};
use ssd::{PagedMapping, Precondition, SetStats, Ssd, SsdProfile};

use crate::load::{Command, Measured, closed_loop, set};

/// A quarter of the mapping is in memory: random blocks find their place there one time in four.
const SHARE: f64 = 0.25;

fn profile(is_paged: bool) -> SsdProfile {
    let mut profile = SsdProfile::load("baseline-15gb").expect("built in");
    profile.flash.errors = None;
    let whole = profile.user_bytes / 1024;
    profile.mapping = is_paged.then_some(PagedMapping { cached_bytes: whole / 4 });
    profile
}

/// One client does random commands on a drive that was written once: what was measured, and the counters.
fn at_random(profile: &SsdProfile, command: fn(u64) -> Command, span: u64) -> (Measured, SetStats) {
    let rt = Runtime::new(7);
    let ssd = Ssd::new(&rt.handle(), profile, Precondition::Sequential(1.0));
    let (handle, blocks, drive) = (rt.handle(), profile.blocks_per_set(), ssd.clone());
    let measured = rt.block_on(async move {
        // By then memory is full of mapping pages.
        let times = (Nanos::from_millis(500), Nanos::from_millis(span));
        closed_loop(&handle, &drive, 1, times, move |_, rng| command(rng.below(blocks))).await
    });
    (measured, ssd.report(set(1)).expect("it exists").firmware)
}

#[test]
fn a_read_whose_place_is_not_in_memory_reads_it_first() {
    let read = |first| Command::Read { set: set(1), first, blocks: 1 };
    let (whole, none) = at_random(&profile(false), read, 500);
    assert_eq!((none.mapping_reads, none.mapping_writes), (0, 0));
    let (paged, stats) = at_random(&profile(true), read, 500);
    let timing = &profile(true).flash.timing;
    let sense = timing.read_us.iter().sum::<f64>() / 3.0;
    let data = 18_022.0 / 4.0 / timing.channel_mb_per_s;
    let of_place = timing.command_us + sense + data;
    let expected = whole.mean().as_micros_f64() + (1.0 - SHARE) * of_place;
    let mean = paged.mean().as_micros_f64();
    println!("{} alone, {mean:.2} us with places on flash, {expected:.2} expected", whole.mean());
    assert!((mean / expected - 1.0).abs() < 0.02, "{mean}, {expected}");
    let missing = stats.mapping_reads as f64 / stats.blocks_read as f64;
    assert!((missing / (1.0 - SHARE) - 1.0).abs() < 0.03, "{missing}");
    assert_eq!(stats.mapping_writes, 0, "nothing was changed");
}

#[test]
fn each_write_whose_place_is_not_in_memory_has_a_page_read_and_one_written() {
    let write = |first| Command::Write { set: set(1), first, blocks: 1 };
    let (_, stats) = at_random(&profile(true), write, 500);
    let blocks = (stats.slots_flushed - stats.mapping_writes) as f64;
    let (read, written) =
        (stats.mapping_reads as f64 / blocks, stats.mapping_writes as f64 / blocks);
    println!("{blocks} blocks, {read:.3} pages read for each, {written:.3} written");
    assert!((read / (1.0 - SHARE) - 1.0).abs() < 0.05, "{read}");
    // All that is in memory was changed there.
    assert!((written / read - 1.0).abs() < 0.1, "{written}");
}
