//! What `levelhead bench` is asked to do: flags, `-p`, and the properties of a workload, put together.
//!
//! Four flags are properties under another name (`--records` is `recordcount`). A flag wins over a
//! property file; a flag and a `-p` that contradict each other are refused.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use design::Design;
use host::{Arrangement, JournalPlace};
use lab::bench::BenchSpec;
use lab::device::Before;
use lab::live::LiveSpec;
use lab::{Configuration, HostChoice, Platform, printable};
use levelhead::Options;
use workload::{ClientOptions, CoreWorkload, Properties};

use crate::output::say;
use crate::store::DurabilityArgument;
use crate::values::BenchWindows;
use crate::{names, values};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct BenchArguments {
    /// Configuration of a host's store: a built-in name or a TOML file, which says all of the flags up to --plm-cache.
    /// Each of those that is given as well wins over it
    #[arg(long)]
    pub(crate) configuration: Option<String>,
    /// Design: a built-in name or a TOML file [default: pink]
    #[arg(long)]
    pub(crate) design: Option<String>,
    /// Device: a built-in name or a TOML file, of a KV drive or of a block drive [default: pink-zcu102]
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Host of a block drive: a built-in name or a TOML file [default: desktop-12-core]
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// Into how many equal partitions each set of a block drive is cut; layouts are of these then, as md's over
    /// partitions
    /// [default: 1]
    #[arg(long, value_parser = values::partitions)]
    pub(crate) partitions: Option<u32>,
    /// How a host's store lies on the sets of a block drive: plain (one set), striped, parity (any one set may be lost)
    /// or mirrored (a copy on each set)
    /// [default: plain on one set, striped on several]
    #[arg(long, value_parser = values::arrangement)]
    pub(crate) layout: Option<Arrangement>,
    /// Where such a store's log and manifest lie: beside its data, or own-set, alone on the drive's last set
    /// [default: beside]
    #[arg(long, value_parser = values::journal)]
    pub(crate) journal: Option<JournalPlace>,
    /// How predictable-latency windows are kept on the sets of its data, from the load's end on: off; simple (each set
    /// asks for its window whenever it may, nothing is scheduled by it); constant (one set after the other is written, in
    /// slots of one length); dynamic (in slots as long as the work needs); rails (dynamic on a drive without windows).
    /// A flush waits for the slots of all sets, about 12 s, so that many writes a second wait for memtables. On a
    /// store over several directories: off, rails (kept by the store), plm (by the drives, which have to have them)
    /// [default: off]
    #[arg(long, value_parser = values::windows)]
    pub(crate) windows: Option<BenchWindows>,
    /// Bytes that may wait in memory for the slots of their sets, parity included (`plm_cache`). Writes wait beyond it, reads
    /// never do [default: 2 GB, with --store 128MiB]
    #[arg(long, value_parser = values::bytes(1..=1 << 40))]
    pub(crate) plm_cache: Option<u64>,
    /// After how many microseconds a client's read that has not come is begun a second time, rebuilt from the other sets, and
    /// the first to come is taken: a hedged request. For layouts parity and mirrored without windows [default: never]
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) hedge_after: Option<u32>,
    /// What happened to a block drive before: empty (nothing), sequential (all of it written once), random (then overwritten
    /// at random until that made no difference any more: the drive collects garbage from the first write on)
    /// [default: empty]
    #[arg(long, value_parser = values::precondition)]
    pub(crate) precondition: Option<Before>,
    /// Workload: a built-in name or a YCSB property file; `levelhead list` has the names
    #[arg(long, default_value = "a")]
    pub(crate) workload: String,
    /// Pairs to load: recordcount [default: 4M, with --store 1M; a file's own]
    #[arg(long, value_parser = values::records)]
    pub(crate) records: Option<u64>,
    /// Operations to run: operationcount [default: 1M, for e and mixgraph 100k, for seekrandom 2k; a file's own]
    #[arg(long, value_parser = values::operations)]
    pub(crate) operations: Option<u64>,
    /// Seed of all randomness: the same seed gives the same result
    #[arg(long, default_value_t = 1, value_parser = values::seed)]
    pub(crate) seed: u64,
    /// Operations outstanding at a time: threadcount [default: 64, with --store, where they are threads, one a core; a file's own]
    #[arg(long, value_parser = values::queue_depth)]
    pub(crate) queue_depth: Option<u64>,
    /// Operations per second: target. An open loop with Poisson arrivals, in which
    /// waiting counts. Without it a closed loop of --queue-depth clients runs
    #[arg(long, value_parser = values::rate)]
    pub(crate) rate: Option<f64>,
    /// Set a workload property, as in YCSB. It wins over a file; a flag above that says otherwise is
    /// refused
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = values::assignment)]
    pub(crate) property: Vec<(String, String)>,
    /// Run on a store on files in this directory, in real time, with threads for clients: the store is made for it and stays there.
    /// Given three times or more, it is over these directories. In the place of design and device
    #[arg(long, value_name = "DIR", conflicts_with_all = ["configuration", "design", "device", "host", "partitions", "layout",
        "journal", "hedge_after", "precondition"])]
    pub(crate) store: Vec<PathBuf>,
    /// Memory for that store's index and caches [default: 256MiB]
    #[arg(long, requires = "store", value_parser = values::bytes(1 << 20..=1 << 45))]
    pub(crate) memory: Option<u64>,
    /// Out of that, memory for values that were read last [default: 64MiB]
    #[arg(long, requires = "store", value_parser = values::bytes(0..=1 << 45))]
    pub(crate) value_cache: Option<u64>,
    /// Size of each of its files, at most: room is taken as it is needed [default: 16GiB]
    #[arg(long, requires = "store", value_parser = values::bytes(64 << 20..=1 << 50))]
    pub(crate) capacity: Option<u64>,
    /// How long writes of the run are waited for [default: group]
    #[arg(long, requires = "store")]
    pub(crate) durability: Option<DurabilityArgument>,
    /// Directory for the result as JSON, text, CSV and pictures
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const DEFAULT_DESIGN: &str = "pink";
const DEFAULT_DEVICE: &str = "pink-zcu102";
const DEFAULT_RECORDS: u64 = 4_000_000;
/// Of a store on files, which is loaded in real time.
const DEFAULT_RECORDS_ON_FILES: u64 = 1_000_000;
const DEFAULT_QUEUE_DEPTH: u64 = 64;
/// Clients of a store on files.
const MOST_THREADS: usize = 1024;

