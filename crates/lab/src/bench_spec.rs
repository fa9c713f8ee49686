//! What a bench runs.

use design::Design;
use runtime::Nanos;
use serde::{Deserialize, Serialize};
use workload::trace::TraceError;
use workload::trace::kv::{KvFormat, KvSurvey};
use workload::{ClientOptions, CoreWorkload};

use crate::device;
use crate::platform::Platform;
use crate::traces::{self, TraceInput};

/// What to run.
#[derive(Clone, Debug)]
pub struct BenchSpec {
    /// The configuration that the two below were taken from, if one was named.
    pub configuration: Option<String>,
    /// The design.
    pub design: Design,
    /// What it runs on.
    pub platform: Platform,
    /// The workload's name in results.
    pub workload_name: String,
    /// The workload.
    pub workload: CoreWorkload,
    /// How operations are issued in the run; the load is a closed loop of as many.
    pub clients: ClientOptions,
    /// A trace that is replayed in the place of the workload's run.
    pub trace: Option<TraceSpec>,
    /// Seed of all randomness.
    pub seed: u64,
    /// What happened to a block drive before. A KV drive begins empty.
    pub precondition: device::Before,
    /// Whether loaded pairs are overwritten to a steady state before the run.
    pub ages: bool,
    /// Whether background work comes to its end before the run, as on a drive that is kept.
    pub at_rest: bool,
    /// How often memory is looked at in the run, if at all.
    pub sample_every: Option<Nanos>,
}

/// A trace of a key-value store that was looked at.
pub type KvTrace = traces::Trace<KvSurvey>;

impl KvTrace {
    /// Reads a trace from its beginning to its end, and keeps what is in it as a whole. Its format is found out unless it is given.
    ///
    /// # Errors
    /// [`TraceError`]: which line is not as it should be.
    pub fn look(path: &str, format: Option<KvFormat>) -> Result<Self, TraceError> {
        let survey = |shown: &str, format| KvSurvey::of(shown, format, traces::open(path)?);
        Self::look_by(path, format, KvFormat::detect, survey)
    }

    /// What of it is named among all that went into a run.
    pub fn input(&self) -> TraceInput {
        let KvSurvey { format, lines, .. } = self.survey;
        self.input_of(format.name(), lines, self.survey.operations())
    }
}

/// What is in the store when a trace begins. Results have its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// Nothing.
    Nothing,
    /// The keys that it gets before it puts them, with the values that it gets.
    #[serde(rename = "keys met first")]
    MetFirst,
    /// The pairs of the workload, which are none of the trace's.
    Workload,
}

/// A trace, and how it is replayed; when its operations begin is said by [`BenchSpec::clients`].
#[derive(Clone, PartialEq, Debug)]
pub struct TraceSpec {
    /// The trace.
    pub trace: KvTrace,
    /// What is loaded before.
    pub before: Before,
    /// Operations of it, at most.
    pub operations: u64,
}

impl TraceSpec {
    /// Bytes that a get found whose trace does not say how many: as many as puts have on average.
    pub(crate) fn usual_value_bytes(&self) -> u32 {
        const WITHOUT_PUTS: u32 = 100;
        let KvSurvey { puts, read_modify_writes, mean_value, .. } = self.trace.survey;
        if puts + read_modify_writes > 0 { mean_value.round() as u32 } else { WITHOUT_PUTS }
    }
}

/// Lengths of pairs, in bytes.
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

    /// The longest key and the longest value.
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

    /// About the mean length of keys, and of values.
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

    /// The lengths that a store is planned for: of traces what is typical, as their longest may be a thousand times as long.
    pub(crate) fn expected_pair(&self) -> PairBytes {
        if self.trace.is_some() { self.typical_pair() } else { self.longest_pair() }
    }

    /// Pairs that are loaded, about.
    pub(crate) fn loaded(&self) -> u64 {
        match &self.trace {
            Some(TraceSpec { before: Before::Nothing, .. }) => 0,
            Some(TraceSpec { before: Before::MetFirst, trace, .. }) => trace.survey.met_first,
            _ => self.workload.insert_count,
        }
    }

    /// Operations of the run.
    pub(crate) fn operations(&self) -> u64 {
        self.trace.as_ref().map_or(self.workload.operation_count, |trace| trace.operations)
    }
}
