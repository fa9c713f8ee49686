//! The runs of a sweep and their outcomes.

use lab::compare::{Failure, Finished, Lack};
use serde_json::Value;
use workload::Stop;

use super::kept::{Files, Kept};
use super::{Doing, Nothing, Run};
use crate::output;

/// A run of a sweep.
pub(super) struct Row {
    pub(super) name: String,
    asked: Vec<(String, String)>,
    /// All that its result depends on; none if it is refused.
    inputs: Option<Value>,
    /// Whether it is of this shard.
    pub(super) is_own: bool,
    pub(super) outcome: Outcome,
}

/// The outcome of a run.
pub(super) enum Outcome {
    Ended(Box<End>),
    Lacking(Failure),
    /// Nothing as yet.
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
    /// From the files of the run.
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
    /// A run before the work, with what is to be done. A result that is there is taken over.
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

    /// Takes over what the directory has of it, if nothing is known.
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

    /// Does the run, and keeps what comes out; an error that is no part of the outcome is that it
    /// cannot be kept.
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

    /// Why it did not come to its end as it was meant to.
    pub(super) fn trouble(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Ended(end) => end.trouble.as_deref(),
            Outcome::Lacking(failure) => Some(&failure.reason),
            Outcome::Open => None,
        }
    }

    /// Whether it was not refused before the first run began.
    pub(super) fn was_planned(&self) -> bool {
        self.inputs.is_some()
    }

    /// Whether it has a place on the page.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.outcome, Outcome::Open)
    }

    pub(super) fn lack(&self) -> Option<Lack> {
        match &self.outcome {
            Outcome::Lacking(failure) => Some(failure.status),
            _ => None,
        }
    }

    /// Its result beside the others, and the same for programs.
    pub(super) fn into_finished(self) -> (Finished, super::OneJson) {
        let name = self.name;
        let (finished, json) = match self.outcome {
            Outcome::Ended(end) => (end.finished, Some(end.json)),
            Outcome::Lacking(failure) => (Finished::without_result(&name, failure), None),
            Outcome::Open => unreachable!("a run that nothing is known of is not shown"),
        };
        let json = super::OneJson::new(&finished, json);
        (finished, json)
    }
}
