//! The JSON output of `levelhead device`. Field names are the interface: change them with care.
//!
//! Everything except `host` is a function of the inputs and the seed: the same bytes every time.

use std::collections::BTreeMap;

use block::BLOCK_BYTES;
use drives::ssd::SetReport;
use report::late::late_s;
use report::resolution;
use runtime::Nanos;
use serde::Serialize;
use workload::trace::block::BlockFormat;
use workload::{Latencies, LatencySummary};

use crate::device::DeviceSpec;
use crate::flash_work::{pages, reads_behind};
use crate::inputs::Inputs;
use crate::operation::Direction;
use crate::replay::Trace;
use crate::report::{DirectionReport, JobReport, SetChange, StreamReport, WindowReport};
use crate::sets::SetChoice;
use crate::skew::Distribution;
use crate::stream::StreamSpec;

/// The result of a job on a drive.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceResult {
    /// Version of this program.
    pub levelhead: &'static str,
    /// Name of the drive.
    pub profile: String,
    /// Name of the job.
    pub job: String,
    /// Description of the job.
    pub description: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// All inputs: files key by key. Absent if the caller did not set them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// Whether the job was interrupted: all numbers cover the time until then. Absent if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Virtual time of the job, in seconds.
    pub virtual_seconds: f64,
    /// The streams, in the order of the job.
    pub streams: Vec<StreamResult>,
    /// The window commands, in the order of issue.
    pub windows: Vec<WindowResult>,
    /// Each set of the drive: its counters for the job, and its state at the end.
    pub sets: Vec<SetResult>,
    /// The checks of reads.
    pub verification: VerificationResult,
    /// The only part that depends on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<DeviceHost>,
}

/// The result of a stream.
#[derive(Clone, Debug, Serialize)]
pub struct StreamResult {
    /// Name.
    pub name: String,
    /// Number of the set, or `all`.
    pub set: SetChoice,
    /// The operations, in the terms of fio.
    pub rw: &'static str,
    /// Bytes of an operation; the mean if sizes differ.
    pub block_bytes: u64,
    /// Sizes of operations in the notation of fio; absent for a single size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_sizes: Option<String>,
    /// The distribution of random operations in the notation of fio; absent if the job does not set
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_distribution: Option<String>,
    /// Whether random operations visit each place once before they visit one again; absent for
    /// operations in order and for distributions that are not uniform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_map: Option<bool>,
    /// The replayed trace; absent without a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceResult>,
    /// Share of reads in the operations, from 0 to 1.
    pub read_share: f64,
    /// Share of trims in the operations that do not read, from 0 to 1; absent without trims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim_share: Option<f64>,
    /// Operations per second of all directions in an open loop; null for a closed loop.
    pub rate: Option<f64>,
    /// Outstanding operations: exactly this many in a closed loop, at most this many in an open
    /// loop.
    pub depth: u32,
    /// Number of concurrent jobs of the stream, each with this rate and depth; absent for one job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numjobs: Option<u32>,
    /// Time from the intended to the actual start of the last operation, in seconds; absent for
    /// closed loops, and if at most 1 % of the stream's duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_s: Option<f64>,
    /// Start, in seconds of virtual time from the start of the job.
    pub start_s: f64,
    /// Time from the start to the end of the last operation, in seconds.
    pub virtual_seconds: f64,
    /// Results by direction: `read`, `write`, `flush`, `trim`; only those that occurred.
    pub directions: BTreeMap<&'static str, DirectionResult>,
}

/// A replayed trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceResult {
    /// The file name.
    pub file: String,
    /// Format.
    pub format: &'static str,
    /// The action of blktrace that counts; absent for other formats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'static str>,
    /// Operations of the trace.
    pub operations: u64,
    /// Recorded time from the beginning to the last operation, in seconds; null without recorded
    /// times.
    pub span_s: Option<f64>,
    /// Speed of the replay, in percent of the recorded speed; null if operations followed each
    /// other as fast as possible.
    pub speed_percent: Option<f64>,
    /// Files, devices or disks in the trace, at most 256: all were replayed onto one.
    pub sources: u64,
    /// Operations of zero bytes, or without an address, that were left out.
    pub left_out: u64,
    /// Operations with an earlier recorded time than the previous one, whose time they get.
    pub out_of_order: u64,
    /// Operations that crossed the end of the stream's part of the drive, or were beyond it, and
    /// wrapped around.
    pub wrapped: u64,
    /// Operations that did not begin and end at blocks of 4 KiB, and were fitted to whole blocks.
    pub widened: u64,
    /// Trims of no whole block, which were dropped.
    pub dropped_trims: u64,
}

