//! The experiments. Each has a drive of its own.

use block::nvme::{PlmConfig, SetId, Thresholds, WindowSelect};
use block::{BLOCK_BYTES, BlockDevice};
use drives::nand::FlashStats;
use drives::ssd::{Precondition, Ssd};
use runtime::{Nanos, Runtime};

use super::clients::{self, Clock, Place, Sample};
use super::measured::{Alternating, Lockdown, Point, Stretches, Watched};
use super::samples::{Latency, Met, over_time};
use super::size::{
    BASELINE, DEPTHS, LOCKDOWN_MB, PROTOTYPE, SMALL_BASELINE, STRETCHES, Size, profile,
};
use crate::failure::Failure;

/// A drive and its runtime.
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

/// Returns the time from the first read to `at`, in seconds. The axis begins at the first read.
fn since_first(reads: &[Sample], at: Nanos) -> f64 {
    let first = reads.first().map_or(Nanos::ZERO, |read| read.at);
    at.saturating_since(first).as_secs_f64()
}

/// The instant that divides the reads of an experiment, and the flash counters at that instant.
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

/// Figure 2a: after 64 MB of writes, another part of the drive is read in order, 4 KB at a time.
pub(super) fn buffer_flush(size: &Size, seed: u64) -> Result<Watched, Failure> {
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

/// Figure 2b: reads in order while writes use up the free space, until garbage collection begins.
/// The drive is the small one, because the spare space of the other would take 50 million writes.
pub(super) fn collection(size: &Size, seed: u64) -> Result<(Watched, Stretches), Failure> {
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

/// Figure 2c: blocks are read until they need read reclaim, then read at random.
pub(super) fn reclaim(size: &Size, seed: u64) -> Result<Watched, Failure> {
    let stand = Stand::new(BASELINE, Precondition::Sequential(1.0), seed)?;
    let (ssd, clock) = (stand.ssd.clone(), stand.clock());
    let geometry = stand.ssd.profile().flash_of_set().geometry;
    // Consecutive program units of a superblock are on different dies.
    let slots_per_page = geometry.page_bytes / BLOCK_BYTES;
    let unit = u64::from(geometry.program_unit() * slots_per_page);
    let (dies, chosen) = (u64::from(geometry.dies()), u64::from(size.hammered_blocks));
    let in_block = u64::from(geometry.pages_per_die_block() * slots_per_page);
    // The summary at the end of a superblock takes less than a hundredth of the superblock.
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

/// Writes per second and set during [`Size::writing_s`].
const WRITES_PER_SET: f64 = 20_000.0;

/// Figure 8a, first half: reads after writes, on the drive without windows.
pub(super) fn plain(size: &Size, seed: u64) -> Result<Watched, Failure> {
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

/// Figure 8a, second half: the same reads on the prototype, in DTWIN, then in NDWIN.
pub(super) fn windowed(size: &Size, seed: u64) -> Result<Watched, Failure> {
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

/// Figure 8b: NDWIN and DTWIN in turn. All writes happen in NDWIN.
pub(super) fn alternating(size: &Size, seed: u64) -> Result<Alternating, Failure> {
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

/// Figure 7b: the duration of the lockdown by the bytes written in the NDWIN before.
pub(super) fn lockdowns(size: &Size, seed: u64) -> Result<Vec<Lockdown>, Failure> {
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

/// Writes per second during the reads of figure 8c.
const BESIDE: f64 = 25_000.0;

/// Figure 8c: reads and writes in one set.
pub(super) fn mixed(size: &Size, seed: u64) -> Result<Watched, Failure> {
    beside(BASELINE, Some(FIRST), size, seed)
}

/// Figure 8c: reads of one set and writes to another set, windows off.
pub(super) fn isolated(size: &Size, seed: u64) -> Result<Watched, Failure> {
    beside(PROTOTYPE, Some(SECOND), size, seed)
}

/// The reads of figure 8c without writes.
pub(super) fn undisturbed(size: &Size, seed: u64) -> Result<Watched, Failure> {
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

/// Random reads of a full drive by queue depth.
pub(super) fn curve(size: &Size, seed: u64) -> Result<Vec<Point>, Failure> {
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
