//! What `levelhead bench --trace` is asked to replay, and when its operations begin.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use lab::bench::{Before, KvTrace, TraceSpec};
use workload::ClientOptions;
use workload::trace::kv::KvFormat;

use super::arguments::BenchArguments;
use super::spec::{DEFAULT_WORKLOAD, workload_argument};
use crate::values;

#[derive(Args, Clone)]
pub(super) struct TraceArguments {
    /// In the place of the workload's run a trace to replay: CSV of Twitter's caches, or `RocksDB`'s as `trace_analyzer` writes it
    /// for people (docs/traces.md). Nothing is loaded before it, unless --trace-load, --records or --fill says so, or it runs on a --drive; --operations are
    /// those of it, at most
    #[arg(long, value_name = "FILE", value_delimiter = ',', conflicts_with_all = ["rate", "store"])]
    pub(super) trace: Vec<PathBuf>,
    /// The format of the trace [default: found out]
    #[arg(long, requires = "trace", value_parser = values::trace_format)]
    pub(super) trace_format: Option<KvFormat>,
    /// Load the keys that the trace gets before it puts them
    #[arg(long, requires = "trace", conflicts_with_all = ["records", "fill", "drive"])]
    pub(super) trace_load: bool,
    /// Replay as fast as --queue-depth allows, and not as recorded
    #[arg(
        long,
        alias = "replay_no_stall",
        requires = "trace",
        conflicts_with = "replay_time_scale"
    )]
    pub(super) replay_no_stall: bool,
    /// How fast the trace is replayed, in percent of the recorded speed: 200 is twice as fast [default: 100]
    #[arg(long, alias = "replay_time_scale", requires = "trace", value_delimiter = ',', value_parser = values::speed)]
    pub(super) replay_time_scale: Vec<f64>,
}

/// The trace that is to be replayed, looked at from beginning to end.
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
    if before != Before::Workload && workload_argument(arguments) != DEFAULT_WORKLOAD {
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

/// When operations begin: as a trace says, unless that is not wanted.
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
