//! `levelhead device`.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail};
use catalogue::{Loaded, Override};
use clap::Args;
use indicatif::ProgressBar;
use lab::Inputs;
use lab::device::{
    self, DeviceHost, DeviceResult, DeviceSpec, Job, JobReport, Trace, picture, table,
};
use serde_json::json;
use ssd::SsdProfile;
use workload::Stop;

use crate::host::{Stopwatch, peak_rss_bytes};
use crate::overrides::{self, Kind, Setting, Sorted};
use crate::progress::ProgressForm;
use crate::sweep::{self, Axis, cells};
use crate::{files, interrupt, memory, names, output, progress, side_by_side, values};

#[derive(Args, Clone)]
#[command(allow_negative_numbers = true, after_help = crate::sweep::HELP)]
pub(crate) struct DeviceArguments {
    /// Block drive: a built-in name or a TOML file
    #[arg(long, alias = "profile", default_value = "vigil-15gb", value_delimiter = ',')]
    device: Vec<String>,
    /// Job: a built-in name or a TOML file in fio's words; `levelhead list` has the names [default: mixed-70-30]
    #[arg(long, value_delimiter = ',')]
    job: Vec<String>,
    /// In place of a job's file one stream, which does read, write, rw, trim or trimwrite, or the same at random: randread and so
    /// on; the flags that follow say how. With --job they change each of its streams
    #[arg(long, value_delimiter = ',', conflicts_with = "job")]
    rw: Vec<String>,
    /// In place of both a trace to replay: fio's iolog, the text of blkparse, or CSV of MSR Cambridge (docs/traces.md)
    #[arg(long, alias = "read_iolog", value_delimiter = ',', conflicts_with_all = ["job", "rw"])]
    replay: Vec<String>,
    /// The format of the trace: iolog, blkparse, msr [default: found out]
    #[arg(long, value_delimiter = ',')]
    trace_format: Vec<String>,
    /// Replay as fast as --iodepth allows, and not as recorded
    #[arg(long, alias = "replay_no_stall", value_delimiter = ',', num_args = 0..=1, default_missing_value = "true")]
    replay_no_stall: Vec<String>,
    /// How fast the trace is replayed, in percent of the recorded speed: 200 is twice as fast [default: 100]
    #[arg(long, alias = "replay_time_scale", value_delimiter = ',')]
    replay_time_scale: Vec<String>,
    /// What its offsets are divided by [default: 1; those beyond the drive begin again at its beginning]
    #[arg(long, alias = "replay_scale", value_delimiter = ',')]
    replay_scale: Vec<String>,
    /// What its offsets are brought down to a multiple of: 4k [default: 1; reads and writes go to whole blocks of 4 KiB]
    #[arg(long, alias = "replay_align", value_delimiter = ',')]
    replay_align: Vec<String>,
    /// Bytes of an operation: 4k, 128KiB [default: 4KiB]
    #[arg(long, value_delimiter = ',')]
    bs: Vec<String>,
    /// Several sizes of operations with their shares in percent: 4k/60:64k/40
    #[arg(long, value_delimiter = ',', conflicts_with = "bs")]
    bssplit: Vec<String>,
    /// Sizes of operations between two, each alike: 4k-64k
    #[arg(long, value_delimiter = ',', conflicts_with = "bs")]
    bsrange: Vec<String>,
    /// How operations at random spread: random, zipf:THETA, pareto:H, normal:PERCENT, zoned:OPERATIONS/SIZE:...
    /// [default: random]
    #[arg(long, alias = "random_distribution", value_delimiter = ',')]
    random_distribution: Vec<String>,
    /// Operations outstanding [default: 1; with --rate and --replay up to 256]
    #[arg(long, value_delimiter = ',')]
    iodepth: Vec<String>,
    /// Seconds of virtual time for which operations begin
    #[arg(long, value_delimiter = ',')]
    runtime: Vec<String>,
    /// Operations, at most
    #[arg(long, value_delimiter = ',')]
    operations: Vec<String>,
    /// Operations per second, in an open loop, in which waiting counts
    #[arg(long, alias = "rate_iops", value_delimiter = ',')]
    rate: Vec<String>,
    /// Reads among the operations of rw and randrw, in percent [default: 50]
    #[arg(long, value_delimiter = ',')]
    rwmixread: Vec<String>,
    /// Trims among the operations that do not read, in percent [default: 0]
    #[arg(long, alias = "trim_percentage", value_delimiter = ',')]
    trim_percent: Vec<String>,
    /// The NVM set that is read and written, by number from 1 on, or all of them [default: 1]
    #[arg(long, value_delimiter = ',')]
    nvm_set: Vec<String>,
    /// How long the part of the set is that is read and written: 1GiB, 25% [default: to the end]
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    size: Vec<String>,
    /// Where that part begins
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    offset: Vec<String>,
    /// So many writes are followed by a flush
    #[arg(long, value_delimiter = ',')]
    fsync: Vec<String>,
    /// What happened to the drive before: empty, sequential (written once), random (then overwritten to a steady state)
    /// [default: random]
    #[arg(long, value_delimiter = ',')]
    precondition: Vec<String>,
    /// The share of each set that was written before [default: all of it]
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    fill: Vec<String>,
    /// Set a key of the job's or the device's file: `stream.2.set=3`, `read_us=[60.0, 60.0, 60.0]`. It is checked as if it stood in
    /// the file
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    set: Vec<Setting>,
    /// Seed of all randomness: the same seed gives the same result
    #[arg(long, default_value = "1", value_delimiter = ',', value_parser = values::seed)]
    seed: Vec<u64>,
    /// Runs at a time, if several values make several; the results do not depend on it [default: one a core, as long as there
    /// is memory for them]
    #[arg(long, value_parser = values::threads)]
    threads: Option<u64>,
    /// Directory for the result as JSON, text, CSV and pictures; of several runs, one in it for each, and a page
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write over results that are in that directory
    #[arg(long)]
    force: bool,
    /// How it is shown how far the work is
    #[arg(long, value_enum, default_value_t)]
    progress: ProgressForm,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

const DEFAULT_JOB: &str = "mixed-70-30";

/// The job that --rw, --replay and the flags after them change.
const ONE_STREAM: &str = "name = \"job\"\n[[stream]]\n";

const REPLAY: &str = "replay";

/// A flag that stands for a key of a job.
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

const FLAGS: [Flag; 22] = [
    flag(REPLAY, "stream.replay", |a| &mut a.replay),
    flag("trace-format", "stream.trace_format", |a| &mut a.trace_format),
    flag("replay-no-stall", "stream.replay_no_stall", |a| &mut a.replay_no_stall),
    flag("replay-time-scale", "stream.replay_time_scale", |a| &mut a.replay_time_scale),
    flag("replay-scale", "stream.replay_scale", |a| &mut a.replay_scale),
    flag("replay-align", "stream.replay_align", |a| &mut a.replay_align),
    flag("bs", "stream.block_bytes", |a| &mut a.bs),
    flag("bssplit", "stream.bssplit", |a| &mut a.bssplit),
    flag("bsrange", "stream.bsrange", |a| &mut a.bsrange),
    flag("random-distribution", "stream.random_distribution", |a| &mut a.random_distribution),
    flag("iodepth", "stream.depth", |a| &mut a.iodepth),
    flag("runtime", "stream.duration_s", |a| &mut a.runtime),
    flag("operations", "stream.operations", |a| &mut a.operations),
    flag("rate", "stream.rate", |a| &mut a.rate),
    flag("rwmixread", "stream.read_percent", |a| &mut a.rwmixread),
    flag("trim-percent", "stream.trim_percent", |a| &mut a.trim_percent),
    flag("nvm-set", "stream.set", |a| &mut a.nvm_set),
    flag("size", "stream.size", |a| &mut a.size),
    flag("offset", "stream.offset", |a| &mut a.offset),
    flag("fsync", "stream.flush_every", |a| &mut a.fsync),
    flag("precondition", "precondition", |a| &mut a.precondition),
    flag("fill", "fill", |a| &mut a.fill),
];

/// The runs that these arguments ask for: one, unless flags have several values.
fn runs(arguments: &DeviceArguments) -> anyhow::Result<Vec<sweep::Cell<DeviceArguments>>> {
    let text = String::clone;
    let mut axes = vec![
        Axis::list(arguments, |a| &mut a.device, text),
        Axis::list(arguments, |a| &mut a.job, text),
        Axis::list(arguments, |a| &mut a.rw, text),
    ];
    axes.extend(FLAGS.map(|Flag { name, values, .. }| {
        let given = values(&mut arguments.clone()).clone();
        let labels = given.iter().map(|value| format!("{name}={value}")).collect();
        Axis::new(labels, move |arguments, number| {
            let list = values(arguments);
            *list = vec![list[number].clone()];
        })
    }));
    axes.extend(arguments.set.iter().enumerate().map(|(at, setting)| {
        let keep = move |arguments: &mut DeviceArguments, number| arguments.set[at].keep(number);
        Axis::new(setting.labels(), keep)
    }));
    axes.push(Axis::list(arguments, |a| &mut a.seed, |seed| format!("seed {seed}")));
    cells(arguments, &axes)
}

/// A run that can be begun.
struct Planned {
    name: String,
    spec: DeviceSpec,
    inputs: Inputs,
}

fn planned(cell: &sweep::Cell<DeviceArguments>) -> anyhow::Result<Planned> {
    let arguments = &cell.arguments;
    let kinds = [Kind::of::<Job>("job"), Kind::of::<SsdProfile>("device")];
    let settings = overrides::sort(&arguments.set, &kinds, &[])?;
    let device = arguments.device.first().map_or("", String::as_str);
    let profile = names::profile(device, &settings.of("device"))?;
    let mut job = job(arguments, &settings)?;
    job.entry.look_at_traces()?;
    let mut inputs = Inputs::of_files([("device", profile.table), ("job", job.table)]);
    let traces = job.entry.streams.iter().filter_map(|stream| stream.trace.as_ref());
    inputs.traces = traces.map(Trace::input).collect();
    let seed = arguments.seed.first().copied().unwrap_or(1);
    let spec = DeviceSpec { profile: profile.entry, job: job.entry, seed };
    device::check(&spec)
        .with_context(|| format!("job {} on {}", spec.job.name, spec.profile.name))?;
    Ok(Planned { name: cell.name.clone(), spec, inputs })
}

fn job(arguments: &DeviceArguments, settings: &Sorted) -> anyhow::Result<Loaded<Job>> {
    let mut arguments = arguments.clone();
    let keys = catalogue::keys::<Job>();
    let flags = FLAGS.iter().filter_map(|Flag { name, key, values }| {
        let value = values(&mut arguments).first()?.clone();
        // 20k and 1e6 are numbers as well.
        let count = lab::parse_count_in(&value, 0..=u64::MAX).ok().filter(|_| *name == "rate");
        let of_key = keys.iter().find(|of| of.path == *key);
        let text = match (count, of_key) {
            (Some(count), _) => count.to_string(),
            // A path is a text, also if it looks like a number.
            _ if *name == REPLAY => json!(value).to_string(),
            (None, Some(of_key)) => overrides::as_toml(of_key, &value),
            (None, None) => value.clone(),
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
    loaded.map_err(|error| {
        let Some(rw) = rw else { return error.into() };
        let is_word = Job::names().contains(&rw.as_str());
        let hint = if is_word { format!(" ({rw} is for --job)") } else { String::new() };
        anyhow::anyhow!("{error}{hint}")
    })
}

pub(crate) fn run(arguments: &DeviceArguments) -> anyhow::Result<ExitCode> {
    let cells = runs(arguments)?;
    let runs = cells.iter().map(|cell| planned(cell).map_err(|error| cell.named(error)));
    let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
    let mut warnings: Vec<String> = runs.iter().flat_map(|run| run.spec.warnings()).collect();
    warnings.dedup();
    for warning in &warnings {
        output::say(warning);
    }
    if let Some(directory) = &arguments.out {
        files::check_results(directory, arguments.force)?;
    }
    match &runs[..] {
        [run] => one(arguments, run),
        runs => several(arguments, runs),
    }
}

/// What to do where a job takes more memory than there is.
const FOR_LESS_MEMORY: &str = "take a smaller drive, or write less (--operations, --runtime)";

/// The only run: with a bar, and all that came out in words.
fn one(arguments: &DeviceArguments, run: &Planned) -> anyhow::Result<ExitCode> {
    memory::check(device::memory_bytes(&run.spec), FOR_LESS_MEMORY)?;
    let stop = interrupt::stop_on_interrupt();
    let done = simulate(run, &Rc::new(Progress::new(&run.spec, arguments.progress)), &stop)?;
    show(arguments, run, &done)?;
    if let Some(trouble) = trouble(&done.report) {
        bail!(trouble);
    }
    Ok(if done.report.is_interrupted { interrupt::exit_code() } else { ExitCode::SUCCESS })
}

/// Several runs, side by side.
fn several(arguments: &DeviceArguments, runs: &[Planned]) -> anyhow::Result<ExitCode> {
    let need = runs.iter().map(|run| device::memory_bytes(&run.spec)).max().unwrap_or(0);
    let jobs = runs.iter().map(|run| {
        side_by_side::Run::new(&run.name, move |stop| {
            let progress = Rc::new(Progress::new(&run.spec, ProgressForm::None));
            let done = simulate(run, &progress, stop).map_err(|error| format!("{error:#}"))?;
            let (json, text) = done.texts().map_err(|error| error.to_string())?;
            Ok(side_by_side::Done {
                files: files_of(&run.spec, &done.report, &json, &text),
                trouble: trouble(&done.report),
                is_interrupted: done.report.is_interrupted,
            })
        })
    });
    let how = side_by_side::How {
        title: "Jobs side by side",
        threads: arguments.threads,
        bytes_per_run: need,
        for_less_memory: FOR_LESS_MEMORY,
        out: arguments.out.as_deref(),
        may_write_over: arguments.force,
        as_json: arguments.json,
        progress: arguments.progress,
    };
    side_by_side::run(jobs.collect(), &how)
}

/// What a run gave.
struct Done {
    report: JobReport,
    result: DeviceResult,
}

impl Done {
    /// The result for programs and for eyes.
    fn texts(&self) -> serde_json::Result<(String, String)> {
        Ok((serde_json::to_string_pretty(&self.result)?, table::render(&self.result)))
    }
}

/// What is wrong with a report, if anything is.
fn trouble(report: &JobReport) -> Option<String> {
    let mismatches = report.checks.mismatches;
    if mismatches > 0 {
        return Some(format!("{mismatches} reads returned wrong data: this is a bug"));
    }
    report.first_error.as_ref().map(|error| format!("the job ended early: {error}"))
}

/// Prints the result, then writes its files: a directory that is full does not cost the result.
fn show(arguments: &DeviceArguments, run: &Planned, done: &Done) -> anyhow::Result<()> {
    let (json, text) = done.texts()?;
    let printed = output::print(if arguments.json { &json } else { &text });
    if let Some(directory) = &arguments.out {
        files::write_results(
            directory,
            arguments.force,
            files_of(&run.spec, &done.report, &json, &text),
        )?;
    }
    printed
}

/// Does the job, and measures what that takes here.
fn simulate(run: &Planned, progress: &Rc<Progress>, stop: &Stop) -> anyhow::Result<Done> {
    let spec = &run.spec;
    let observer = Rc::clone(progress);
    let report = device::run_until(spec, stop, move |share| observer.tell(share));
    let report =
        report.with_context(|| format!("job {} on {}", spec.job.name, spec.profile.name))?;
    let (setup, job) = *progress.took.borrow();
    let mut result = DeviceResult::new(spec, &report);
    result.inputs = Some(run.inputs.clone());
    result.host = Some(DeviceHost {
        setup_wall_seconds: setup.as_secs_f64(),
        wall_seconds: job.as_secs_f64(),
        simulated_ops_per_wall_second: report.operations() as f64 / job.as_secs_f64().max(1e-9),
        peak_rss_bytes: peak_rss_bytes(),
    });
    Ok(Done { report, result })
}

/// The result as files: names and contents.
fn files_of(
    spec: &DeviceSpec,
    report: &JobReport,
    json: &str,
    text: &str,
) -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("result.json", format!("{json}\n")),
        ("result.txt", format!("{text}\n")),
        ("latency.csv", picture::latency_csv(report)),
        ("timeline.csv", picture::timeline_csv(report)),
        ("latency.svg", picture::latency_svg(spec, report)),
        ("timeline.svg", picture::timeline_svg(spec, report)),
    ];
    files.extend(picture::samples_csv(report).map(|csv| ("samples.csv", csv)));
    files
}

const BAR: &str = "{msg} {wide_bar} {percent} % eta {eta}";
const STEPS: u64 = 1_000;

/// Draws a bar, or says lines where it does not show, and measures wall time.
struct Progress {
    bar: ProgressBar,
    form: ProgressForm,
    /// The job and its drive.
    name: String,
    stopwatch: RefCell<Stopwatch>,
    /// When a line is due again.
    next_line: Cell<Duration>,
    /// How long making the drive took, and the job.
    took: RefCell<(Duration, Duration)>,
}

impl Progress {
    fn new(spec: &DeviceSpec, form: ProgressForm) -> Self {
        let name = format!("{} on {}", spec.job.name, spec.profile.name);
        let bar = match form {
            ProgressForm::Auto => progress::bar(BAR, STEPS).with_message(name.clone()),
            ProgressForm::Json | ProgressForm::None => ProgressBar::hidden(),
        };
        if form == ProgressForm::Auto {
            progress::line_without(&bar, &format!("{name} ..."));
        }
        Self {
            bar,
            form,
            name,
            stopwatch: RefCell::new(Stopwatch::start()),
            next_line: Cell::default(),
            took: RefCell::default(),
        }
    }

    /// The job is so far, from 0 to 1.
    fn tell(&self, share: f64) {
        let took = self.stopwatch.borrow().elapsed();
        let (setup, job) = &mut *self.took.borrow_mut();
        if share <= 0.0 {
            *setup = took;
            *self.stopwatch.borrow_mut() = Stopwatch::start();
        }
        let is_over = share >= 1.0;
        if is_over {
            *job = took;
        }
        match self.form {
            ProgressForm::None => {}
            ProgressForm::Json => self.say_json(share, took),
            ProgressForm::Auto => {
                self.bar.set_position((share * STEPS as f64) as u64);
                if is_over {
                    self.bar.finish_and_clear();
                    let took = progress::time_text(took + *setup);
                    let line = format!("{} ... done after {took}", self.name);
                    progress::line_without(&self.bar, &line);
                }
            }
        }
    }

    fn say_json(&self, share: f64, took: Duration) {
        let is_end = share <= 0.0 || share >= 1.0;
        if is_end || took >= self.next_line.get() {
            self.next_line.set(took + progress::JSON_EVERY);
            progress::json_line(
                &json!({ "job": self.name, "share": share, "seconds": took.as_secs_f64() }),
            );
        }
    }
}
