//! Several runs side by side, and what they gave: a table, and a directory with a page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::anyhow;
use lab::compare::{Finished, SideBySide};
use lab::reproduce::{self, Job, Simulation, Watcher};
use serde_json::{Value, json};
use workload::Stop;

use crate::progress::ProgressForm;
use crate::reproduce::{Ended, Progress, threads_words};
use crate::results::ResultArguments;
use crate::{files, host, interrupt, memory, output, progress, sweep};

/// What a run gave.
pub(crate) struct Done {
    /// Its files as names and contents, `result.json` and `result.txt` among them.
    pub(crate) files: Vec<(&'static str, String)>,
    /// What went wrong in it.
    pub(crate) trouble: Option<String>,
    pub(crate) is_interrupted: bool,
}

impl Done {
    fn file(&self, name: &str) -> Option<&str> {
        self.files.iter().find(|(file, _)| *file == name).map(|(_, text)| text.as_str())
    }
}

/// Does a run; once it is asked to stop it ends early.
type Doing<'a> = Box<dyn FnOnce(&Stop) -> Result<Done, String> + Send + 'a>;

/// A run to do.
pub(crate) struct Run<'a> {
    name: &'a str,
    doing: Doing<'a>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        name: &'a str,
        doing: impl FnOnce(&Stop) -> Result<Done, String> + Send + 'a,
    ) -> Self {
        Self { name, doing: Box::new(doing) }
    }
}

/// How they are run, and where what comes out goes.
pub(crate) struct How<'a> {
    pub(crate) title: &'static str,
    /// Runs at a time, if that was said.
    pub(crate) threads: Option<u64>,
    /// Memory that one takes at most.
    pub(crate) bytes_per_run: u64,
    /// What to do where not even one has that.
    pub(crate) for_less_memory: &'static str,
    pub(crate) results: &'a ResultArguments,
}

/// Says in lines of JSON which runs begin and end.
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

/// Nobody is told.
struct Silent;

