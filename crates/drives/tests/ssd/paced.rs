//! Write pacing, turns of submission queues, and the host's delay in noticing completions.

use block::{Block, BlockDevice};
use catalogue::Entry;
use drives::ssd::{Precondition, Ssd, SsdProfile, WritePacing};
use runtime::{Handle, Nanos, Runtime};

use crate::amplification;
use crate::harness::ClientIo;
use crate::load::{Command, Measured, closed_loop, set};

const WARM_UP: Nanos = Nanos::from_millis(2_000);
const SPAN: Nanos = Nanos::from_millis(4_000);

/// Overwrites a drive in steady state at random, with `clients` clients.
async fn overwritten(handle: &Handle, ssd: &Ssd, clients: usize) -> Measured {
    overwritten_for(handle, ssd, clients, (WARM_UP, SPAN)).await
}

/// Same as [`overwritten`], with `times` as warm-up and measured span.
async fn overwritten_for(
    handle: &Handle,
    ssd: &Ssd,
    clients: usize,
    times: (Nanos, Nanos),
) -> Measured {
    let blocks = ssd.profile().blocks_per_set();
    closed_loop(handle, ssd, clients, times, move |_, rng| {
        let first = rng.below(blocks);
        Command::Write { set: set(1), first, blocks: 1 }
    })
    .await
}

fn with_pacing(percent: Option<f64>) -> Measured {
    let mut profile = amplification::profile();
    profile.background.pacing = percent.map(|percent| WritePacing { percent, burst_blocks: 5 });
    assert_eq!(profile.problems(), [] as [&str; 0]);
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let ssd = Ssd::new(&handle, &profile, Precondition::Random(1.0));
    rt.block_on(async move { overwritten(&handle, &ssd, 64).await })
}

/// Data in danger must move even while collection waits for clients.
#[test]
fn data_that_were_read_often_move_while_collection_waits_for_clients() {
    let mut profile = amplification::profile();
    profile.background.reclaim_reads = 100;
    profile.dram.read_cache_bytes = 0;
    profile.dram.read_ahead_bytes = 0;
    assert_eq!(profile.problems(), [] as [&str; 0]);
    let rt = Runtime::new(1);
    let (handle, ssd) = (rt.handle(), Ssd::new(&rt.handle(), &profile, Precondition::Random(1.0)));
    let second = Nanos::from_millis(1_000);
    rt.block_on(async move {
        for block in 0..400 {
            let written = ssd.client_write(set(1), block, vec![Block::ZERO]).await;
            written.expect("it can be written");
        }
        handle.sleep(second).await;
        for _ in 0..200 {
            ssd.client_read(set(1), 1_000, 1).await.expect("it can be read");
        }
        handle.sleep(second).await;
        let stats = ssd.report(set(1)).expect("it exists").firmware;
        assert!(stats.slots_moved > 0, "collection has begun");
        assert!(stats.reclaims > 0);
    });
}

/// Returns the ratio of the longest write latency to the mean.
fn longest_over_mean(measured: &Measured) -> f64 {
    let longest = measured.latencies.iter().max().expect("there were some");
    longest.as_secs_f64() / measured.mean().as_secs_f64()
}

#[test]
fn paced_writes_come_evenly_and_at_the_rate_that_the_arithmetic_gives() {
    let (unpaced, all) = (with_pacing(None), with_pacing(Some(100.0)));
    let (paced, half) = (with_pacing(Some(80.0)), with_pacing(Some(40.0)));
    for (name, measured) in
        [("unpaced", &unpaced), ("100 %", &all), ("80 %", &paced), ("40 %", &half)]
    {
        println!(
            "{name}: {:.0} a second, {:.1}",
            measured.per_second(),
            longest_over_mean(measured)
        );
    }
    // The arithmetic is the sum of the dies' times, which waits for channels reduce. (`pacing.rs`
    // tests the sum itself.)
    let of_arithmetic = paced.per_second() / 0.8;
    for most in [&unpaced, &all] {
        assert!((0.9..1.0).contains(&(most.per_second() / of_arithmetic)), "{of_arithmetic}");
    }
    assert!((half.per_second() / paced.per_second() - 0.5).abs() < 0.02);
    assert!(longest_over_mean(&paced) < 1.2 && longest_over_mean(&half) < 1.2);
    assert!(longest_over_mean(&unpaced) > 1.3, "or pacing evens nothing out");
}

