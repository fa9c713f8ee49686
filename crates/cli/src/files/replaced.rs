//! Old results that new ones replace. Only files that this program wrote are removed, identified by
//! name and content, because a directory may contain other files of its owner.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The list of the runs in a directory.
pub(crate) const SWEEP: &str = "sweep.json";
/// The file that replaces the result of a run that has none.
pub(crate) const FAILURE: &str = "failure.json";
/// Files of a run.
const OF_RUN: [&str; 8] = [
    FAILURE,
    "result.json",
    "result.txt",
    "latency.csv",
    "timeline.csv",
    "latency.svg",
    "timeline.svg",
    "samples.csv",
];
/// Files of the page of several runs, in addition to those of its figures.
const OF_PAGE: [&str; 5] = ["index.html", "report.json", "runs.csv", "runs.txt", "seeds.csv"];

/// Returns the files of the page of several runs in `directory`, including its figures.
pub(super) fn page(directory: &Path) -> Vec<PathBuf> {
    let Some(report) = written_by_us(&directory.join("report.json")) else { return Vec::new() };
    // The report of a paper has comparisons; it is not a page of runs.
    if report["comparisons"].as_array().is_none_or(|list| !list.is_empty()) {
        return Vec::new();
    }
    let figures = report["figures"].as_array().map_or(&[][..], Vec::as_slice);
    let ids = figures.iter().filter_map(|figure| figure["id"].as_str()).filter(|id| is_plain(id));
    let of_figures = ids.flat_map(|id| [format!("{id}.csv"), format!("{id}.json")]);
    let names = OF_PAGE.into_iter().map(str::to_owned).chain(of_figures);
    names.map(|name| directory.join(name)).filter(|file| file.is_file()).collect()
}

/// Returns the files of all runs in `directory`: its own run, and the runs of its sweep. Other
/// directories with similar names belong to other results.
pub(super) fn runs(directory: &Path) -> Vec<PathBuf> {
    let sweep = written_by_us(&directory.join(SWEEP));
    let is_of_several = sweep.is_some() || written_by_us(&directory.join("report.json")).is_some();
    let named = |name: &str| match sweep.as_ref().and_then(|sweep| sweep["runs"].as_array()) {
        Some(runs) => runs.iter().any(|run| run["directory"] == name),
        // An older version did not write the names of its runs.
        None => is_of_several && is_numbered(name),
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let within = entries.filter(|entry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_directory && named(&entry.file_name().to_string_lossy())
    });
    let places = [directory.to_owned()].into_iter().chain(within.map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = places.flat_map(|place| run(&place)).collect();
    let sweep = directory.join(SWEEP);
    files.extend(written_by_us(&sweep).map(|_| sweep));
    files.sort();
    files
}

fn run(directory: &Path) -> Vec<PathBuf> {
    let proofs = ["result.json", FAILURE].map(|name| directory.join(name));
    if proofs.iter().all(|proof| written_by_us(proof).is_none()) {
        return Vec::new();
    }
    OF_RUN.map(|name| directory.join(name)).into_iter().filter(|file| file.is_file()).collect()
}

/// Removes the files of `old` that are not in `new`, and directories that become empty. Ignores
/// errors.
pub(super) fn remove(directory: &Path, old: &[PathBuf], new: &[PathBuf]) {
    let new: BTreeSet<&PathBuf> = new.iter().collect();
    for file in old.iter().filter(|file| !new.contains(file)) {
        let _ = fs::remove_file(file);
        if let Some(place) = file.parent().filter(|place| *place != directory) {
            let _ = fs::remove_dir(place);
        }
    }
}

/// Parses a JSON file that names the version of this program that wrote it.
fn written_by_us(file: &Path) -> Option<Value> {
    let json: Value = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
    json["levelhead"].is_string().then_some(json)
}

/// Whether a name is like those of `sweep::directory_name`, for example `01-pink`.
fn is_numbered(name: &str) -> bool {
    let number = name.split_once('-').map_or("", |(number, _)| number);
    number.len() >= 2 && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a name is safe as a file name: it cannot point to another directory.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}
