//! Builds the specification of `levelhead bench` from flags, `-p` and the properties of a workload.
//!
//! Four flags are properties under another name (`--records` is `recordcount`). A flag takes
//! precedence over a property file; a flag and a `-p` that contradict each other are refused.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use blockbench::Before;
use blockbench::inputs::Inputs;
use drives::ssd::SsdProfile;
use kvbench::configuration::Configuration;
use kvbench::live::LiveSpec;
use kvbench::platform::{HostChoice, LoadedPlatform, Platform, PlatformOverrides};
use kvbench::{Before as Loaded, BenchSpec, TraceSpec};
use levelhead::Options;
use report::units::printable;
use stacks::design::{Design, IndexOptions};
use stacks::host::HostProfile;
use workload::{ClientOptions, CoreWorkload, Properties};

use super::arguments::BenchArguments;
use super::trace;
use crate::overrides::{Kind, Sorted};
use crate::sweep::{Axis, Cell, Level, cells};
use crate::values::BenchWindows;
use crate::{names, overrides};

const DEFAULT_DESIGN: &str = "pink";
const DEFAULT_DEVICE: &str = "pink-zcu102";
/// The default drive if no flag gives a device or a size: it is filled to `USUAL_FILL` and brought
/// to its steady state.
const USUAL_DEVICE: &str = "pink-zcu102-1gib";
const USUAL_FILL: f64 = 0.7;
/// YCSB's workloads, all with 32-byte keys and 1024-byte values.
const YCSB: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const DEFAULT_RECORDS: u64 = 4_000_000;
/// Default for a store on files, which is loaded in real time.
const DEFAULT_RECORDS_ON_FILES: u64 = 1_000_000;
const DEFAULT_QUEUE_DEPTH: u64 = 64;
/// Maximum number of clients of a store on files.
const MOST_THREADS: usize = 1024;

/// Returns the default number of operations of a built-in workload. It is smaller for workloads
/// that scan: up to 100 pairs in each operation (e), 128 (seekrandom), or 570 on average in every
/// 33rd operation (mixgraph).
fn default_operations(workload: &str) -> u64 {
    match workload.to_ascii_lowercase().as_str() {
        "e" | "workloade" | "mixgraph" => 100_000,
        "seekrandom" => 2_000,
        _ => 1_000_000,
    }
}

/// A flag for a property, with the value given.
struct Flag {
    name: &'static str,
    property: &'static str,
    value: Option<String>,
}

fn flags(arguments: &BenchArguments) -> [Flag; 4] {
    fn flag<T: ToString>(name: &'static str, property: &'static str, values: &[T]) -> Flag {
        Flag { name, property, value: values.first().map(ToString::to_string) }
    }
    [
        flag("--records", "recordcount", &arguments.records),
        flag("--operations", "operationcount", &arguments.operations),
        flag("--queue-depth", "threadcount", &arguments.queue_depth),
        flag("--rate", "target", &arguments.rate),
    ]
}

/// Returns the runs that the arguments ask for: one, unless flags have several values.
pub(super) fn runs(arguments: &BenchArguments) -> anyhow::Result<Vec<Cell<BenchArguments>>> {
    let mut axes = vec![
        Axis::list(arguments, "configuration", |a| &mut a.configuration, Level::plain),
        Axis::list(arguments, "design", |a| &mut a.design, Level::plain),
        Axis::list(arguments, "device", |a| &mut a.device, Level::plain),
        Axis::list(arguments, "layout", |a| &mut a.layout, |layout| Level::plain(layout.name())),
        Axis::list(
            arguments,
            "windows",
            |a| &mut a.windows,
            |windows| Level::labelled(windows.name(), format!("windows {}", windows.name())),
        ),
        Axis::list(arguments, "workload", |a| &mut a.workload, Level::plain),
        Axis::list(
            arguments,
            "records",
            |a| &mut a.records,
            |n| Level::labelled(n, format!("{} pairs", report::units::count_text(*n))),
        ),
        Axis::list(
            arguments,
            "operationcount",
            |a| &mut a.operations,
            |n| Level::labelled(n, format!("{} operations", report::units::count_text(*n))),
        ),
        Axis::list(
            arguments,
            "rate",
            |a| &mut a.rate,
            |rate| Level::labelled(&serde_json::json!(rate), format!("{rate}/s")),
        ),
        Axis::list(
            arguments,
            "queue_depth",
            |a| &mut a.queue_depth,
            |depth| Level::labelled(depth, format!("{depth} deep")),
        ),
        Axis::list(
            arguments,
            "workload",
            |a| &mut a.replay.trace,
            |path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                Level::labelled(&printable(&name), printable(&path.display().to_string()))
            },
        ),
        Axis::list(
            arguments,
            "replay_time_scale",
            |a| &mut a.replay.replay_time_scale,
            |speed| Level::labelled(&serde_json::json!(speed), format!("{speed} %")),
        ),
    ];
    axes.extend(arguments.set.iter().enumerate().map(|(at, setting)| {
        let keep = move |arguments: &mut BenchArguments, number| arguments.set[at].keep(number);
        Axis::of_setting(setting, keep)
    }));
    axes.push(seeds(arguments));
    cells(arguments, &axes)
}

