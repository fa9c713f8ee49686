//! The inputs of a run, as a part of its result.

use std::collections::BTreeMap;

use catalogue::Table;
use serde::Serialize;
use serde_json::{Value, json};
use workload::{Pace, Properties};

use crate::bench::{BenchSpec, TraceSpec};
use crate::device::{Job, Trace};
use crate::platform::Platform;
use crate::traces::TraceInput;

/// The inputs of a run. With the inputs and the same version of this program, the run can be
/// repeated.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Inputs {
    /// Files by kind (`design`, `device`, `host`, `configuration`, `job`), as objects of their
    /// keys. An overridden key has the value in effect. A key that no file sets is absent: it has
    /// the program's default.
    #[serde(flatten)]
    pub files: BTreeMap<&'static str, Value>,
    /// Properties of the workload, from all sources.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
    /// Traces that were replayed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceInput>,
    /// Options that no file has, by name: they are set by flags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<&'static str, Value>,
}

impl Inputs {
    /// Returns the inputs with these files.
    pub fn of_files(files: impl IntoIterator<Item = (&'static str, Table)>) -> Self {
        let value = |table| serde_json::to_value(table).expect("tables become JSON");
        let files = files.into_iter().map(|(kind, table)| (kind, value(table)));
        Self { files: files.collect(), ..Self::default() }
    }

    /// Returns the inputs of a job on a block drive: the tables of both files, and the traces of
    /// the job.
    pub fn of_job(device: Table, job: Table, of: &Job) -> Self {
        let mut inputs = Self::of_files([("device", device), ("job", job)]);
        let traces = of.streams.iter().filter_map(|stream| stream.trace.as_ref());
        inputs.traces = traces.map(Trace::input).collect();
        inputs
    }

    /// Returns the inputs with the properties of a workload.
    #[must_use]
    pub fn with_properties(mut self, properties: &Properties) -> Self {
        let all = properties.iter();
        self.properties =
            all.map(|(name, p)| (name.to_owned(), p.value.trim().to_owned())).collect();
        self
    }

    /// Returns the inputs with the options and the trace of a bench.
    #[must_use]
    pub fn with_options_of(mut self, spec: &BenchSpec) -> Self {
        let (rate, arrivals) = match spec.clients.pace {
            Pace::Closed { .. } => (None, None),
            Pace::Open { rate, arrivals, .. } => {
                (Some(rate), Some(format!("{arrivals:?}").to_lowercase()))
            }
            Pace::Recorded { .. } => (None, Some("recorded".to_owned())),
        };
        self.options.insert("queue_depth", json!(spec.clients.pace.outstanding()));
        self.options.insert("rate", json!(rate));
        self.options.insert("arrivals", json!(arrivals));
        self.options.insert("ages", json!(spec.ages));
        if let Some(TraceSpec { trace, before, operations }) = &spec.trace {
            self.traces = vec![trace.input()];
            self.options.insert("before_trace", json!(before));
            self.options.insert("trace_operations", json!(operations));
            if let Pace::Recorded { stretch, .. } = spec.clients.pace {
                // Nine decimals restore the given value, without the error of the division.
                let percent = (100.0 / stretch * 1e9).round() / 1e9;
                self.options.insert("replay_time_scale", json!(percent));
            }
        }
        if spec.at_rest {
            self.options.insert("drive_at_rest", json!(true));
        }
        if let Platform::Host(storage) = &spec.platform {
            self.options.insert("precondition", json!(spec.precondition.name()));
            self.options.insert("partitions", json!(storage.partitions));
            self.options.insert("layout", json!(storage.arrangement.name()));
            self.options.insert("journal", json!(storage.journal.name()));
            self.options.insert("windows", json!(storage.windows.name()));
            self.options.insert("plm_cache_bytes", json!(storage.plm_cache_bytes));
            self.options.insert("hedge_after_us", json!(storage.hedge_after_us));
        }
        self
    }
}
