//! Runs that are had again from their results.

use std::collections::BTreeMap;

use catalogue::{Entry, Loaded, Table};
use design::Design;
use host::{Arrangement, HostProfile, JournalPlace, WindowPolicy};
use kvssd::DeviceProfile;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use ssd::SsdProfile;
use workload::trace::kv::KvFormat;
use workload::{ClientOptions, CoreWorkload, Properties};

use crate::bench::{Before, BenchSpec, KvTrace, TraceSpec};
use crate::configuration::Configuration;
use crate::device::{self, DeviceSpec, Job};
use crate::inputs::Inputs;
use crate::platform::{HostChoice, Platform};

/// The parts of a `result.json` that say what was run.
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

/// The inputs of a result. An input that this reads otherwise than it was written is found by comparison.
#[derive(Deserialize)]
struct InputsJson {
    configuration: Option<Table>,
    design: Option<Table>,
    device: Option<Table>,
    host: Option<Table>,
    job: Option<Table>,
    #[serde(default)]
    properties: BTreeMap<String, String>,
    #[serde(default)]
    traces: Vec<TraceJson>,
    #[serde(default)]
    options: OptionsJson,
}

#[derive(Deserialize)]
struct TraceJson {
    path: String,
    format: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OptionsJson {
    queue_depth: usize,
    rate: Option<f64>,
    ages: bool,
    drive_at_rest: bool,
    before_trace: Option<String>,
    trace_operations: u64,
    replay_time_scale: Option<f64>,
    precondition: Option<device::Before>,
    partitions: Option<u32>,
    layout: Option<Arrangement>,
    journal: Option<JournalPlace>,
    windows: Option<WindowPolicy>,
    plm_cache_bytes: Option<u64>,
    hedge_after_us: Option<u32>,
}

/// A run that a result tells all about.
pub enum Run {
    /// Of `levelhead bench`.
    Bench(Box<BenchSpec>),
    /// Of `levelhead device`.
    Device(Box<DeviceSpec>),
}

/// The run of a result, to be had again.
pub struct Rerun {
    /// What to run.
    pub run: Run,
    /// All that goes in: the same as in the result.
    pub inputs: Inputs,
    /// The version of this program that gave the result.
    pub version: String,
}

/// Returns the run that gave `result`, the contents of a `result.json`. Traces are read again.
///
/// # Errors
/// Why that run cannot be had again, in words.
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

/// The first of the inputs that are not as they were, if one is not.
fn difference(then: &Value, now: &Inputs) -> Option<String> {
    let now = serde_json::to_value(now).expect("inputs become JSON");
    let keys = [then, &now].into_iter().filter_map(Value::as_object).flat_map(|all| all.keys());
    let differs = |key: &&String| then.get(key) != now.get(key);
    let key = keys.into_iter().find(differs)?;
    let text = |of: &Value| of.get(key).map_or("nothing".to_owned(), Value::to_string);
    Some(format!("its input `{key}` was {} and is {} now", text(then), text(&now)))
}

fn required<T: Entry>(kind: &str, table: Option<Table>) -> Result<Loaded<T>, String> {
    let table = table.ok_or_else(|| format!("its inputs have no {kind}"))?;
    catalogue::of_table("of the result", table).map_err(|error| error.to_string())
}

fn named<T: Copy>(kind: &str, all: &[(T, &str)], name: &str) -> Result<T, String> {
    let one = all.iter().find(|(_, own)| *own == name).map(|(one, _)| *one);
    one.ok_or_else(|| format!("there is no {kind} {name}"))
}

impl InputsJson {
    fn device(self, seed: u64) -> Result<(Run, Inputs), String> {
        let profile = required::<SsdProfile>("device", self.device)?;
        let mut job = required::<Job>("job", self.job)?;
        job.entry.look_at_traces().map_err(|error| error.to_string())?;
        let inputs = Inputs::of_job(profile.table, job.table, &job.entry);
        let spec = DeviceSpec { profile: profile.entry, job: job.entry, seed };
        device::check(&spec).map_err(|error| error.to_string())?;
        Ok((Run::Device(Box::new(spec)), inputs))
    }