/// The result of a direction of a stream.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionResult {
    /// Operations.
    pub operations: u64,
    /// Blocks of 4 KiB.
    pub blocks: u64,
    /// Operations per second of virtual time.
    pub operations_per_second: f64,
    /// Bytes per second of virtual time.
    pub bytes_per_second: f64,
    /// Latencies, in an open loop from the intended start.
    #[serde(serialize_with = "resolution::one")]
    pub latency: LatencySummary,
    /// Latencies of operations that began and ended while the set was in its deterministic window:
    /// after the host's command completed, and before the host or the drive left the window. Absent
    /// without such operations, as are the next two.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "resolution::some")]
    pub latency_in_dtwin: Option<LatencySummary>,
    /// Latencies of operations that began after the set entered the window, and ended after the
    /// drive left it without a command of the host.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "resolution::some")]
    pub latency_after_drive_left: Option<LatencySummary>,
    /// Latencies of all other operations, if the set has window commands.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "resolution::some")]
    pub latency_outside_dtwin: Option<LatencySummary>,
}

/// A window command.
#[derive(Clone, Debug, Serialize)]
pub struct WindowResult {
    /// Number of the set.
    pub set: u16,
    /// The requested window.
    pub to: &'static str,
    /// Time of the command, in seconds from the start of the job.
    pub asked_s: f64,
    /// Duration of the command, in milliseconds.
    pub took_ms: f64,
    /// The drive's estimate of the lockdown time immediately before the command, in milliseconds.
    pub lockdown_estimate_ms: Option<f64>,
}

/// The counters of a set for the job, and its state.
#[derive(Clone, Debug, Serialize)]
pub struct SetResult {
    /// Number of the set.
    pub set: u16,
    /// Blocks read by clients.
    pub blocks_read: u64,
    /// Of these, blocks found in the write buffer.
    pub buffer_hits: u64,
    /// Of these, blocks that were read ahead.
    pub cache_hits: u64,
    /// Blocks written by clients.
    pub blocks_written: u64,
    /// Of these, blocks that were delayed by write pacing.
    pub blocks_paced: u64,
    /// Total delay by write pacing, in seconds.
    pub paced_seconds: f64,
    /// Slots programmed per block written by clients; null if clients wrote none.
    pub write_amplification: Option<f64>,
    /// Slots programmed with client data.
    pub slots_flushed: u64,
    /// Slots programmed with moved blocks.
    pub slots_moved: u64,
    /// Slots programmed with padding.
    pub slots_wasted: u64,
    /// Superblocks collected because space ran low.
    pub collections: u64,
    /// Superblocks collected because they lagged behind in wear.
    pub wear_moves: u64,
    /// Erase blocks whose data moved because of many reads (read reclaim).
    pub reclaims: u64,
    /// Times that the flush of the buffer waited for garbage collection.
    pub starvations: u64,
    /// Logical blocks that the flash lost.
    pub blocks_lost: u64,
    /// Discards that were ignored for lack of room to remember them.
    pub discards_ignored: u64,
    /// Deterministic windows entered.
    pub windows_entered: u64,
    /// Of these, windows ended by the drive, not by the host.
    pub windows_broken: u64,
    /// Free superblocks at the start.
    pub free_superblocks_before: u32,
    /// Free superblocks at the end.
    pub free_superblocks: u32,
    /// Superblocks for data.
    pub superblocks: u32,
    /// Least and most erases of a superblock, at the end.
    pub wear: (u32, u32),
    /// Pages read by class of I/O.
    pub pages_read: BTreeMap<&'static str, u64>,
    /// Pages programmed by class of I/O.
    pub pages_programmed: BTreeMap<&'static str, u64>,
    /// Erase blocks erased.
    pub blocks_erased: u64,
    /// Client reads by the operation that occupied their die on arrival.
    pub client_reads_behind: BTreeMap<&'static str, u64>,
    /// Programs and erases suspended for a read.
    pub suspends: u64,
}

