//! The experiments on Vigil-KV's hardware (USENIX ATC'22): figures 2a to 2c on the drive that the
//! prototype was made from, 7b and 8a to 8c on the prototype, and the model against arithmetic.

use block::nvme::{PlmConfig, SetId, Thresholds, WindowSelect};
use block::{BLOCK_BYTES, BlockDevice};
use flash::FlashStats;
use runtime::{Nanos, Runtime};
use serde::{Deserialize, Serialize};
use ssd::{Precondition, Ssd, SsdProfile};

use super::device_arithmetic::Bounds;
use super::device_clients::{self as clients, Clock, Place, Sample};
use super::device_measured::{Alternating, Lockdown, Measured, Point, Stretches, Watched};
use super::device_samples::{Latency, Met, over_time};
use super::jobs::{Job, run_those_asked_for};
use super::kept::kept;
use super::stand::Failure;
use super::{Plan, Scale};

/// The prototype and the drive it was made from.
pub(super) const PROTOTYPE: &str = "vigil-1.92tb";
pub(super) const BASELINE: &str = "baseline-1.92tb";
/// The same with less flash, where free space has to run out while somebody watches.
pub(super) const SMALL_BASELINE: &str = "baseline-15gb";
/// Queue depths of the saturation curve.
pub(super) const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Written in NDWIN before a lockdown, in MB.
pub(super) const LOCKDOWN_MB: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Stretches of time that a series is drawn in.
pub(super) const STRETCHES: usize = 400;

/// How long the experiments are, in seconds of virtual time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Reads after 64 MB were written.
    pub flush_s: f64,
    /// Writes a second until free space has run out, and beyond.
    pub collection_writes: f64,
    pub collection_s: f64,
    /// Erase blocks that are read again and again.
    pub hammered_blocks: u32,
    pub reclaim_s: f64,
    /// What comes before figure 8a: for as long as NDWIN has to last, clients write, so that buffer and garbage collection
    /// have something left to do.
    pub writing_s: f64,
    /// When the prototype leaves its deterministic window, and what is seen after.
    pub window_s: f64,
    pub after_s: f64,
    pub cycles: u32,
    pub isolation_s: f64,
    /// Reads of each point of the saturation curve.
    pub curve_reads: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                flush_s: 2.0,
                collection_writes: 50_000.0,
                collection_s: 16.0,
                hammered_blocks: 8,
                reclaim_s: 2.0,
                writing_s: 4.0,
                window_s: 16.0,
                after_s: 8.0,
                cycles: 2,
                isolation_s: 4.0,
                curve_reads: 100_000,
            },
            Scale::Paper => Self {
                flush_s: 10.0,
                collection_writes: 10_000.0,
                collection_s: 120.0,
                hammered_blocks: 64,
                reclaim_s: 10.0,
                writing_s: 4.0,
                window_s: 58.0,
                after_s: 40.0,
                cycles: 4,
                isolation_s: 30.0,
                curve_reads: 1_000_000,
            },
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Outcome {
    Watched(Box<Watched>),
    Collection(Box<Watched>, Stretches),
    Alternating(Box<Alternating>),
    Lockdowns(Vec<Lockdown>),
    Curve(Vec<Point>),
}

impl Outcome {
    fn watched(watched: Watched) -> Self {
        Self::Watched(Box::new(watched))
    }
}

type Experiment = fn(&Size, u64) -> Result<Outcome, Failure>;

/// All experiments.
const EXPERIMENTS: [(&str, Experiment); 11] = [
    ("2a: reads while the buffer is emptied", |size, seed| {
        buffer_flush(size, seed).map(Outcome::watched)
    }),
    ("2c: reads while blocks are reclaimed", |size, seed| {
        reclaim(size, seed).map(Outcome::watched)
    }),
    ("8a: reads without windows", |size, seed| plain(size, seed).map(Outcome::watched)),
    ("8a: reads in DTWIN, then NDWIN", |size, seed| windowed(size, seed).map(Outcome::watched)),
    ("8c: reads beside writes", |size, seed| mixed(size, seed).map(Outcome::watched)),
    ("8c: reads beside a set that is written", |size, seed| {
        isolated(size, seed).map(Outcome::watched)
    }),
    ("8c: reads alone", |size, seed| undisturbed(size, seed).map(Outcome::watched)),
    ("2b: reads while space is collected", |size, seed| {
        collection(size, seed).map(|(watched, s)| Outcome::Collection(Box::new(watched), s))
    }),
    ("8b: windows in turns", |size, seed| {
        alternating(size, seed).map(|turns| Outcome::Alternating(Box::new(turns)))
    }),
    ("7b: lockdowns", |size, seed| lockdowns(size, seed).map(Outcome::Lockdowns)),
    ("reads at rising depth", |size, seed| curve(size, seed).map(Outcome::Curve)),
];

