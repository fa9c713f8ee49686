//! A report of experiments: figures, comparisons of published claims with the measured values, and
//! the command that reproduces the report.
//!
//! The module is pure: values in, contents of files out. It uses no clock and no randomness, so the
//! same report gives the same bytes. `levelhead reproduce` writes [`Report::files`]: a page that
//! opens from the disk without a network, and all numbers as CSV and JSON. [`Report::table`] is for
//! a terminal.
//!
//! The page contains its data as JSON, its script (`page.js`) and the script of Plotly, which draws
//! the figures. A content security policy in the page forbids loading anything, so the page works
//! offline.

#![forbid(unsafe_code)]

pub mod chart;
mod check;
pub mod compare;
mod comparison;
mod csv;
mod figure;
mod html;
pub mod late;
mod marks;
mod numbers;
mod page;
mod plotly_js;
pub mod quantiles;
pub mod resolution;
pub mod statistics;
#[cfg(test)]
mod tests;
pub mod text_table;
mod unit;
pub mod units;
mod verdict;

use serde::Serialize;
use serde_json::{Map, Value};

pub use check::ReportError;
pub use comparison::{Comparison, Counted};
pub use figure::{Axis, BarSeries, Figure, FigureKind, Scale, Series};
pub use marks::{Published, Stretch};
pub use unit::Unit;
pub use verdict::Verdict;

/// A table on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Identifier of the table in the page: lower-case letters, digits and `-`.
    pub id: String,
    /// Title of the table, one line.
    pub title: String,
    /// Headings of the columns. The first column has the names of the rows.
    pub headings: Vec<String>,
    /// Rows: a name, then the other cells.
    pub rows: Vec<Vec<String>>,
}

/// Experiments and their results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Title of the report, one line.
    pub title: String,
    /// The main results, in a few sentences.
    pub summary: String,
    /// Size of the experiments in relation to the paper's, as text.
    pub scale: String,
    /// The command that reproduces this report.
    pub command: String,
    /// Figures, in order.
    pub figures: Vec<Figure>,
    /// Published claims and the measured values.
    pub comparisons: Vec<Comparison>,
    /// Notes to the reader: assumptions, and omitted parts of the paper.
    pub notes: Vec<String>,
}

/// Contents of `report.json`: the report and the version of the program.
#[derive(Serialize)]
struct Document<'a> {
    levelhead: &'static str,
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    more: &'a Value,
}

impl Report {
    /// Returns the files of the report, as names and contents: `index.html`, `report.json`,
    /// `comparisons.csv`, `comparisons.json`, and `<id>.csv` and `<id>.json` for each figure.
    ///
    /// # Errors
    /// Returns a [`ReportError`] if the report cannot be shown correctly, for example if two
    /// figures have the same id.
    pub fn files(&self) -> Result<Vec<(String, String)>, ReportError> {
        self.files_with(&[], &Value::Object(Map::new()))
    }

    /// Returns the files of the report, with `tables` above the figures and the keys of the object
    /// `more` in `report.json`. With tables, there are no files `comparisons.csv` and
    /// `comparisons.json`.
    ///
    /// # Errors
    /// As [`Self::files`].
    pub fn files_with(
        &self,
        tables: &[Table],
        more: &Value,
    ) -> Result<Vec<(String, String)>, ReportError> {
        check::check(self)?;
        let document = Document { levelhead: env!("CARGO_PKG_VERSION"), report: self, more };
        let mut files = vec![
            ("index.html".to_owned(), page::render(self, tables)),
            ("report.json".to_owned(), json(&document)),
        ];
        if tables.is_empty() {
            files.push(("comparisons.csv".to_owned(), comparison::csv(&self.comparisons)));
            files.push(("comparisons.json".to_owned(), json(&self.comparisons)));
        }
        for figure in &self.figures {
            files.push((format!("{}.csv", figure.id), figure.csv()));
            files.push((format!("{}.json", figure.id), json(figure)));
        }
        Ok(files)
    }

    /// Returns the comparisons as a table for a terminal of 100 columns.
    pub fn table(&self) -> String {
        comparison::table(&self.comparisons)
    }
}

/// Returns a table of text cells as CSV.
pub(crate) fn csv(
    headings: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut csv = csv::Csv::new(headings);
    for row in rows {
        csv.row(row);
    }
    csv.text()
}

fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("strings and numbers become JSON");
    text.push('\n');
    text
}
