//! The inputs of a run, as a part of its result.

use std::collections::BTreeMap;

use catalogue::Table;
use serde::Serialize;
use serde_json::Value;
use workload::Properties;

use crate::job::Job;
use crate::replay::Trace;
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
}