/// Runs all experiments, or those that the plan asks for; nothing comes back then.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Option<Measured>, Failure> {
    measure_in(plan, Size::of(plan.scale))
}

fn measure_in(plan: &Plan<'_>, size: Size) -> Result<Option<Measured>, Failure> {
    let [baseline, small, prototype] =
        [profile(BASELINE), profile(SMALL_BASELINE), profile(PROTOTYPE)];
    let (baseline, prototype) = (baseline?, prototype?);
    let seed = plan.seed;
    let inputs = format!("{baseline:?}; {:?}; {prototype:?}; {size:?}; seed {seed}", small?);
    let job = |(name, run): (&str, Experiment)| -> Job<'_, Outcome> {
        kept(plan.keeper, name.to_owned(), inputs.clone(), move || run(&size, seed))
    };
    let jobs = EXPERIMENTS.into_iter().map(job).collect();
    let done = run_those_asked_for(jobs, plan)?;
    Ok(done.map(|done| measured(done, &baseline, &prototype)))
}

/// Outcomes in the order of [`EXPERIMENTS`], by name.
fn measured(done: Vec<Outcome>, baseline: &SsdProfile, prototype: &SsdProfile) -> Measured {
    let mut done = done.into_iter();
    let mut next = || match done.next() {
        Some(Outcome::Watched(watched)) => *watched,
        _ => unreachable!("results come in the order of the jobs"),
    };
    let (buffer_flush, reclaim) = (next(), next());
    let (plain, windowed) = (next(), next());
    let (mixed, isolated, undisturbed) = (next(), next(), next());
    let (
        Some(Outcome::Collection(collection, collecting)),
        Some(Outcome::Alternating(alternating)),
        Some(Outcome::Lockdowns(lockdowns)),
        Some(Outcome::Curve(curve)),
    ) = (done.next(), done.next(), done.next(), done.next())
    else {
        unreachable!("results come in the order of the jobs")
    };
    Measured {
        buffer_flush,
        collection: *collection,
        collecting,
        reclaim,
        lockdowns,
        plain,
        windowed,
        alternating: *alternating,
        mixed,
        isolated,
        undisturbed,
        curve,
        bounds: Bounds::of(baseline),
        alone_us: baseline.read_alone_us(),
        alone_in_set_us: prototype.read_alone_us(),
    }
}

fn profile(name: &str) -> Result<SsdProfile, Failure> {
    SsdProfile::load(name).map_err(|error| error.to_string())
}

/// A drive, the runtime it is in, and the sets of the experiment.
struct Stand {
    rt: Runtime,
    ssd: Ssd,
}

const FIRST: u16 = 1;
const SECOND: u16 = 2;

impl Stand {
    fn new(name: &str, precondition: Precondition, seed: u64) -> Result<Self, Failure> {
        let profile = profile(name)?;
        let rt = Runtime::new(seed);
        let ssd = Ssd::new(&rt.handle(), &profile, precondition);
        Ok(Self { rt, ssd })
    }

    fn clock(&self) -> Clock {
        Clock::new(self.rt.handle())
    }

    fn all_of(&self, set: u16) -> Place {
        let set = set_id(set);
        let shape = self.ssd.sets().into_iter().find(|shape| shape.id == set);
        Place { set, first: 0, blocks: shape.expect("the drive has this set").blocks }
    }

    fn watched(&self, set: u16, reads: &[Sample], turn: &Turn) -> Result<Watched, Failure> {
        let report = self.ssd.report(set_id(set)).map_err(|error| error.to_string())?;
        let firmware = report.firmware;
        Ok(Watched {
            all: Latency::all(reads),
            turn_s: since_first(reads, turn.at),
            before: Latency::between(reads, Nanos::ZERO, turn.at),
            after: Latency::between(reads, turn.at, Nanos::MAX),
            longest_over_time: over_time(reads, STRETCHES, |latency| latency.longest_us),
            mean_over_time: over_time(reads, STRETCHES, |latency| latency.mean_us),
            met: Met::between(&turn.flash, &report.flash),
            reclaims: firmware.reclaims,
            windows_entered: firmware.windows_entered,
            windows_broken: firmware.windows_broken,
        })
    }
}

