//! Compares the model of a commercial drive with published measurements of that drive:
//! docs/model.md.
//!
//! ```text
//! cargo run --release -p blockbench --example pm9a3 -- [PROFILE [SECONDS [SEED [RATES]]]]
//! ```
//!
//! SSD-iq (Haas et al., PVLDB) wrote a Samsung PM9A3 of 960 GB once sequentially and three times
//! over at random, and then measured it at offered rates, with operations of 4 KiB: six writers
//! (99 % writes, Poisson arrivals, up to 64 outstanding operations each) and a probe of 10 thousand
//! operations per second, half of them reads. The percentiles are those of the probe; the rate is
//! that of all writes, including the probe's.
//!
//! The simulation starts in the steady state that the overwriting leads to (decision 34). Each rate
//! is the job `probe-30k` at that rate for SECONDS of virtual time; the probe runs for the last
//! four fifths. RATES are in thousands per second, separated by commas.

use blockbench::{Before, DeviceSpec, Direction, Job, JobReport, Rw, StreamSpec};
use drives::ssd::SsdProfile;

/// Published latencies of reads and writes at one offered rate, in microseconds: p50, p99, p99.9,
/// p99.99, p99.999.
struct Published {
    thousands: u32,
    read: [f64; 5],
    write: [f64; 5],
}

/// The job of the method: a probe, then the writers.
const METHOD: &str = "probe-30k";

/// An offered rate that exceeds the drive's maximum.
const SATURATED: u32 = 100;
/// Percentiles with their quantiles.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("p99.999", 0.99999)];
/// Allowed relative deviation of each percentile. p99.999 rests on two or three operations and is
/// not scored.
const ALLOWED: [Option<f64>; 5] = [Some(0.15), Some(0.15), Some(0.3), Some(0.3), None];

/// The figures that the profile was fitted to, besides the maker's specification and the saturated
/// rate: offered rate, direction, and index into the list of percentiles.
const FITTED: [(u32, Direction, usize); 7] = [
    (10, Direction::Read, 0),
    (10, Direction::Write, 0),
    (30, Direction::Read, 1),
    (30, Direction::Read, 3),
    (30, Direction::Write, 1),
    (60, Direction::Write, 1),
    (SATURATED, Direction::Write, 0),
];

#[rustfmt::skip]
const PUBLISHED: [Published; 8] = [
    Published { thousands: 10, read: [64.0, 237.0, 394.0, 526.0, 904.0], write: [11.0, 14.0, 17.0, 20.0, 25.0] },
    Published { thousands: 20, read: [71.0, 276.0, 428.0, 852.0, 950.0], write: [11.0, 14.0, 17.0, 20.0, 27.0] },
    Published { thousands: 30, read: [73.0, 318.0, 472.0, 876.0, 962.0], write: [11.0, 14.0, 18.0, 20.0, 27.0] },
    Published { thousands: 40, read: [89.0, 349.0, 505.0, 881.0, 983.0], write: [11.0, 14.0, 17.0, 20.0, 27.0] },
    Published { thousands: 50, read: [104.0, 372.0, 530.0, 890.0, 1013.0], write: [12.0, 43.0, 71.0, 102.0, 130.0] },
    Published { thousands: 60, read: [108.0, 388.0, 545.0, 899.0, 1030.0], write: [14.0, 81.0, 138.0, 214.0, 304.0] },
    Published { thousands: 70, read: [114.0, 381.0, 603.0, 1513.0, 2102.0], write: [23.0, 308.0, 1627.0, 2446.0, 2610.0] },
    Published { thousands: SATURATED, read: [900.0, 2205.0, 3045.0, 4190.0, 4650.0], write: [3380.0, 4038.0, 5940.0, 6560.0, 6650.0] },
];

/// Number of figures that the profile was not fitted to, and number of those that are near enough.
#[derive(Default)]
struct Score {
    near: u32,
    all: u32,
}

impl Score {
    /// Prints a row of the table.
    fn line(&mut self, what: &str, published: f64, ours: f64, allowed: Option<f64>) {
        let deviation = ours / published - 1.0;
        let verdict = match allowed {
            None => "fitted, or not scored",
            Some(allowed) => {
                self.all += 1;
                let is_near = deviation.abs() <= allowed;
                self.near += u32::from(is_near);
                if is_near { "near" } else { "misses" }
            }
        };
        println!("| {what} | {published} | {ours:.1} | {:+.0} % | {verdict} |", deviation * 100.0);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "pm9a3-960gb".to_owned());
    let profile = SsdProfile::load(&name).unwrap_or_else(|error| panic!("{error}"));
    let seconds = arguments.next().map_or(30.0, |text| text.parse().expect("seconds"));
    let seed = arguments.next().map_or(1, |text| text.parse().expect("a seed"));
    let rates = arguments.next().map_or_else(
        || PUBLISHED.iter().map(|published| published.thousands).collect(),
        |text| text.split(',').map(|rate| rate.parse().expect("a rate")).collect::<Vec<u32>>(),
    );
    let mut score = Score::default();
    println!(
        "{name}, {seconds} s a rate, seed {seed}\n\n| what | measured | ours | deviation | |\n|---|---|---|---|---|"
    );
    alone(&profile, seed, &mut score);
    for published in PUBLISHED.iter().filter(|published| rates.contains(&published.thousands)) {
        at_rate(&profile, published, (seconds, seed), &mut score);
    }
    println!("\n{} of {} unfitted figures are near enough", score.near, score.all);
}

