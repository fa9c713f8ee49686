//! Files of a report.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::check::{self, ReportError};
use crate::comparison;
use crate::contents::{Report, Table};
use crate::page;

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
        check::check(&self.figures, &self.comparisons)?;
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
}

fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("strings and numbers become JSON");
    text.push('\n');
    text
}
