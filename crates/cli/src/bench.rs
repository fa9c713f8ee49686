//! `levelhead bench`.

mod arguments;
mod kept;
mod on_files;
mod spec;
mod trace;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::bail;
use blockbench::inputs::Inputs;
use indicatif::ProgressBar;
use kvbench::result::Host;
use kvbench::{BenchError, BenchOutcome, BenchSpec, Observer, picture, table};
use report::compare::Lack;
use report::units::count_text;
use serde_json::json;
use workload::Stop;

use crate::host::{Stopwatch, peak_rss_bytes};
use crate::progress::ProgressForm;
use crate::results::ResultArguments;
use crate::sweep::Combination;
use crate::{interrupt, memory, output, progress, side_by_side, sweep};

pub(crate) use arguments::BenchArguments;
use kept::Drive;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    let cells = spec::runs(arguments)?;
    if !arguments.store.is_empty() {
        let [cell] = &cells[..] else {
            bail!(
                "a store on files runs in real time, one run at a time: give each flag one value"
            );
        };
        return on_files::run(&cell.arguments);
    }
    if arguments.save_drive.is_some() && cells.len() > 1 {
        bail!("--save-drive keeps the drive of one run: give each flag one value");
    }
    let mut warned = BTreeSet::new();
    let runs = sweep::planned(cells, |cell| planned(&cell.arguments, &mut warned))?;
    match &runs[..] {
        [Combination { plan: Ok(run), .. }] => one(&arguments.results, run),
        runs => several(arguments, runs),
    }
}

/// A run that is ready to start.
struct Planned {
    spec: BenchSpec,
    inputs: Inputs,
    drive: Drive,
}

/// Checks, before the first run starts, that a run can complete. Warnings in `warned` are not
/// repeated.
fn planned(
    arguments: &BenchArguments,
    warned: &mut BTreeSet<String>,
) -> anyhow::Result<anyhow::Result<Planned>> {
    let arguments = kept::on_kept(arguments.clone())?;
    let (spec, inputs) = spec::of(&arguments)?;
    if let Err(refusal) = kvbench::check(&spec) {
        return Ok(Err(refusal.into()));
    }
    let drive = kept::drive(&arguments, &spec)?;
    warn(&spec, warned);
    Ok(Ok(Planned { spec, inputs, drive }))
}

/// Prints the warnings of a run that are not in `warned` yet.
fn warn(spec: &BenchSpec, warned: &mut BTreeSet<String>) {
    let warnings = spec.workload.warnings.iter().cloned().chain(kvbench::fit::warnings(spec));
    for warning in warnings.filter(|warning| warned.insert(warning.clone())) {
        output::say(&warning);
    }
}

/// Runs the bench of an earlier result again.
pub(crate) fn again(
    spec: BenchSpec,
    inputs: Inputs,
    results: &ResultArguments,
) -> anyhow::Result<ExitCode> {
    warn(&spec, &mut BTreeSet::new());
    one(results, &Planned { spec, inputs, drive: Drive::Fresh })
}

/// Advice for a bench that needs more memory than is available.
const FOR_LESS_MEMORY: &str = "load fewer pairs (--records)";

/// Runs a single bench, with a progress bar and the result as text.
fn one(results: &ResultArguments, run: &Planned) -> anyhow::Result<ExitCode> {
    results.check()?;
    memory::check(kvbench::fit::memory_bytes(&run.spec), FOR_LESS_MEMORY)?;
    let stop = interrupt::stop_on_interrupt();
    let progress = Rc::new(RefCell::new(Progress::new(results.progress)));
    let outcome = bench(run, &progress, &stop);
    let ages = outcome.is_ok() && matches!(run.drive, Drive::Fresh);
    if ages && let Some(hint) = ageing_hint(progress.borrow().took("age")) {
        output::say(&hint);
    }
    match outcome {
        Err(error @ BenchError::Interrupted { .. }) => {
            output::say(&error.to_string());
            Ok(interrupt::exit_code())
        }
        outcome => end(results, &outcome?),
    }
}