impl Watcher for Silent {
    fn begins(&self, _: Simulation<'_>) {}

    fn ended(&self, _: Simulation<'_>, _: bool) {}
}

/// Does all of them, shows what came out, and writes it. One that fails keeps no other from its end.
pub(crate) fn run(runs: Vec<Run<'_>>, how: &How<'_>) -> anyhow::Result<ExitCode> {
    let stop = interrupt::stop_on_interrupt();
    let names: Vec<String> = runs.iter().map(|run| run.name.to_owned()).collect();
    let jobs = runs.into_iter().map(|Run { name, doing }| {
        let stop = stop.clone();
        Job::new(name, move || {
            // That one failed is a part of what came out.
            Ok(if stop.is_asked() {
                Err("interrupted before it began".to_owned())
            } else {
                doing(&stop)
            })
        })
    });
    let (jobs, threads) = (jobs.collect(), threads(how)?);
    let outcomes = match how.results.progress {
        ProgressForm::Json => reproduce::run_all(jobs, threads, &JsonLines),
        ProgressForm::None => reproduce::run_all(jobs, threads, &Silent),
        ProgressForm::Auto => {
            let progress = Progress::new(&Arc::<Ended>::default(), &Arc::default());
            let outcomes = reproduce::run_all(jobs, threads, &progress);
            progress.bar.finish_and_clear();
            outcomes
        }
    };
    let outcomes = outcomes.map_err(|words| anyhow!(words))?;
    let mut is_whole = true;
    let mut done = Vec::new();
    for (number, (name, outcome)) in names.iter().zip(outcomes).enumerate() {
        match outcome {
            Err(words) => {
                is_whole = false;
                output::say(&format!("{name}: {words}"));
            }
            Ok(one) => {
                if let Some(trouble) = &one.trouble {
                    is_whole = false;
                    output::say(&format!("{name}: {trouble}"));
                }
                done.push((number, name.as_str(), one));
            }
        }
    }
    show(&done, how)?;
    let is_interrupted = stop.is_asked() || done.iter().any(|(_, _, one)| one.is_interrupted);
    Ok(match (is_interrupted, is_whole) {
        (true, _) => interrupt::exit_code(),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

/// As many at a time as this machine has cores and memory for, unless told.
fn threads(how: &How<'_>) -> anyhow::Result<usize> {
    memory::check(how.bytes_per_run, how.for_less_memory)?;
    if let Some(threads) = how.threads {
        return Ok(threads as usize);
    }
    let (cores, available) = (host::cores(), host::available_memory_bytes());
    let threads = reproduce::threads(cores, available, how.bytes_per_run);
    if let Some(words) = threads_words(threads, cores, available.unwrap_or(0), how.bytes_per_run) {
        output::say(&words);
    }
    Ok(threads.count)
}

/// Prints what came out, then writes it.
fn show(done: &[(usize, &str, Done)], how: &How<'_>) -> anyhow::Result<()> {
    let finished = done.iter().map(|(_, name, one)| {
        let result = one.file("result.json").expect("every run has one");
        Finished::new(*name, result, one.file("latency.csv"), one.file("timeline.csv"))
    });
    let finished = finished.collect::<Result<Vec<_>, _>>().map_err(|words| anyhow!(words))?;
    let side_by_side = (finished.len() > 1).then(|| SideBySide::new(finished, true));
    let side_by_side = side_by_side.transpose().map_err(|words| anyhow!(words))?;
    let alone = || done.iter().filter_map(|(_, _, one)| one.file("result.txt")).collect::<String>();
    let results =
        done.iter().map(|(_, name, one)| (*name, one.file("result.json").unwrap_or("{}")));
    let text = match (&side_by_side, how.results.json) {
        (_, true) => json_of(results)?,
        (Some(side_by_side), false) => side_by_side.table(),
        (None, false) => alone().trim_end().to_owned(),
    };
    let printed = output::print(&text);
    if let Some(directory) = &how.results.out {
        let write = || write_all(directory, done, side_by_side.as_ref(), how.title);
        files::replace(directory, how.results.force, files::Replaced::Runs, write)?;
    }
    printed
}

/// Writes each run into a directory of its own, and the page of them. The paths of all files.
fn write_all(
    directory: &Path,
    done: &[(usize, &str, Done)],
    page: Option<&SideBySide>,
    title: &str,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (number, name, one) in done {
        let files = one.files.iter().map(|(name, text)| (*name, text.clone()));
        let place = directory.join(sweep::directory_name(name, *number));
        written.extend(files::write(&place, files)?);
    }
    if let Some(page) = page {
        written.extend(write(directory, page, title)?);
    }
    Ok(written)
}

/// The results as one JSON object.
pub(crate) fn json_of<'a>(
    results: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> anyhow::Result<String> {
    let results = results.into_iter().map(|(name, result)| {
        let result: Value = serde_json::from_str(result)?;
        Ok(json!({ "name": name, "result": result }))
    });
    let results = results.collect::<serde_json::Result<Vec<_>>>()?;
    Ok(serde_json::to_string_pretty(&json!({ "runs": results }))?)
}

/// Writes the page of results, and the numbers behind it. The paths of its files.
pub(crate) fn write(
    directory: &Path,
    of: &SideBySide,
    title: &str,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = of.files(title, &command())?;
    files.push(("runs.txt".to_owned(), format!("{}\n", of.table())));
    let written = files::write(directory, files)?;
    let page = directory.join("index.html");
    output::say(&format!("wrote the page {} and what is in it beside it", page.display()));
    Ok(written)
}

/// The command line that this is, as one would type it.
pub(crate) fn command() -> String {
    let quoted = |argument: String| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_=.,/:%+@".contains(c);
        let is_word = !argument.is_empty() && argument.chars().all(is_plain);
        if is_word { argument } else { format!("'{}'", argument.replace('\'', "'\\''")) }
    };
    let arguments = std::env::args_os().skip(1).map(|a| quoted(a.to_string_lossy().into_owned()));
    [String::from("levelhead")].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}
