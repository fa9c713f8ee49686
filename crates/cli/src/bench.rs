//! `levelhead bench`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use kvssd::{Design, DeviceProfile};
use lab::bench::{BenchOutcome, BenchSpec, Observer};
use lab::{Host, count_text, picture, table};
use workload::ClientOptions;

use crate::host::{Stopwatch, peak_rss_bytes};
use crate::{files, names, progress};

#[derive(Args)]
pub(crate) struct BenchArguments {
    /// Design: a built-in name or a TOML file
    #[arg(long, default_value = "pink")]
    design: String,
    /// Device: a built-in name or a TOML file
    #[arg(long, default_value = "pink-zcu102")]
    device: String,
    /// Workload: a built-in name or a YCSB property file; `levelhead list` has the names
    #[arg(long, default_value = "a")]
    workload: String,
    /// Pairs to load [default: 4 million; a file's own recordcount]
    #[arg(long)]
    records: Option<u64>,
    /// Operations to run [default: 1 million, for e 100 thousand, for seekrandom 2 thousand; a file's
    /// own operationcount]
    #[arg(long)]
    operations: Option<u64>,
    /// Seed of all randomness: the same seed gives the same result
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Operations outstanding at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    queue_depth: u32,
    /// Operations per second of virtual time: an open loop with Poisson arrivals, in which waiting
    /// counts. Without it a closed loop of --queue-depth clients runs
    #[arg(long)]
    rate: Option<f64>,
    /// Override a workload property, as in YCSB
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = assignment)]
    property: Vec<(String, String)>,
    /// Directory for the result as JSON, text, CSV and pictures
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form NAME=VALUE")),
    }
}

const DEFAULT_RECORDS: u64 = 4_000_000;

/// Operations of a built-in workload. One that scans reads up to 100 pairs in each (e) or 128.
fn default_operations(workload: &str) -> u64 {
    match workload.to_ascii_lowercase().as_str() {
        "e" | "workloade" => 100_000,
        "seekrandom" => 2_000,
        _ => 1_000_000,
    }
}

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<()> {
    let spec = spec(arguments)?;
    if let Some(directory) = &arguments.out {
        files::make(directory)?;
    }
    let progress = Rc::new(RefCell::new(Progress::new()));
    let observer: Rc<RefCell<dyn Observer>> = progress.clone();
    let mut outcome = lab::bench::run(&spec, &observer)?;
    outcome.result.host = Some(progress.borrow().host(&outcome));
    let json = serde_json::to_string_pretty(&outcome.result)?;
    let text = table::render(&outcome.result);
    if let Some(directory) = &arguments.out {
        files::write(directory, files_of(&outcome, &json, &text))?;
    }
    println!("{}", if arguments.json { &json } else { &text });
    let verification = &outcome.result.verification;
    if verification.mismatches > 0 {
        anyhow::bail!("{} answers were wrong data: this is a bug", verification.mismatches);
    }
    if let Some(error) = &verification.first_error {
        anyhow::bail!("the run ended early: {error}");
    }
    Ok(())
}

fn spec(arguments: &BenchArguments) -> anyhow::Result<BenchSpec> {
    let is_built_in = workload::builtin(&arguments.workload).is_some();
    let mut overrides = Vec::new();
    let default = |count: u64| is_built_in.then_some(count);
    let records = arguments.records.or(default(DEFAULT_RECORDS));
    let operations = arguments.operations.or(default(default_operations(&arguments.workload)));
    for (name, count) in [("recordcount", records), ("operationcount", operations)] {
        overrides.extend(count.map(|count| (name.to_owned(), count.to_string())));
    }
    overrides.extend(arguments.property.iter().cloned());
    let depth = arguments.queue_depth as usize;
    let clients = match arguments.rate {
        None => ClientOptions::closed(depth),
        Some(rate) => ClientOptions::open(rate, depth),
    };
    let file_name = Path::new(&arguments.workload).file_stem();
    Ok(BenchSpec {
        design: Design::load(&arguments.design)?,
        device: DeviceProfile::load(&arguments.device)?,
        workload: names::workload(&arguments.workload, &overrides)?,
        workload_name: file_name.map_or("?".to_owned(), |name| name.to_string_lossy().into_owned()),
        clients,
        seed: arguments.seed,
    })
}

/// The result as files: names and contents.
fn files_of(outcome: &BenchOutcome, json: &str, text: &str) -> [(&'static str, String); 6] {
    [
        ("result.json", format!("{json}\n")),
        ("result.txt", format!("{text}\n")),
        ("latency.csv", picture::latency_csv(&outcome.run)),
        ("timeline.csv", picture::timeline_csv(&outcome.run)),
        ("latency.svg", picture::latency_svg(&outcome.result, &outcome.run)),
        ("timeline.svg", picture::timeline_svg(&outcome.result, &outcome.run)),
    ]
}

const BAR: &str = "{msg:5} {wide_bar} {human_pos}/{human_len} {per_sec} eta {eta}";

/// Draws a bar for each phase, or says lines where it does not show, and times the phases.
struct Progress {
    bar: ProgressBar,
    /// What a line begins with.
    line: String,
    stopwatch: Stopwatch,
    phases: Vec<Duration>,
}

impl Progress {
    fn new() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            line: String::new(),
            stopwatch: Stopwatch::start(),
            phases: Vec::new(),
        }
    }

    fn host(&self, outcome: &BenchOutcome) -> Host {
        let seconds = |phase: usize| self.phases.get(phase).map_or(0.0, Duration::as_secs_f64);
        let (load, run) = (seconds(0), seconds(1));
        let rate = |operations: u64, seconds: f64| operations as f64 / seconds.max(1e-9);
        Host {
            wall_seconds: load + run,
            load_wall_seconds: load,
            run_wall_seconds: run,
            simulated_ops_per_wall_second: rate(outcome.run.operations, run),
            loaded_per_wall_second: rate(outcome.result.records, load),
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

impl Observer for Progress {
    fn begin(&mut self, phase: &'static str, total: u64) {
        self.stopwatch = Stopwatch::start();
        self.bar = progress::bar(BAR, total).with_message(phase);
        self.line = format!("{phase}: {} operations ...", count_text(total));
        progress::line_without(&self.bar, &self.line);
    }

    fn progress(&mut self, done: u64) {
        self.bar.set_position(done);
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
        let took = self.stopwatch.elapsed();
        let line = format!("{} done after {}", self.line, progress::time_text(took));
        progress::line_without(&self.bar, &line);
        self.phases.push(took);
    }
}

#[cfg(test)]
mod tests {
    use super::default_operations;

    #[test]
    fn workloads_that_scan_run_fewer_operations() {
        for name in workload::BUILTIN_NAMES {
            let mix = workload::CoreWorkload::from_properties(&workload::builtin(name).unwrap());
            let scans = mix.unwrap().mix.scan > 0.0;
            assert_eq!(default_operations(name) < 1_000_000, scans, "workload {name}");
        }
        assert_eq!(default_operations("WorkloadE"), default_operations("e"));
    }
}
