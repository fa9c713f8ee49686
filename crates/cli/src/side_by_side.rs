//! Executes several runs in parallel. Their results make a table, and a directory with a page.

mod json;
mod kept;
mod outcome;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::anyhow;
use papers::{Job, Simulation, Watcher};
use report::compare::{Lack, SideBySide};
use serde_json::json;
use workload::Stop;

use crate::command_line::page_command;
use crate::parallel::{self, Ended, Progress};
use crate::progress::ProgressForm;
use crate::results::ResultArguments;
use crate::{files, interrupt, memory, output, progress};

pub(crate) use json::{OneJson, json_of};
use kept::Kept;
use outcome::{Outcome, Row};
use run::Doing;
pub(crate) use run::{Done, Nothing, Plan, Run};

/// How the runs are executed and reported.
pub(crate) struct How<'a> {
    pub(crate) title: &'static str,
    /// Runs in parallel, if given.
    pub(crate) threads: Option<u64>,
    /// Maximum memory of a run, in bytes.
    pub(crate) bytes_per_run: u64,
    /// Advice if even a single run does not fit into memory.
    pub(crate) for_less_memory: &'static str,
    pub(crate) results: &'a ResultArguments,
}

/// Prints the start and the end of each run as a line of JSON.
struct JsonLines;

impl JsonLines {
    fn say(of: Simulation<'_>, event: &str) {
        let Simulation { name, number, total } = of;
        progress::json_line(
            &json!({ "run": name, "event": event, "number": number, "total": total }),
        );
    }
}

impl Watcher for JsonLines {
    fn begins(&self, simulation: Simulation<'_>) {
        Self::say(simulation, "begins");
    }

    fn ended(&self, simulation: Simulation<'_>, _: bool) {
        Self::say(simulation, "ended");
    }
}

/// Prints nothing.
struct Silent;

