//! Computes the result of a bench from counters.

mod on_block_drive;

use std::collections::BTreeMap;

use blockbench::flash_work::{pages, reads_behind, waited_us};
use drives::nand::OperationCounts;
use engine::{AcceleratorWork, CacheStats, Engine, EngineStats, HashStats, MemoryUse, TableStats};
use on_block_drive::{block_drive, limiter, windows};
use report::late::late_s;
use report::units::span_text;
use serde::{Deserialize, Serialize};
use stacks::design::IndexOptions;
use workload::{ClientOptions, LatencySummary, OpKind, Pace, RunReport};

use crate::ageing::AgeingResult;
use crate::result::{
    AcceleratorResult, BenchResult, FlashResult, IndexResult, Interrupted, IteratorResult,
    LevelResult, LoadResult, Memory, TraceResult, Verification,
};
use crate::samples::MemorySample;
use crate::snapshot::Snapshot;
use crate::spec::{BenchSpec, PairBytes, TraceSpec};
use crate::target::Subject;

/// The results of the time before the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Past {
    pub load: LoadResult,
    /// Mean length of the loaded values, in bytes.
    pub mean_value_bytes: f64,
    pub ageing: Option<AgeingResult>,
}

impl Past {
    /// Returns the results of a load. `loaded` are the counters after it.
    pub(crate) fn of_load(spec: &BenchSpec, load: &RunReport, loaded: &Snapshot) -> Self {
        let pages = |count: fn(OperationCounts) -> u64| {
            let pages = pages(&loaded.flash, None, count).into_iter();
            pages.map(|(class, count)| (class.to_owned(), count)).collect()
        };
        let load = LoadResult {
            virtual_seconds: load.elapsed().as_secs_f64(),
            throughput_ops_per_second: load.throughput(),
            write_amplification: loaded.amplification(spec),
            pages_read: pages(|counts| counts.pages_read),
            pages_programmed: pages(|counts| counts.pages_programmed),
            accelerator: accelerated(loaded.engine.accelerator, AcceleratorWork::default()),
            put: load.summary(OpKind::Put).unwrap_or_default(),
        };
        Self { load, mean_value_bytes: mean_value_bytes(spec, loaded), ageing: None }
    }
}

/// The results of a bench's phases.
pub(crate) struct Phases {
    pub past: Past,
    /// Counters after the load; `None` for a drive that was loaded elsewhere.
    pub after_load: Option<Snapshot>,
    pub before_run: Snapshot,
    pub run: RunReport,
    pub samples: Vec<MemorySample>,
}

/// Returns the result of a bench.
pub(crate) fn summarise(spec: &BenchSpec, subject: &impl Subject, phases: &Phases) -> BenchResult {
    let after = Snapshot::of(subject);
    let page_bytes = u64::from(spec.platform.flash().geometry.page_bytes);
    let amplification =
        |pages: u64, bytes: u64| (bytes > 0).then(|| (pages * page_bytes) as f64 / bytes as f64);
    let programmed = |snapshot: &Snapshot| snapshot.flash.total().pages_programmed;
    let (past, before, run) = (&phases.past, &phases.before_run, &phases.run);
    let PairBytes { key: key_bytes, value: value_bytes } = spec.longest_pair();
    let bounds = subject.index().read_bounds(key_bytes, value_bytes);
    BenchResult {
        levelhead: env!("CARGO_PKG_VERSION"),
        configuration: spec.configuration.clone(),
        design: spec.design.name.clone(),
        device: spec.platform.name().to_owned(),
        workload: spec.workload_name.clone(),
        seed: spec.seed,
        inputs: None,
        records: spec.loaded(),
        key_bytes: key_bytes as u64,
        value_bytes: u64::from(value_bytes),
        mean_value_bytes: past.mean_value_bytes,
        interrupted: interrupted(run),
        clients: clients_text(&spec.clients),
        trace: spec.trace.as_ref().map(|trace| trace_result(trace, &spec.clients, run)),
        operations: operations(run),
        throughput_ops_per_second: run.throughput(),
        late_s: late_s(run.late, run.elapsed().as_secs_f64()),
        flash_reads_per_get: difference(
            after.engine.reads_per_get.counts(),
            before.engine.reads_per_get.counts(),
        ),
        flash_reads_bound: bounds.map(|(_, most)| most),
        flash_reads_bound_least: bounds
            .filter(|(least, most)| least < most)
            .map(|(least, _)| least),
        write_amplification: after.amplification(spec),
        run_write_amplification: amplification(
            programmed(&after) - programmed(before),
            after.engine.user_bytes - before.engine.user_bytes,
        ),
        memory_bytes: memory(
            &subject.index().memory(),
            spec.platform.index_memory_bytes(),
            &after.engine,
        ),
        levels: levels(subject),
        first_level: u32::from(!subject.index().lsm().is_some_and(Engine::is_leveled)),
        index: before.hash.as_ref().zip(after.hash.as_ref()).map(|(old, new)| index(old, new)),
        virtual_seconds: run.elapsed().as_secs_f64(),
        load: past.load.clone(),
        ageing: past.ageing.clone(),
        flash: flash_work(spec, before, &after, run),
        caches: caches(spec, &before.engine, &after.engine),
        iterators: iterators(&before.engine, &after.engine, subject),
        tables: tables(before, &after, subject),
        block_drive: block_drive(spec, phases.after_load.as_ref(), before, &after),
        limiter: limiter(spec, before, &after),
        windows: windows(spec, subject),
        store: None,
        verification: verification(run),
        host: None,
    }
}

