//! Makes the result of a bench in real time from its counters.

use std::collections::BTreeMap;

use engine::EngineStats;
use levelhead::{Durability, Inside};
use report::late::late_s;
use workload::OpKind;

use super::counters::{DiskBytes, Phases};
use super::spec::LiveSpec;
use crate::result::{BenchResult, IteratorResult, LevelResult, LoadResult, StoreResult};
use crate::summary::{
    background, clients_text, difference, interrupted, memory, operations, verification,
};

/// Returns the result of a bench.
pub(super) fn summarise(spec: &LiveSpec, phases: &Phases) -> BenchResult {
    let Phases { load, run, before_run, after_run, settled, .. } = phases;
    let (before, after) = (&before_run.inside.stats, &after_run.inside.stats);
    let key_bytes = spec.workload.keys.key_bytes() as u64;
    let amplification = store_amplification(phases);
    BenchResult {
        levelhead: env!("CARGO_PKG_VERSION"),
        configuration: None,
        design: "levelhead".to_owned(),
        device: spec.place.clone(),
        workload: spec.workload_name.clone(),
        seed: spec.seed,
        inputs: None,
        records: spec.workload.insert_count,
        key_bytes,
        value_bytes: u64::from(spec.workload.values.longest_bytes()),
        mean_value_bytes: before.user_bytes as f64 / spec.workload.insert_count as f64
            - key_bytes as f64,
        interrupted: interrupted(run),
        trace: None,
        clients: clients_text(&spec.clients),
        operations: operations(run),
        throughput_ops_per_second: run.throughput(),
        late_s: late_s(run.late, run.elapsed().as_secs_f64()),
        flash_reads_per_get: difference(
            after.reads_per_get.counts(),
            before.reads_per_get.counts(),
        ),
        flash_reads_bound: None,
        flash_reads_bound_least: None,
        write_amplification: amplification.all,
        run_write_amplification: amplification.run,
        memory_bytes: memory(&settled.inside.memory, spec.memory_bytes, &settled.inside.stats),
        levels: levels(&settled.inside),
        first_level: 1,
        index: None,
        virtual_seconds: run.elapsed().as_secs_f64(),
        load: LoadResult {
            virtual_seconds: load.elapsed().as_secs_f64(),
            throughput_ops_per_second: load.throughput(),
            write_amplification: amplification.load,
            pages_read: BTreeMap::new(),
            pages_programmed: BTreeMap::new(),
            accelerator: None,
            put: load.summary(OpKind::Put).unwrap_or_default(),
        },
        ageing: None,
        flash: background(before, &settled.inside.stats),
        caches: Some(after.caches.since(&before.caches)),
        iterators: iterators(before, after),
        tables: None,
        block_drive: None,
        limiter: None,
        windows: None,
        store: Some(store(spec, phases)),
        verification: verification(run),
        host: None,
    }
}

/// Bytes written to drives per byte of keys and values. Each value includes the settling after its
/// phase.
struct Amplification {
    load: Option<f64>,
    run: Option<f64>,
    all: Option<f64>,
}

fn store_amplification(phases: &Phases) -> Amplification {
    let of = |from: Option<DiskBytes>, to: Option<DiskBytes>, bytes: u64| {
        let written = to?.written - from?.written;
        (bytes > 0).then(|| written as f64 / bytes as f64)
    };
    let (first, middle, last) = (phases.before_load, &phases.before_run, &phases.settled);
    let (loaded, all) = (middle.inside.stats.user_bytes, last.inside.stats.user_bytes);
    Amplification {
        load: of(first, middle.disk, loaded),
        run: of(middle.disk, last.disk, all - loaded),
        all: of(first, last.disk, all),
    }
}

fn store(spec: &LiveSpec, phases: &Phases) -> StoreResult {
    let between = |from: Option<DiskBytes>, to: Option<DiskBytes>| {
        let (from, to) = (from?, to?);
        Some(DiskBytes { read: to.read - from.read, written: to.written - from.written })
    };
    let load = between(phases.before_load, phases.before_run.disk);
    let run = between(phases.before_run.disk, phases.after_run.disk);
    let settling = between(phases.after_run.disk, phases.settled.disk);
    StoreResult {
        directories: spec.directories,
        durability: match spec.durability {
            Durability::None => "none",
            Durability::Interval => "interval",
            Durability::Group => "group",
            Durability::Each => "each",
        },
        disk_bytes_read: run.map(|bytes| bytes.read),
        disk_bytes_written: run.map(|bytes| bytes.written),
        settling_disk_bytes_written: settling.map(|bytes| bytes.written),
        load_disk_bytes_written: load.map(|bytes| bytes.written),
        load_settle_seconds: phases.settle_seconds[0],
        settle_seconds: phases.settle_seconds[1],
    }
}

fn levels(inside: &Inside) -> Vec<LevelResult> {
    let levels = inside.levels.iter().map(|level| LevelResult {
        segments: level.segments,
        entries: level.entries,
        capacity_segments: level.capacity_segments,
        is_pinned: level.is_pinned,
    });
    levels.collect()
}

fn iterators(before: &EngineStats, after: &EngineStats) -> Option<IteratorResult> {
    let counts = after.iterators.since(&before.iterators);
    let snapshots_expired = after.snapshots_expired - before.snapshots_expired;
    (counts.created > 0).then_some(IteratorResult { counts, snapshots_expired, memory: 0 })
}
