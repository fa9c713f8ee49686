//! The runs of a sweep and their outcomes.

use report::compare::{Failure, Finished, Lack};
use serde_json::Value;
use workload::Stop;

use super::json::OneJson;
use super::kept::{Files, Kept};
use super::run::{Doing, Nothing, Run};
use crate::output;

/// A run of a sweep.
pub(super) struct Row {
    pub(super) name: String,
    asked: Vec<(String, String)>,
    /// All inputs of its result; `None` if the run is refused.
    inputs: Option<Value>,
    /// Whether the run belongs to this shard.
    pub(super) is_own: bool,
    pub(super) outcome: Outcome,
}

/// The outcome of a run.
pub(super) enum Outcome {
    Ended(Box<End>),
    Lacking(Failure),
    /// No outcome yet.
    Open,
}

/// A run that has a result.
pub(super) struct End {
    pub(super) json: String,
    pub(super) text: String,
    pub(super) finished: Finished,
    /// Its failure, if it failed.
    pub(super) trouble: Option<String>,
    pub(super) is_interrupted: bool,
}

impl End {
    /// Creates the result from the files of the run.
    fn new(name: &str, mut files: Files, trouble: Option<String>) -> Result<Self, String> {
        let mut take = |name: &str| {
            let file = files.iter_mut().find(|(file, _)| *file == name);
            file.map(|(_, text)| std::mem::take(text))
        };
        let json = take("result.json").unwrap_or_default();
        let (latency, timeline) = (take("latency.csv"), take("timeline.csv"));
        let finished = Finished::new(name, &json, latency.as_deref(), timeline.as_deref())?;
        let is_interrupted = finished.status() == "interrupted";
        let text = take("result.txt").unwrap_or_default();
        let trouble = trouble.or_else(|| finished.reason());
        Ok(Self { json, text, finished, trouble, is_interrupted })
    }
}

impl Row {
    /// Creates the row of a run, and returns its work. An existing result is reused.
    pub(super) fn before<'a>(
        number: usize,
        run: Run<'a>,
        kept: Option<&Kept>,
        is_own: bool,
    ) -> (Self, Option<Doing<'a>>) {
        let mut row =
            Self { name: run.name, asked: run.asked, inputs: None, is_own, outcome: Outcome::Open };
        let doing = match run.plan {
            Err(reason) => {
                row.outcome = Outcome::Lacking(row.failure(Lack::Refused, reason));
                None
            }
            Ok(plan) => {
                row.inputs = Some(plan.inputs);
                row.look_up(number, kept.filter(|kept| kept.goes_on()));
                (is_own && matches!(row.outcome, Outcome::Open)).then_some(plan.doing)
            }
        };
        (row, doing)
    }

    /// Reuses the result or failure in the directory, if there is no outcome yet.
    pub(super) fn look_up(&mut self, number: usize, kept: Option<&Kept>) {
        let (Some(kept), Some(inputs), Outcome::Open) = (kept, &self.inputs, &self.outcome) else {
            return;
        };
        let files = kept.load(number, inputs);
        let end = files.and_then(|files| End::new(&self.name, files, None).ok());
        if let Some(end) = end {
            self.outcome = Outcome::Ended(Box::new(end));
        } else if !self.is_own {
            self.outcome = kept.failure(number).map_or(Outcome::Open, Outcome::Lacking);
        }
    }

    fn failure(&self, status: Lack, reason: impl Into<String>) -> Failure {
        Failure::new(status, reason, self.asked.iter().cloned())
    }

    /// Executes the run and saves its result. Returns the outcome, and an error message if the
    /// outcome could not be saved.
    pub(super) fn after(
        &self,
        number: usize,
        doing: Doing<'_>,
        kept: Option<&Kept>,
        stop: &Stop,
    ) -> (Outcome, Option<String>) {
        if stop.is_asked() {
            let words = "interrupted before it began";
            return (Outcome::Lacking(self.failure(Lack::NotRun, words)), None);
        }
        let end = doing(stop).and_then(|done| {
            let unsaved = kept.and_then(|kept| kept.save(number, &done.files).err());
            Ok((End::new(&self.name, done.files, done.trouble)?, unsaved))
        });
        let (outcome, unsaved) = match end {
            Ok((end, unsaved)) => (Outcome::Ended(Box::new(end)), unsaved),
            Err(Nothing { lack, reason }) => {
                let was_stopped = stop.is_asked();
                let failure = self.failure(if was_stopped { Lack::NotRun } else { lack }, reason);
                let kept = kept.filter(|_| !was_stopped);
                let unsaved = kept.and_then(|kept| kept.save_failure(number, &failure).err());
                (Outcome::Lacking(failure), unsaved)
            }
        };
        (outcome, unsaved.map(|error| output::why(&error)))
    }

    /// Returns the reason why the run did not complete as intended.
    pub(super) fn trouble(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Ended(end) => end.trouble.as_deref(),
            Outcome::Lacking(failure) => Some(&failure.reason),
            Outcome::Open => None,
        }
    }

    /// Whether the run was not refused before the first run started.
    pub(super) fn was_planned(&self) -> bool {
        self.inputs.is_some()
    }

    /// Whether the run has an outcome, and so a place on the page.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.outcome, Outcome::Open)
    }

    pub(super) fn lack(&self) -> Option<Lack> {
        match &self.outcome {
            Outcome::Lacking(failure) => Some(failure.status),
            _ => None,
        }
    }

    /// Returns the result for the table and page, and for JSON.
    pub(super) fn into_finished(self) -> (Finished, OneJson) {
        let name = self.name;
        let (finished, json) = match self.outcome {
            Outcome::Ended(end) => (end.finished, Some(end.json)),
            Outcome::Lacking(failure) => (Finished::without_result(&name, failure), None),
            Outcome::Open => unreachable!("a run that nothing is known of is not shown"),
        };
        let json = OneJson::new(&finished, json);
        (finished, json)
    }
}
