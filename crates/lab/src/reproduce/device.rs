//! The experiments on Vigil-KV's hardware (USENIX ATC'22): figures 2a to 2c on the drive that the
//! prototype was made from, 7b and 8a to 8c on the prototype, and the model against arithmetic.

use block::nvme::{PlmConfig, SetId, Thresholds, WindowSelect};
use block::{BLOCK_BYTES, BlockDevice};
use flash::FlashStats;
use runtime::{Nanos, Runtime};
use ssd::{Precondition, SetReport, Ssd, SsdProfile};

use super::device_arithmetic::Bounds;
use super::device_clients::{self as clients, Clock, Place, Sample};
use super::jobs::{Job, run_all};
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

/// How long the experiments are, in seconds of virtual time.
pub(super) struct Size {
    /// Reads after 64 MB were written.
    pub flush_s: f64,
    /// Writes a second until free space has run out, and beyond.
    pub collection_writes: f64,
    pub collection_s: f64,
    /// Erase blocks that are read again and again.
    pub hammered_blocks: u32,
    pub reclaim_s: f64,
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
                window_s: 58.0,
                after_s: 40.0,
                cycles: 4,
                isolation_s: 30.0,
                curve_reads: 1_000_000,
            },
        }
    }
}

/// Reads that were watched, and what the drive did meanwhile.
pub(super) struct Watched {
    pub reads: Vec<Sample>,
    /// The instant that divides before from after, where there is one.
    pub turn: Nanos,
    /// Counters of the flash at that instant, where somebody asks what reads met from there on.
    pub flash_before: FlashStats,
    pub report: SetReport,
}

/// A point of the saturation curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub depth: u32,
    pub reads_per_second: f64,
    pub mean_us: f64,
}

/// What a lockdown took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lockdown {
    pub written_bytes: u64,
    pub took: Nanos,
}

/// Everything that was measured.
pub(super) struct Measured {
    /// Figure 2a.
    pub buffer_flush: Watched,
    /// Figure 2b.
    pub collection: Watched,
    /// From when to when garbage was collected.
    pub collecting: Vec<(Nanos, Nanos)>,
    /// Figure 2c.
    pub reclaim: Watched,
    /// Figure 7b.
    pub lockdowns: Vec<Lockdown>,
    /// Figure 8a: the drive the prototype was made from.
    pub plain: Watched,
    /// Figure 8a: the prototype in DTWIN, then in NDWIN.
    pub windowed: Watched,
    /// Figure 8b.
    pub alternating: Watched,
    /// Instants at which [`Self::alternating`] changed its window, DTWIN first.
    pub turns: Vec<Nanos>,
    /// Figure 8c: reads and writes in one space.
    pub mixed: Watched,
    /// Figure 8c: in two sets.
    pub isolated: Watched,
    /// The same reads without any writes.
    pub undisturbed: Watched,
    /// Reads at several depths.
    pub curve: Vec<Point>,
    /// What arithmetic says of such reads, on the baseline.
    pub bounds: Bounds,
    /// What it says of a read alone, by page type, on the baseline and on the prototype.
    pub alone_us: Vec<f64>,
    pub alone_in_set_us: Vec<f64>,
}

enum Outcome {
    Watched(Box<Watched>),
    Alternating(Box<Watched>, Vec<Nanos>),
    Collection(Box<Watched>, Vec<(Nanos, Nanos)>),
    Lockdowns(Vec<Lockdown>),
    Curve(Vec<Point>),
}

