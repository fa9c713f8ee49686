//! Compares the drive with plain arithmetic on the numbers of its profile: the latency of one
//! command alone, and the resource that limits commands per second.

use block::BLOCK_BYTES;
use drives::nand::FlashProfile;
use drives::ssd::{Precondition, Ssd, SsdProfile};
use runtime::{Nanos, Runtime};

use crate::load::{Command, Measured, closed_loop, run, set};

/// Bytes of a command or completion on the link, besides data.
const COMMAND_BYTES: u32 = 64;

/// Each step of a command ends on a whole nanosecond; memory and link count whole picoseconds per
/// byte.
fn rounding_ns(blocks: u32) -> f64 {
    4.0 + 2.0 * 0.5e-3 * f64::from(blocks * BLOCK_BYTES)
}

const DRIVES: [&str; 2] = ["vigil-1.92tb", "baseline-1.92tb"];

/// Returns a drive without read retries.
fn profile(name: &str) -> SsdProfile {
    let mut profile = SsdProfile::load(name).expect("built in");
    profile.flash.errors = None;
    profile
}

/// Times of the steps of a command, in microseconds, and derived values.
struct Arithmetic<'a> {
    profile: &'a SsdProfile,
    /// The flash of one set.
    flash: FlashProfile,
}

impl<'a> Arithmetic<'a> {
    fn of(profile: &'a SsdProfile) -> Self {
        Self { profile, flash: profile.flash_of_set() }
    }

    fn sets(&self) -> f64 {
        f64::from(self.profile.sets)
    }

    /// Returns the time that a command occupies a core.
    fn core_us(&self, blocks: u32) -> f64 {
        let controller = &self.profile.controller;
        controller.command_us + f64::from(blocks - 1) * controller.block_ns / 1e3
    }

    fn memory_us(&self, blocks: u32) -> f64 {
        f64::from(blocks * BLOCK_BYTES) / (self.profile.dram.mb_per_s / self.sets())
    }

    fn to_host_us(&self, bytes: u32) -> f64 {
        f64::from(bytes + COMMAND_BYTES) / self.profile.host.read_mb_per_s
    }

    fn to_drive_us(&self, bytes: u32) -> f64 {
        f64::from(bytes + COMMAND_BYTES) / self.profile.host.write_mb_per_s
    }

    /// Returns the time that blocks of one page occupy the channel.
    fn channel_us(&self, blocks: u32) -> f64 {
        let geometry = &self.flash.geometry;
        let page_us = f64::from(geometry.transfer_bytes) / self.flash.timing.channel_mb_per_s;
        page_us * f64::from(blocks * BLOCK_BYTES) / f64::from(geometry.page_bytes)
    }

    /// Returns the time that a read occupies a die, if the channel is free.
    fn die_us(&self, page_type: usize, blocks: u32) -> f64 {
        let timing = &self.flash.timing;
        timing.command_us + timing.read_us[page_type] + self.channel_us(blocks)
    }

    /// Returns the time of the steps common to all commands.
    fn command_us(&self, blocks: u32) -> f64 {
        let profile = self.profile;
        let access_us = profile.dram.access_ns / 1e3;
        self.core_us(blocks)
            + profile.controller.pipeline_us
            + self.memory_us(blocks)
            + access_us
            + profile.host.latency_us
    }

    /// Returns the latency of a read from the drive's memory.
    fn read_from_memory_us(&self, blocks: u32) -> f64 {
        self.command_us(blocks) + self.to_host_us(blocks * BLOCK_BYTES)
    }

    /// Returns the latency of a read of blocks in one page.
    fn read_from_flash_us(&self, page_type: usize, blocks: u32) -> f64 {
        self.read_from_memory_us(blocks) + self.die_us(page_type, blocks)
    }

    /// Returns the latency of a write into the buffer.
    fn write_us(&self, blocks: u32) -> f64 {
        self.command_us(blocks) + self.to_drive_us(blocks * BLOCK_BYTES) + self.to_host_us(0)
    }

    /// Returns the blocks that one program writes.
    fn unit_blocks(&self) -> u32 {
        let geometry = &self.flash.geometry;
        geometry.program_unit() * geometry.page_bytes / BLOCK_BYTES
    }

    fn dies(&self) -> f64 {
        f64::from(self.flash.geometry.dies())
    }

