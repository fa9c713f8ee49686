//! Compares the drive with the [`referee`](crate::referee), and both with closed forms.
//!
//! They must agree within 2 %: the two draw different random numbers, and measure about ten
//! thousand reads.

use std::cell::RefCell;
use std::rc::Rc;

use block::BLOCK_BYTES;
use drives::firmware::HostLink;
use drives::nand::Geometry;
use drives::ssd::{Precondition, Ssd, SsdProfile};
use runtime::{Nanos, Runtime};

use crate::amplification;
use crate::amplification::Part;
use crate::load::{Command, closed_loop, run, set};
use crate::referee::greedy::Shape;
use crate::referee::reads::Stations;
use crate::referee::{greedy, reads};

const DEPTHS: [usize; 7] = [1, 4, 16, 32, 64, 128, 256];
/// Blocks of a read: one, which is a part of a page, and four, which are a page.
const SIZES: [u32; 2] = [1, 4];
const MOST_DEVIATION: f64 = 0.02;
const COMMAND_BYTES: f64 = 64.0;

/// Returns a drive without read retries.
fn whole(name: &str) -> SsdProfile {
    let mut profile = SsdProfile::load(name).expect("built in");
    profile.flash.errors = None;
    profile
}

/// Returns a drive of 64 dies of one page type on eight channels, with negligible other costs.
fn bare(channel_mb_per_s: f64) -> SsdProfile {
    let mut profile = whole("baseline-15gb");
    profile.flash.geometry.planes_per_die = 1;
    profile.user_bytes /= 4;
    profile.user_bytes -= profile.user_bytes % u64::from(BLOCK_BYTES);
    profile.flash.timing.read_us = vec![60.0; 3];
    profile.flash.timing.command_us = 0.29;
    profile.flash.timing.channel_mb_per_s = channel_mb_per_s;
    profile.controller.command_us = 0.0;
    profile.controller.pipeline_us = 0.0;
    profile.controller.block_ns = 0.0;
    profile.dram.mb_per_s = 1e6;
    profile.dram.access_ns = 0.0;
    profile.host =
        HostLink { latency_us: 0.0, read_mb_per_s: 1e6, write_mb_per_s: 1e6, jitter_us: 0.0 };
    profile
}

/// Returns the stations for reads of `blocks` blocks of one page, from the numbers of a profile.
fn stations(profile: &SsdProfile, blocks: u32) -> Stations {
    let (controller, timing) = (&profile.controller, &profile.flash.timing);
    let geometry = &profile.flash.geometry;
    let bytes = f64::from(blocks * BLOCK_BYTES);
    let page_us = f64::from(geometry.transfer_bytes) / timing.channel_mb_per_s;
    Stations {
        cores: controller.cores as usize,
        core: controller.command_us + f64::from(blocks - 1) * controller.block_ns / 1e3,
        delay: controller.pipeline_us + profile.dram.access_ns / 1e3 + profile.host.latency_us,
        channels: geometry.channels as usize,
        dies_per_channel: geometry.dies_per_channel as usize,
        command: timing.command_us,
        sense: timing.read_us.clone(),
        data: page_us * bytes / f64::from(geometry.page_bytes),
        memory: bytes / profile.dram.mb_per_s,
        link: (bytes + COMMAND_BYTES) / profile.host.read_mb_per_s,
    }
}

/// Measures the drive: reads per second, and their mean latency in microseconds.
fn drive(profile: &SsdProfile, blocks: u32, clients: usize) -> reads::Outcome {
    let rt = Runtime::new(7);
    let ssd = Ssd::new(&rt.handle(), profile, Precondition::Sequential(1.0));
    let (handle, places) = (rt.handle(), profile.blocks_per_set() / u64::from(blocks));
    let measured = rt.block_on(async move {
        let times = (Nanos::from_millis(2), Nanos::from_millis(100));
        closed_loop(&handle, &ssd, clients, times, move |_, rng| {
            let first = rng.below(places) * u64::from(blocks);
            Command::Read { set: set(1), first, blocks }
        })
        .await
    });
    let mean = measured.latencies.iter().map(|latency| latency.as_micros_f64()).sum::<f64>();
    reads::Outcome { per_second: measured.per_second(), mean: mean / measured.commands() as f64 }
}

