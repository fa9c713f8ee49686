//! `levelhead device`.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use indicatif::ProgressBar;
use lab::device::{self, DeviceHost, DeviceResult, DeviceSpec, JobReport, picture, table};

use crate::host::{Stopwatch, peak_rss_bytes};
use crate::{files, interrupt, names, output, progress, values};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct DeviceArguments {
    /// Block drive: a built-in name or a TOML file
    #[arg(long, default_value = "vigil-15gb")]
    profile: String,
    /// Job: a built-in name or a TOML file in fio's words; `levelhead list` has the names
    #[arg(long, default_value = "mixed-70-30")]
    job: String,
    /// Seed of all randomness: the same seed gives the same result
    #[arg(long, default_value_t = 1, value_parser = values::seed)]
    seed: u64,
    /// Directory for the result as JSON, text, CSV and pictures
    #[arg(long)]
    out: Option<PathBuf>,
    /// File for the result as one JSON object; `-` prints it in place of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(arguments: &DeviceArguments) -> anyhow::Result<ExitCode> {
    let spec = DeviceSpec {
        profile: names::profile(&arguments.profile)?,
        job: names::job(&arguments.job)?,
        seed: arguments.seed,
    };
    for warning in spec.warnings() {
        output::say(&warning);
    }
    if let Some(directory) = &arguments.out {
        files::check_directory(directory)?;
    }
    if let Some(file) = json_file(arguments) {
        files::check(file)?;
    }
    let (report, host) = simulate(&spec)?;
    let mut result = DeviceResult::new(&spec, &report);
    result.host = Some(host);
    show(arguments, &spec, &report, &result)?;
    let checks = &report.checks;
    if checks.mismatches > 0 {
        anyhow::bail!("{} reads returned wrong data: this is a bug", checks.mismatches);
    }
    if let Some(error) = &report.first_error {
        anyhow::bail!("the job ended early: {error}");
    }
    Ok(if report.is_interrupted { interrupt::exit_code() } else { ExitCode::SUCCESS })
}

/// The file for JSON, unless it is to be printed.
fn json_file(arguments: &DeviceArguments) -> Option<&Path> {
    arguments.json.as_deref().filter(|file| *file != Path::new("-"))
}

/// Prints the result, then writes its files: a directory that is full does not cost the result.
fn show(
    arguments: &DeviceArguments,
    spec: &DeviceSpec,
    report: &JobReport,
    result: &DeviceResult,
) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(result)?;
    let text = table::render(result);
    let json_file = json_file(arguments);
    let is_for_programs = arguments.json.is_some() && json_file.is_none();
    let printed = output::print(if is_for_programs { &json } else { &text });
    if let Some(directory) = &arguments.out {
        files::write(directory, files_of(spec, report, &json, &text))?;
    }
    if let Some(file) = json_file {
        let json = format!("{json}\n");
        std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    }
    printed
}

/// Does the job, and measures what that takes here.
fn simulate(spec: &DeviceSpec) -> anyhow::Result<(JobReport, DeviceHost)> {
    let stop = interrupt::stop_on_interrupt();
    let progress = Rc::new(Progress::new(spec));
    let observer = Rc::clone(&progress);
    let report = device::run_until(spec, &stop, move |share| observer.tell(share));
    let report =
        report.with_context(|| format!("job {} on {}", spec.job.name, spec.profile.name))?;
    let seconds = progress.job.get().as_secs_f64();
    let host = DeviceHost {
        setup_wall_seconds: progress.setup.get().as_secs_f64(),
        wall_seconds: seconds,
        simulated_ops_per_wall_second: report.operations() as f64 / seconds.max(1e-9),
        peak_rss_bytes: peak_rss_bytes(),
    };
    Ok((report, host))
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
    line: String,
    stopwatch: RefCell<Stopwatch>,
    setup: Cell<Duration>,
    job: Cell<Duration>,
}

impl Progress {
    fn new(spec: &DeviceSpec) -> Self {
        let name = format!("{} on {}", spec.job.name, spec.profile.name);
        let bar = progress::bar(BAR, STEPS).with_message(name.clone());
        let line = format!("{name} ...");
        progress::line_without(&bar, &line);
        Self {
            bar,
            line,
            stopwatch: RefCell::new(Stopwatch::start()),
            setup: Cell::default(),
            job: Cell::default(),
        }
    }

    /// The job is so far, from 0 to 1.
    fn tell(&self, share: f64) {
        let took = self.stopwatch.borrow().elapsed();
        if share <= 0.0 {
            self.setup.set(took);
            *self.stopwatch.borrow_mut() = Stopwatch::start();
        }
        self.bar.set_position((share * STEPS as f64) as u64);
        if share >= 1.0 {
            self.job.set(took);
            self.bar.finish_and_clear();
            let took = took + self.setup.get();
            let line = format!("{} done after {}", self.line, progress::time_text(took));
            progress::line_without(&self.bar, &line);
        }
    }
}
