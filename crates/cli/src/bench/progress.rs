//! Progress of a bench, by phases.

use std::time::Duration;

use indicatif::ProgressBar;
use kvbench::result::Host;
use kvbench::{BenchOutcome, Observer};
use report::units::count_text;
use serde_json::json;

use crate::host::{Stopwatch, peak_rss_bytes};
use crate::progress::{self, ProgressForm};

/// Interval of progress lines where the bar is hidden.
const LINE_EVERY: Duration = Duration::from_secs(10);

const BAR: &str = "{msg:5} {wide_bar} {done}/{all} {rate} eta {eta}";

/// Draws a bar for each phase, or prints lines where the bar is hidden, and times the phases.
pub(super) struct Progress {
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
    pub(super) fn new(form: ProgressForm) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            form,
            phase: Phase::default(),
            stopwatch: Stopwatch::start(),
            next_line: Duration::ZERO,
            phases: Vec::new(),
        }
    }

    pub(super) fn host(&self, outcome: &BenchOutcome) -> Host {
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
    pub(super) fn took(&self, phase: &str) -> Duration {
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
