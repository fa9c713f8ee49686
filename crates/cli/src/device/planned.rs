//! Builds the runs of `levelhead device` from its flags.

use std::path::Path;

use anyhow::Context;
use blockbench::fio::LoadedJob;
use blockbench::inputs::Inputs;
use blockbench::{DeviceSpec, Job};
use catalogue::Override;
use drives::ssd::SsdProfile;
use serde_json::json;

use super::DeviceArguments;
use crate::overrides::{Kind, Sorted};
use crate::sweep::{Axis, Level, cells};
use crate::{names, output, overrides, sweep};

const DEFAULT_JOB: &str = "mixed-70-30";

/// The job of --rw and --replay, which the other flags change.
const ONE_STREAM: &str = "name = \"job\"\n[[stream]]\n";

const REPLAY: &str = "replay";

const RWMIXWRITE: &str = "rwmixwrite";

/// Flags whose comma-separated values are those of reads, writes and trims in fio.
const BY_DIRECTION: [&str; 5] = ["bs", "bssplit", "bsrange", "rate", "rate-iops"];

/// Prints a note for flags with several values: each value is a run, while in fio it would be a
/// direction.
pub(super) fn say_what_commas_are(arguments: &DeviceArguments) {
    let mut arguments = arguments.clone();
    for Flag { name, key, values } in FLAGS.iter().filter(|flag| BY_DIRECTION.contains(&flag.name))
    {
        let given = values(&mut arguments);
        if (2..=3).contains(&given.len()) {
            let given = given.join(",");
            output::say(&format!(
                "--{name} {given} makes a run for each; for reads and writes apart give \
                 --set '{key}=\"{given}\"'"
            ));
        }
    }
}

/// A flag for a key of a job.
struct Flag {
    name: &'static str,
    key: &'static str,
    values: fn(&mut DeviceArguments) -> &mut Vec<String>,
}

const fn flag(
    name: &'static str,
    key: &'static str,
    values: fn(&mut DeviceArguments) -> &mut Vec<String>,
) -> Flag {
    Flag { name, key, values }
}

const FLAGS: [Flag; 32] = [
    flag(REPLAY, "stream.replay", |a| &mut a.replay),
    flag("trace-format", "stream.trace_format", |a| &mut a.trace_format),
    flag("replay-action", "stream.replay_action", |a| &mut a.replay_action),
    flag("replay-no-stall", "stream.replay_no_stall", |a| &mut a.replay_no_stall),
    flag("replay-time-scale", "stream.replay_time_scale", |a| &mut a.replay_time_scale),
    flag("replay-scale", "stream.replay_scale", |a| &mut a.replay_scale),
    flag("replay-align", "stream.replay_align", |a| &mut a.replay_align),
    flag("bs", "stream.block_bytes", |a| &mut a.bs),
    flag("bssplit", "stream.bssplit", |a| &mut a.bssplit),
    flag("bsrange", "stream.bsrange", |a| &mut a.bsrange),
    flag("random-distribution", "stream.random_distribution", |a| &mut a.random_distribution),
    flag("norandommap", "stream.norandommap", |a| &mut a.norandommap),
    flag("iodepth", "stream.depth", |a| &mut a.iodepth),
    flag("numjobs", "stream.numjobs", |a| &mut a.numjobs),
    flag("runtime", "stream.duration_s", |a| &mut a.runtime),
    flag("operations", "stream.operations", |a| &mut a.operations),
    flag("io-size", "stream.bytes", |a| &mut a.io_size),
    flag("loops", "stream.loops", |a| &mut a.loops),
    flag("rate", "stream.rate", |a| &mut a.rate),
    flag("rate-iops", "stream.rate_iops", |a| &mut a.rate_iops),
    flag("rate-process", "stream.arrivals", |a| &mut a.rate_process),
    flag("thinktime", "stream.thinktime_us", |a| &mut a.thinktime),
    flag("thinktime-blocks", "stream.thinktime_blocks", |a| &mut a.thinktime_blocks),
    flag("rwmixread", "stream.read_percent", |a| &mut a.rwmixread),
    flag(RWMIXWRITE, "stream.read_percent", |a| &mut a.rwmixwrite),
    flag("trim-percent", "stream.trim_percent", |a| &mut a.trim_percent),
    flag("nvm-set", "stream.set", |a| &mut a.nvm_set),
    flag("size", "stream.size", |a| &mut a.size),
    flag("offset", "stream.offset", |a| &mut a.offset),
    flag("fsync", "stream.flush_every", |a| &mut a.fsync),
    flag("precondition", "precondition", |a| &mut a.precondition),
    flag("fill", "fill", |a| &mut a.fill),
];

