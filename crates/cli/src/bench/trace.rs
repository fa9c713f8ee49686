//! The trace that `levelhead bench --trace` replays, and the arrival times of its operations.

use anyhow::bail;
use kvbench::{Before, KvTrace, TraceSpec};
use workload::ClientOptions;

use super::arguments::{BenchArguments, DEFAULT_WORKLOAD};

/// Returns the trace to replay, after a scan of the whole trace.
pub(super) fn of(arguments: &BenchArguments) -> anyhow::Result<Option<TraceSpec>> {
    let Some(path) = arguments.replay.trace.first() else { return Ok(None) };
    let before = if arguments.replay.trace_load {
        Before::MetFirst
    } else if arguments.fill.is_some() || !arguments.records.is_empty() {
        Before::Workload
    } else {
        Before::Nothing
    };
    if before != Before::Workload && arguments.age {
        bail!(
            "--age overwrites the workload's pairs before the trace: load some, by --fill or --records"
        );
    }
    if before != Before::Workload && arguments.workload() != DEFAULT_WORKLOAD {
        bail!(
            "--workload says what is loaded before a trace: say how much, by --fill or --records"
        );
    }
    if before != Before::Workload && arguments.save_drive.is_some() {
        bail!(
            "--save-drive keeps what the workload loaded before the trace, and nothing of the trace: load some, by --fill or --records"
        );
    }
    if arguments.property.iter().any(|(name, _)| name.trim() == "target") {
        bail!(
            "-p target: a trace says when its operations begin; --replay-time-scale makes it faster"
        );
    }
    let Some(path) = path.to_str() else { bail!("--trace: a path that is no text (UTF-8)") };
    let trace = KvTrace::look(path, arguments.replay.trace_format)?;
    let operations = arguments.operations.first().copied().unwrap_or(u64::MAX);
    let operations = operations.min(trace.survey.operations());
    Ok(Some(TraceSpec { trace, before, operations }))
}

/// Returns the clients with the arrivals of the trace: as recorded, scaled, or as fast as possible.
pub(super) fn paced(
    clients: ClientOptions,
    trace: Option<&TraceSpec>,
    arguments: &BenchArguments,
) -> ClientOptions {
    if trace.is_none() {
        return clients;
    }
    let outstanding = clients.pace.outstanding();
    if arguments.replay.replay_no_stall {
        return ClientOptions::closed(outstanding).with_fine_timeline();
    }
    let speed = arguments.replay.replay_time_scale.first().copied().unwrap_or(100.0);
    let recorded = ClientOptions::recorded(100.0 / speed, outstanding);
    recorded.with_fine_timeline()
}
