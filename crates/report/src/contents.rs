//! Contents of a report: what is shown, before it is checked and written.

use serde::Serialize;

use crate::comparison::{self, Comparison};
use crate::figure::Figure;

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

impl Report {
    /// Returns the comparisons as a table for a terminal of 100 columns.
    pub fn table(&self) -> String {
        comparison::table(&self.comparisons)
    }
}