/// Returns the runs that the arguments ask for: one, unless flags have several values.
pub(super) fn runs(
    arguments: &DeviceArguments,
) -> anyhow::Result<Vec<sweep::Cell<DeviceArguments>>> {
    let mut axes = vec![
        Axis::list(arguments, "profile", |a| &mut a.device, Level::plain),
        Axis::list(arguments, "job", |a| &mut a.job, Level::plain),
        Axis::list(arguments, "job", |a| &mut a.rw, Level::plain),
    ];
    axes.extend(FLAGS.map(|Flag { name, key, values }| {
        let given = values(&mut arguments.clone()).clone();
        let level = |value: &String| Level::labelled(value, format!("{name}={value}"));
        Axis::new(key, given.iter().map(level).collect(), move |arguments, number| {
            let list = values(arguments);
            *list = vec![list[number].clone()];
        })
    }));
    axes.extend(arguments.set.iter().enumerate().map(|(at, setting)| {
        let keep = move |arguments: &mut DeviceArguments, number| arguments.set[at].keep(number);
        Axis::of_setting(setting, keep)
    }));
    let seed = |seed: &u64| Level::labelled(seed, format!("seed {seed}"));
    axes.push(Axis::list(arguments, "seed", |a| &mut a.seed, seed));
    cells(arguments, &axes)
}

/// A run that is ready to start.
pub(super) struct Planned {
    pub(super) spec: DeviceSpec,
    pub(super) inputs: Inputs,
    /// Notes about its job file, to be printed.
    pub(super) notes: Vec<String>,
}

pub(super) fn planned(
    cell: &sweep::Cell<DeviceArguments>,
) -> anyhow::Result<anyhow::Result<Planned>> {
    let arguments = &cell.arguments;
    let kinds = [Kind::of::<Job>("job"), Kind::of::<SsdProfile>("device")];
    let settings = overrides::sort(&arguments.set, &kinds, &[])?;
    let device = arguments.device.first().map_or("", String::as_str);
    let profile = names::profile(device, &settings.of("device"))?;
    let LoadedJob { mut job, notes } = job(arguments, &settings)?;
    job.entry.look_at_traces()?;
    let inputs = Inputs::of_job(profile.table, job.table, &job.entry);
    let seed = arguments.seed.first().copied().unwrap_or(1);
    let spec = DeviceSpec { profile: profile.entry, job: job.entry, seed };
    let checked = blockbench::check(&spec)
        .with_context(|| format!("job {} on {}", spec.job.name, spec.profile.name));
    Ok(checked.map(|()| Planned { spec, inputs, notes }))
}

fn job(arguments: &DeviceArguments, settings: &Sorted) -> anyhow::Result<LoadedJob> {
    let mut arguments = arguments.clone();
    let keys = catalogue::keys::<Job>();
    let flags = FLAGS.iter().filter_map(|Flag { name, key, values }| {
        let value = values(&mut arguments).first()?.clone();
        let text = match keys.iter().find(|of| of.path == *key) {
            // A path is text, even if it looks like a number.
            _ if *name == REPLAY => json!(value).to_string(),
            _ if *name == RWMIXWRITE => others(&value),
            Some(of_key) => overrides::as_toml(of_key, &value),
            None => value.clone(),
        };
        Some(Override::by_flag(key, &text, format!("--{name} {value}")))
    });
    let mut changes: Vec<Override> = flags.collect();
    changes.extend(settings.of("job"));
    let (rw, replay) = (arguments.rw.first(), arguments.replay.first());
    let Some(name) = rw.or(replay) else {
        return names::job(arguments.job.first().map_or(DEFAULT_JOB, String::as_str), &changes);
    };
    let name = Path::new(name).file_name().map_or(name.as_str().into(), |n| n.to_string_lossy());
    changes.insert(0, Override::by_flag("name", &json!(name).to_string(), String::new()));
    if let Some(rw) = rw {
        changes.insert(0, Override::by_flag("stream.rw", rw, format!("--rw {rw}")));
    }
    let loaded = catalogue::parse_with("of the command line", ONE_STREAM, &changes);
    let loaded = loaded.map(|job| LoadedJob { job, notes: Vec::new() });
    loaded.map_err(|error| {
        let Some(rw) = rw else { return error.into() };
        let is_word = Job::names().contains(&rw.as_str());
        let hint = if is_word { format!(" ({rw} is for --job)") } else { String::new() };
        anyhow::anyhow!("{error}{hint}")
    })
}

/// Returns the percentage of reads for a percentage of writes.
fn others(percent: &str) -> String {
    let percent: Result<f64, _> = percent.trim().parse();
    percent.map_or_else(|error| error.to_string(), |writes| format!("{:?}", 100.0 - writes))
}