/// Operations of a built-in workload. One that scans reads up to 100 pairs in each (e), 128, or 570 on
/// average in every 33rd (mixgraph).
fn default_operations(workload: &str) -> u64 {
    match workload.to_ascii_lowercase().as_str() {
        "e" | "workloade" | "mixgraph" => 100_000,
        "seekrandom" => 2_000,
        _ => 1_000_000,
    }
}

/// A flag that stands for a property, and what was given to it.
struct Flag {
    name: &'static str,
    property: &'static str,
    value: Option<String>,
}

fn flags(arguments: &BenchArguments) -> [Flag; 4] {
    let flag = |name, property, value| Flag { name, property, value };
    [
        flag("--records", "recordcount", arguments.records.map(|n| n.to_string())),
        flag("--operations", "operationcount", arguments.operations.map(|n| n.to_string())),
        flag("--queue-depth", "threadcount", arguments.queue_depth.map(|n| n.to_string())),
        flag("--rate", "target", arguments.rate.map(|n| n.to_string())),
    ]
}

/// What to run; says aloud what has no effect.
pub(crate) fn spec(arguments: &BenchArguments) -> anyhow::Result<BenchSpec> {
    let configuration = arguments.configuration.as_deref().map(names::configuration).transpose()?;
    let (design, platform) = design_and_platform(arguments, configuration.as_ref())?;
    let (workload, clients) = workload_and_clients(arguments, DEFAULT_QUEUE_DEPTH)?;
    let workload_name = workload_name(arguments);
    let precondition = arguments.precondition.unwrap_or(Before::Empty);
    if precondition != Before::Empty && matches!(platform, Platform::KvDrive(_)) {
        bail!("--precondition is for block drives: a KV drive begins empty");
    }
    Ok(BenchSpec {
        configuration: configuration.map(|configuration| configuration.name),
        design,
        platform,
        workload_name,
        workload,
        clients,
        seed: arguments.seed,
        precondition,
        sample_every: None,
    })
}