#[track_caller]
fn agree(what: &str, ours: f64, other: f64) {
    let deviation = ours / other - 1.0;
    assert!(deviation.abs() < MOST_DEVIATION, "{what}: {ours} and {other}");
}

#[test]
fn random_reads_are_those_of_the_referee() {
    let drives = [
        ("no firmware, 1000 MB/s", bare(1_000.0)),
        ("no firmware, 333 MB/s", bare(333.0)),
        ("baseline-1.92tb", whole("baseline-1.92tb")),
    ];
    for (name, profile) in &drives {
        println!("{name}\n  KiB depth     reads/s     referee   ratio    mean us  referee");
        for blocks in SIZES {
            let stations = stations(profile, blocks);
            for depth in DEPTHS {
                let ours = drive(profile, blocks, depth);
                let other = reads::closed_loop(&stations, depth, (2e3, 2e5), 1);
                let what = format!("{name}, {} KiB, depth {depth}", blocks * 4);
                println!(
                    "{:>5} {depth:>5} {:>11.0} {:>11.0} {:>7.4} {:>10.2} {:>8.2}",
                    blocks * 4,
                    ours.per_second,
                    other.per_second,
                    ours.per_second / other.per_second,
                    ours.mean,
                    other.mean,
                );
                agree(&what, ours.per_second, other.per_second);
                agree(&what, ours.mean, other.mean);
            }
        }
    }
}

/// The referee itself, where a closed form exists: one client takes the sum of the steps; enough
/// clients to keep all dies busy are limited by the scarcest resource.
#[test]
fn the_referee_keeps_to_closed_forms() {
    let swift = Stations {
        cores: 4,
        core: 0.1,
        delay: 5.0,
        channels: 8,
        dies_per_channel: 8,
        command: 0.3,
        sense: vec![60.0],
        data: 0.5,
        memory: 0.1,
        link: 0.1,
    };
    let run = |stations: &Stations, clients| reads::closed_loop(stations, clients, (2e3, 2e5), 1);
    let alone = run(&swift, 1).mean;
    assert!((alone - (0.1 + 5.0 + 0.3 + 60.0 + 0.5 + 0.1 + 0.1)).abs() < 1e-6, "{alone}");
    // One die for each channel: its cycle is the sum of its steps.
    let dies = Stations { channels: 64, dies_per_channel: 1, ..swift.clone() };
    agree("dies", run(&dies, 2_048).per_second, 64e6 / (0.3 + 60.0 + 0.5));
    let channels = Stations { data: 40.0, ..swift.clone() };
    agree("channels", run(&channels, 1_024).per_second, 8e6 / (0.3 + 40.0));
    let cores = Stations { core: 20.0, ..swift.clone() };
    agree("cores", run(&cores, 256).per_second, 4e6 / 20.0);
    let link = Stations { link: 3.0, ..swift };
    agree("link", run(&link, 512).per_second, 1e6 / 3.0);
}

/// Reads of one die that arrive at random wait `r S / 2 (1 - r)` on average, with `S` the service
/// time of one read and `r` the share of time that the die is busy (Pollaczek and Khinchine).
#[test]
fn reads_of_one_die_wait_as_long_as_the_formula_says() {
    let mut profile = bare(1_000.0);
    profile.flash.geometry =
        Geometry { channels: 1, dies_per_channel: 1, ..profile.flash.geometry.clone() };
    profile.buffer.bytes = 1 << 20;
    profile.background.discarded_ranges = 100;
    profile.user_bytes = 30_000 * u64::from(BLOCK_BYTES);
    profile.background.reclaim_reads = 10_000_000;
    profile.background.critical_reads = 20_000_000;
    profile.flash.read_disturb = None;
    let parts = stations(&profile, 1);
    let occupied = parts.command + parts.sense[0] + parts.data;
    for share in [0.3, 0.6] {
        let mean = at_random(&profile, share / occupied, 60_000);
        let wait = share * occupied / 2.0 / (1.0 - share);
        println!("a die occupied for {share} of the time: {mean:.2} us, {:.2}", occupied + wait);
        agree("a read", mean, occupied + wait);
    }
}

