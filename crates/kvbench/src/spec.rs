//! The specification of a bench.

use blockbench::inputs::Inputs;
use blockbench::traces::KvTrace;
use runtime::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stacks::design::Design;
use workload::trace::kv::KvSurvey;
use workload::{ClientOptions, CoreWorkload, Pace};

use crate::platform::Platform;

/// The workload of a bench, the design and platform under it, and the options of the run.
#[derive(Clone, Debug)]
pub struct BenchSpec {
    /// The configuration that design and platform come from, by name; `None` if none was given.
    pub configuration: Option<String>,
    /// The design.
    pub design: Design,
    /// The platform that the design runs on.
    pub platform: Platform,
    /// The workload's name in results.
    pub workload_name: String,
    /// The workload.
    pub workload: CoreWorkload,
    /// The clients of the run. The load is a closed loop with as many outstanding operations.
    pub clients: ClientOptions,
    /// A trace, replayed in place of the workload's operations.
    pub trace: Option<TraceSpec>,
    /// Seed of all randomness.
    pub seed: u64,
    /// The preconditioning of a block drive. A KV drive begins empty.
    pub precondition: blockbench::Before,
    /// Whether the loaded drive is aged to its steady state before the run.
    pub ages: bool,
    /// Whether background work ends before the run, as on a saved drive.
    pub at_rest: bool,
    /// The interval at which the run samples memory; `None` for no samples.
    pub sample_every: Option<Nanos>,
}

/// The contents of the store before a trace. Results have these names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// No pairs.
    Nothing,
    /// The keys that the trace reads before it writes them, with values of the lengths read.
    #[serde(rename = "keys met first")]
    MetFirst,
    /// The pairs of the workload, which have other keys than the trace.
    Workload,
}

/// A trace and its replay. [`BenchSpec::clients`] determines when its operations begin.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceSpec {
    /// The trace.
    pub trace: KvTrace,
    /// The pairs loaded before the replay.
    pub before: Before,
    /// Maximum number of operations to replay.
    pub operations: u64,
}

impl TraceSpec {
    /// Returns the assumed length of a value whose length the trace does not record, in bytes: the
    /// mean of its puts, or 100 if it has none.
    pub(crate) fn usual_value_bytes(&self) -> u32 {
        const WITHOUT_PUTS: u32 = 100;
        let KvSurvey { puts, read_modify_writes, mean_value, .. } = self.trace.survey;
        if puts + read_modify_writes > 0 { mean_value.round() as u32 } else { WITHOUT_PUTS }
    }
}

/// Lengths of a key and its value, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PairBytes {
    pub key: usize,
    pub value: u32,
}

impl BenchSpec {
    /// Whether the workload's pairs are loaded.
    pub(crate) fn loads_workload(&self) -> bool {
        self.trace.as_ref().is_none_or(|trace| trace.before == Before::Workload)
    }

    /// Returns the lengths of the longest key and the longest value.
    pub(crate) fn longest_pair(&self) -> PairBytes {
        let (keys, values) = (&self.workload.keys, &self.workload.values);
        let of_workload = PairBytes { key: keys.key_bytes(), value: values.longest_bytes() };
        let Some(spec) = &self.trace else { return of_workload };
        let survey = &spec.trace.survey;
        let key = survey.longest_key as usize + survey.family_bytes();
        let of_trace = PairBytes { key, value: survey.longest_value.max(spec.usual_value_bytes()) };
        if self.loads_workload() {
            PairBytes {
                key: of_trace.key.max(of_workload.key),
                value: of_trace.value.max(of_workload.value),
            }
        } else {
            of_trace
        }
    }

    /// Returns the approximate mean lengths of keys and of values.
    pub(crate) fn typical_pair(&self) -> PairBytes {
        match &self.trace {
            Some(spec) if !self.loads_workload() => PairBytes {
                key: (spec.trace.survey.mean_key.round() as usize
                    + spec.trace.survey.family_bytes())
                .max(1),
                value: spec.usual_value_bytes(),
            },
            _ => PairBytes {
                key: self.workload.keys.key_bytes(),
                value: self.workload.values.typical_bytes(),
            },
        }
    }

    /// Returns the lengths that a store is planned for. For a trace these are the typical lengths,
    /// because its longest values may be a thousand times as long.
    pub(crate) fn expected_pair(&self) -> PairBytes {
        if self.trace.is_some() { self.typical_pair() } else { self.longest_pair() }
    }

    /// Returns the approximate number of loaded pairs.
    pub(crate) fn loaded(&self) -> u64 {
        match &self.trace {
            Some(TraceSpec { before: Before::Nothing, .. }) => 0,
            Some(TraceSpec { before: Before::MetFirst, trace, .. }) => trace.survey.met_first,
            _ => self.workload.insert_count,
        }
    }

    /// Returns the planned number of operations of the run.
    pub(crate) fn operations(&self) -> u64 {
        self.trace.as_ref().map_or(self.workload.operation_count, |trace| trace.operations)
    }

    /// Returns inputs with the options and the trace of this bench.
    #[must_use]
    pub fn added_to(&self, inputs: Inputs) -> Inputs {
        let mut inputs = inputs;
        let (rate, arrivals) = match self.clients.pace {
            Pace::Closed { .. } => (None, None),
            Pace::Open { rate, arrivals, .. } => {
                (Some(rate), Some(format!("{arrivals:?}").to_lowercase()))
            }
            Pace::Recorded { .. } => (None, Some("recorded".to_owned())),
        };
        inputs.options.insert("queue_depth", json!(self.clients.pace.outstanding()));
        inputs.options.insert("rate", json!(rate));
        inputs.options.insert("arrivals", json!(arrivals));
        inputs.options.insert("ages", json!(self.ages));
        if let Some(TraceSpec { trace, before, operations }) = &self.trace {
            inputs.traces = vec![trace.input()];
            inputs.options.insert("before_trace", json!(before));
            inputs.options.insert("trace_operations", json!(operations));
            if let Pace::Recorded { stretch, .. } = self.clients.pace {
                // Nine decimals restore the given value, without the error of the division.
                let percent = (100.0 / stretch * 1e9).round() / 1e9;
                inputs.options.insert("replay_time_scale", json!(percent));
            }
        }
        if self.at_rest {
            inputs.options.insert("drive_at_rest", json!(true));
        }
        if let Platform::Host(storage) = &self.platform {
            inputs.options.insert("precondition", json!(self.precondition.name()));
            inputs.options.insert("partitions", json!(storage.partitions));
            inputs.options.insert("layout", json!(storage.arrangement.name()));
            inputs.options.insert("journal", json!(storage.journal.name()));
            inputs.options.insert("windows", json!(storage.windows.name()));
            inputs.options.insert("plm_cache_bytes", json!(storage.plm_cache_bytes));
            inputs.options.insert("hedge_after_us", json!(storage.hedge_after_us));
        }
        inputs
    }
}