/// The checks of reads, and the first error.
#[derive(Clone, Debug, Serialize)]
pub struct VerificationResult {
    /// Whether the job checks reads.
    pub enabled: bool,
    /// Blocks that were read and checked.
    pub checked: u64,
    /// Reads that returned a wrong block.
    pub mismatches: u64,
    /// The first mismatch, as text.
    pub first_mismatch: Option<String>,
    /// The first failed operation, as text.
    pub first_error: Option<String>,
}

/// Values that depend on the machine.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceHost {
    /// Wall time to prepare the drive, in seconds.
    pub setup_wall_seconds: f64,
    /// Wall time of the job, in seconds.
    pub wall_seconds: f64,
    /// Operations of the job per second of its wall time.
    pub simulated_ops_per_wall_second: f64,
    /// Peak memory of this program, in bytes.
    pub peak_rss_bytes: u64,
}

impl DeviceResult {
    /// Converts a report to its JSON form.
    pub fn new(spec: &DeviceSpec, report: &JobReport) -> Self {
        let streams = spec.job.streams.iter().zip(&report.streams);
        let checks = &report.checks;
        Self {
            levelhead: env!("CARGO_PKG_VERSION"),
            profile: spec.profile.name.clone(),
            job: spec.job.name.clone(),
            description: spec.job.description.clone(),
            seed: spec.seed,
            inputs: None,
            interrupted: report.is_interrupted,
            virtual_seconds: report.elapsed().as_secs_f64(),
            streams: streams.map(|(spec, stream)| of_stream(spec, stream)).collect(),
            windows: report.windows.iter().map(of_window).collect(),
            sets: report.sets.iter().map(of_set).collect(),
            verification: VerificationResult {
                enabled: spec.job.verify,
                checked: checks.blocks,
                mismatches: checks.mismatches,
                first_mismatch: checks.first_mismatch.as_ref().map(ToString::to_string),
                first_error: report.first_error.clone(),
            },
            host: None,
        }
    }
}

fn of_stream(spec: &StreamSpec, stream: &StreamReport) -> StreamResult {
    let seconds = stream.elapsed().as_secs_f64();
    let of = |part: &DirectionReport| of_direction(part, seconds);
    let block_sizes = spec.several_sizes();
    let distribution = spec.random_distribution.as_ref();
    let trim_share = spec.trim_share();
    let is_uniform = spec.rw.is_random() && distribution.is_none_or(Distribution::is_uniform);
    StreamResult {
        name: stream.name.clone(),
        set: stream.set.map_or(SetChoice::All, |set| SetChoice::One(set.get())),
        rw: spec.rw.name(),
        trace: spec.trace.as_ref().map(|trace| of_trace(spec, trace, stream)),
        block_bytes: if block_sizes.is_some() || spec.trace.is_some() {
            mean_bytes(stream)
        } else {
            *spec.block_bytes.of(spec.directions().first().copied().unwrap_or(Direction::Read))
        },
        block_sizes,
        random_distribution: distribution.map(ToString::to_string),
        random_map: is_uniform.then(|| spec.has_map()),
        read_share: spec.read_share(),
        trim_share: (trim_share > 0.0).then_some(trim_share),
        rate: spec.total_rate(),
        depth: spec.outstanding(),
        numjobs: spec.numjobs.filter(|jobs| *jobs > 1),
        late_s: late_s(stream.late, seconds),
        start_s: stream.started.as_secs_f64(),
        virtual_seconds: seconds,
        directions: stream.parts().map(|(d, part)| (d.name(), of(part))).collect(),
    }
}

fn of_trace(spec: &StreamSpec, trace: &Trace, stream: &StreamReport) -> TraceResult {
    let survey = &trace.survey;
    let is_paced = spec.is_paced_by_its_trace();
    let fitted = stream.fitted.unwrap_or_default();
    TraceResult {
        file: trace.name(),
        format: survey.format.name(),
        action: (survey.format == BlockFormat::Blkparse).then(|| survey.action.letter()),
        operations: survey.operations(),
        span_s: survey.span.map(Nanos::as_secs_f64),
        speed_percent: is_paced.then(|| spec.replay_time_scale.unwrap_or(100.0)),
        sources: survey.sources,
        left_out: survey.left_out,
        out_of_order: survey.out_of_order,
        wrapped: fitted.wrapped,
        widened: fitted.widened,
        dropped_trims: fitted.dropped,
    }
}

