//! The result of a host's store on a block drive: its I/O, its limits and its windows.

use blockbench::Before;
use stacks::host::{JournalPlace, Storage};
use stacks::limiter::{LimiterOptions, LimiterStats};

use crate::platform::Platform;
use crate::result::{BlockDriveResult, GetTimesResult, HedgesResult, WindowsResult};
use crate::snapshot::Snapshot;
use crate::spec::BenchSpec;
use crate::target::Subject;

/// The share of Gets that count as the slowest: those from p99.9 on.
const SLOWEST: f64 = 0.001;

/// Returns the place of the journal, unless that is with the data.
fn journal_apart(storage: &Storage) -> Option<&'static str> {
    match storage.journal {
        JournalPlace::Beside => None,
        own @ JournalPlace::OwnSet => Some(own.name()),
    }
}

/// Returns the I/O of the host's store to its drive; `None` on a KV drive.
pub(super) fn block_drive(
    spec: &BenchSpec,
    loaded: Option<&Snapshot>,
    before: &Snapshot,
    after: &Snapshot,
) -> Option<BlockDriveResult> {
    let Platform::Host(storage) = &spec.platform else { return None };
    let loaded = loaded?;
    let (old, new) = (before.blocks?, after.blocks?);
    let of_load = loaded.blocks?.blocks_written;
    let per_user_byte = |blocks: u64, bytes: u64| {
        (bytes > 0).then(|| (blocks * u64::from(block::BLOCK_BYTES)) as f64 / bytes as f64)
    };
    let of_run = after.engine.user_bytes - before.engine.user_bytes;
    Some(BlockDriveResult {
        host: storage.host.name.clone(),
        precondition: (spec.precondition != Before::Empty).then(|| spec.precondition.name()),
        partitions: storage.partitions,
        layout: storage.arrangement.name(),
        journal: journal_apart(storage),
        blocks_read: new.blocks_read - old.blocks_read,
        blocks_written: new.blocks_written - old.blocks_written,
        load_blocks_written: of_load,
        load_store_write_amplification: per_user_byte(of_load, loaded.engine.user_bytes),
        run_store_write_amplification: per_user_byte(
            new.blocks_written - old.blocks_written,
            of_run,
        ),
        drive_write_amplification: new.write_amplification(),
        hedges: hedges(storage, before, after),
        gets: get_times(before, after),
    })
}

/// Returns the time of the Gets of the run; `None` if there were none, or on a KV drive.
fn get_times(before: &Snapshot, after: &Snapshot) -> Option<GetTimesResult> {
    let run = after.gets.as_ref()?.since(before.gets.as_ref()?);
    let (all, slowest) = (run.all(), run.slowest(SLOWEST));
    (all.gets > 0).then(|| GetTimesResult {
        mean_us: all.mean_us(),
        storage_share: all.storage_share(),
        slowest: slowest.gets,
        slowest_mean_us: slowest.mean_us(),
        slowest_storage_share: slowest.storage_share(),
    })
}

/// Returns the counters of hedged reads in the run; `None` without hedging.
fn hedges(storage: &Storage, before: &Snapshot, after: &Snapshot) -> Option<HedgesResult> {
    let (old, new) = (before.volume?, after.volume?);
    let of = |after_us| HedgesResult {
        after_us,
        reads: new.hedged_reads - old.hedged_reads,
        won: new.hedges_won - old.hedges_won,
    };
    storage.hedge_after_us.map(of)
}

/// Returns the counters of limits on background I/O in the run; `None` if the design has no limit.
pub(super) fn limiter(
    spec: &BenchSpec,
    before: &Snapshot,
    after: &Snapshot,
) -> Option<LimiterStats> {
    if spec.design.limiter == LimiterOptions::default() {
        return None;
    }
    Some(after.limiter?.since(&before.limiter?))
}

/// Returns the counters of windows since they were turned on, which is when the run began.
pub(super) fn windows(spec: &BenchSpec, subject: &impl Subject) -> Option<WindowsResult> {
    let Platform::Host(storage) = &spec.platform else { return None };
    let stats = subject.windowing()?.stats()?;
    let reads = stats.cached_reads + stats.direct_reads + stats.rebuilt_reads;
    Some(WindowsResult {
        policy: storage.windows.name(),
        cached_reads: stats.cached_reads,
        direct_reads: stats.direct_reads,
        rebuilt_reads: stats.rebuilt_reads,
        rebuilt_share: stats.rebuilt_reads as f64 / reads.max(1) as f64,
        busy_reads: stats.busy_reads,
        slot_reads: stats.slot_reads,
        internal_reads: stats.internal_reads,
        writes_in_dtwin: stats.writes_in_dtwin,
        lost_windows: stats.lost_windows,
        stripes: stats.stripes,
        waits_for_room: stats.waits_for_room,
        waited_seconds: stats.waited.as_secs_f64(),
        most_cached_bytes: stats.most_cached,
        slots: stats.slots,
        long_slots: stats.long_slots,
        unfinished_slots: stats.unfinished_slots,
        udt_seconds: stats.udt.as_secs_f64(),
        and_seconds: stats.and.as_secs_f64(),
        und_seconds: stats.und.as_secs_f64(),
        lockdown_seconds: stats.lockdown.as_secs_f64(),
        slot_bytes: stats.slot_bytes,
    })
}