fn run(profile: &SsdProfile, seed: u64, job: Job) -> JobReport {
    let spec = DeviceSpec { profile: profile.clone(), job: Job { verify: false, ..job }, seed };
    blockbench::run(&spec, |_| ()).unwrap_or_else(|error| panic!("{error}"))
}

/// Compares the throughput of single kinds of operations with the maker's specification.
fn alone(profile: &SsdProfile, seed: u64, score: &mut Score) {
    let of = |rw: Rw, before: Before, kib: u64, depth: u32, gib: u64| {
        let stream = StreamSpec {
            depth: Some(depth),
            block_bytes: (kib << 10).into(),
            norandommap: true,
            bytes: Some(gib << 30),
            ..StreamSpec::new(rw)
        };
        let job = Job { precondition: before, ..Job::new("alone", vec![stream]) };
        let report = run(profile, seed, job);
        let direction = if rw == Rw::Write { Direction::Write } else { Direction::Read };
        let stream = &report.streams[0];
        let operations = stream.direction(direction).expect("there were some").operations;
        operations as f64 / stream.elapsed().as_secs_f64()
    };
    let in_order = |rw, before| of(rw, before, 128, 32, 4) * 0.131_072;
    score.line("reads in order, MB/s", 6500.0, in_order(Rw::Read, Before::Sequential), None);
    score.line("writes in order, MB/s", 1500.0, in_order(Rw::Write, Before::Empty), None);
    let random = of(Rw::RandRead, Before::Sequential, 4, 512, 2) / 1e3;
    score.line("random reads, thousands a second", 580.0, random, None);
}

fn at_rate(
    profile: &SsdProfile,
    published: &Published,
    (seconds, seed): (f64, u64),
    score: &mut Score,
) {
    let mut job = Job::load(METHOD).unwrap_or_else(|error| panic!("{error}"));
    let (probe, writers) = job.streams.split_first_mut().expect("it has a probe");
    let per_second = |stream: &StreamSpec| stream.operations_per_second.expect("it has a rate");
    let share_written = |stream: &StreamSpec| 1.0 - stream.read_percent.unwrap_or(50.0) / 100.0;
    probe.start_s = seconds / 5.0;
    probe.duration_s = Some(seconds - probe.start_s);
    // The offered rate includes the probe's writes.
    let total = f64::from(published.thousands) * 1e3 - per_second(probe) * share_written(probe);
    let each = total / writers.len() as f64;
    for writer in writers {
        writer.operations_per_second = Some(each / share_written(writer));
        writer.duration_s = Some(seconds);
    }
    let report = run(profile, seed, job);
    let rate = published.thousands;
    let at = if rate == SATURATED { "saturated".to_owned() } else { format!("{rate} k/s") };
    let writes = report.streams.iter().map(|stream| {
        let part = stream.direction(Direction::Write).expect("there were some");
        part.operations as f64 / stream.elapsed().as_secs_f64() / 1e3
    });
    let writes: f64 = writes.sum();
    let set = &report.sets[0];
    let (was, is) = (&set.before.firmware, &set.after.firmware);
    let programmed = |s: &drives::ssd::SetStats| s.slots_flushed + s.slots_moved + s.slots_wasted;
    let amplification =
        (programmed(is) - programmed(was)) as f64 / (is.blocks_written - was.blocks_written) as f64;
    if rate == SATURATED {
        score.line("saturated: writes, thousands a second", 76.5, writes, None);
        score.line("saturated: slots programmed a write", 4.1, amplification, Some(0.1));
    }
    for (direction, figures) in
        [(Direction::Read, &published.read), (Direction::Write, &published.write)]
    {
        let part = report.streams[0].direction(direction).expect("there were some");
        let measured = &part.histogram;
        for (i, (name, quantile)) in PERCENTILES.into_iter().enumerate() {
            let is_noise = rate == 70 && i == 3;
            let is_scored = !is_noise && !FITTED.contains(&(rate, direction, i));
            let allowed = ALLOWED[i].filter(|_| is_scored);
            let what = format!("{at}: {} {name}", direction.name());
            let ours = measured.value_at_quantile(quantile) as f64 / 1e3;
            score.line(&what, figures[i], ours, allowed);
        }
    }
    eprintln!(
        "{at}: {:.1} thousand writes a second, {amplification:.2} slots a write, {} collections",
        writes,
        is.collections - was.collections
    );
}