/// Runs all experiments.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Measured, Failure> {
    let (scale, seed) = (plan.scale, plan.seed);
    let mut jobs: Vec<Job<'_, Outcome>> = Vec::new();
    let mut watch = |name: &str, run: fn(&Size, u64) -> Result<Watched, Failure>| {
        jobs.push(Job::new(name, move || {
            run(&Size::of(scale), seed).map(|watched| Outcome::Watched(Box::new(watched)))
        }));
    };
    watch("2a: reads while the buffer is emptied", buffer_flush);
    watch("2c: reads while blocks are reclaimed", reclaim);
    watch("8a: reads without windows", plain);
    watch("8a: reads in DTWIN, then NDWIN", windowed);
    watch("8c: reads beside writes", mixed);
    watch("8c: reads beside a set that is written", isolated);
    watch("8c: reads alone", undisturbed);
    jobs.push(Job::new("2b: reads while space is collected", move || {
        collection(&Size::of(scale), seed)
            .map(|(watched, stretches)| Outcome::Collection(Box::new(watched), stretches))
    }));
    jobs.push(Job::new("8b: windows in turns", move || {
        alternating(&Size::of(scale), seed)
            .map(|(watched, turns)| Outcome::Alternating(Box::new(watched), turns))
    }));
    jobs.push(Job::new("7b: lockdowns", move || lockdowns(seed).map(Outcome::Lockdowns)));
    jobs.push(Job::new("reads at rising depth", move || {
        curve(&Size::of(scale), seed).map(Outcome::Curve)
    }));
    let mut done = run_all(jobs, plan.threads, plan.watcher)?.into_iter();
    let mut next = || match done.next() {
        Some(Outcome::Watched(watched)) => *watched,
        _ => unreachable!("results come in the order of the jobs"),
    };
    let (buffer_flush, reclaim) = (next(), next());
    let (plain, windowed) = (next(), next());
    let (mixed, isolated, undisturbed) = (next(), next(), next());
    let (
        Some(Outcome::Collection(collection, collecting)),
        Some(Outcome::Alternating(alternating, turns)),
        Some(Outcome::Lockdowns(lockdowns)),
        Some(Outcome::Curve(curve)),
    ) = (done.next(), done.next(), done.next(), done.next())
    else {
        unreachable!("results come in the order of the jobs")
    };
    let load = |name| SsdProfile::load(name).map_err(|error| error.to_string());
    let (baseline, prototype) = (load(BASELINE)?, load(PROTOTYPE)?);
    Ok(Measured {
        buffer_flush,
        collection: *collection,
        collecting,
        reclaim,
        lockdowns,
        plain,
        windowed,
        alternating: *alternating,
        turns,
        mixed,
        isolated,
        undisturbed,
        curve,
        bounds: Bounds::of(&baseline),
        alone_us: baseline.read_alone_us(),
        alone_in_set_us: prototype.read_alone_us(),
    })
}

/// A drive, the runtime it is in, and the sets of the experiment.
struct Stand {
    rt: Runtime,
    ssd: Ssd,
}

const FIRST: u16 = 1;
const SECOND: u16 = 2;

