//! Finished results side by side: what went in differently, and what came out.
//!
//! A [`Finished`] is what `levelhead bench` and `levelhead device` write: `result.json`, and the curves of `latency.csv`
//! and `timeline.csv` if they are there. Runs of a sweep come from memory in the same texts, so that a sweep and a
//! comparison of its results later are one thing. Pure: texts in, texts out.

mod differences;
mod finished;
mod numbers;
mod page;

use crate::report::{ReportError, Table};
use crate::table::{add, table};
use crate::units::{count_text, span_text, three_digits};

use differences::Difference;
pub use finished::Finished;
use numbers::Number;

/// More runs than this have no column each in the table of all numbers.
const MOST_COLUMNS: usize = 4;

/// Results side by side.
pub struct SideBySide {
    runs: Vec<Finished>,
    differences: Vec<Difference>,
    /// Whether names of runs say what sets them apart.
    names_tell: bool,
}

impl SideBySide {
    /// Puts finished results beside each other. `names_tell` says whether their names are what sets them apart.
    ///
    /// # Errors
    /// In words: there are fewer than two, two have one name, or some are of benches and some of jobs.
    pub fn new(runs: Vec<Finished>, names_tell: bool) -> Result<Self, String> {
        if runs.len() < 2 {
            return Err("there is nothing to compare: give two results and more".to_owned());
        }
        for (i, run) in runs.iter().enumerate() {
            if runs[..i].iter().any(|other| other.name == run.name) {
                return Err(format!("{} is named twice", run.name));
            }
            if run.is_job != runs[0].is_job {
                let (bench, job) = if run.is_job { (&runs[0], run) } else { (run, &runs[0]) };
                return Err(format!(
                    "{} is of levelhead bench and {} of levelhead device: they have no numbers in common",
                    bench.name, job.name
                ));
            }
        }
        let differences = differences::between(&runs);
        Ok(Self { runs, differences, names_tell })
    }

    /// The table for a terminal: a row for each run; of a few runs besides all numbers, a column for each.
    pub fn table(&self) -> String {
        let mut tables = vec![self.summary()];
        if self.runs.len() <= MOST_COLUMNS {
            tables.push(self.all_numbers());
        }
        let texts: Vec<String> = tables.iter().map(as_text).collect();
        let same = self.differences.is_empty();
        let note = if same { "\n\nnothing that the results tell went in differently" } else { "" };
        let failures = self.failures();
        let failures = if failures.is_empty() {
            String::new()
        } else {
            format!("\n\n{}", failures.join("\n"))
        };
        format!("{}{note}{failures}", texts.join("\n\n"))
    }

    /// A line for each run that failed.
    fn failures(&self) -> Vec<String> {
        let words = |run: &Finished| {
            let failure = run.failure()?;
            Some(format!(
                "{} failed, its numbers are of what was done until then: {failure}",
                run.name
            ))
        };
        self.runs.iter().filter_map(words).collect()
    }

    /// The summary as CSV: a row for each run with what went in differently and every number.
    pub fn csv(&self) -> String {
        let differences = self.differences.iter().map(|difference| difference.name.clone());
        let names = self.number_names();
        let header =
            [String::from("run")].into_iter().chain(differences).chain(names.iter().cloned());
        let rows = self.runs.iter().enumerate().map(|(i, run)| {
            let values = self.differences.iter().map(|difference| difference.values[i].clone());
            let numbers = names
                .iter()
                .map(|name| run.number(name).map_or(String::new(), |n| n.value.to_string()));
            [run.shown_name()].into_iter().chain(values).chain(numbers).collect()
        });
        crate::report::csv(header, rows)
    }

    /// The page and the numbers behind it, as files.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn files(&self, title: &str, command: &str) -> Result<Vec<(String, String)>, ReportError> {
        let report = page::report(self, title, command);
        let mut tables = vec![self.summary()];
        if self.runs.len() <= MOST_COLUMNS {
            tables.push(self.all_numbers());
        }
        let mut files = report.files_with(&tables)?;
        files.push(("runs.csv".to_owned(), self.csv()));
        Ok(files)
    }

    /// A row for each run.
    fn summary(&self) -> Table {
        let shown: &[Difference] = if self.names_tell { &[] } else { &self.differences };
        let names: Vec<String> =
            self.number_names().into_iter().filter(|name| self.is_key(name)).collect();
        let differences = shown.iter().map(|difference| difference.name.clone());
        let headings =
            [String::from("run")].into_iter().chain(differences).chain(names.iter().cloned());
        let rows = self.runs.iter().enumerate().map(|(i, run)| {
            let values = shown.iter().map(|difference| difference.values[i].clone());
            let numbers =
                names.iter().map(|name| run.number(name).map_or("-".into(), Number::text));
            [run.shown_name()].into_iter().chain(values).chain(numbers).collect()
        });
        Table {
            id: "runs".to_owned(),
            title: "The runs".to_owned(),
            headings: headings.collect(),
            rows: rows.collect(),
        }
    }

    /// A row for each number, a column for each run.
    fn all_numbers(&self) -> Table {
        let names = self.runs.iter().map(Finished::shown_name);
        let different = self.differences.iter().map(|difference| {
            [difference.name.clone()].into_iter().chain(difference.values.iter().cloned()).collect()
        });
        let numbers = self.number_names().into_iter().map(|name| {
            let first = self.runs[0].number(&name).map(|number| number.value);
            let cells = self.runs.iter().enumerate().map(|(i, run)| match run.number(&name) {
                None => "-".to_owned(),
                Some(number) if i == 0 => number.text(),
                Some(number) => format!("{}{}", number.text(), change(first, number.value)),
            });
            let cells: Vec<String> = cells.collect();
            [name].into_iter().chain(cells).collect::<Vec<String>>()
        });
        Table {
            id: "numbers".to_owned(),
            title: "All numbers, and their change against the first run".to_owned(),
            headings: [String::new()].into_iter().chain(names).collect(),
            rows: different.chain(numbers).collect(),
        }
    }

    /// Names of the numbers that any run has, in order.
    fn number_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for run in &self.runs {
            let mut at = 0;
            for number in &run.numbers {
                let place = names.iter().position(|name| *name == number.name);
                if place.is_none() {
                    names.insert(at, number.name.clone());
                }
                at = place.unwrap_or(at) + 1;
            }
        }
        names
    }

    fn is_key(&self, name: &str) -> bool {
        self.runs.iter().any(|run| run.number(name).is_some_and(|number| number.is_key))
    }
}

/// ` (+12 %)`, or ` (17x)` from ten times on, if that can be said.
fn change(first: Option<f64>, value: f64) -> String {
    let Some(first) = first.filter(|first| *first != 0.0) else { return String::new() };
    let percent = (value / first - 1.0) * 100.0;
    match percent {
        percent if percent.abs() < 0.05 => " (=)".to_owned(),
        percent if percent >= 900.0 => format!(" ({:.0}x)", value / first),
        percent if percent.abs() < 9.95 => format!(" ({percent:+.1} %)"),
        percent => {
            // What is not nothing has not changed by all of it.
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

/// A number for people.
fn number_text(value: f64) -> String {
    let is_count = value >= 0.0 && (value.fract() == 0.0 || value >= 1000.0);
    match value {
        value if is_count => count_text(value.round() as u64),
        value if value < 0.1 => span_text(value),
        value => three_digits(value),
    }
}

#[cfg(test)]
#[path = "compare/tests.rs"]
mod tests;
