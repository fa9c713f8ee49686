//! Sets do not disturb each other (Vigil-KV, ATC'22, figure 8c): writes to one set do not change
//! the latency of reads in another, with or without windows. In a drive of one set they do.

use block::nvme::{PlmConfig, WindowSelect};
use block::{BLOCK_BYTES, Block, BlockDevice, Force};
use drives::ssd::{Precondition, Ssd, SsdProfile};
use runtime::{IoClass, Nanos, Rng, Runtime};

use crate::load::{Command, closed_loop, run, set};

/// Random one-block reads, one at a time, from the first eighth of the drive.
const READS: u64 = 2_000;

/// Other load during the measured reads.
#[derive(Clone, Copy)]
enum Neighbour {
    Idle,
    /// Random writes of this many blocks, with reads of as many in between.
    Busy {
        set: u16,
        blocks: u32,
    },
}

/// Returns the latencies of reads in set 1.
fn latencies(profile: &SsdProfile, neighbour: Neighbour) -> Vec<Nanos> {
    let rt = Runtime::new(3);
    let ssd = Ssd::new(&rt.handle(), profile, Precondition::Random(1.0));
    let (handle, eighth) = (rt.handle(), profile.blocks_per_set() / 8);
    rt.block_on(async move {
        if let Neighbour::Busy { set: busy, blocks } = neighbour {
            let times = (Nanos::ZERO, Nanos::MAX);
            let next = move |client: usize, rng: &mut Rng| {
                let first = eighth + rng.below(eighth);
                if client.is_multiple_of(2) {
                    Command::Write { set: set(busy), first, blocks }
                } else {
                    Command::Read { set: set(busy), first, blocks }
                }
            };
            let (on, ssd) = (handle.clone(), ssd.clone());
            handle.spawn("neighbour", async move {
                closed_loop(&on, &ssd, 16, times, next).await;
            });
        }
        handle.sleep(Nanos::from_millis(50)).await;
        let mut rng = handle.rng("places");
        let mut latencies = Vec::new();
        for _ in 0..READS {
            let read = Command::Read { set: set(1), first: rng.below(eighth), blocks: 1 };
            latencies.push(run(&handle, &ssd, read).await);
        }
        latencies
    })
}

fn longest(latencies: &[Nanos]) -> Nanos {
    latencies.iter().copied().max().unwrap_or_default()
}

#[test]
fn what_one_set_writes_another_does_not_feel() {
    for blocks in [1, 32] {
        let busy = Neighbour::Busy { set: 2, blocks };
        let mut profile = SsdProfile::load("vigil-15gb").expect("built in");
        let shared = (latencies(&profile, Neighbour::Idle), latencies(&profile, busy));
        // A link that takes no time causes no waits.
        profile.host.read_mb_per_s = 1e9;
        profile.host.write_mb_per_s = 1e9;
        let (alone, beside) = (latencies(&profile, Neighbour::Idle), latencies(&profile, busy));
        assert!(alone == beside, "to the nanosecond");
        // On the real link a transfer of the neighbour's data can delay the read, and so can some
        // completions.
        let (alone, beside) = shared;
        let transfer_us = f64::from(blocks * BLOCK_BYTES + 10 * 64) / 3_200.0;
        let longer = alone.iter().zip(&beside).map(|(alone, beside)| *beside - *alone);
        let longest_more = longest(&longer.collect::<Vec<_>>());
        println!(
            "beside commands of {} KiB: at most {longest_more} longer than {} at most",
            blocks * 4,
            longest(&alone)
        );
        assert!(longest_more.as_micros_f64() <= transfer_us, "{longest_more}");
    }
}

#[test]
fn in_a_drive_of_one_set_reads_wait_for_writes() {
    let profile = SsdProfile::load("baseline-15gb").expect("built in");
    let alone = latencies(&profile, Neighbour::Idle);
    let beside = latencies(&profile, Neighbour::Busy { set: 1, blocks: 1 });
    println!("one set: at most {} alone, {} beside writes", longest(&alone), longest(&beside));
    assert!(longest(&beside).0 > 5 * longest(&alone).0);
}

/// Counts pages read ahead for a sequential client, before its window and in it.
#[test]
fn nothing_is_read_ahead_in_a_deterministic_window() {
    let rt = Runtime::new(3);
    let profile = SsdProfile::load("vigil-15gb").expect("built in");
    let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Sequential(1.0));
    let (handle, of) = (rt.handle(), ssd.clone());
    let ahead = move || of.report(set(1)).expect("the set").flash.of(IoClass::ReadAhead).pages_read;
    rt.block_on(async move {
        let in_order = async |from: u64| {
            for first in from..from + 100 {
                run(&handle, &ssd, Command::Read { set: set(1), first, blocks: 1 }).await;
            }
        };
        in_order(0).await;
        handle.sleep(Nanos::from_millis(10)).await;
        let before = ahead();
        let config = PlmConfig { enabled: true, ..PlmConfig::default() };
        ssd.configure_plm(set(1), config).await.expect("it has windows");
        ssd.select_window(set(1), WindowSelect::Dtwin).await.expect("it has windows");
        // The old sequence continues, and a new one starts.
        in_order(100).await;
        in_order(10_000).await;
        assert!(before > 0, "nothing was read ahead outside the window");
        assert_eq!(ahead(), before, "pages read ahead in the window");
    });
}

/// Returns latencies of random client reads, one after the other; if `is_busy`, with concurrent
/// writes and compactions.
fn latencies_of_clients(profile: &SsdProfile, is_busy: bool) -> Vec<Nanos> {
    let rt = Runtime::new(3);
    let ssd = Ssd::new(&rt.handle(), profile, Precondition::Random(1.0));
    let (handle, eighth) = (rt.handle(), profile.blocks_per_set() / 8);
    rt.block_on(async move {
        for client in 0..if is_busy { 16 } else { 0 } {
            let (ssd, mut rng) = (ssd.clone(), Rng::derive(client, "neighbour"));
            handle.spawn("neighbour", async move {
                loop {
                    let first = eighth + rng.below(eighth);
                    if client.is_multiple_of(2) {
                        let blocks = vec![Block::ZERO; 32];
                        let class = IoClass::CompactionWrite;
                        ssd.write(set(1), first, blocks, class, Force::No).await.expect("room");
                    } else {
                        ssd.read(set(1), first, 32, IoClass::CompactionRead).await.expect("there");
                    }
                }
            });
        }
        handle.sleep(Nanos::from_millis(50)).await;
        let mut rng = handle.rng("places");
        let mut latencies = Vec::new();
        for _ in 0..READS {
            let since = handle.now();
            let read = ssd.read(set(1), rng.below(eighth), 1, IoClass::ClientRead).await;
            read.expect("it is there");
            latencies.push(handle.now() - since);
        }
        latencies
    })
}

#[test]
fn clients_are_undisturbed_if_the_profile_says_so() {
    let mut profile = SsdProfile::load("baseline-15gb").expect("built in");
    // A read retry takes longer in any lane.
    profile.flash.errors = None;
    let alone = latencies_of_clients(&profile, false);
    let beside = latencies_of_clients(&profile, true);
    assert!(longest(&beside).0 > 5 * longest(&alone).0, "nothing disturbs them anyway");
    profile.undisturbed_clients = true;
    assert!(latencies_of_clients(&profile, false) == alone, "without others nothing changes");
    // Collection moves blocks to pages that are read faster or slower.
    let beside = latencies_of_clients(&profile, true);
    println!("undisturbed: at most {} alone, {} beside", longest(&alone), longest(&beside));
    assert!(longest(&beside) <= longest(&alone));
}
