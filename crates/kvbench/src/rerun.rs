//! Repeats runs from their results.

use std::collections::BTreeMap;
use std::fmt::Display;

use blockbench;
use blockbench::inputs::Inputs;
use blockbench::traces::KvTrace;
use blockbench::{DeviceSpec, Job};
use catalogue::{Entry, Loaded, Table};
use drives::ssd::SsdProfile;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use stacks::design::Design;
use stacks::host::{Arrangement, JournalPlace, WindowPolicy};
use workload::trace::kv::KvFormat;
use workload::{ClientOptions, CoreWorkload, Properties};

use crate::bench;
use crate::configuration::Configuration;
use crate::platform::{HostChoice, LoadedPlatform};
use crate::spec::{Before, BenchSpec, TraceSpec};

/// The parts of a `result.json` that describe the run.
#[derive(Deserialize)]
struct ResultJson {
    levelhead: Option<String>,
    configuration: Option<String>,
    workload: Option<String>,
    seed: Option<u64>,
    inputs: Option<Value>,
    store: Option<IgnoredAny>,
    runs: Option<IgnoredAny>,
}

/// The inputs of a result. An input that is parsed differently from how it was written shows in the
/// comparison of the inputs.
#[derive(Deserialize)]
struct InputsJson {
    configuration: Option<Table>,
    design: Option<Table>,
    device: Option<Table>,
    host: Option<Table>,
    job: Option<Table>,
    #[serde(default)]
    properties: BTreeMap<String, String>,
    /// Traces of a bench. The traces of a job are in the job.
    #[serde(default)]
    traces: Vec<Value>,
    #[serde(default)]
    options: OptionsJson,
}

/// A trace of a bench.
#[derive(Deserialize)]
struct TraceJson {
    path: String,
    format: KvFormat,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OptionsJson {
    queue_depth: usize,
    rate: Option<f64>,
    ages: bool,
    drive_at_rest: bool,
    before_trace: Option<Before>,
    trace_operations: u64,
    replay_time_scale: Option<f64>,
    precondition: Option<blockbench::Before>,
    partitions: Option<u32>,
    layout: Option<Arrangement>,
    journal: Option<JournalPlace>,
    windows: Option<WindowPolicy>,
    plm_cache_bytes: Option<u64>,
    hedge_after_us: Option<u32>,
}

/// A run that a result describes completely.
pub enum Run {
    /// A run of `levelhead bench`.
    Bench(Box<BenchSpec>),
    /// A run of `levelhead device`.
    Device(Box<DeviceSpec>),
}

/// The run of a result, to be repeated.
pub struct Rerun {
    /// The run.
    pub run: Run,
    /// The inputs, which equal those of the result.
    pub inputs: Inputs,
    /// The version of this program that wrote the result.
    pub version: String,
}

/// Returns the run of `result`, the contents of a `result.json`. Reads its traces again.
///
/// # Errors
/// Returns the reason why the run cannot be repeated.
pub fn of_result(result: &Value) -> Result<Rerun, String> {
    let json =
        ResultJson::deserialize(result).map_err(|error| format!("it is no result: {error}"))?;
    if json.runs.is_some() {
        return Err("it has several runs: give the result.json of one of them".to_owned());
    }
    if json.store.is_some() {
        return Err(
            "it is of a store on files, in real time, which no inputs give again".to_owned()
        );
    }
    let (Some(inputs), Some(seed)) = (&json.inputs, json.seed) else {
        return Err("it has no inputs: it is no result of `levelhead bench` or `device`".to_owned());
    };
    let of = InputsJson::deserialize(inputs).map_err(|error| format!("its inputs: {error}"))?;
    let (run, new) = match of.job {
        Some(_) => of.device(seed)?,
        None => of.bench(seed, json.configuration, json.workload)?,
    };
    if let Some(words) = difference(inputs, &new) {
        return Err(words);
    }
    Ok(Rerun { run, inputs: new, version: json.levelhead.unwrap_or_default() })
}

/// Returns a text about the first input that differs, if any.
fn difference(then: &Value, now: &Inputs) -> Option<String> {
    let now = serde_json::to_value(now).expect("inputs become JSON");
    let keys = [then, &now].into_iter().filter_map(Value::as_object).flat_map(|all| all.keys());
    let differs = |key: &&String| then.get(key) != now.get(key);
    let key = keys.into_iter().find(differs)?;
    let text = |of: &Value| of.get(key).map_or("nothing".to_owned(), Value::to_string);
    Some(format!("its input `{key}` was {} and is {} now", text(then), text(&now)))
}

/// Returns a file that a run needs, from the inputs of the result.
fn required<T: Entry>(kind: &str, table: Option<Table>) -> Result<Loaded<T>, String> {
    entry(table.ok_or_else(|| format!("its inputs have no {kind}"))?)
}

fn entry<T: Entry>(table: Table) -> Result<Loaded<T>, String> {
    catalogue::of_table("of the result", table).map_err(in_words)
}

fn in_words(error: impl Display) -> String {
    error.to_string()
}

impl InputsJson {
    fn device(self, seed: u64) -> Result<(Run, Inputs), String> {
        let profile = required::<SsdProfile>("device", self.device)?;
        let mut job = required::<Job>("job", self.job)?;
        job.entry.look_at_traces().map_err(in_words)?;
        let inputs = Inputs::of_job(profile.table, job.table, &job.entry);
        let spec = DeviceSpec { profile: profile.entry, job: job.entry, seed };
        blockbench::check(&spec).map_err(in_words)?;
        Ok((Run::Device(Box::new(spec)), inputs))
    }

