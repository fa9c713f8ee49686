//! `levelhead compare`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use report::compare::{Failure, Finished, SideBySide};

use crate::files::replaced::FAILURE;
use crate::side_by_side::OneJson;
use crate::{files, output, side_by_side};

const RESULT: &str = "result.json";

/// Maximum size of a result file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 28;

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// Results of `levelhead bench` or `levelhead device`: --out directories, directories of
    /// results, or JSON files
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Directory for the page and its data
    #[arg(long)]
    out: Option<PathBuf>,
    /// Overwrite results in the --out directory
    #[arg(long)]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &CompareArguments) -> anyhow::Result<ExitCode> {
    if let Some(directory) = &arguments.out {
        files::check_results(directory, arguments.force)?;
    }
    let results = result_files(&arguments.results)?;
    let names = without_common_directory(results.iter().map(|file| name(file)).collect());
    let (mut finished, mut jsons) = (Vec::new(), Vec::new());
    for (file, name) in results.into_iter().zip(names) {
        let (one, json) = read_run(&file, &name)?;
        finished.push(one);
        jsons.push(json);
    }
    let both = SideBySide::new(finished, false).map_err(|words| anyhow!(words))?;
    let text =
        if arguments.json { side_by_side::json_of(&jsons, Some(&both))? } else { both.table() };
    let printed = output::print(&report::units::printable(&text));
    if let Some(directory) = &arguments.out {
        let write = || side_by_side::write(directory, &both, "Results side by side");
        files::replace(directory, arguments.force, files::Replaced::Page, write)?;
    }
    printed.map(|()| ExitCode::SUCCESS)
}

/// Reads a result with the CSV files next to it, or the reason why a run has none.
fn read_run(file: &Path, name: &str) -> anyhow::Result<(Finished, OneJson)> {
    let text = read(file)?;
    let wrong = |words: String| anyhow!("{}: {words}", file.display());
    if file.file_name().is_some_and(|name| name == FAILURE) {
        let failure = Failure::parse(&text).map_err(wrong)?;
        let one = Finished::without_result(name, failure);
        let json = OneJson::new(&one, None::<&str>);
        return Ok((one, json));
    }
    let beside = |name: &str| Some(file.with_file_name(name)).filter(|file| file.is_file());
    let is_usual = file.file_name().is_some_and(|name| name == RESULT);
    let curve = |name: &str| beside(name).filter(|_| is_usual).map(|file| read(&file)).transpose();
    let (latency, timeline) = (curve("latency.csv")?, curve("timeline.csv")?);
    let one = Finished::new(name, &text, latency.as_deref(), timeline.as_deref()).map_err(wrong)?;
    let json = OneJson::new(&one, Some(&text));
    Ok((one, json))
}

/// Returns the `result.json` of each named result, or the file that replaces it.
fn result_files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in named {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        if let Some(own) = of_run(path) {
            found.push(own);
            continue;
        }
        let mut within = of_sweep(path)?;
        if within.is_empty() {
            within = bare(path)?;
        }
        if within.is_empty() {
            bail!(
                "{} has no result.json, nor has a directory in it, and no file of JSON in it \
                 is a result",
                path.display()
            );
        }
        found.extend(within);
    }
    Ok(found)
}

/// Returns the file of a run in its directory: its result, or the reason why it has none.
fn of_run(directory: &Path) -> Option<PathBuf> {
    [RESULT, FAILURE].map(|name| directory.join(name)).into_iter().find(|file| file.is_file())
}

/// Returns the entries of a directory, sorted by name with numbers in numeric order.
fn entries(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || format!("cannot read {}", directory.display());
    let entries = fs::read_dir(directory).with_context(read)?;
    let paths = entries.map(|entry| Ok(entry.with_context(read)?.path()));
    let mut paths = paths.collect::<anyhow::Result<Vec<PathBuf>>>()?;
    paths.sort_by_cached_key(|path| natural(&path.to_string_lossy()));
    Ok(paths)
}

/// Returns the files of the runs in a directory.
fn of_sweep(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    Ok(entries(directory)?.iter().filter_map(|path| of_run(path)).collect())
}

/// Returns the JSON files in a directory that are results under other names.
fn bare(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let is_result =
        |path: &PathBuf| read(path).is_ok_and(|text| Finished::new("", &text, None, None).is_ok());
    let files = entries(directory)?.into_iter().filter(|path| is_json(path) && is_result(path));
    Ok(files.collect())
}

/// Returns a sort key under which `a-2` comes before `a-10`.
fn natural(name: &str) -> (Vec<(String, u128)>, String) {
    let mut parts = vec![(String::new(), 0_u128)];
    for letter in name.chars() {
        let (text, number) = parts.last_mut().expect("there is one from the start");
        match letter.to_digit(10) {
            Some(digit) => *number = number.saturating_mul(10).saturating_add(digit.into()),
            None if text.is_empty() || *number == 0 => text.push(letter),
            None => parts.push((letter.to_string(), 0)),
        }
    }
    (parts, name.to_owned())
}

/// Returns the name of a result: its directory, or its file if it is not named as usual.
fn name(file: &Path) -> String {
    let is_usual = file.file_name().is_some_and(|name| name == RESULT || name == FAILURE);
    let place = file.parent().filter(|parent| is_usual && !parent.as_os_str().is_empty());
    report::units::printable(&place.unwrap_or(file).display().to_string())
}

/// Removes the directories that all names begin with, as they distinguish nothing.
fn without_common_directory(names: Vec<String>) -> Vec<String> {
    let Some(first) = names.first() else { return names };
    let ends = first.match_indices('/').map(|(at, _)| at + 1);
    let is_common = |end: &usize| names.iter().all(|name| name.starts_with(&first[..*end]));
    let common = ends.take_while(is_common).last().unwrap_or(0);
    names.iter().map(|name| name[common..].to_owned()).collect()
}

/// Reads a file of a result, JSON or CSV. Returns an error above [`MAX_FILE_BYTES`].
pub(crate) fn read(file: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", file.display());
    let length = fs::metadata(file).with_context(cannot)?;
    if !length.is_file() || length.len() > MAX_FILE_BYTES {
        bail!("{} is no file of a result", file.display());
    }
    let text = fs::read_to_string(file).with_context(cannot)?;
    Ok(catalogue::without_mark(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_in_order() {
        let mut names = ["10-b", "9-a", "100-c", "depth=16", "depth=4", "depth=4, x", "a0b", "ab"];
        names.sort_by_cached_key(|name| natural(name));
        let order = ["9-a", "10-b", "100-c", "a0b", "ab", "depth=4", "depth=4, x", "depth=16"];
        assert_eq!(names, order);
    }

    #[test]
    fn names_begin_where_they_differ() {
        let short = |names: &[&str]| {
            without_common_directory(names.iter().map(|name| (*name).to_owned()).collect())
        };
        assert_eq!(short(&["a/b/pink-1", "a/b/pink-2"]), ["pink-1", "pink-2"]);
        assert_eq!(short(&["a/b", "a/bc/d"]), ["b", "bc/d"]);
        assert_eq!(short(&["results", "other/results"]), ["results", "other/results"]);
        assert_eq!(short(&["a/b", "a/b"]), ["b", "b"], "that they are one is told later");
        assert!(short(&[]).is_empty());
    }
}