/// Seconds from the first read on, which is zero of the axis.
fn since_first(reads: &[Sample], at: Nanos) -> f64 {
    let first = reads.first().map_or(Nanos::ZERO, |read| read.at);
    at.saturating_since(first).as_secs_f64()
}

/// The instant that divides before from after, and the counters of the flash then.
#[derive(Default)]
struct Turn {
    at: Nanos,
    flash: FlashStats,
}

impl Turn {
    fn now(ssd: &Ssd, clock: &Clock, set: SetId) -> Self {
        let flash = ssd.report(set).map(|report| report.flash).unwrap_or_default();
        Self { at: clock.now(), flash }
    }
}

fn set_id(number: u16) -> SetId {
    SetId::new(number).expect("numbers begin with 1")
}

fn seconds(seconds: f64) -> Nanos {
    Nanos::from_micros_f64(seconds * 1e6)
}

/// Figure 2a: 64 MB are written, then only read: 4 KB at a time, in order, elsewhere.
fn buffer_flush(size: &Size, seed: u64) -> Result<Watched, Failure> {
    let stand = Stand::new(BASELINE, Precondition::Sequential(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let span = seconds(size.flush_s);
    let (reads, turn) = stand.rt.block_on(async move {
        clients::fill(&ssd, &clock, place.part(0, 64_000_000), 32).await?;
        let turn = Turn::now(&ssd, &clock, place.set);
        let elsewhere = place.part(place.bytes() / 2, place.bytes() / 2);
        let reads = clients::read_in_order(&ssd, &clock, elsewhere, turn.at + span).await?;
        Ok::<_, Failure>((reads, turn))
    })?;
    stand.watched(FIRST, &reads, &turn)
}

/// Figure 2b: reads in order while writes use up the free space; garbage collection begins on the
/// way. On the smaller drive: the other's spare space would take 50 million writes.
fn collection(size: &Size, seed: u64) -> Result<(Watched, Stretches), Failure> {
    let stand = Stand::new(SMALL_BASELINE, Precondition::Sequential(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let end = seconds(size.collection_s);
    clients::write_at_rate(&ssd, &clock, place, size.collection_writes, end);
    let stretches = clients::when_it_grows(&clock, end, {
        let ssd = ssd.clone();
        move || ssd.report(set_id(FIRST)).map_or(0, |report| report.firmware.slots_moved)
    });
    let reads =
        stand.rt.block_on(async move { clients::read_in_order(&ssd, &clock, place, end).await })?;
    let stretches = stretches.take();
    let at = stretches.first().map_or(end, |stretch| stretch.0);
    let watched = stand.watched(FIRST, &reads, &Turn { at, ..Turn::default() })?;
    let since = |at| since_first(&reads, at);
    Ok((watched, stretches.into_iter().map(|(from, to)| (since(from), since(to))).collect()))
}

/// Figure 2c: blocks are read often enough to need reclaim, then again at random.
fn reclaim(size: &Size, seed: u64) -> Result<Watched, Failure> {
    let stand = Stand::new(BASELINE, Precondition::Sequential(1.0), seed)?;
    let (ssd, clock) = (stand.ssd.clone(), stand.clock());
    let geometry = stand.ssd.profile().flash_of_set().geometry;
    // Written in order, a superblock's blocks take turns of one program unit.
    let slots_per_page = geometry.page_bytes / BLOCK_BYTES;
    let unit = u64::from(geometry.program_unit() * slots_per_page);
    let (dies, chosen) = (u64::from(geometry.dies()), u64::from(size.hammered_blocks));
    let in_block = u64::from(geometry.pages_per_die_block() * slots_per_page);
    // What the summary takes at the end of a superblock is less than a hundredth.
    let rounds = in_block / unit * 99 / 100;
    let pick = move |random: u64| {
        let (round, rest) = (random % rounds, random / rounds);
        (round * dies + rest % chosen) * unit + rest / chosen % unit
    };
    let (set, span) = (set_id(FIRST), seconds(size.reclaim_s));
    let (reads, turn) = stand.rt.block_on(async move {
        clients::read_often(&ssd, &clock, set, pick, 4 * in_block * chosen, 64).await?;
        let turn = Turn::now(&ssd, &clock, set);
        let reads = clients::read_picked(&ssd, &clock, set, pick, turn.at + span).await?;
        Ok::<_, Failure>((reads, turn))
    })?;
    stand.watched(FIRST, &reads, &turn)
}

/// Writes a second of [`Size::writing_s`].
const WRITES_PER_SET: f64 = 20_000.0;

/// Figure 8a, first half: reads after writes, on the drive without windows.
fn plain(size: &Size, seed: u64) -> Result<Watched, Failure> {
    let stand = Stand::new(BASELINE, Precondition::Random(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let writing_s = size.writing_s;
    let (turn, end) = (seconds(writing_s), seconds(writing_s + size.window_s + size.after_s));
    let rate = WRITES_PER_SET * f64::from(profile(PROTOTYPE)?.sets);
    clients::write_at_rate(&ssd, &clock, place, rate, turn);
    let (reads, turn) = stand.rt.block_on(async move {
        clock.sleep_until(turn).await;
        let turn = Turn::now(&ssd, &clock, place.set);
        Ok::<_, Failure>((clients::read_at_random(&ssd, &clock, place, end).await?, turn))
    })?;
    stand.watched(FIRST, &reads, &turn)
}

fn on() -> PlmConfig {
    PlmConfig { enabled: true, thresholds: Thresholds::default() }
}

/// Figure 8a, second half: the same on the prototype, in DTWIN and then in NDWIN.
fn windowed(size: &Size, seed: u64) -> Result<Watched, Failure> {
    let stand = Stand::new(PROTOTYPE, Precondition::Random(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let (window, after) = (seconds(size.window_s), seconds(size.after_s));
    let writing = seconds(size.writing_s);
    let (reads, turn) = stand.rt.block_on(async move {
        ssd.configure_plm(place.set, on()).await.map_err(|e| e.to_string())?;
        clients::write_at_rate(&ssd, &clock, place, WRITES_PER_SET, writing);
        clock.sleep_until(writing).await;
        select(&ssd, place.set, WindowSelect::Dtwin).await?;
        let end = clock.now() + window;
        let mut reads = clients::read_at_random(&ssd, &clock, place, end).await?;
        let turn = Turn { at: end, ..Turn::now(&ssd, &clock, place.set) };
        select(&ssd, place.set, WindowSelect::Ndwin).await?;
        reads.extend(clients::read_at_random(&ssd, &clock, place, end + after).await?);
        Ok::<_, Failure>((reads, turn))
    })?;
    stand.watched(FIRST, &reads, &turn)
}

async fn select(ssd: &Ssd, set: SetId, window: WindowSelect) -> Result<(), Failure> {
    ssd.select_window(set, window).await.map_err(|error| error.to_string())
}

/// Figure 8b: windows in turns; all writes happen in NDWIN.
fn alternating(size: &Size, seed: u64) -> Result<Alternating, Failure> {
    let stand = Stand::new(PROTOTYPE, Precondition::Random(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let (window, cycles) = (seconds(size.window_s / 2.0), size.cycles);
    let writing = seconds(size.writing_s);
    let (reads, turns) = stand.rt.block_on(async move {
        ssd.configure_plm(place.set, on()).await.map_err(|e| e.to_string())?;
        let (mut reads, mut turns) = (Vec::new(), Vec::new());
        for _ in 0..cycles {
            let until = clock.now() + writing;
            clients::write_at_rate(&ssd, &clock, place, WRITES_PER_SET, until);
            reads.extend(clients::read_at_random(&ssd, &clock, place, until).await?);
            select(&ssd, place.set, WindowSelect::Dtwin).await?;
            turns.push(clock.now());
            let until = clock.now() + window;
            reads.extend(clients::read_at_random(&ssd, &clock, place, until).await?);
            select(&ssd, place.set, WindowSelect::Ndwin).await?;
            turns.push(clock.now());
        }
        Ok::<_, Failure>((reads, turns))
    })?;
    let turn = Turn { at: turns[0], ..Turn::default() };
    let ends = turns.iter().copied().chain([Nanos::MAX]);
    let windows = std::iter::once(Nanos::ZERO).chain(turns.iter().copied()).zip(ends);
    let longest = |(from, to)| Latency::between(&reads, from, to).longest_us;
    Ok(Alternating {
        watched: stand.watched(FIRST, &reads, &turn)?,
        turns_s: turns.iter().map(|at| since_first(&reads, *at)).collect(),
        longest_us: windows.map(longest).collect(),
    })
}

/// Figure 7b: what is written in one NDWIN, and the lockdown behind it.
fn lockdowns(size: &Size, seed: u64) -> Result<Vec<Lockdown>, Failure> {
    let one = |megabytes: u64| {
        let stand = Stand::new(PROTOTYPE, Precondition::Sequential(0.9), seed)?;
        let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
        let written_bytes = megabytes * 1_000_000;
        let writing = seconds(size.writing_s);
        stand.rt.block_on(async move {
            ssd.configure_plm(place.set, on()).await.map_err(|e| e.to_string())?;
            clock.sleep_until(writing).await;
            clients::fill(&ssd, &clock, place.part(0, written_bytes), 32).await?;
            let before = clock.now();
            select(&ssd, place.set, WindowSelect::Dtwin).await?;
            let took_ms = (clock.now() - before).as_micros_f64() / 1e3;
            Ok(Lockdown { written_bytes, took_ms })
        })
    };
    LOCKDOWN_MB.into_iter().map(one).collect()
}

/// Writes beside the reads of figure 8c.
const BESIDE: f64 = 25_000.0;

/// Figure 8c: reads and writes in one space.
fn mixed(size: &Size, seed: u64) -> Result<Watched, Failure> {
    beside(BASELINE, Some(FIRST), size, seed)
}

/// Figure 8c: reads of one set, writes to another, windows off.
fn isolated(size: &Size, seed: u64) -> Result<Watched, Failure> {
    beside(PROTOTYPE, Some(SECOND), size, seed)
}

/// The same reads with nothing beside them.
fn undisturbed(size: &Size, seed: u64) -> Result<Watched, Failure> {
    beside(PROTOTYPE, None, size, seed)
}

fn beside(profile: &str, written: Option<u16>, size: &Size, seed: u64) -> Result<Watched, Failure> {
    let stand = Stand::new(profile, Precondition::Random(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let end = seconds(size.isolation_s);
    if let Some(set) = written {
        clients::write_at_rate(&ssd, &clock, stand.all_of(set), BESIDE, end);
    }
    let reads = stand
        .rt
        .block_on(async move { clients::read_at_random(&ssd, &clock, place, end).await })?;
    stand.watched(FIRST, &reads, &Turn::default())
}

/// Random reads of a full drive at rising depth.
fn curve(size: &Size, seed: u64) -> Result<Vec<Point>, Failure> {
    let one = |depth: u32| {
        let stand = Stand::new(BASELINE, Precondition::Random(1.0), seed)?;
        let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
        let reads = size.curve_reads.min(u64::from(depth) * 20_000);
        let pick = move |random: u64| random % place.blocks;
        stand.rt.block_on(async move {
            let before = clock.now();
            let total = clients::read_often(&ssd, &clock, place.set, pick, reads, depth).await?;
            let span = clock.now() - before;
            Ok(Point {
                depth,
                reads_per_second: reads as f64 / span.as_secs_f64(),
                mean_us: total.as_micros_f64() / reads as f64,
            })
        })
    };
    DEPTHS.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::kept::tests::assert_goes_on;
    use crate::reproduce::{Paper, device_report};

    const TINY: Size = Size {
        flush_s: 0.05,
        collection_writes: 50_000.0,
        collection_s: 0.1,
        hammered_blocks: 1,
        reclaim_s: 0.05,
        writing_s: 0.1,
        window_s: 0.2,
        after_s: 0.1,
        cycles: 2,
        isolation_s: 0.1,
        curve_reads: 500,
    };

    #[test]
    fn a_run_that_was_stopped_goes_on() {
        assert_goes_on(Paper::Device, "8", |plan| {
            let measured = measure_in(plan, TINY)?;
            Ok(measured.map(|measured| device_report::report(plan, &measured)))
        });
    }
}