/// Returns the progress of an interrupted run: fewer operations than planned, and no error.
pub(crate) fn interrupted(run: &RunReport) -> Option<Interrupted> {
    let is_interrupted = run.is_cut_short() && run.first_error.is_none();
    is_interrupted.then_some(Interrupted { done: run.operations, planned: run.planned })
}

/// Returns the mean length of the loaded values, in bytes.
fn mean_value_bytes(spec: &BenchSpec, loaded: &Snapshot) -> f64 {
    if let Some(trace) = spec.trace.as_ref().filter(|_| !spec.loads_workload()) {
        return trace.trace.survey.mean_value;
    }
    let pairs = spec.workload.insert_count as f64;
    loaded.engine.user_bytes as f64 / pairs - spec.workload.keys.key_bytes() as f64
}

pub(crate) fn clients_text(clients: &ClientOptions) -> String {
    match clients.pace {
        Pace::Closed { outstanding } => format!("closed loop, {outstanding} outstanding"),
        Pace::Open { rate, outstanding, .. } => {
            format!("open loop, {rate} operations/s, at most {outstanding} outstanding")
        }
        Pace::Recorded { stretch, outstanding } => {
            let speed = span_text(100.0 / stretch);
            format!("as recorded, {speed} % of the speed, at most {outstanding} outstanding")
        }
    }
}

/// Returns the contents of a trace, and the results of its replay.
fn trace_result(spec: &TraceSpec, clients: &ClientOptions, run: &RunReport) -> TraceResult {
    let survey = &spec.trace.survey;
    let speed_percent = match clients.pace {
        Pace::Recorded { stretch, .. } => Some(100.0 / stretch),
        Pace::Closed { .. } | Pace::Open { .. } => None,
    };
    TraceResult {
        file: spec.trace.name(),
        format: survey.format.name(),
        operations: survey.operations(),
        replayed: run.operations,
        keys: survey.keys,
        gets: survey.gets,
        puts: survey.puts,
        read_modify_writes: survey.read_modify_writes,
        deletes: survey.deletes,
        left_out: survey.left_out.iter().copied().collect(),
        out_of_order: survey.out_of_order,
        column_families: survey.families.max(1),
        span_s: survey.span.as_secs_f64(),
        speed_percent,
        not_found: run.not_found,
    }
}

pub(crate) fn operations(run: &RunReport) -> BTreeMap<&'static str, LatencySummary> {
    OpKind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind.name(), run.summary(kind)?)))
        .filter(|(_, summary)| summary.count > 0)
        .collect()
}

/// Returns the memory of an index that may use `budget` bytes.
pub(crate) fn memory(memory: &MemoryUse, budget: u64, stats: &EngineStats) -> Memory {
    Memory {
        level_lists: memory.level_lists,
        prefixes: memory.prefixes,
        range_pointers: memory.range_pointers,
        pinned_segments: memory.pinned_segments,
        directory: memory.directory,
        filters: memory.filters,
        caches: memory.caches,
        index: memory.index_bytes(),
        index_budget: budget,
        index_peak: stats.peak_index_bytes,
        memtables: memory.memtables,
        compaction_buffers: memory.compaction_buffers,
    }
}

