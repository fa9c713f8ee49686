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
mod contents;
mod csv;
mod figure;
mod files;
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

pub use check::ReportError;
pub use comparison::{Comparison, Counted};
pub use contents::{Report, Table};
pub use figure::{Axis, BarSeries, Figure, FigureKind, Scale, Series};
pub use marks::{Published, Stretch};
pub use unit::Unit;
pub use verdict::Verdict;
