//! Progress of a job, as a bar, as lines or as JSON.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use blockbench::DeviceSpec;
use indicatif::ProgressBar;
use serde_json::json;

use crate::host::Stopwatch;
use crate::progress;
use crate::progress::ProgressForm;

const BAR: &str = "{msg} {wide_bar} {percent} % eta {eta}";
const STEPS: u64 = 1_000;

/// Draws a bar, or prints lines where the bar is hidden, and measures wall time.
pub(super) struct Progress {
    bar: ProgressBar,
    form: ProgressForm,
    /// Names of the job and its drive.
    name: String,
    stopwatch: RefCell<Stopwatch>,
    /// The time of the next progress line.
    next_line: Cell<Duration>,
    /// Time to make the drive, and time of the job.
    pub(super) took: RefCell<(Duration, Duration)>,
}

impl Progress {
    pub(super) fn new(spec: &DeviceSpec, form: ProgressForm) -> Self {
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

    /// Updates the progress. `share` is the finished part of the job, 0 to 1.
    pub(super) fn tell(&self, share: f64) {
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