    /// Returns the bench. `label` and `workload_name` are the names of configuration and workload
    /// in the result.
    fn bench(
        self,
        seed: u64,
        label: Option<String>,
        workload_name: Option<String>,
    ) -> Result<(Run, Inputs), String> {
        let Self { configuration, design, device, host, properties, traces, options, .. } = self;
        if options.drive_at_rest {
            return Err(
                "its drive came to rest before the run, to be kept or from a file: run it \
                        with --save-drive or --drive"
                    .to_owned(),
            );
        }
        let configuration = configuration.map(entry::<Configuration>).transpose()?;
        let named = configuration.as_ref().map(|loaded| &loaded.entry);
        let design = required::<Design>("design", design)?;
        let LoadedPlatform { platform, mut files } = match host {
            None => LoadedPlatform::of_kv_drive(required("device", device)?),
            Some(host) => {
                let choice = options.choice(named);
                let drive = required("device", device)?;
                LoadedPlatform::of_host(drive, entry(host)?, choice).map_err(in_words)?
            }
        };
        let equipped = match named {
            Some(configuration) => configuration.equip(design.entry),
            None => design.entry,
        };
        files.push(("design", design.table));
        files.extend(configuration.map(|loaded| ("configuration", loaded.table)));
        let mut inputs = Inputs::of_files(files);
        let of_workload = workload_properties(&properties);
        if !properties.is_empty() {
            inputs = inputs.with_properties(&of_workload);
        }
        let spec = BenchSpec {
            configuration: label,
            design: equipped,
            platform,
            workload_name: workload_name.unwrap_or_default(),
            workload: CoreWorkload::from_properties(&of_workload).map_err(in_words)?,
            clients: options.clients(),
            trace: options.trace(&traces)?,
            seed,
            precondition: options.precondition.unwrap_or(blockbench::Before::Empty),
            ages: options.ages,
            at_rest: false,
            sample_every: None,
        };
        bench::check(&spec).map_err(in_words)?;
        let inputs = spec.added_to(inputs);
        Ok((Run::Bench(Box::new(spec)), inputs))
    }
}

/// Returns the properties of the workload, or those of a minimal workload if the result has none: a
/// trace may be replayed without a workload.
fn workload_properties(given: &BTreeMap<String, String>) -> Properties {
    let mut properties = Properties::default();
    if given.is_empty() {
        properties = workload::builtin("a").expect("it is built in");
        properties.set("recordcount", "1");
        properties.set("operationcount", "1");
    }
    for (name, value) in given {
        properties.set(name, value);
    }
    properties
}

impl OptionsJson {
    /// Returns the choices about the host and its store.
    fn choice(&self, configuration: Option<&Configuration>) -> HostChoice<'static> {
        HostChoice {
            host: None,
            partitions: self.partitions,
            arrangement: self.layout,
            journal: self.journal,
            windows: self.windows,
            plm_cache_bytes: self.plm_cache_bytes,
            hedge_after_us: self.hedge_after_us,
            undisturbed_clients: configuration.is_some_and(|named| named.undisturbed_clients),
        }
    }

    fn trace(&self, traces: &[Value]) -> Result<Option<TraceSpec>, String> {
        let (Some(json), Some(before)) = (traces.first(), self.before_trace) else {
            return Ok(None);
        };
        let TraceJson { path, format } = TraceJson::deserialize(json).map_err(in_words)?;
        let trace = KvTrace::look(&path, Some(format)).map_err(in_words)?;
        Ok(Some(TraceSpec { trace, before, operations: self.trace_operations }))
    }

    fn clients(&self) -> ClientOptions {
        let depth = self.queue_depth;
        let clients = match (self.replay_time_scale, self.rate) {
            (Some(percent), _) => ClientOptions::recorded(100.0 / percent, depth),
            (None, Some(rate)) => ClientOptions::open(rate, depth),
            (None, None) => ClientOptions::closed(depth),
        };
        clients.with_fine_timeline()
    }
}
