//! Running a workload on a design on a device.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use engine::Engine;
use flash::FlashStats;
use hashkv::HashStats;
use kvssd::{DriveOptions, IndexOptions, KvDrive, SetupError};
use pages::{AcceleratorWork, CacheStats, EngineStats};
use runtime::{Handle, Runtime};
use workload::{ClientOptions, LatencySummary, OpKind, Pace, RunReport, Session, StartError, Stop};

pub use crate::bench_spec::BenchSpec;
use crate::fit;
use crate::flash_work::{pages, reads_behind};
use crate::result::{
    AcceleratorResult, BenchResult, FlashResult, IndexResult, Interrupted, IteratorResult,
    LevelResult, LoadResult, Memory, Verification,
};
use crate::target::DriveTarget;
use crate::units::count_text;

/// Hears how far a bench is.
pub trait Observer {
    /// A phase of `total` operations begins.
    fn begin(&mut self, phase: &'static str, total: u64);
    /// `done` operations of the phase are done.
    fn progress(&mut self, done: u64);
    /// The phase has ended; whether it came to its end or was cut short.
    fn end(&mut self, is_done: bool);
}

/// Why a bench could not be run.
#[derive(Debug)]
pub enum BenchError {
    /// The design cannot be set up on the drive.
    Setup(SetupError),
    /// The workload cannot be run.
    Start(StartError),
    /// The data would not fit, or something else makes it certain that there would be no end; the
    /// text says what. Nothing was done.
    DoesNotFit(String),
    /// The load did not come to its end; the text says when and why.
    Load(String),
    /// Somebody asked for the end before there was anything to show.
    Interrupted {
        /// Pairs loaded by then.
        loaded: u64,
        /// Pairs to load.
        of: u64,
    },
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::DoesNotFit(text) => f.write_str(text),
            Self::Load(text) => write!(f, "the load failed {text}"),
            Self::Interrupted { loaded, of } => write!(
                f,
                "interrupted after {} of {} pairs of the load: there is nothing to show yet",
                count_text(*loaded),
                count_text(*of)
            ),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<SetupError> for BenchError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<StartError> for BenchError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

/// A result, and the reports of its phases for pictures and tables of detail.
pub struct BenchOutcome {
    /// The result.
    pub result: BenchResult,
    /// The run in detail.
    pub run: RunReport,
}

/// Finds out what makes it certain that a bench would not come to its end.
///
/// # Errors
/// [`BenchError`] of what [`run`] would find out before the load.
pub fn check(spec: &BenchSpec) -> Result<(), BenchError> {
    if spec.workload.operation_count == 0 {
        return Err(StartError::NoOperations.into());
    }
    fit::check(spec).map_err(BenchError::DoesNotFit)
}

/// Loads, lets background work settle, runs. Cost in wall time: some microseconds an operation. Once
/// `stop` is asked for, operations under way end, and the result is of what there was until then.
///
/// # Errors
/// [`BenchError`]; what goes wrong during the run is part of the result.
pub fn run(
    spec: &BenchSpec,
    observer: &Rc<RefCell<dyn Observer>>,
    stop: &Stop,
) -> Result<BenchOutcome, BenchError> {
    check(spec)?;
    let rt = Runtime::new(spec.seed);
    let handle = rt.handle();
    let mut options = DriveOptions::new(spec.design.index());
    options.expected_key_bytes = spec.workload.keys.key_bytes() as u32;
    options.expected_value_bytes = spec.workload.values.longest_bytes();
    options.iterators = options.iterators.max(outstanding(&spec.clients) as u32);
    let drive = KvDrive::format(&handle, &spec.device, options)?;
    let (spec_in, drive_in) = (spec.clone(), drive.clone());
    let (observer, stop) = (Rc::clone(observer), stop.clone());
    let phases =
        rt.block_on(async move { phases(&spec_in, handle, &drive_in, observer, stop).await })?;
    let result = summarise(spec, &drive, &phases);
    Ok(BenchOutcome { result, run: phases.run })
}

/// Counters of a drive at one moment.
struct Snapshot {
    engine: EngineStats,
    hash: Option<HashStats>,
    flash: FlashStats,
}

impl Snapshot {
    fn of(drive: &KvDrive) -> Self {
        let hash = drive.engine().hash_stats();
        Self { engine: drive.engine_stats(), hash, flash: drive.flash_stats() }
    }
}

struct Phases {
    load: RunReport,
    before_run: Snapshot,
    run: RunReport,
}

async fn phases(
    spec: &BenchSpec,
    handle: Handle,
    drive: &KvDrive,
    observer: Rc<RefCell<dyn Observer>>,
    stop: Stop,
) -> Result<Phases, BenchError> {
    let target = DriveTarget(drive.clone());
    let workload = spec.workload.clone();
    let (records, operations) = (workload.insert_count, workload.operation_count);
    let mut session = Session::new(handle, target, workload, spec.seed)?;
    session.stop_on(stop.clone());
    let report = |observer: &Rc<RefCell<dyn Observer>>| {
        let observer = Rc::clone(observer);
        move |done, _total| observer.borrow_mut().progress(done)
    };
    observer.borrow_mut().begin("load", records);
    let outstanding = outstanding(&spec.clients);
    let load = session.load(&ClientOptions::closed(outstanding), report(&observer)).await?;
    drive.settle().await;
    observer.borrow_mut().end(!load.is_cut_short());
    if let Some(error) = &load.first_error {
        let (done, of) = (count_text(load.operations), count_text(records));
        return Err(BenchError::Load(format!("after {done} of {of} pairs, {error}")));
    }
    let interrupted = || BenchError::Interrupted { loaded: load.operations, of: records };
    if stop.is_asked() {
        return Err(interrupted());
    }
    let before_run = Snapshot::of(drive);
    observer.borrow_mut().begin("run", operations);
    let run = session.run(&spec.clients, report(&observer)).await?;
    observer.borrow_mut().end(!run.is_cut_short());
    if stop.is_asked() && run.operations == 0 {
        return Err(interrupted());
    }
    Ok(Phases { load, before_run, run })
}

fn summarise(spec: &BenchSpec, drive: &KvDrive, phases: &Phases) -> BenchResult {
    let after = Snapshot::of(drive);
    let page_bytes = u64::from(spec.device.flash.geometry.page_bytes);
    let amplification =
        |pages: u64, bytes: u64| (bytes > 0).then(|| (pages * page_bytes) as f64 / bytes as f64);
    let programmed = |snapshot: &Snapshot| snapshot.flash.total().pages_programmed;
    let (before, run) = (&phases.before_run, &phases.run);
    let value_bytes = spec.workload.values.longest_bytes();
    let key_bytes = spec.workload.keys.key_bytes();
    BenchResult {
        levelhead: env!("CARGO_PKG_VERSION"),
        design: spec.design.name.clone(),
        device: spec.device.name.clone(),
        workload: spec.workload_name.clone(),
        seed: spec.seed,
        records: spec.workload.insert_count,
        key_bytes: key_bytes as u64,
        value_bytes: u64::from(value_bytes),
        mean_value_bytes: mean_value_bytes(spec, before),
        interrupted: interrupted(run),
        clients: clients_text(&spec.clients),
        operations: operations(run),
        throughput_ops_per_second: run.throughput(),
        flash_reads_per_get: difference(
            after.engine.reads_per_get.counts(),
            before.engine.reads_per_get.counts(),
        ),
        flash_reads_bound: drive.engine().read_bound(key_bytes, value_bytes),
        write_amplification: amplification(programmed(&after), after.engine.user_bytes),
        run_write_amplification: amplification(
            programmed(&after) - programmed(before),
            after.engine.user_bytes - before.engine.user_bytes,
        ),
        memory_bytes: memory(spec, drive, &after.engine),
        levels: levels(drive),
        first_level: u32::from(!drive.engine().lsm().is_some_and(Engine::is_leveled)),
        index: before.hash.as_ref().zip(after.hash.as_ref()).map(|(old, new)| index(old, new)),
        virtual_seconds: run.elapsed().as_secs_f64(),
        load: LoadResult {
            virtual_seconds: phases.load.elapsed().as_secs_f64(),
            throughput_ops_per_second: phases.load.throughput(),
            write_amplification: amplification(programmed(before), before.engine.user_bytes),
            pages_read: pages(&before.flash, None, |counts| counts.pages_read),
            pages_programmed: pages(&before.flash, None, |counts| counts.pages_programmed),
            accelerator: accelerated(before.engine.accelerator, AcceleratorWork::default()),
            put: phases.load.summary(OpKind::Put).unwrap_or_default(),
        },
        flash: flash_work(spec, before, &after, run),
        caches: caches(spec, &before.engine, &after.engine),
        iterators: iterators(&before.engine, &after.engine, drive),
        verification: verification(run),
        host: None,
    }
}

/// Fewer operations than planned, and nothing failed: somebody asked for the end.
fn interrupted(run: &RunReport) -> Option<Interrupted> {
    let is_interrupted = run.is_cut_short() && run.first_error.is_none();
    is_interrupted.then_some(Interrupted { done: run.operations, planned: run.planned })
}

/// The mean length of the values that were loaded.
fn mean_value_bytes(spec: &BenchSpec, loaded: &Snapshot) -> f64 {
    let pairs = spec.workload.insert_count as f64;
    loaded.engine.user_bytes as f64 / pairs - spec.workload.keys.key_bytes() as f64
}

/// Most operations under way at a time.
fn outstanding(clients: &ClientOptions) -> usize {
    match clients.pace {
        Pace::Closed { outstanding } | Pace::Open { outstanding, .. } => outstanding,
    }
}

fn clients_text(clients: &ClientOptions) -> String {
    match clients.pace {
        Pace::Closed { outstanding } => format!("closed loop, {outstanding} outstanding"),
        Pace::Open { rate, outstanding, .. } => {
            format!("open loop, {rate} operations/s, at most {outstanding} outstanding")
        }
    }
}

fn operations(run: &RunReport) -> BTreeMap<&'static str, LatencySummary> {
    OpKind::ALL
        .into_iter()
        .map(|kind| (kind.name(), run.summary(kind).unwrap_or_default()))
        .collect()
}

fn memory(spec: &BenchSpec, drive: &KvDrive, stats: &EngineStats) -> Memory {
    let memory = drive.memory();
    Memory {
        level_lists: memory.level_lists,
        prefixes: memory.prefixes,
        range_pointers: memory.range_pointers,
        pinned_segments: memory.pinned_segments,
        directory: memory.directory,
        filters: memory.filters,
        caches: memory.caches,
        index: memory.index_bytes(),
        index_budget: spec.device.dram.index_bytes,
        index_peak: stats.peak_index_bytes,
        memtables: memory.memtables,
        compaction_buffers: memory.compaction_buffers,
    }
}

fn levels(drive: &KvDrive) -> Vec<LevelResult> {
    let Some((plan, levels)) = drive.engine().levels() else { return Vec::new() };
    let levels = levels.into_iter().zip(plan.capacities).zip(0..);
    levels
        .map(|(((segments, entries), capacity_segments), n)| LevelResult {
            segments,
            entries,
            capacity_segments,
            is_pinned: n < plan.pinned,
        })
        .collect()
}

fn index(old: &HashStats, new: &HashStats) -> IndexResult {
    IndexResult {
        bucket_pages: new.bucket_pages,
        slots: new.slots,
        keys: new.keys,
        cached_pages: new.cached_pages,
        dirty_pages: new.dirty_pages,
        longest_search: new.longest_search,
        bucket_hits: new.bucket_hits - old.bucket_hits,
        bucket_misses: new.bucket_misses - old.bucket_misses,
        background_hits: new.background_hits - old.background_hits,
        background_misses: new.background_misses - old.background_misses,
        dirty_evictions: new.dirty_evictions - old.dirty_evictions,
        dirty_evictions_in_reads: new.dirty_evictions_in_reads - old.dirty_evictions_in_reads,
        false_matches: new.false_matches - old.false_matches,
        slots_per_lookup: difference(new.slots_per_lookup.counts(), old.slots_per_lookup.counts()),
    }
}

fn flash_work(
    spec: &BenchSpec,
    before: &Snapshot,
    after: &Snapshot,
    run: &RunReport,
) -> FlashResult {
    let by_class = |count| pages(&after.flash, Some(&before.flash), count);
    let dies = f64::from(spec.device.flash.geometry.dies());
    let busy = (after.flash.die_busy - before.flash.die_busy).as_secs_f64();
    let suspends =
        |snapshot: &Snapshot| snapshot.flash.program_suspends + snapshot.flash.erase_suspends;
    let collected = |snapshot: &Snapshot| {
        let stats = &snapshot.engine;
        stats.gc_data_extents + stats.gc_meta_extents + stats.gc_empty_extents
    };
    let (old, new) = (&before.engine, &after.engine);
    FlashResult {
        pages_read: by_class(|counts| counts.pages_read),
        pages_programmed: by_class(|counts| counts.pages_programmed),
        accelerator: accelerated(new.accelerator, old.accelerator),
        blocks_erased: after.flash.total().blocks_erased - before.flash.total().blocks_erased,
        die_utilisation: busy / (dies * run.elapsed().as_secs_f64()).max(f64::MIN_POSITIVE),
        client_reads_behind: reads_behind(&after.flash, Some(&before.flash)),
        client_reads_shared: new.shared_reads - old.shared_reads,
        vain_meta_reads: new.vain_meta_reads - old.vain_meta_reads,
        suspends: suspends(after) - suspends(before),
        flushes: new.flushes - old.flushes,
        compactions: difference(&new.compactions, &old.compactions),
        extents_collected: collected(after) - collected(before),
        objects_moved: new.gc_objects_moved - old.gc_objects_moved,
        write_stalls: new.stalls - old.stalls,
        write_stall_seconds: (new.stalled - old.stalled).as_secs_f64(),
    }
}

fn accelerated(after: AcceleratorWork, before: AcceleratorWork) -> Option<AcceleratorResult> {
    let is_there = after != AcceleratorWork::default();
    is_there.then(|| AcceleratorResult {
        merges: after.merges - before.merges,
        left_to_processor: after.left_to_processor - before.left_to_processor,
        merged_bytes: after.bytes - before.bytes,
        pages_copied: after.pages_copied - before.pages_copied,
        busy_seconds: (after.busy - before.busy).as_secs_f64(),
    })
}

/// What the caches had in the run; nothing if the design has none.
fn caches(spec: &BenchSpec, before: &EngineStats, after: &EngineStats) -> Option<CacheStats> {
    let has_caches =
        matches!(spec.design.index(), IndexOptions::Lsm(options) if options.cache_bytes() > 0);
    has_caches.then(|| after.caches.since(&before.caches))
}

/// What iterators did in the run; nothing if there were none.
fn iterators(before: &EngineStats, after: &EngineStats, drive: &KvDrive) -> Option<IteratorResult> {
    let counts = after.iterators.since(&before.iterators);
    let memory = drive.engine().lsm().map(|engine| engine.snapshot_memory().total());
    (counts.created > 0).then(|| IteratorResult {
        counts,
        snapshots_expired: after.snapshots_expired - before.snapshots_expired,
        memory: memory.unwrap_or(0),
    })
}

fn verification(run: &RunReport) -> Verification {
    Verification {
        checked: run.count(OpKind::Get),
        checked_pairs: run.scanned_pairs,
        mismatches: run.mismatch_count,
        first_mismatch: run.mismatches.first().map(ToString::to_string),
        errors: run.error_count,
        first_error: run.first_error.clone(),
    }
}

/// Counters of a run from those at its end and its beginning.
pub(crate) fn difference(after: &[u64], before: &[u64]) -> Vec<u64> {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}
