//! `levelhead bench`.

mod on_files;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use indicatif::ProgressBar;
use lab::bench::{BenchError, BenchOutcome, BenchSpec, Observer};
use lab::fit::{MemoryVerdict, judge_memory};
use lab::{Host, count_text, picture, table};

use crate::bench_spec::BenchArguments;
use crate::host::{Stopwatch, available_memory_bytes, peak_rss_bytes};
use crate::{bench_spec, files, interrupt, output, progress};

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    if !arguments.store.is_empty() {
        return on_files::run(arguments);
    }
    let spec = bench_spec::spec(arguments)?;
    lab::bench::check(&spec)?;
    for warning in lab::fit::warnings(&spec) {
        output::say(&warning);
    }
    check_memory(&spec)?;
    if let Some(directory) = &arguments.out {
        files::check_directory(directory)?;
    }
    let progress = Rc::new(RefCell::new(Progress::new()));
    let observer: Rc<RefCell<dyn Observer>> = progress.clone();
    let stop = interrupt::stop_on_interrupt();
    let outcome = lab::bench::run(&spec, &observer, &stop);
    if let Err(error @ BenchError::Interrupted { .. }) = &outcome {
        output::say(&error.to_string());
        return Ok(interrupt::exit_code());
    }
    let mut outcome = outcome?;
    outcome.result.host = Some(progress.borrow().host(&outcome));
    end(arguments, &outcome)
}

/// Shows what came out; the exit code that follows from it.
fn end(arguments: &BenchArguments, outcome: &BenchOutcome) -> anyhow::Result<ExitCode> {
    show(arguments, outcome)?;
    let verification = &outcome.result.verification;
    if verification.mismatches > 0 {
        anyhow::bail!("{} answers were wrong data: this is a bug", verification.mismatches);
    }
    if let Some(error) = &verification.first_error {
        anyhow::bail!("the run ended early: {error}");
    }
    let is_interrupted = outcome.result.interrupted.is_some();
    Ok(if is_interrupted { interrupt::exit_code() } else { ExitCode::SUCCESS })
}

/// Prints the result, then writes its files: a directory that is full does not cost the result.
fn show(arguments: &BenchArguments, outcome: &BenchOutcome) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(&outcome.result)?;
    let text = table::render(&outcome.result);
    let printed = output::print(if arguments.json { &json } else { &text });
    if let Some(directory) = &arguments.out {
        files::write(directory, files_of(outcome, &json, &text))?;
    }
    printed
}

/// Finds out whether this machine has the memory.
fn check_memory(spec: &BenchSpec) -> anyhow::Result<()> {
    let Some(available) = available_memory_bytes() else { return Ok(()) };
    match judge_memory(lab::fit::memory_bytes(spec), available) {
        MemoryVerdict::Fits => {}
        MemoryVerdict::Tight(words) => output::say(&words),
        MemoryVerdict::TooLittle(words) => anyhow::bail!(words),
    }
    Ok(())
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

    fn end(&mut self, is_done: bool) {
        self.bar.finish_and_clear();
        let took = self.stopwatch.elapsed();
        let how = if is_done { "done" } else { "cut short" };
        let line = format!("{} {how} after {}", self.line, progress::time_text(took));
        progress::line_without(&self.bar, &line);
        self.phases.push(took);
    }
}