/// The workload, and how its operations are issued; says aloud what has no effect.
fn workload_and_clients(
    arguments: &BenchArguments,
    depth: u64,
) -> anyhow::Result<(CoreWorkload, ClientOptions)> {
    let workload = CoreWorkload::from_properties(&properties(arguments)?)?;
    for warning in &workload.warnings {
        say(warning);
    }
    let depth = workload.thread_count.unwrap_or(depth) as usize;
    let clients = match workload.target_rate {
        None => ClientOptions::closed(depth),
        Some(rate) => ClientOptions::open(rate, depth),
    };
    Ok((workload, clients))
}

fn workload_name(arguments: &BenchArguments) -> String {
    let stem = Path::new(&arguments.workload).file_stem();
    stem.map_or("?".to_owned(), |name| printable(&name.to_string_lossy()))
}

/// What to run on a store on files that is opened with these options.
pub(crate) fn live_spec(
    arguments: &BenchArguments,
    options: &Options,
    cores: usize,
) -> anyhow::Result<LiveSpec> {
    let (workload, clients) = workload_and_clients(arguments, cores as u64)?;
    let most = MOST_THREADS;
    if clients.pace.outstanding() > most {
        bail!("clients of a store on files are threads: --queue-depth may be {most} at most");
    }
    let paths: Vec<String> =
        arguments.store.iter().map(|path| printable(&path.display().to_string())).collect();
    Ok(LiveSpec {
        workload_name: workload_name(arguments),
        workload,
        clients,
        seed: arguments.seed,
        durability: options.durability,
        place: paths.join(", "),
        directories: arguments.store.len() as u64,
        memory_bytes: options.memory_bytes,
    })
}

/// What the flags say, and where they are silent a configuration, if one is named.
fn design_and_platform(
    arguments: &BenchArguments,
    named: Option<&Configuration>,
) -> anyhow::Result<(Design, Platform)> {
    let usual = named.map(Configuration::choice).unwrap_or_default();
    let windows = match arguments.windows {
        None => usual.windows,
        Some(BenchWindows::Policy(policy)) => Some(policy),
        Some(BenchWindows::Plm) => bail!(
            "--windows plm is for a store on drives (--store); a simulated drive's are simple, constant or dynamic"
        ),
    };
    let choice = HostChoice {
        host: arguments.host.as_deref().or(usual.host),
        partitions: arguments.partitions.or(usual.partitions),
        arrangement: arguments.layout.or(usual.arrangement),
        journal: arguments.journal.or(usual.journal),
        windows,
        plm_cache_bytes: arguments.plm_cache.or(usual.plm_cache_bytes),
        hedge_after_us: arguments.hedge_after.or(usual.hedge_after_us),
        undisturbed_clients: usual.undisturbed_clients,
    };
    let design = arguments.design.as_ref().or(named.map(|named| &named.design));
    let device = arguments.device.as_ref().or(named.map(|named| &named.device));
    let design = names::design(design.map_or(DEFAULT_DESIGN, String::as_str))?;
    let platform = names::platform(device.map_or(DEFAULT_DEVICE, String::as_str), choice)?;
    let design = match named {
        Some(configuration) => configuration.equip(design),
        None => design,
    };
    Ok((design, platform))
}

fn properties(arguments: &BenchArguments) -> anyhow::Result<Properties> {
    let name = &arguments.workload;
    let mut properties = names::workload(name)?;
    if workload::builtin(name).is_some() {
        let is_on_files = !arguments.store.is_empty();
        let records = if is_on_files { DEFAULT_RECORDS_ON_FILES } else { DEFAULT_RECORDS };
        let operations = default_operations(name);
        properties.set_by_flag("--records (default)", "recordcount", &records.to_string());
        properties.set_by_flag("--operations (default)", "operationcount", &operations.to_string());
    }
    for (name, value) in &arguments.property {
        properties.set(name.trim(), value.trim());
    }
    for Flag { name, property, value } in flags(arguments) {
        let Some(value) = value else { continue };
        let assignments = arguments.property.iter().rev();
        let same = assignments.into_iter().find(|(name, _)| name.trim() == property);
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
