//! Comparisons of finished results: the inputs that differ, and all numbers.
//!
//! A [`Finished`] is the output of `levelhead bench` or `levelhead device`: `result.json`, and the
//! curves of `latency.csv` and `timeline.csv` if these exist. A sweep passes the same texts from
//! memory, so that the sweep and a later comparison of its results give the same output. This
//! module does no I/O: texts in, texts out.

mod compared;
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

use compared::Compared;
use seeds::OverSeeds;
use serde_json::{Value, json};

use crate::resolution::MEANING;
use crate::text_table::{add, table};
use crate::{ReportError, Table};

pub use finished::Finished;
pub use lacking::{Failure, Lack};

/// A comparison of results.
pub struct SideBySide {
    compared: Compared,
    over_seeds: Vec<OverSeeds>,
}

impl SideBySide {
    /// Compares finished results. `names_tell` is whether the names of the runs contain their
    /// differences.
    ///
    /// # Errors
    /// Returns a text if there are fewer than two runs, if two runs have the same name, if some are
    /// benches and others are jobs, or if no run has a result and `names_tell` is false.
    pub fn new(runs: Vec<Finished>, names_tell: bool) -> Result<Self, String> {
        let compared = Compared::new(runs, names_tell)?;
        let over_seeds = seeds::over_seeds(&compared);
        Ok(Self { compared, over_seeds })
    }

    /// Returns the tables for a terminal: a row per run, and for few runs all numbers with a column
    /// per run.
    pub fn table(&self) -> String {
        let of = &self.compared;
        let mut tables = vec![tables::summary(of)];
        tables.extend(seeds::table(of, &self.over_seeds));
        if of.runs.len() <= tables::MOST_COLUMNS {
            tables.push(tables::numbers(of));
        }
        let is_marked = tables.iter().any(tables::has_mark);
        let mut parts: Vec<String> = tables.iter().map(as_text).collect();
        if is_marked {
            parts.push(MEANING.to_owned());
        }
        if of.differences.is_empty() {
            parts.push("nothing that the results tell went in differently".to_owned());
        }
        let failures = of.failures();
        if !failures.is_empty() {
            parts.push(failures.join("\n"));
        }
        parts.join("\n\n")
    }

    /// Returns the summary as CSV: a row per run, with the inputs that differ and all numbers.
    pub fn csv(&self) -> String {
        tables::csv(&self.compared)
    }

    /// Returns the means over the seeds and their confidence intervals, for programs; `None` if no
    /// runs differ only in their seeds.
    pub fn seeds_json(&self) -> Option<Value> {
        (!self.over_seeds.is_empty()).then(|| seeds::json(&self.compared, &self.over_seeds))
    }

    /// Returns the page and its numbers as files: names and contents.
    ///
    /// # Errors
    /// Returns [`ReportError`].
    pub fn files(&self, title: &str, command: &str) -> Result<Vec<(String, String)>, ReportError> {
        let of = &self.compared;
        let report = page::report(of, title, command);
        let mut more = json!({ "runs": tables::json(of) });
        if let Some(seeds) = self.seeds_json() {
            more["seeds"] = seeds;
        }
        let mut files = report.files_with(&tables::all(of, &self.over_seeds), &more)?;
        files.push(("runs.csv".to_owned(), self.csv()));
        let seeds = seeds::csv(of, &self.over_seeds);
        files.extend(seeds.map(|csv| ("seeds.csv".to_owned(), csv)));
        Ok(files)
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