fn seeds(arguments: &BenchArguments) -> Axis<BenchArguments> {
    let level = |seed: &u64| Level::labelled(seed, format!("seed {seed}"));
    Axis::list(arguments, "seed", |a| &mut a.seed, level)
}

/// Returns the specification of a run, and all inputs of it.
pub(super) fn of(arguments: &BenchArguments) -> anyhow::Result<(BenchSpec, Inputs)> {
    let settings = sorted_settings(arguments)?;
    let configuration = arguments.configuration.first();
    let configuration =
        configuration.map(|name| names::configuration(name, &settings.of("configuration")));
    let (configuration, mut files) = match configuration.transpose()? {
        None => (None, Vec::new()),
        Some(loaded) => (Some(loaded.entry), vec![("configuration", loaded.table)]),
    };
    let named = configuration.as_ref();
    let design = arguments.design.first().or(named.map(|named| &named.design));
    let design =
        names::design(design.map_or(DEFAULT_DESIGN, String::as_str), &settings.of("design"))?;
    files.push(("design", design.table));
    let design = match named {
        Some(configuration) => configuration.equip(design.entry),
        None => design.entry,
    };
    let is_usual = is_usual(arguments, &settings) && fits_usual(&design);
    let LoadedPlatform { platform, files: others } =
        platform(arguments, named, &settings, is_usual)?;
    files.extend(others);
    let trace = trace::of(arguments)?;
    let mut properties = properties(arguments, &settings)?;
    if let Some(TraceSpec { before: Loaded::Nothing | Loaded::MetFirst, .. }) = trace {
        // Nothing of the workload is executed.
        properties.set_by_flag("--trace", "recordcount", "1");
        properties.set_by_flag("--trace", "operationcount", "1");
    }
    let fill = arguments.fill.or(is_usual.then_some(USUAL_FILL));
    if fill.is_some() {
        // A placeholder until the capacity is known.
        properties.set_by_flag("--fill", "recordcount", "1000000");
    }
    let (workload, clients) =
        workload_and_clients(&properties, arguments.slice, DEFAULT_QUEUE_DEPTH)?;
    let workload_name = trace.as_ref().map_or_else(|| workload_name(arguments), |t| t.trace.name());
    let precondition = arguments.precondition.unwrap_or(Before::Empty);
    if precondition != Before::Empty && matches!(platform, Platform::KvDrive(_)) {
        bail!("--precondition is for block drives: a KV drive begins empty");
    }
    let mut spec = BenchSpec {
        configuration: configuration
            .map(|configuration| shown_configuration(configuration.name, arguments)),
        design,
        platform,
        workload_name,
        workload,
        clients: trace::paced(clients, trace.as_ref(), arguments),
        trace,
        seed: seed(arguments),
        precondition,
        ages: arguments.age || is_usual,
        at_rest: arguments.save_drive.is_some() || arguments.drive.is_some(),
        sample_every: None,
    };
    if let Some(fill) = fill {
        let records = filling(&spec, fill)?;
        properties.set_by_flag("--fill", "recordcount", &records.to_string());
        let (workload, clients) =
            workload_and_clients(&properties, arguments.slice, DEFAULT_QUEUE_DEPTH)?;
        spec.workload = workload;
        spec.clients = trace::paced(clients, spec.trace.as_ref(), arguments);
    }
    let mut inputs = Inputs::of_files(files);
    if spec.trace.as_ref().is_none_or(|trace| trace.before == Loaded::Workload) {
        inputs = inputs.with_properties(&properties);
    }
    let inputs = spec.added_to(inputs);
    Ok((spec, inputs))
}

