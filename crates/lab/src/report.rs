//! A report of experiments: figures, what a paper says beside what came out here, and how to get it
//! again.
//!
//! Pure: values in, the contents of files out; no clock, no randomness, the same report gives the
//! same bytes. [`Report::files`] is what `levelhead reproduce` writes: a page that opens from the
//! disk without a network, and every number as CSV and JSON. [`Report::table`] is for a terminal.
//!
//! The page draws from the JSON inside it (`page.js`) with Plotly, whose script is part of the page.
//! A policy in the page forbids it to load anything, so what works here works offline.

mod check;
mod comparison;
mod csv;
mod figure;
mod html;
mod marks;
mod numbers;
mod page;
mod plotly_js;
mod unit;
mod verdict;

use serde::Serialize;
use serde_json::{Map, Value};

pub use check::ReportError;
pub use comparison::{Comparison, Counted};
pub use figure::{Axis, BarSeries, Figure, FigureKind, Scale, Series};
pub use marks::{Published, Stretch};
pub use unit::Unit;
pub use verdict::Verdict;

/// A table of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Names its place in the page: small letters, digits and `-`.
    pub id: String,
    /// What it is, in a line.
    pub title: String,
    /// Headings, the first one of the names of the rows.
    pub headings: Vec<String>,
    /// Rows: a name and numbers.
    pub rows: Vec<Vec<String>>,
}

/// Experiments and what they show.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What the report is about, in a line.
    pub title: String,
    /// What came out, in a few sentences: what a reader in a hurry takes away.
    pub summary: String,
    /// How the size of the experiments relates to the paper's, in words.
    pub scale: String,
    /// The command that gives this report again.
    pub command: String,
    /// Figures, in order.
    pub figures: Vec<Figure>,
    /// What the paper says beside what came out.
    pub comparisons: Vec<Comparison>,
    /// What a reader should know: assumptions, what was left out.
    pub notes: Vec<String>,
}

/// `report.json`: the report and the program it is from.
#[derive(Serialize)]
struct Document<'a> {
    levelhead: &'static str,
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    more: &'a Value,
}

impl Report {
    /// The files of the report, as names and contents: `index.html`, `report.json`,
    /// `comparisons.csv` and `.json`, and for each figure `<id>.csv` and `<id>.json`.
    ///
    /// # Errors
    /// A report that could not be shown as it is meant, such as two figures with one id, is refused.
    pub fn files(&self) -> Result<Vec<(String, String)>, ReportError> {
        self.files_with(&[], &Value::Object(Map::new()))
    }

    /// The same with tables above the figures, and with the keys of the object `more` in
    /// `report.json`.
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

    /// The comparisons as a table for a terminal of 100 columns.
    pub fn table(&self) -> String {
        comparison::table(&self.comparisons)
    }
}

/// Text cells as CSV.
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

#[cfg(test)]
#[path = "report/tests.rs"]
mod tests;