/// Returns the mean bytes of a stream's operations, without flushes.
fn mean_bytes(stream: &StreamReport) -> u64 {
    let parts = || stream.parts().filter(|(direction, _)| *direction != Direction::Flush);
    let operations: u64 = parts().map(|(_, part)| part.operations).sum();
    let blocks: u64 = parts().map(|(_, part)| part.blocks).sum();
    blocks * u64::from(BLOCK_BYTES) / operations.max(1)
}

fn of_direction(part: &DirectionReport, seconds: f64) -> DirectionResult {
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    DirectionResult {
        operations: part.operations,
        blocks: part.blocks,
        operations_per_second: per_second(part.operations),
        bytes_per_second: per_second(part.blocks * u64::from(BLOCK_BYTES)),
        latency: part.summary(),
        latency_in_dtwin: part.by_window.as_ref().and_then(|by| some_summary(&by.inside)),
        latency_after_drive_left: part.by_window.as_ref().and_then(|by| some_summary(&by.left)),
        latency_outside_dtwin: part.by_window.as_ref().and_then(|by| some_summary(&by.outside)),
    }
}

fn some_summary(latencies: &Latencies) -> Option<LatencySummary> {
    (!latencies.is_empty()).then(|| latencies.summary())
}

fn of_window(window: &WindowReport) -> WindowResult {
    let ms = |time: runtime::Nanos| time.as_micros_f64() / 1e3;
    WindowResult {
        set: window.set.get(),
        to: window.to.name(),
        asked_s: window.asked.as_secs_f64(),
        took_ms: ms(window.reached - window.asked),
        lockdown_estimate_ms: window.lockdown_estimate.map(ms),
    }
}

fn of_set(change: &SetChange) -> SetResult {
    let SetChange { id, before, after } = change;
    let (old, new) = (&before.firmware, &after.firmware);
    let written = new.blocks_written - old.blocks_written;
    let flushed = new.slots_flushed - old.slots_flushed;
    let moved = new.slots_moved - old.slots_moved;
    let wasted = new.slots_wasted - old.slots_wasted;
    let suspends = |of: &SetReport| of.flash.program_suspends + of.flash.erase_suspends;
    let by_class = |count| pages(&after.flash, Some(&before.flash), count);
    SetResult {
        set: id.get(),
        blocks_read: new.blocks_read - old.blocks_read,
        buffer_hits: new.buffer_hits - old.buffer_hits,
        cache_hits: new.cache_hits - old.cache_hits,
        blocks_written: written,
        blocks_paced: new.blocks_paced - old.blocks_paced,
        paced_seconds: (new.paced_ns - old.paced_ns) as f64 / 1e9,
        write_amplification: (written > 0)
            .then(|| (flushed + moved + wasted) as f64 / written as f64),
        slots_flushed: flushed,
        slots_moved: moved,
        slots_wasted: wasted,
        collections: new.collections - old.collections,
        wear_moves: new.wear_moves - old.wear_moves,
        reclaims: new.reclaims - old.reclaims,
        starvations: new.starvations - old.starvations,
        blocks_lost: new.blocks_lost - old.blocks_lost,
        discards_ignored: new.discards_ignored - old.discards_ignored,
        windows_entered: new.windows_entered - old.windows_entered,
        windows_broken: new.windows_broken - old.windows_broken,
        free_superblocks_before: before.free_superblocks,
        free_superblocks: after.free_superblocks,
        superblocks: after.superblocks,
        wear: after.wear,
        pages_read: by_class(|counts| counts.pages_read),
        pages_programmed: by_class(|counts| counts.pages_programmed),
        blocks_erased: after.flash.total().blocks_erased - before.flash.total().blocks_erased,
        client_reads_behind: reads_behind(&after.flash, Some(&before.flash)),
        suspends: suspends(after) - suspends(before),
    }
}
