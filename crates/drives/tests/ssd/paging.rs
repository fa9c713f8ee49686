//! Costs of reads and writes with a paged mapping.

use drives::ssd::{PagedMapping, Precondition, SetStats, Ssd, SsdProfile};
use runtime::{Nanos, Runtime};

use crate::load::{Command, Measured, closed_loop, set};

/// A quarter of the mapping is in memory: one in four random blocks finds its place there.
const SHARE: f64 = 0.25;

fn profile(is_paged: bool) -> SsdProfile {
    let mut profile = SsdProfile::load("baseline-15gb").expect("built in");
    profile.flash.errors = None;
    let whole = profile.user_bytes / 1024;
    profile.mapping =
        is_paged.then_some(PagedMapping { cached_bytes: whole / 4, ..Default::default() });
    profile
}

/// Runs one client with random commands on a sequentially written drive. Returns the measurement
/// and the counters.
fn at_random(profile: &SsdProfile, command: fn(u64) -> Command, span: u64) -> (Measured, SetStats) {
    at_random_on(profile, Precondition::Sequential(1.0), command, span)
}

fn at_random_on(
    profile: &SsdProfile,
    before: Precondition,
    command: fn(u64) -> Command,
    span: u64,
) -> (Measured, SetStats) {
    let rt = Runtime::new(7);
    let ssd = Ssd::new(&rt.handle(), profile, before);
    let (handle, blocks, drive) = (rt.handle(), profile.blocks_per_set(), ssd.clone());
    let measured = rt.block_on(async move {
        // By then the cache of mapping pages is full.
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
    // All pages in memory were modified there.
    assert!((written / read - 1.0).abs() < 0.1, "{written}");
}

/// A randomly written drive keeps working with any share of the mapping in memory: one page, a
/// third, or all but one page. Each write modifies a mapping page, and so does each moved block,
/// unless other blocks of its superblock modified the same page: then it is written once for all.
#[test]
fn a_full_drive_goes_on_whatever_share_of_the_mapping_is_in_memory() {
    let write = |first| Command::Write { set: set(1), first, blocks: 1 };
    let mut few_pages = profile(true);
    let whole = few_pages.user_bytes / 1024;
    let mut amplification = Vec::new();
    for cached_bytes in [4_096, 1 << 20, whole / 2, whole - 4_096] {
        few_pages.mapping = Some(PagedMapping { cached_bytes, ..Default::default() });
        let (measured, stats) = at_random_on(&few_pages, Precondition::Random(1.0), write, 1_500);
        let blocks = (stats.slots_flushed - stats.mapping_writes) as f64;
        let (each, moved) = (stats.write_amplification(), stats.slots_moved as f64 / blocks);
        let of_mapping = stats.mapping_writes as f64 / blocks;
        println!(
            "{cached_bytes} bytes: {} writes, {each:.2} slots for each, {moved:.2} moved, {of_mapping:.2} of the \
             mapping, {} collections",
            measured.commands(),
            stats.collections
        );
        assert!(measured.commands() > 1_000, "{} writes", measured.commands());
        assert!(of_mapping < 1.05 + moved, "{of_mapping} for 1 + {moved}");
        amplification.push(each);
    }
    assert!(amplification.is_sorted_by(|more, less| more > less), "{amplification:?}");
}