fn levels(subject: &impl Subject) -> Vec<LevelResult> {
    let Some((plan, levels)) = subject.index().levels() else { return Vec::new() };
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
    let dies = f64::from(spec.platform.flash().geometry.dies());
    let busy = (after.flash.die_busy - before.flash.die_busy).as_secs_f64();
    let suspends =
        |snapshot: &Snapshot| snapshot.flash.program_suspends + snapshot.flash.erase_suspends;
    let (old, new) = (&before.engine, &after.engine);
    FlashResult {
        pages_read: by_class(|counts| counts.pages_read),
        pages_programmed: by_class(|counts| counts.pages_programmed),
        accelerator: accelerated(new.accelerator, old.accelerator),
        blocks_erased: after.flash.total().blocks_erased - before.flash.total().blocks_erased,
        die_utilisation: busy / (dies * run.elapsed().as_secs_f64()).max(f64::MIN_POSITIVE),
        client_reads_behind: reads_behind(&after.flash, Some(&before.flash)),
        client_reads_waited_us: waited_us(&after.flash, &before.flash),
        suspends: suspends(after) - suspends(before),
        ..background(old, new)
    }
}

/// Returns the background work of an engine; the fields of the flash itself are empty.
pub(crate) fn background(old: &EngineStats, new: &EngineStats) -> FlashResult {
    let collected = |stats: &EngineStats| {
        stats.gc_data_extents + stats.gc_meta_extents + stats.gc_empty_extents
    };
    FlashResult {
        pages_read: BTreeMap::new(),
        pages_programmed: BTreeMap::new(),
        accelerator: None,
        blocks_erased: 0,
        die_utilisation: 0.0,
        client_reads_behind: BTreeMap::new(),
        client_reads_waited_us: BTreeMap::new(),
        client_reads_shared: new.shared_reads - old.shared_reads,
        vain_meta_reads: new.vain_meta_reads - old.vain_meta_reads,
        suspends: 0,
        flushes: new.flushes - old.flushes,
        compactions: difference(&new.compactions, &old.compactions),
        extents_collected: collected(new) - collected(old),
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

/// Returns the counters of caches in the run; `None` if the design has no cache.
fn caches(spec: &BenchSpec, before: &EngineStats, after: &EngineStats) -> Option<CacheStats> {
    let has_caches =
        matches!(spec.design.index(), IndexOptions::Lsm(options) if options.cache_bytes() > 0);
    has_caches.then(|| after.caches.since(&before.caches))
}

/// Returns the counters of iterators in the run; `None` if there were no iterators.
fn iterators(
    before: &EngineStats,
    after: &EngineStats,
    subject: &impl Subject,
) -> Option<IteratorResult> {
    let counts = after.iterators.since(&before.iterators);
    let memory = subject.index().lsm().map(|engine| engine.snapshot_memory().total());
    (counts.created > 0).then(|| IteratorResult {
        counts,
        snapshots_expired: after.snapshots_expired - before.snapshots_expired,
        memory: memory.unwrap_or(0),
    })
}

/// Returns the counters of tables in the run; `None` if the design has no tables.
fn tables(before: &Snapshot, after: &Snapshot, subject: &impl Subject) -> Option<TableStats> {
    let is_leveled = subject.index().lsm().is_some_and(Engine::is_leveled);
    is_leveled.then(|| after.engine.tables.since(&before.engine.tables))
}

pub(crate) fn verification(run: &RunReport) -> Verification {
    Verification {
        checked: run.count(OpKind::Get),
        checked_pairs: run.scanned_pairs,
        mismatches: run.mismatch_count,
        first_mismatch: run.mismatches.first().map(ToString::to_string),
        errors: run.error_count,
        first_error: run.first_error.clone(),
    }
}

/// Returns the increase of each counter from `before` to `after`. Counters that `before` lacks were
/// 0.
pub fn difference(after: &[u64], before: &[u64]) -> Vec<u64> {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}