/// Returns the number of pairs that fill a share of the drive.
fn filling(spec: &BenchSpec, share: f64) -> anyhow::Result<u64> {
    let held = kvbench::fit::pairs_held(spec);
    let records = (held as f64 * share) as u64;
    if records == 0 && held > 0 {
        let name = spec.platform.name();
        bail!("--fill: a share of {share} is less than one pair of the {held} that {name} holds");
    }
    Ok(records)
}

/// Returns the names of a bench's design and device.
pub(super) fn design_and_device(arguments: &BenchArguments, spec: &BenchSpec) -> (String, String) {
    let named = |given: &[String], name: &str| given.first().cloned().unwrap_or(name.to_owned());
    (named(&arguments.design, &spec.design.name), named(&arguments.device, spec.platform.name()))
}

/// Returns the name of a configuration, marked as changed if flags have changed it.
fn shown_configuration(name: String, arguments: &BenchArguments) -> String {
    let is_changed = !arguments.design.is_empty()
        || !arguments.device.is_empty()
        || !arguments.layout.is_empty()
        || !arguments.windows.is_empty()
        || !arguments.set.is_empty()
        || arguments.host.is_some()
        || arguments.partitions.is_some()
        || arguments.journal.is_some()
        || arguments.plm_cache.is_some()
        || arguments.hedge_after.is_some();
    if is_changed { format!("{name}, changed") } else { name }
}

/// Whether to run YCSB's workload on the small default drive in its steady state: no flag names a
/// device or a number of pairs.
fn is_usual(arguments: &BenchArguments, settings: &Sorted) -> bool {
    let BenchArguments { device, configuration, records, fill, store, property, replay, .. } =
        arguments;
    let is_given = !device.is_empty()
        || !replay.trace.is_empty()
        || !configuration.is_empty()
        || !records.is_empty()
        || !store.is_empty()
        || fill.is_some();
    let sizes = |(name, _): &(String, String)| {
        let name = name.trim();
        ["recordcount", "insertcount", "insertstart", "fieldcount", "fieldlength"].contains(&name)
            || name.starts_with("levelhead.")
    };
    let is_sized = property.iter().chain(&settings.properties).any(sizes);
    let workload = arguments.workload().to_ascii_lowercase();
    let is_ycsb =
        YCSB.iter().any(|name| workload == *name || workload == format!("workload{name}"));
    !is_given && !is_sized && is_ycsb
}

/// Whether a design needs no more memory than the default drive has. Designs for hosts have caches,
/// which it has no memory for.
fn fits_usual(design: &Design) -> bool {
    match design.index() {
        IndexOptions::Lsm(options) => options.cache_bytes() == 0,
        IndexOptions::Hash(_) => true,
    }
}

fn seed(arguments: &BenchArguments) -> u64 {
    arguments.seed.first().copied().unwrap_or(1)
}

/// Assigns each `--set` to the file or the workload it belongs to.
fn sorted_settings(arguments: &BenchArguments) -> anyhow::Result<Sorted> {
    let properties: Vec<&str> = workload::property_names().collect();
    if arguments.set.is_empty() {
        return Ok(Sorted::default());
    }
    let mut kinds = Vec::new();
    if arguments.store.is_empty() {
        kinds.push(Kind::of::<Design>("design"));
        kinds.extend(names::kinds_of_device(device(arguments, None).unwrap_or(DEFAULT_DEVICE)));
    }
    if !arguments.configuration.is_empty() {
        kinds = vec![
            Kind::of::<Design>("design"),
            Kind::of::<SsdProfile>("device"),
            Kind::of::<HostProfile>("host"),
            Kind::of::<Configuration>("configuration"),
        ];
    }
    overrides::sort(&arguments.set, &kinds, &properties)
}

fn device<'a>(arguments: &'a BenchArguments, named: Option<&'a Configuration>) -> Option<&'a str> {
    let device = arguments.device.first().or(named.map(|named| &named.device));
    device.map(String::as_str)
}

/// Returns the workload, and how its operations are issued.
fn workload_and_clients(
    properties: &Properties,
    slice: Option<Duration>,
    depth: u64,
) -> anyhow::Result<(CoreWorkload, ClientOptions)> {
    let workload = CoreWorkload::from_properties(properties)?;
    let depth = workload.thread_count.unwrap_or(depth) as usize;
    let clients = match workload.target_rate {
        None => ClientOptions::closed(depth),
        Some(rate) => ClientOptions::open(rate, depth),
    };
    let clients = match slice {
        None => clients.with_fine_timeline(),
        Some(length) => clients.with_slices(length),
    };
    Ok((workload, clients))
}