    /// Returns the reads per second, of `blocks` in one page, that each resource of one set can
    /// serve.
    fn reads_per_second(&self, blocks: u32) -> [(&'static str, f64); 5] {
        let types = self.flash.timing.read_us.len();
        let die_us = (0..types).map(|t| self.die_us(t, blocks)).sum::<f64>() / types as f64;
        let cores = f64::from(self.profile.controller.cores) / self.sets();
        let channel_us = self.channel_us(blocks) + self.flash.timing.command_us;
        [
            ("firmware", cores * 1e6 / self.core_us(blocks)),
            ("dies", self.dies() * 1e6 / die_us),
            ("channels", f64::from(self.flash.geometry.channels) * 1e6 / channel_us),
            ("memory", 1e6 / self.memory_us(blocks)),
            ("link", 1e6 / self.to_host_us(blocks * BLOCK_BYTES)),
        ]
    }
}

/// Returns the tightest bound.
fn tightest(bounds: &[(&'static str, f64)]) -> (&'static str, f64) {
    bounds.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are bounds")
}

/// Returns the page type of a block of a sequentially filled drive: program units rotate over the
/// dies.
fn page_type(profile: &SsdProfile, block: u64) -> usize {
    let geometry = profile.flash_of_set().geometry;
    let page = block * u64::from(BLOCK_BYTES) / u64::from(geometry.page_bytes);
    let unit = u64::from(geometry.program_unit());
    let in_block = page / unit / u64::from(geometry.dies()) * unit + page % unit;
    (in_block / u64::from(geometry.planes_per_die) % u64::from(geometry.bits_per_cell)) as usize
}

fn close(took: Nanos, expected_us: f64, blocks: u32, what: &str) {
    let off_ns = took.0 as f64 - expected_us * 1e3;
    let is_close = off_ns.abs() <= rounding_ns(blocks);
    assert!(is_close, "{what}: {took}, but {expected_us:.3} us by arithmetic");
}

#[test]
fn a_read_takes_the_sum_of_its_steps_for_each_page_type() {
    for name in DRIVES {
        let (rt, profile) = (Runtime::new(1), profile(name));
        let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Sequential(1.0));
        let handle = rt.handle();
        rt.block_on(async move {
            let arithmetic = Arithmetic::of(&profile);
            let geometry = &arithmetic.flash.geometry;
            let pages = u64::from(geometry.dies() * geometry.pages_per_die_block());
            // Without its end, which holds the summary.
            let first_superblock = pages * u64::from(geometry.page_bytes / BLOCK_BYTES) / 100 * 95;
            let mut of_type = [0; 3];
            for i in 0..300_u64 {
                let first = i * 389_989 % (first_superblock / 4) * 4;
                let page_type = page_type(&profile, first);
                of_type[page_type] += 1;
                for blocks in [1, 4] {
                    let took = run(&handle, &ssd, Command::Read { set: set(1), first, blocks });
                    let expected = arithmetic.read_from_flash_us(page_type, blocks);
                    close(took.await, expected, blocks, &format!("{name}, page type {page_type}"));
                }
            }
            assert!(of_type.iter().all(|reads| *reads > 50), "{of_type:?}");
            for (page_type, cells) in ["LSB", "CSB", "MSB"].iter().enumerate() {
                let us = arithmetic.read_from_flash_us(page_type, 1);
                println!("{name}: a random 4 KiB read of a {cells} page takes {us:.3} us");
            }
        });
    }
}

#[test]
fn what_memory_serves_takes_no_flash() {
    for name in DRIVES {
        let (rt, profile) = (Runtime::new(1), profile(name));
        let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Sequential(1.0));
        let handle = rt.handle();
        rt.block_on(async move {
            let arithmetic = Arithmetic::of(&profile);
            for blocks in [1, 32] {
                let (set, first) = (set(1), 1_000_000);
                let write = run(&handle, &ssd, Command::Write { set, first, blocks }).await;
                close(write, arithmetic.write_us(blocks), blocks, "write");
                let read = run(&handle, &ssd, Command::Read { set, first, blocks }).await;
                close(read, arithmetic.read_from_memory_us(blocks), blocks, "read from the buffer");
                println!("{name}, {blocks} blocks: write {write}, read from the buffer {read}");
            }
            // Sequentially from the beginning: the drive detects the pattern by the first reads.
            for first in 0..1_000 {
                let read = Command::Read { set: set(1), first, blocks: 1 };
                let took = run(&handle, &ssd, read).await;
                if first >= 100 {
                    let what = format!("{name}: read {first} in order");
                    close(took, arithmetic.read_from_memory_us(1), 1, &what);
                }
            }
        });
    }
}

/// A load that is limited by one resource of the drive.
struct Job {
    bound: &'static str,
    drive: &'static str,
    change: fn(&mut SsdProfile),
    clients: usize,
    /// Blocks of each read.
    blocks: u32,
    /// First blocks are multiples of this, drawn from `choices` of them.
    step: u64,
    choices: u64,
    is_buffered: bool,
}

impl Job {
    /// Random reads all over a full drive with an unchanged profile.
    fn of_flash(bound: &'static str, drive: &'static str, blocks: u32, clients: usize) -> Self {
        let choices = profile(drive).blocks_per_set() / 4;
        let change = |_: &mut SsdProfile| {};
        Self { bound, drive, change, clients, blocks, step: 4, choices, is_buffered: false }
    }

    fn profile(&self) -> SsdProfile {
        let mut profile = profile(self.drive);
        (self.change)(&mut profile);
        profile
    }