/// Runs several benches side by side.
fn several(arguments: &BenchArguments, runs: &[Combination<Planned>]) -> anyhow::Result<ExitCode> {
    let plans = runs.iter().filter_map(|run| run.plan.as_ref().ok());
    let need = plans.map(|run| kvbench::fit::memory_bytes(&run.spec)).max().unwrap_or(0);
    let jobs = runs.iter().map(|run| {
        run.with(|run| {
            let slice = arguments.slice.map(|slice| slice.as_secs_f64());
            let inputs = json!({ "inputs": run.inputs, "seed": run.spec.seed, "slice": slice });
            side_by_side::Plan::new(inputs, move |stop| {
                let progress = Rc::new(RefCell::new(Progress::new(ProgressForm::None)));
                let outcome = bench(run, &progress, stop).map_err(|error| nothing(&error))?;
                let (json, text) = texts(&outcome).map_err(|error| error.to_string())?;
                Ok(side_by_side::Done {
                    files: files_of(&outcome, &json, &text).into(),
                    trouble: trouble(&outcome),
                })
            })
        })
    });
    let how = side_by_side::How {
        title: "Benches side by side",
        threads: arguments.threads,
        bytes_per_run: need,
        for_less_memory: FOR_LESS_MEMORY,
        results: &arguments.results,
    };
    side_by_side::run(jobs.collect(), &how)
}

fn nothing(error: &BenchError) -> side_by_side::Nothing {
    let lack = if error.is_refusal() { Lack::Refused } else { Lack::Failed };
    side_by_side::Nothing { lack, reason: error.to_string() }
}

/// Runs a bench and adds its inputs and host measurements to the result.
fn bench(
    run: &Planned,
    progress: &Rc<RefCell<Progress>>,
    stop: &Stop,
) -> Result<BenchOutcome, BenchError> {
    let observer: Rc<RefCell<dyn Observer>> = progress.clone();
    let mut outcome = kept::run(&run.drive, &run.spec, &observer, stop)?;
    outcome.result.inputs = Some(run.inputs.clone());
    outcome.result.host = Some(progress.borrow().host(&outcome));
    Ok(outcome)
}

/// The ageing time from which on the hint about --save-drive is printed.
const LONG_AGEING: Duration = Duration::from_mins(1);

/// Returns a hint on how to age the drive only once, if ageing took long.
fn ageing_hint(took: Duration) -> Option<String> {
    (took >= LONG_AGEING).then(|| {
        let took = progress::time_text(took);
        format!(
            "ageing took {took}: --save-drive FILE keeps the aged drive, and --drive FILE begins with it"
        )
    })
}

/// Returns the failure of a run, if it failed.
fn trouble(outcome: &BenchOutcome) -> Option<String> {
    let verification = &outcome.result.verification;
    if verification.mismatches > 0 {
        return Some(format!("{} answers were wrong data: this is a bug", verification.mismatches));
    }
    let error = verification.first_error.as_ref();
    error.map(|error| format!("the run ended early: {error}"))
}

/// Prints and writes the result, and returns the exit code.
fn end(results: &ResultArguments, outcome: &BenchOutcome) -> anyhow::Result<ExitCode> {
    show(results, outcome)?;
    if let Some(trouble) = trouble(outcome) {
        bail!(trouble);
    }
    let is_interrupted = outcome.result.interrupted.is_some();
    Ok(if is_interrupted { interrupt::exit_code() } else { ExitCode::SUCCESS })
}

/// Prints the result, then writes its files, so that a full disk does not lose the result.
fn show(results: &ResultArguments, outcome: &BenchOutcome) -> anyhow::Result<()> {
    let (json, text) = texts(outcome)?;
    results.show(&json, &text, || files_of(outcome, &json, &text))
}

/// Returns the result as JSON and as text.
fn texts(outcome: &BenchOutcome) -> serde_json::Result<(String, String)> {
    Ok((serde_json::to_string_pretty(&outcome.result)?, table::render(&outcome.result)))
}

/// Returns the result as files: names and contents.
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

/// Interval of progress lines where the bar is hidden.
const LINE_EVERY: Duration = Duration::from_secs(10);

const BAR: &str = "{msg:5} {wide_bar} {done}/{all} {rate} eta {eta}";