impl Watcher for Silent {
    fn begins(&self, _: Simulation<'_>) {}

    fn ended(&self, _: Simulation<'_>, _: bool) {}
}

/// Executes all runs, or those of a shard, then prints and writes their results. A run that fails
/// does not stop the others.
pub(crate) fn run(runs: Vec<Run<'_>>, how: &How<'_>) -> anyhow::Result<ExitCode> {
    let results = how.results;
    let kept = results.out.as_ref().map(|directory| Kept::open(directory, &runs, results));
    let kept = kept.transpose()?;
    let stop = interrupt::stop_on_interrupt();
    let (mut rows, mut todo) = (Vec::new(), Vec::new());
    for (number, run) in runs.into_iter().enumerate() {
        let is_own = results.shard.is_none_or(|shard| shard.has(number));
        let (row, doing) = Row::before(number, run, kept.as_ref(), is_own);
        todo.extend(doing.map(|doing| (number, doing)));
        rows.push(row);
    }
    let mut unsaved = begin(&rows, kept.as_ref());
    let done = do_all(&rows, todo, kept.as_ref(), &stop, how)?;
    for (number, outcome, not_kept) in done {
        unsaved.extend(not_kept.map(|words| format!("{}: {words}", rows[number].name)));
        rows[number].outcome = outcome;
    }
    // Another shard may have finished in the meantime.
    rows.iter_mut().enumerate().for_each(|(number, row)| row.look_up(number, kept.as_ref()));
    let is_whole = say_troubles(&rows, &unsaved);
    let is_cut = |row: &Row| matches!(&row.outcome, Outcome::Ended(end) if end.is_interrupted);
    let is_interrupted = stop.is_asked() || rows.iter().any(is_cut);
    show(rows, how)?;
    Ok(match (is_interrupted, is_whole) {
        (true, _) => interrupt::exit_code(),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

/// Prints the refused and the reused runs, and saves the reasons of refusals. Returns an error
/// message for each reason that could not be saved.
fn begin(rows: &[Row], kept: Option<&Kept>) -> Vec<String> {
    let mut unsaved = Vec::new();
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.is_own) {
        if let Outcome::Lacking(failure) = &row.outcome {
            output::say(&format!("{} is refused: {}", row.name, failure.reason));
            let error = kept.and_then(|kept| kept.save_failure(number, failure).err());
            unsaved.extend(error.map(|error| format!("{}: {}", row.name, output::why(&error))));
        }
    }
    let own = rows.iter().filter(|row| row.is_own);
    let taken = own.clone().filter(|row| matches!(row.outcome, Outcome::Ended(_))).count();
    if taken > 0 {
        output::say(&format!("{taken} of {} runs are taken from an earlier sweep", own.count()));
    }
    unsaved
}

/// Executes the runs to do. Returns their outcomes by number, and errors of saving.
fn do_all(
    rows: &[Row],
    todo: Vec<(usize, Doing<'_>)>,
    kept: Option<&Kept>,
    stop: &Stop,
    how: &How<'_>,
) -> anyhow::Result<Vec<(usize, Outcome, Option<String>)>> {
    if todo.is_empty() {
        return Ok(Vec::new());
    }
    let jobs = todo.into_iter().map(|(number, doing)| {
        let row = &rows[number];
        Job::new(row.name.clone(), move || {
            // A failed run is an outcome, not an error of the sweep.
            let (outcome, unsaved) = row.after(number, doing, kept, stop);
            Ok((number, outcome, unsaved))
        })
    });
    let (jobs, threads) = (jobs.collect(), threads(how)?);
    let outcomes = match how.results.progress {
        ProgressForm::Json => papers::run_all(jobs, threads, &JsonLines),
        ProgressForm::None => papers::run_all(jobs, threads, &Silent),
        ProgressForm::Auto => {
            let progress = Progress::new(&Arc::<Ended>::default(), &Arc::default());
            let outcomes = papers::run_all(jobs, threads, &progress);
            progress.bar.finish_and_clear();
            outcomes
        }
    };
    outcomes.map_err(|words| anyhow!(words))
}

/// Prints the failures. Returns whether there are none.
fn say_troubles(rows: &[Row], unsaved: &[String]) -> bool {
    let own = || rows.iter().filter(|row| row.is_own);
    let failed = own().filter(|row| row.was_planned() && row.lack() != Some(Lack::NotRun));
    for (row, trouble) in failed.filter_map(|row| Some((row, row.trouble()?))) {
        output::say(&format!("{}: {trouble}", row.name));
    }
    let missing = own().filter(|row| row.lack() == Some(Lack::NotRun)).count();
    if missing > 0 {
        output::say(&format!("{missing} runs were not run to their end"));
    }
    for words in unsaved {
        output::say(&format!("{words}; --resume runs it again"));
    }
    unsaved.is_empty() && own().all(|row| row.trouble().is_none())
}

/// Returns the number of runs in parallel: as given, else bounded by cores and memory.
fn threads(how: &How<'_>) -> anyhow::Result<usize> {
    memory::check(how.bytes_per_run, how.for_less_memory)?;
    if let Some(threads) = how.threads {
        return Ok(threads as usize);
    }
    Ok(parallel::threads(how.bytes_per_run))
}

/// Prints the results, then writes the page. A shard writes the page if all other shards have
/// finished; otherwise it shows its own runs.
fn show(rows: Vec<Row>, how: &How<'_>) -> anyhow::Result<()> {
    let (all, known) = (rows.len(), rows.iter().filter(|row| row.is_known()).count());
    let is_all = known == all;
    let shown: Vec<Row> =
        rows.into_iter().filter(|row| row.is_known() && (is_all || row.is_own)).collect();
    let alone = match &shown[..] {
        [Row { outcome: Outcome::Ended(end), .. }] => Some(end.text.trim_end().to_owned()),
        _ => None,
    };
    let (finished, jsons): (Vec<_>, Vec<_>) = shown.into_iter().map(Row::into_finished).unzip();
    let side_by_side = (finished.len() > 1).then(|| SideBySide::new(finished, true));
    let side_by_side = side_by_side.transpose().map_err(|words| anyhow!(words))?;
    let text = match (&side_by_side, how.results.json) {
        (_, true) => json_of(&jsons, side_by_side.as_ref())?,
        (Some(side_by_side), false) => side_by_side.table(),
        (None, false) => alone.unwrap_or_default(),
    };
    let printed = output::print(&text);
    let page = side_by_side.filter(|_| is_all);
    match (&how.results.out, page) {
        (Some(directory), Some(page)) => {
            let write = || write(directory, &page, how.title);
            files::replace(directory, true, files::Replaced::Page, write)?;
        }
        (Some(_), None) => output::say(&format!(
            "{known} of {all} runs are there: when the other shards have ended, --resume makes the \
             page, without --shard"
        )),
        (None, _) => {}
    }
    printed
}

/// Writes the page of results and its data. Returns the paths of the files.
pub(crate) fn write(
    directory: &Path,
    of: &SideBySide,
    title: &str,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = of.files(title, &page_command())?;
    files.push(("runs.txt".to_owned(), format!("{}\n", of.table())));
    let written = files::write(directory, files)?;
    let page = directory.join("index.html");
    output::say(&format!("wrote the page {} and what is in it beside it", page.display()));
    Ok(written)
}
