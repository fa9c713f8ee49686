//! Comparisons of finished results: the inputs that differ, and all numbers.
//!
//! A [`Finished`] is the output of `levelhead bench` or `levelhead device`: `result.json`, and the
//! curves of `latency.csv` and `timeline.csv` if these exist. A sweep passes the same texts from
//! memory, so that the sweep and a later comparison of its results give the same output. This
//! module does no I/O: texts in, texts out.

mod differences;
mod finished;
mod lacking;
mod numbers;
mod page;
mod parts;
mod seeds;
#[cfg(test)]
#[path = "compare/sweep_tests.rs"]
mod sweep_tests;
mod tables;
#[cfg(test)]
#[path = "compare/tests.rs"]
mod tests;

use std::collections::BTreeSet;

use differences::Difference;
use serde_json::{Value, json};

use crate::resolution::MEANING;
use crate::text_table::{add, table};
use crate::units::{count_text, span_text, three_digits};
use crate::{ReportError, Table};

pub use finished::Finished;
pub use lacking::{Failure, Lack};
use seeds::OverSeeds;

/// Maximum number of runs that have a column each in the table of all numbers.
const MOST_COLUMNS: usize = 4;

/// A comparison of results.
pub struct SideBySide {
    runs: Vec<Finished>,
    differences: Vec<Difference>,
    over_seeds: Vec<OverSeeds>,
    /// Whether the names of the runs contain their differences.
    names_tell: bool,
}

impl SideBySide {
    /// Compares finished results. `names_tell` is whether the names of the runs contain their
    /// differences.
    ///
    /// # Errors
    /// Returns a text if there are fewer than two runs, if two runs have the same name, if some are
    /// benches and others are jobs, or if no run has a result and `names_tell` is false.
    pub fn new(runs: Vec<Finished>, names_tell: bool) -> Result<Self, String> {
        if runs.len() < 2 {
            return Err("there is nothing to compare: give two results and more".to_owned());
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = runs.iter().find(|run| !names.insert(&run.name)) {
            return Err(format!("{} is named twice", twice.name));
        }
        let mut with_results = runs.iter().filter(|run| run.has_result());
        let of_kind = |is_job| with_results.clone().find(|run| run.is_job == is_job);
        if let (Some(bench), Some(job)) = (of_kind(false), of_kind(true)) {
            return Err(format!(
                "{} is of levelhead bench and {} of levelhead device: they have no numbers in common",
                bench.name, job.name
            ));
        }
        if !names_tell && with_results.next().is_none() {
            return Err("none of these runs has a result: there is nothing to compare".to_owned());
        }
        let differences = differences::between(&runs);
        let mut both = Self { runs, differences, over_seeds: Vec::new(), names_tell };
        both.over_seeds = seeds::over_seeds(&both);
        Ok(both)
    }

    /// Returns the tables for a terminal: a row per run, and for few runs all numbers with a column
    /// per run.
    pub fn table(&self) -> String {
        let mut tables = vec![tables::summary(self)];
        tables.extend(seeds::table(self, &self.over_seeds));
        if self.runs.len() <= MOST_COLUMNS {
            tables.push(tables::numbers(self));
        }
        let is_marked = tables.iter().any(tables::has_mark);
        let mut parts: Vec<String> = tables.iter().map(as_text).collect();
        if is_marked {
            parts.push(MEANING.to_owned());
        }
        if self.differences.is_empty() {
            parts.push("nothing that the results tell went in differently".to_owned());
        }
        let failures = self.failures();
        if !failures.is_empty() {
            parts.push(failures.join("\n"));
        }
        parts.join("\n\n")
    }

    /// Returns a line for each run that was refused or failed, and a line with the number of runs
    /// that were not run.
    fn failures(&self) -> Vec<String> {
        let words = |run: &Finished| {
            let (name, reason) = (&run.name, run.reason()?);
            match run.status() {
                "not run" => None,
                "refused" => Some(format!("{name} was refused: {reason}")),
                _ if run.has_result() => Some(format!(
                    "{name} failed, its numbers are of what was done until then: {reason}"
                )),
                _ => Some(format!("{name} failed: {reason}")),
            }
        };
        let failed = self.runs.iter().filter_map(words);
        let missing = self.runs.iter().filter(|run| run.status() == "not run").count();
        let missing = (missing > 0).then(|| format!("runs that were not run: {missing}"));
        failed.chain(missing).collect()
    }

    /// Returns the summary as CSV: a row per run, with the inputs that differ and all numbers.
    pub fn csv(&self) -> String {
        tables::csv(self)
    }

    /// Returns the means over the seeds and their confidence intervals, for programs; `None` if no
    /// runs differ only in their seeds.
    pub fn seeds_json(&self) -> Option<Value> {
        (!self.over_seeds.is_empty()).then(|| seeds::json(self, &self.over_seeds))
    }

    /// Returns the page and its numbers as files: names and contents.
    ///
    /// # Errors
    /// Returns [`ReportError`].
    pub fn files(&self, title: &str, command: &str) -> Result<Vec<(String, String)>, ReportError> {
        let report = page::report(self, title, command);
        let mut more = json!({ "runs": tables::json(self) });
        if let Some(seeds) = self.seeds_json() {
            more["seeds"] = seeds;
        }
        let mut files = report.files_with(&tables::all(self), &more)?;
        files.push(("runs.csv".to_owned(), self.csv()));
        let seeds = seeds::csv(self, &self.over_seeds);
        files.extend(seeds.map(|csv| ("seeds.csv".to_owned(), csv)));
        Ok(files)
    }

    /// Returns the names of the numbers of all runs, in order. Omits counters that are zero in
    /// every run.
    fn number_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for run in &self.runs {
            // Most runs have the same names.
            if run.numbers.iter().map(|number| &number.name).eq(&names) {
                continue;
            }
            let mut at = 0;
            for number in &run.numbers {
                let place = names.iter().position(|name| *name == number.name);
                if place.is_none() {
                    names.insert(at, number.name.clone());
                }
                at = place.unwrap_or(at) + 1;
            }
        }
        let says_something = |number: &numbers::Number| !number.is_count || number.value > 0.0;
        names.retain(|name| {
            self.runs.iter().any(|run| run.number(name).is_some_and(says_something))
        });
        names
    }