    fn bench(
        mut self,
        seed: u64,
        label: Option<String>,
        workload_name: Option<String>,
    ) -> Result<(Run, Inputs), String> {
        if self.options.drive_at_rest {
            return Err(
                "its drive came to rest before the run, to be kept or from a file: run it \
                        with --save-drive or --drive"
                    .to_owned(),
            );
        }
        let configuration = self.configuration.take();
        let configuration =
            configuration.map(|table| required::<Configuration>("configuration", Some(table)));
        let configuration = configuration.transpose()?;
        let named_by = configuration.as_ref().map(|loaded| &loaded.entry);
        let design = required::<Design>("design", self.design.take())?;
        let mut files = vec![("design", design.table)];
        let platform = self.platform(named_by, &mut files)?;
        let design = match named_by {
            Some(configuration) => configuration.equip(design.entry),
            None => design.entry,
        };
        files.extend(configuration.map(|loaded| ("configuration", loaded.table)));
        let trace = self.trace()?;
        let properties = self.properties();
        let spec = BenchSpec {
            configuration: label,
            design,
            platform,
            workload_name: workload_name.unwrap_or_default(),
            workload: CoreWorkload::from_properties(&properties)
                .map_err(|error| error.to_string())?,
            clients: self.options.clients(),
            trace,
            seed,
            precondition: self.options.precondition.unwrap_or(device::Before::Empty),
            ages: self.options.ages,
            at_rest: false,
            sample_every: None,
        };
        let mut inputs = Inputs::of_files(files);
        if !self.properties.is_empty() {
            inputs = inputs.with_properties(&properties);
        }
        let inputs = inputs.with_options_of(&spec);
        Ok((Run::Bench(Box::new(spec)), inputs))
    }

    /// What the design runs on; its files are added to `files`.
    fn platform(
        &mut self,
        configuration: Option<&Configuration>,
        files: &mut Vec<(&'static str, Table)>,
    ) -> Result<Platform, String> {
        let Some(host) = self.host.take() else {
            let drive = required::<DeviceProfile>("device", self.device.take())?;
            files.push(("device", drive.table));
            return Ok(Platform::KvDrive(Box::new(drive.entry)));
        };
        let drive = required::<SsdProfile>("device", self.device.take())?;
        let host = required::<HostProfile>("host", Some(host))?;
        files.extend([("device", drive.table), ("host", host.table)]);
        let OptionsJson { partitions, layout, journal, windows, .. } = self.options;
        let choice = HostChoice {
            host: None,
            partitions,
            arrangement: layout,
            journal,
            windows,
            plm_cache_bytes: self.options.plm_cache_bytes,
            hedge_after_us: self.options.hedge_after_us,
            undisturbed_clients: configuration.is_some_and(|named| named.undisturbed_clients),
        };
        Platform::on_host(drive.entry, host.entry, choice).map_err(|error| error.to_string())
    }

    fn trace(&self) -> Result<Option<TraceSpec>, String> {
        let (Some(json), Some(before)) = (self.traces.first(), &self.options.before_trace) else {
            return Ok(None);
        };
        let before = named("state before a trace", &Before::ALL, before)?;
        let format = named("format of traces", &KvFormat::ALL, &json.format)?;
        let trace = KvTrace::look(&json.path, Some(format)).map_err(|error| error.to_string())?;
        Ok(Some(TraceSpec { trace, before, operations: self.options.trace_operations }))
    }

    /// Properties of the workload. A trace before which nothing of one is loaded has none.
    fn properties(&self) -> Properties {
        let mut properties = Properties::default();
        if self.properties.is_empty() {
            properties = workload::builtin("a").expect("it is built in");
            properties.set("recordcount", "1");
            properties.set("operationcount", "1");
        }
        for (name, value) in &self.properties {
            properties.set(name, value);
        }
        properties
    }
}

impl OptionsJson {
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