    fn run(&self, milliseconds: (u64, u64)) -> Measured {
        let (rt, profile) = (Runtime::new(7), self.profile());
        let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Sequential(1.0));
        let (handle, blocks, clients) = (rt.handle(), self.blocks, self.clients);
        let (step, choices, is_buffered) = (self.step, self.choices, self.is_buffered);
        let times = (Nanos::from_millis(milliseconds.0), Nanos::from_millis(milliseconds.1));
        rt.block_on(async move {
            for first in (0..choices).filter(|_| is_buffered) {
                let write = Command::Write { set: set(1), first: first * step, blocks };
                run(&handle, &ssd, write).await;
            }
            closed_loop(&handle, &ssd, clients, times, move |_, rng| {
                let first = rng.below(choices) * step;
                Command::Read { set: set(1), first, blocks }
            })
            .await
        })
    }
}

#[test]
fn each_part_in_turn_is_the_bound() {
    let vigil = |bound, blocks, clients| Job::of_flash(bound, "vigil-1.92tb", blocks, clients);
    let jobs = [
        vigil("firmware", 1, 128),
        Job::of_flash("firmware", "baseline-1.92tb", 1, 256),
        vigil("channels", 4, 128),
        Job::of_flash("link", "baseline-1.92tb", 4, 256),
        Job {
            // A fast processor, fast channels, and one page type.
            change: |profile| {
                profile.controller.command_us = 0.5;
                profile.flash.timing.channel_mb_per_s = 20_000.0;
                profile.flash.timing.read_us = vec![60.0; 3];
            },
            ..vigil("dies", 1, 1_024)
        },
        Job { is_buffered: true, step: 32, choices: 8, ..vigil("memory", 32, 32) },
    ];
    for job in &jobs {
        let profile = job.profile();
        let mut bounds = Arithmetic::of(&profile).reads_per_second(job.blocks).to_vec();
        bounds.retain(|(part, _)| !(job.is_buffered && ["dies", "channels"].contains(part)));
        let (part, bound) = tightest(&bounds);
        assert_eq!(part, job.bound, "{bounds:?}");
        let measured = job.run((2, 60));
        let share = measured.share_of(bound, job.clients);
        println!(
            "{}, {} KiB reads, {} clients: {:.0} a second, {:.2} % of what {part} allow ({bound:.0})",
            job.drive,
            job.blocks * 4,
            job.clients,
            measured.per_second(),
            share * 100.0,
        );
        assert!(share >= 0.98, "{part}: {share}");
    }
}

#[test]
fn a_stream_of_writes_is_bounded_by_the_dies() {
    let (rt, profile) = (Runtime::new(7), profile("vigil-1.92tb"));
    let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Sequential(0.5));
    let arithmetic = Arithmetic::of(&profile);
    let geometry = &arithmetic.flash.geometry;
    let timing = &arithmetic.flash.timing;
    let unit = arithmetic.unit_blocks();
    let program_us = f64::from(geometry.program_unit())
        * arithmetic.channel_us(geometry.page_bytes / BLOCK_BYTES)
        + timing.command_us
        + timing.program_us.iter().sum::<f64>() / timing.program_us.len() as f64;
    let bound = arithmetic.dies() * f64::from(unit) / 32.0 * 1e6 / program_us;
    let dies = geometry.dies();
    let handle = rt.handle();
    let measured = rt.block_on(async move {
        let next = std::cell::Cell::new(0);
        let times = (Nanos::from_millis(40), Nanos::from_millis(200));
        closed_loop(&handle, &ssd, 16, times, move |_, _| {
            let first = next.replace(next.get() + 32);
            Command::Write { set: set(1), first, blocks: 32 }
        })
        .await
    });
    // A command ends when its last block is in the buffer: each die may have one program queued.
    let share = measured.share_of(bound, (dies * unit).div_ceil(32) as usize);
    println!(
        "writes in order: {:.1} MB/s, {:.2} % of what the dies take ({:.1} MB/s)",
        measured.per_second() * 0.131_072,
        share * 100.0,
        bound * 0.131_072
    );
    assert!(share >= 0.98, "{share}");
}

#[test]
fn more_clients_approach_the_bound_and_never_pass_it() {
    let depths = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    for drive in DRIVES {
        let job = |clients| Job::of_flash("firmware", drive, 1, clients);
        let profile = profile(drive);
        let arithmetic = Arithmetic::of(&profile);
        let (part, bound) = tightest(&arithmetic.reads_per_second(1));
        println!("{drive}, one set, random 4 KiB reads; {part} bounds them to {bound:.0} a second");
        println!("{:>8} {:>12} {:>12} {:>12}", "clients", "per second", "mean us", "of bound");
        let types = 0..arithmetic.flash.timing.read_us.len();
        let alone_us = types.clone().map(|t| arithmetic.read_from_flash_us(t, 1)).sum::<f64>()
            / types.len() as f64;
        let mut last = 0.0;
        for clients in depths {
            let measured = job(clients).run((1, 30));
            let (rate, mean_us) = (measured.per_second(), measured.mean().as_micros_f64());
            let share = measured.share_of(bound, clients);
            println!("{clients:>8} {rate:>12.0} {mean_us:>12.1} {:>10.1} %", share * 100.0);
            assert!(share >= last - 0.001, "{clients} clients");
            // On average over the page types, no client is served faster than a client alone.
            measured.share_of(clients as f64 * 1.01e6 / alone_us, clients);
            last = share;
        }
        assert!(last >= 0.98, "{last}");
    }
}