impl Stand {
    fn new(profile: &str, precondition: Precondition, seed: u64) -> Result<Self, Failure> {
        let profile = SsdProfile::load(profile).map_err(|error| error.to_string())?;
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

    fn watched(&self, set: u16, reads: Vec<Sample>, turn: Turn) -> Result<Watched, Failure> {
        let report = self.ssd.report(set_id(set)).map_err(|error| error.to_string())?;
        Ok(Watched { reads, turn: turn.at, flash_before: turn.flash, report })
    }
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
    stand.watched(FIRST, reads, turn)
}

/// Figure 2b: reads in order while writes use up the free space; garbage collection begins on the
/// way. On the smaller drive: the other's spare space would take 50 million writes.
fn collection(size: &Size, seed: u64) -> Result<(Watched, Vec<(Nanos, Nanos)>), Failure> {
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
    Ok((stand.watched(FIRST, reads, Turn { at, ..Turn::default() })?, stretches))
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
    stand.watched(FIRST, reads, turn)
}

/// What comes before figures 8a: for as long as NDWIN has to last, clients write, so that buffer
/// and garbage collection have something left to do.
const WRITES_PER_SET: f64 = 20_000.0;
const WRITING_S: f64 = 4.0;

/// Figure 8a, first half: reads after writes, on the drive without windows.
fn plain(size: &Size, seed: u64) -> Result<Watched, Failure> {
    let stand = Stand::new(BASELINE, Precondition::Random(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let (turn, end) = (seconds(WRITING_S), seconds(WRITING_S + size.window_s + size.after_s));
    let rate = WRITES_PER_SET * f64::from(SsdProfile::load(PROTOTYPE).map_or(1, |p| p.sets));
    clients::write_at_rate(&ssd, &clock, place, rate, turn);
    let (reads, turn) = stand.rt.block_on(async move {
        clock.sleep_until(turn).await;
        let turn = Turn::now(&ssd, &clock, place.set);
        Ok::<_, Failure>((clients::read_at_random(&ssd, &clock, place, end).await?, turn))
    })?;
    stand.watched(FIRST, reads, turn)
}

fn on() -> PlmConfig {
    PlmConfig { enabled: true, thresholds: Thresholds::default() }
}

/// Figure 8a, second half: the same on the prototype, in DTWIN and then in NDWIN.
fn windowed(size: &Size, seed: u64) -> Result<Watched, Failure> {
    let stand = Stand::new(PROTOTYPE, Precondition::Random(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let (window, after) = (seconds(size.window_s), seconds(size.after_s));
    let (reads, turn) = stand.rt.block_on(async move {
        ssd.configure_plm(place.set, on()).await.map_err(|e| e.to_string())?;
        clients::write_at_rate(&ssd, &clock, place, WRITES_PER_SET, seconds(WRITING_S));
        clock.sleep_until(seconds(WRITING_S)).await;
        select(&ssd, place.set, WindowSelect::Dtwin).await?;
        let end = clock.now() + window;
        let mut reads = clients::read_at_random(&ssd, &clock, place, end).await?;
        let turn = Turn { at: end, ..Turn::now(&ssd, &clock, place.set) };
        select(&ssd, place.set, WindowSelect::Ndwin).await?;
        reads.extend(clients::read_at_random(&ssd, &clock, place, end + after).await?);
        Ok::<_, Failure>((reads, turn))
    })?;
    stand.watched(FIRST, reads, turn)
}

async fn select(ssd: &Ssd, set: SetId, window: WindowSelect) -> Result<(), Failure> {
    ssd.select_window(set, window).await.map_err(|error| error.to_string())
}

/// Figure 8b: windows in turns; all writes happen in NDWIN.
fn alternating(size: &Size, seed: u64) -> Result<(Watched, Vec<Nanos>), Failure> {
    let stand = Stand::new(PROTOTYPE, Precondition::Random(1.0), seed)?;
    let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
    let (window, cycles) = (seconds(size.window_s / 2.0), size.cycles);
    let (reads, turns) = stand.rt.block_on(async move {
        ssd.configure_plm(place.set, on()).await.map_err(|e| e.to_string())?;
        let (mut reads, mut turns) = (Vec::new(), Vec::new());
        for _ in 0..cycles {
            let until = clock.now() + seconds(WRITING_S);
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
    Ok((stand.watched(FIRST, reads, turn)?, turns))
}

/// Figure 7b: what is written in one NDWIN, and the lockdown behind it.
fn lockdowns(seed: u64) -> Result<Vec<Lockdown>, Failure> {
    let one = |megabytes: u64| {
        let stand = Stand::new(PROTOTYPE, Precondition::Sequential(0.9), seed)?;
        let (ssd, clock, place) = (stand.ssd.clone(), stand.clock(), stand.all_of(FIRST));
        let written_bytes = megabytes * 1_000_000;
        stand.rt.block_on(async move {
            ssd.configure_plm(place.set, on()).await.map_err(|e| e.to_string())?;
            clock.sleep_until(seconds(WRITING_S)).await;
            clients::fill(&ssd, &clock, place.part(0, written_bytes), 32).await?;
            let before = clock.now();
            select(&ssd, place.set, WindowSelect::Dtwin).await?;
            Ok(Lockdown { written_bytes, took: clock.now() - before })
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
    stand.watched(FIRST, reads, Turn::default())
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
