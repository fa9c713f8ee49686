//! `levelhead compare`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use lab::compare::{Finished, SideBySide};

use crate::{files, output, side_by_side};

/// Longest file of a result that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 28;

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// Results of `levelhead bench` or `levelhead device`: directories that --out has written (of several runs, all in it), or
    /// files of JSON
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Directory for a page and the numbers in it
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write over results that are in that directory
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
    let mut finished = Vec::new();
    let mut texts = Vec::new();
    let results = result_files(&arguments.results)?;
    let names = without_common_directory(results.iter().map(|file| name(file)).collect());
    for (file, name) in results.into_iter().zip(names) {
        let result = read(&file)?;
        let beside = |name: &str| Some(file.with_file_name(name)).filter(|file| file.is_file());
        let curve = |name: &str| beside(name).map(|file| read(&file)).transpose();
        let (latency, timeline) = (curve("latency.csv")?, curve("timeline.csv")?);
        let one = Finished::new(&name, &result, latency.as_deref(), timeline.as_deref());
        finished.push(one.map_err(|words| anyhow!("{}: {words}", file.display()))?);
        texts.push((name, result));
    }
    let both = SideBySide::new(finished, false).map_err(|words| anyhow!(words))?;
    let text = if arguments.json {
        side_by_side::json_of(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))?
    } else {
        both.table()
    };
    let printed = output::print(&lab::printable(&text));
    if let Some(directory) = &arguments.out {
        let write = || side_by_side::write(directory, &both, "Results side by side");
        files::replace(directory, arguments.force, files::Replaced::Page, write)?;
    }
    printed.map(|()| ExitCode::SUCCESS)
}

/// `result.json` of each result that was named.
fn result_files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in named {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let own = path.join("result.json");
        if own.is_file() {
            found.push(own);
            continue;
        }
        let before = found.len();
        found.extend(of_sweep(path)?);
        if found.len() == before {
            bail!("{} has no result.json, nor has a directory in it", path.display());
        }
    }
    Ok(found)
}

/// Those of the runs in a directory, in the order of their names.
fn of_sweep(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || format!("cannot read {}", directory.display());
    let entries = fs::read_dir(directory).with_context(read)?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.with_context(read)?.path().join("result.json");
        if file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// What a result is called: its directory, or its file if that is called otherwise.
fn name(file: &Path) -> String {
    let is_usual = file.file_name().is_some_and(|name| name == "result.json");
    let place = file.parent().filter(|parent| is_usual && !parent.as_os_str().is_empty());
    lab::printable(&place.unwrap_or(file).display().to_string())
}

/// Names without the directories that all of them begin with: these tell nothing apart.
fn without_common_directory(names: Vec<String>) -> Vec<String> {
    let Some(first) = names.first() else { return names };
    let ends = first.match_indices('/').map(|(at, _)| at + 1);
    let is_common = |end: &usize| names.iter().all(|name| name.starts_with(&first[..*end]));
    let common = ends.take_while(is_common).last().unwrap_or(0);
    names.iter().map(|name| name[common..].to_owned()).collect()
}

fn read(file: &Path) -> anyhow::Result<String> {
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