    fn is_key(&self, name: &str) -> bool {
        self.runs.iter().any(|run| run.number(name).is_some_and(|number| number.is_key))
    }

    /// Returns the groups of runs that differ only in the differences with the indices `across`,
    /// with a name for each group. Numeric values are in ascending order.
    fn groups(&self, across: &[usize]) -> Vec<(String, Vec<usize>)> {
        let others: Vec<&Difference> = self
            .differences
            .iter()
            .enumerate()
            .filter_map(|(at, other)| (!across.contains(&at)).then_some(other))
            .collect();
        let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        let ranks: Vec<Vec<usize>> = others.iter().map(|other| other.ranks()).collect();
        for run in 0..self.runs.len() {
            let place: Vec<usize> = ranks.iter().map(|ranks| ranks[run]).collect();
            match groups.iter_mut().find(|(of, _)| *of == place) {
                Some((_, runs)) => runs.push(run),
                None => groups.push((place, vec![run])),
            }
        }
        groups.sort();
        let name = |runs: &[usize]| {
            let labels: Vec<String> =
                others.iter().filter_map(|other| other.label_if_any(runs[0])).collect();
            if labels.is_empty() { "all runs".to_owned() } else { labels.join(", ") }
        };
        groups.into_iter().map(|(_, runs)| (name(&runs), runs)).collect()
    }
}

/// Returns the relative change, such as ` (+12 %)`, or the factor if it is at least ten, such as
/// ` (17x)`. Returns an empty text if `first` is missing or 0.
fn change(first: Option<f64>, value: f64) -> String {
    let Some(first) = first.filter(|first| *first != 0.0) else { return String::new() };
    let percent = (value / first - 1.0) * 100.0;
    match percent {
        percent if percent.abs() < 0.05 => " (=)".to_owned(),
        percent if percent >= 900.0 => format!(" ({:.0}x)", value / first),
        percent if percent.abs() < 9.95 => format!(" ({percent:+.1} %)"),
        percent => {
            // Only a change to 0 may show as -100 %.
            let is_gone = |decimals: &usize| format!("{percent:.decimals$}").parse() == Ok(-100.0);
            let decimals =
                if value == 0.0 { 0 } else { (0..12).find(|n| !is_gone(n)).unwrap_or(0) };
            format!(" ({percent:+.decimals$} %)")
        }
    }
}

fn as_text(of: &Table) -> String {
    let headings: Vec<&str> = of.headings.iter().map(String::as_str).collect();
    let mut text = table(&headings);
    for row in &of.rows {
        add(&mut text, row.iter().cloned());
    }
    text.to_string()
}

/// Returns a number as text for people.
fn number_text(value: f64) -> String {
    let is_count = value >= 0.0 && (value.fract() == 0.0 || value >= 1000.0);
    match value {
        value if is_count => count_text(value.round() as u64),
        value if value < 0.1 => span_text(value),
        value => three_digits(value),
    }
}