#[test]
fn a_burst_before_a_discard_of_everything_keeps_no_write_out() {
    let mut profile = amplification::profile();
    profile.background.pacing = Some(WritePacing { percent: 89.0, burst_blocks: 1_000 });
    let rt = Runtime::new(1);
    let (handle, blocks) = (rt.handle(), profile.blocks_per_set());
    let ssd = Ssd::new(&handle, &profile, Precondition::Random(1.0));
    let (before, after) = rt.block_on(async move {
        let before = overwritten(&handle, &ssd, 64).await;
        ssd.discard(set(1), 0, blocks).await.expect("it is remembered");
        let times = (Nanos::ZERO, Nanos::from_millis(100));
        (before, overwritten_for(&handle, &ssd, 64, times).await)
    });
    println!("{:.0} a second, then {:.0}", before.per_second(), after.per_second());
    assert!(after.per_second() > before.per_second() * 2.0, "nothing is left to be moved");
}

/// Returns the mean latency of reads, one at a time in `queue`, with 256 writers in queue 1, on a
/// drive with eight slots.
fn reads_beside_a_flood(queue: u16) -> Nanos {
    let mut profile = amplification::profile();
    profile.controller.queue_depth = 8;
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let ssd = Ssd::new(&handle, &profile, Precondition::Random(1.0));
    rt.block_on(async move {
        let (blocks, clock, flood) =
            (profile.blocks_per_set(), handle.clone(), ssd.submission_queue(1));
        let writers = handle.spawn("flood", async move { overwritten(&clock, &flood, 256).await });
        let own = ssd.submission_queue(queue);
        let reads = closed_loop(&handle, &own, 1, (WARM_UP, SPAN), move |_, rng| Command::Read {
            set: set(1),
            first: rng.below(blocks),
            blocks: 1,
        });
        let reads = reads.await;
        writers.await;
        reads.mean()
    })
}

#[test]
fn who_has_a_queue_of_its_own_is_not_behind_a_flood() {
    let (behind, beside) = (reads_beside_a_flood(1), reads_beside_a_flood(2));
    println!("{behind} behind the flood, {beside} beside it");
    assert!(behind > beside * 10, "{behind}, {beside}");
}

#[test]
fn jitter_adds_its_mean_and_no_jitter_adds_nothing() {
    let mean = |jitter_us: f64| {
        let mut profile = SsdProfile::load("baseline-15gb").expect("built in");
        profile.host.jitter_us = jitter_us;
        let rt = Runtime::new(1);
        let (handle, blocks) = (rt.handle(), profile.blocks_per_set());
        let ssd = Ssd::new(&handle, &profile, Precondition::Empty);
        let measured = rt.block_on(async move {
            let times = (Nanos::ZERO, Nanos::from_millis(300));
            closed_loop(&handle, &ssd, 1, times, move |_, rng| Command::Read {
                set: set(1),
                first: rng.below(blocks),
                blocks: 1,
            })
            .await
        });
        let least = *measured.latencies.iter().min().expect("there were some");
        (measured.mean().as_secs_f64() * 1e6, least)
    };
    let ((plain, least), (late, least_late)) = (mean(0.0), mean(20.0));
    assert!((late - plain - 20.0).abs() < 0.5, "{plain} and {late} us");
    assert!(least_late - least < Nanos::from_micros(1), "some are hardly late: {least_late}");
}