/// Draws a bar for each phase, or prints lines where the bar is hidden, and times the phases.
struct Progress {
    bar: ProgressBar,
    form: ProgressForm,
    phase: Phase,
    stopwatch: Stopwatch,
    /// The time of the next progress line where the bar is hidden.
    next_line: Duration,
    phases: Vec<(&'static str, Duration)>,
}

/// The current phase.
#[derive(Default)]
struct Phase {
    name: &'static str,
    done: u64,
    total: u64,
}

impl Phase {
    /// Returns the beginning of a progress line.
    fn line(&self) -> String {
        format!("{}: {} operations ...", self.name, count_text(self.total))
    }
}

impl Progress {
    fn new(form: ProgressForm) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            form,
            phase: Phase::default(),
            stopwatch: Stopwatch::start(),
            next_line: Duration::ZERO,
            phases: Vec::new(),
        }
    }

    fn host(&self, outcome: &BenchOutcome) -> Host {
        // A kept drive was loaded in another run, so that there is no load phase.
        let [load, run] = ["load", "run"].map(|phase| self.took(phase).as_secs_f64());
        let rate = |operations: u64, seconds: f64| {
            if seconds > 0.0 { operations as f64 / seconds } else { 0.0 }
        };
        Host {
            wall_seconds: self.phases.iter().map(|(_, took)| took.as_secs_f64()).sum(),
            load_wall_seconds: load,
            run_wall_seconds: run,
            simulated_ops_per_wall_second: rate(outcome.run.operations, run),
            loaded_per_wall_second: rate(outcome.result.records, load),
            peak_rss_bytes: peak_rss_bytes(),
        }
    }

    /// Returns the total time of a phase; 0 if it did not run.
    fn took(&self, phase: &str) -> Duration {
        let of_phase = self.phases.iter().filter(|(name, _)| *name == phase);
        of_phase.map(|(_, took)| *took).sum()
    }

    fn say_end(&self, is_done: bool, took: Duration) {
        let how = if is_done { "done" } else { "cut short" };
        match self.form {
            ProgressForm::None => {}
            ProgressForm::Json => self.say_json(how, took),
            ProgressForm::Auto => {
                self.bar.finish_and_clear();
                let line =
                    format!("{} {how} after {}", self.phase.line(), progress::time_text(took));
                progress::line_without(&self.bar, &line);
            }
        }
    }

    fn say_json(&self, event: &str, took: Duration) {
        let Phase { name, done, total } = self.phase;
        progress::json_line(&json!({
            "phase": name, "event": event, "done": done, "total": total, "seconds": took.as_secs_f64()
        }));
    }
}

impl Observer for Progress {
    fn begin(&mut self, phase: &'static str, total: u64) {
        self.stopwatch = Stopwatch::start();
        self.phase = Phase { name: phase, done: 0, total };
        if total == 0 {
            return;
        }
        match self.form {
            ProgressForm::None => {}
            ProgressForm::Json => {
                self.next_line = progress::JSON_EVERY;
                self.say_json("begins", Duration::ZERO);
            }
            ProgressForm::Auto => {
                self.next_line = LINE_EVERY;
                self.bar = progress::bar(BAR, total).with_message(phase);
                progress::line_without(&self.bar, &self.phase.line());
            }
        }
    }

    fn progress(&mut self, done: u64) {
        if self.phase.total == 0 {
            return;
        }
        self.phase.done = done;
        let took = self.stopwatch.elapsed();
        let is_due = took >= self.next_line;
        match self.form {
            ProgressForm::Json if is_due => {
                self.next_line = took + progress::JSON_EVERY;
                self.say_json("goes on", took);
            }
            ProgressForm::None | ProgressForm::Json => {}
            ProgressForm::Auto => {
                self.bar.set_position(done);
                if is_due && self.bar.is_hidden() {
                    self.next_line = took + LINE_EVERY;
                    let (done, took) = (count_text(done), progress::time_text(took));
                    let line = format!("{} {done} after {took}", self.phase.line());
                    progress::line_without(&self.bar, &line);
                }
            }
        }
    }

    fn end(&mut self, is_done: bool) {
        let took = self.stopwatch.elapsed();
        // The start of a phase without operations was not reported either.
        if self.phase.total > 0 {
            self.say_end(is_done, took);
        }
        self.phases.push((self.phase.name, took));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_ageing_says_how_to_have_it_but_once() {
        let hint = ageing_hint(Duration::from_secs(225)).expect("it took long");
        assert!(hint.contains("--save-drive FILE") && hint.contains("--drive FILE"), "{hint}");
        assert_eq!(ageing_hint(Duration::from_secs(5)), None);
    }
}