/// Returns the mean latency of `reads` reads that arrive at random, `rate` per microsecond.
fn at_random(profile: &SsdProfile, rate: f64, reads: usize) -> f64 {
    let rt = Runtime::new(7);
    let ssd = Ssd::new(&rt.handle(), profile, Precondition::Sequential(1.0));
    let (handle, blocks) = (rt.handle(), profile.blocks_per_set());
    let total = Rc::new(RefCell::new(0.0));
    rt.block_on(async move {
        let (mut rng, mut at, mut under_way) = (handle.rng("arrivals"), 0.0, Vec::new());
        for _ in 0..reads {
            at -= (1.0 - rng.unit_f64()).ln() / rate;
            handle.sleep_until(Nanos::from_micros_f64(at)).await;
            let (ssd, own, total) = (ssd.clone(), handle.clone(), Rc::clone(&total));
            let read = Command::Read { set: set(1), first: rng.below(blocks), blocks: 1 };
            under_way.push(handle.spawn("read", async move {
                let took = run(&own, &ssd, read).await;
                *total.borrow_mut() += took.as_micros_f64();
            }));
        }
        for read in under_way {
            read.await;
        }
        let sum = *total.borrow();
        sum / reads as f64
    })
}

/// Returns the shape of a drive for the referee.
fn shape(profile: &SsdProfile) -> Shape {
    let rt = Runtime::new(7);
    let fresh = Ssd::new(&rt.handle(), profile, Precondition::Empty);
    let superblocks = fresh.report(set(1)).expect("it exists").superblocks;
    let geometry = &profile.flash.geometry;
    let percent = profile.background.start_free_percent;
    Shape {
        superblocks: superblocks as usize,
        slots: amplification::data_slots(geometry) as usize,
        unit: (geometry.program_unit() * geometry.page_bytes / BLOCK_BYTES) as usize,
        blocks: profile.blocks_per_set() as usize,
        kept: 2 + (f64::from(superblocks) * percent / 100.0).ceil() as usize,
    }
}

/// An interval between writes at which collection keeps up.
const SELDOM: Nanos = Nanos::from_millis(5);

#[test]
fn collection_moves_as_much_as_the_referee_s() {
    for share in [0.6, 0.75, 0.88] {
        let mut profile = amplification::profile();
        let most = shape(&profile);
        let blocks = (most.superblocks * most.slots) as f64 * share;
        profile.user_bytes = blocks as u64 * u64::from(BLOCK_BYTES);
        let parts = amplification::overwrite(&profile, SELDOM, 20);
        let ours = amplification::mean(&parts[5..], Part::with_wasted);
        let other = greedy::write_amplification(shape(&profile), 6, 1);
        println!("{share} of the slots in use: {ours:.3} slots a write, the referee's {other:.3}");
        agree("slots a write", ours, other);
    }
}

/// The referee's own collection: for superblocks so large that chance does not matter, the result
/// is `1 / (1 - u)`, where `(1 - u) / -ln u` is the share of slots in use (Desnoyers).
#[test]
fn the_referee_collects_as_the_formula_says() {
    for share in [0.7, 0.8, 0.87] {
        let shape = Shape { superblocks: 200, slots: 2_000, unit: 1, blocks: 0, kept: 2 };
        let usable = (shape.superblocks - 2) as f64 * shape.slots as f64;
        let shape = Shape { blocks: (usable * share) as usize, ..shape };
        let ours = greedy::write_amplification(shape, 6, 1);
        println!("{share} in use: {ours:.3}, by the formula {:.3}", amplification::formula(share));
        agree("slots a write", ours, amplification::formula(share));
    }
}