fn workload_name(arguments: &BenchArguments) -> String {
    let stem = Path::new(arguments.workload()).file_stem();
    stem.map_or("?".to_owned(), |name| printable(&name.to_string_lossy()))
}

/// Returns the specification of a run on a store on files that is opened with `options`.
pub(super) fn live_spec(
    arguments: &BenchArguments,
    options: &Options,
    cores: usize,
) -> anyhow::Result<(LiveSpec, Inputs)> {
    let properties = properties(arguments, &sorted_settings(arguments)?)?;
    let (workload, clients) = workload_and_clients(&properties, arguments.slice, cores as u64)?;
    let most = MOST_THREADS;
    if clients.pace.outstanding() > most {
        bail!("clients of a store on files are threads: --queue-depth may be {most} at most");
    }
    let paths: Vec<String> =
        arguments.store.iter().map(|path| printable(&path.display().to_string())).collect();
    let spec = LiveSpec {
        workload_name: workload_name(arguments),
        workload,
        clients,
        seed: seed(arguments),
        durability: options.durability,
        place: paths.join(", "),
        directories: arguments.store.len() as u64,
        memory_bytes: options.memory_bytes,
    };
    Ok((spec, Inputs::default().with_properties(&properties)))
}

/// Returns the platform from the flags, then from the configuration `named`; the default drive if
/// `is_usual`.
fn platform(
    arguments: &BenchArguments,
    named: Option<&Configuration>,
    settings: &Sorted,
    is_usual: bool,
) -> anyhow::Result<LoadedPlatform> {
    let usual = named.map(Configuration::choice).unwrap_or_default();
    let windows = match arguments.windows.first() {
        None => usual.windows,
        Some(BenchWindows::Policy(policy)) => Some(*policy),
        Some(BenchWindows::Plm) => bail!(
            "--windows plm is for a store on drives (--store); a simulated drive's are simple, constant or dynamic"
        ),
    };
    let choice = HostChoice {
        host: arguments.host.as_deref().or(usual.host),
        partitions: arguments.partitions.or(usual.partitions),
        arrangement: arguments.layout.first().copied().or(usual.arrangement),
        journal: arguments.journal.or(usual.journal),
        windows,
        plm_cache_bytes: arguments.plm_cache.or(usual.plm_cache_bytes),
        hedge_after_us: arguments.hedge_after.or(usual.hedge_after_us),
        undisturbed_clients: usual.undisturbed_clients,
    };
    let (of_device, of_host) = (settings.of("device"), settings.of("host"));
    let overrides = PlatformOverrides { device: &of_device, host: &of_host };
    let device_of_none = if is_usual { USUAL_DEVICE } else { DEFAULT_DEVICE };
    names::platform(device(arguments, named).unwrap_or(device_of_none), choice, overrides)
}

fn properties(arguments: &BenchArguments, settings: &Sorted) -> anyhow::Result<Properties> {
    let name = arguments.workload();
    let mut properties = names::workload(name)?;
    if workload::builtin(name).is_some() {
        let is_on_files = !arguments.store.is_empty();
        let records = if is_on_files { DEFAULT_RECORDS_ON_FILES } else { DEFAULT_RECORDS };
        let operations = default_operations(name);
        properties.set_by_flag("--records (default)", "recordcount", &records.to_string());
        properties.set_by_flag("--operations (default)", "operationcount", &operations.to_string());
    }
    let given = || arguments.property.iter().chain(&settings.properties);
    for (name, value) in given() {
        properties.set(name.trim(), value.trim());
    }
    for Flag { name, property, value } in flags(arguments) {
        let Some(value) = value else { continue };
        let same = given().rfind(|(name, _)| name.trim() == property);
        if let Some((_, other)) = same
            && !is_same_number(other.trim(), &value)
        {
            bail!(
                "{name} {value} and -p {property}={other} contradict each other: give one of them"
            );
        }
        properties.set_by_flag(name, property, &value);
    }
    Ok(properties)
}

fn is_same_number(a: &str, b: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    number(a).is_some_and(|a| number(b).is_some_and(|b| a.total_cmp(&b).is_eq()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_that_scan_run_fewer_operations() {
        for name in workload::BUILTIN_NAMES {
            let mix = CoreWorkload::from_properties(&workload::builtin(name).unwrap());
            let scans = mix.unwrap().mix.scan > 0.0;
            assert_eq!(default_operations(name) < 1_000_000, scans, "workload {name}");
        }
        assert_eq!(default_operations("WorkloadE"), default_operations("e"));
    }
}
