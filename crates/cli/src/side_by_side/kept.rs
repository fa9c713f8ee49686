//! A sweep on disk: `sweep.json` lists the runs, and each finished run has a directory of its own.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use report::compare::Failure;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run::Run;
use crate::command_line::page_command;
use crate::files::replaced::{FAILURE, SWEEP};
use crate::program::program;
use crate::results::ResultArguments;
use crate::{files, sweep};

const RESULT: &str = "result.json";
/// Files of a run that the page and the table need.
const OF_RUN: [&str; 4] = [RESULT, "result.txt", "latency.csv", "timeline.csv"];

/// The files of a run: names and contents.
pub(super) type Files = Vec<(&'static str, String)>;

/// The contents of `sweep.json`.
#[derive(Serialize, Deserialize)]
struct Sweep {
    /// Version of this program.
    levelhead: String,
    /// Build of this program.
    program: String,
    command: String,
    runs: Vec<Entry>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Entry {
    directory: String,
    name: String,
    /// A hash of all inputs.
    inputs: String,
}

/// The directory of a sweep.
pub(super) struct Kept {
    directory: PathBuf,
    runs: Vec<Entry>,
    /// Whether results that are already in the directory are reused.
    goes_on: bool,
}

impl Kept {
    /// Starts a sweep in the directory of `--out`, or continues the sweep that is there.
    ///
    /// # Errors
    /// Returns an error if the directory has other results, or cannot be written to.
    pub(super) fn open(
        directory: &Path,
        runs: &[Run<'_>],
        results: &ResultArguments,
    ) -> anyhow::Result<Self> {
        let sweep = Sweep {
            levelhead: env!("CARGO_PKG_VERSION").to_owned(),
            program: program().to_owned(),
            command: page_command(),
            runs: runs.iter().enumerate().map(|(n, run)| entry(run, n, runs.len())).collect(),
        };
        let file = directory.join(SWEEP);
        let may_go_on = results.resume || results.shard.is_some();
        let goes_on = may_go_on && file.exists();
        if goes_on {
            check_same(&sweep, directory)?;
            files::check_directory(directory)?;
        } else {
            files::check_results(directory, results.force).map_err(|error| {
                if file.exists() { error.context("--resume goes on with a sweep") } else { error }
            })?;
            if results.force && !may_go_on {
                // Shards may start at the same time, so a shard must not remove the files of
                // another one.
                files::remove_results(directory);
            }
            write(directory, &sweep)?;
        }
        Ok(Self { directory: directory.to_owned(), runs: sweep.runs, goes_on })
    }

    /// Whether results that are already in the directory are reused.
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    fn place(&self, number: usize) -> PathBuf {
        self.directory.join(&self.runs[number].directory)
    }

    /// Returns the files of a finished run, if its inputs are the same.
    pub(super) fn load(&self, number: usize, inputs: &Value) -> Option<Files> {
        let place = self.place(number);
        let read = |name: &'static str| Some((name, fs::read_to_string(place.join(name)).ok()?));
        let files: Option<Files> = OF_RUN.into_iter().map(read).collect();
        let files = files?;
        let result: Value = serde_json::from_str(&files.first()?.1).ok()?;
        let is_same = |key: &str| as_read(&result[key]) == as_read(&inputs[key]);
        let is_to_its_end = matches!(result["interrupted"], Value::Null | Value::Bool(false));
        (is_same("inputs") && is_same("seed") && is_to_its_end).then_some(files)
    }

    /// Returns the reason why a run has no result, if it is known.
    pub(super) fn failure(&self, number: usize) -> Option<Failure> {
        let text = fs::read_to_string(self.place(number).join(FAILURE)).ok()?;
        Failure::parse(&text).ok()
    }

    /// Saves the files of a run. `result.json` is written last, so its presence implies all other
    /// files.
    pub(super) fn save(&self, number: usize, files: &Files) -> anyhow::Result<()> {
        let place = self.place(number);
        // The result of an interrupted run is not that of this run.
        let _ = fs::remove_file(place.join(RESULT));
        let (result, others): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|(name, _)| *name == RESULT);
        files::write(&place, others.into_iter().chain(result))?;
        let _ = fs::remove_file(place.join(FAILURE));
        Ok(())
    }

    /// Saves the reason why a run has no result.
    pub(super) fn save_failure(&self, number: usize, failure: &Failure) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(failure)?;
        files::write(&self.place(number), [(FAILURE, format!("{text}\n"))]).map(|_| ())
    }
}

fn entry(run: &Run<'_>, number: usize, runs: usize) -> Entry {
    let inputs = match &run.plan {
        Ok(plan) => hash(&plan.inputs.to_string()),
        Err(_) => "refused".to_owned(),
    };
    let directory = sweep::directory_name(&run.name, number, runs);
    Entry { directory, name: run.name.clone(), inputs }
}

fn hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Returns a value as it is after a round trip through JSON text.
fn as_read(value: &Value) -> Option<Value> {
    serde_json::from_str(&value.to_string()).ok()
}

/// Returns an error if the directory has another sweep, or results of another build.
fn check_same(own: &Sweep, directory: &Path) -> anyhow::Result<()> {
    let (file, place) = (directory.join(SWEEP), directory.display());
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()));
    let there: Sweep = serde_json::from_str(&text?)
        .with_context(|| format!("{} is damaged: give another directory", file.display()))?;
    let instead = "give another directory, or --force to write over it";
    if there.runs != own.runs {
        let (theirs, ours) = (there.runs.len(), own.runs.len());
        let first = own.runs.iter().find(|run| !there.runs.contains(run));
        let first = first.map_or(String::new(), |run| format!("; it has no such {:?}", run.name));
        bail!(
            "{place} has another sweep, {theirs} runs of `{}`, and this is of {ours}{first}: \
             {instead}",
            there.command
        );
    }
    if there.program != own.program {
        bail!("{place} has a sweep of another build of this program: {instead}");
    }
    Ok(())
}

/// Writes `sweep.json`, safely even if another shard does so at the same time.
fn write(directory: &Path, sweep: &Sweep) -> anyhow::Result<()> {
    let file = directory.join(SWEEP);
    let part = directory.join(format!("{SWEEP}.{}.part", std::process::id()));
    let text = serde_json::to_string_pretty(sweep)?;
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&part, format!("{text}\n")))
        .and_then(|()| fs::rename(&part, &file))
        .with_context(|| format!("cannot write {}", file.display()))
}
