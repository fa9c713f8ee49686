//! The tables of a comparison, and their data for programs.

use serde_json::{Value, json};

use super::compared::Compared;
use super::differences::{Difference, NONE};
use super::finished::Finished;
use super::numbers::Number;
use super::seeds::{self, OverSeeds};
use crate::Table;
use crate::resolution::{MARK, MEANING};

/// Maximum number of runs that have a column each in the table of all numbers.
pub(super) const MOST_COLUMNS: usize = 4;

/// Returns all tables of the page.
pub(super) fn all(of: &Compared, over_seeds: &[OverSeeds]) -> Vec<Table> {
    let mut tables = vec![summary(of)];
    tables.extend(seeds::table(of, over_seeds));
    if of.runs.len() <= MOST_COLUMNS {
        tables.push(numbers(of));
    }
    for table in &mut tables {
        if has_mark(table) {
            table.title = format!("{} ({MEANING})", table.title);
        }
    }
    tables.extend(unfinished(of));
    tables
}

pub(super) fn has_mark(table: &Table) -> bool {
    let mut cells = table.rows.iter().flat_map(|row| row.iter().skip(1));
    cells.any(|cell| cell.contains(MARK))
}

/// Returns a table with a row per run.
pub(super) fn summary(of: &Compared) -> Table {
    let shown: &[Difference] = if of.names_tell { &[] } else { &of.differences };
    let names: Vec<String> = of.number_names().into_iter().filter(|name| of.is_key(name)).collect();
    let differences = shown.iter().map(|difference| difference.name.clone());
    let headings =
        [String::from("run")].into_iter().chain(differences).chain(names.iter().cloned());
    let rows = of.runs.iter().enumerate().map(|(i, run)| {
        let values = shown.iter().map(|difference| difference.values[i].clone());
        let numbers =
            names.iter().map(|name| run.number(name).map_or(NONE.to_owned(), Number::text));
        [run.shown_name()].into_iter().chain(values).chain(numbers).collect()
    });
    Table {
        id: "runs".to_owned(),
        title: "The runs".to_owned(),
        headings: headings.collect(),
        rows: rows.collect(),
    }
}

/// Returns a table with a row per number and a column per run.
pub(super) fn numbers(of: &Compared) -> Table {
    let names = of.runs.iter().map(Finished::shown_name);
    let different = of.differences.iter().map(|difference| {
        [difference.name.clone()].into_iter().chain(difference.values.iter().cloned()).collect()
    });
    let numbers = of.number_names().into_iter().map(|name| {
        let first = of.runs[0].number(&name).map(|number| number.value);
        let cells = of.runs.iter().enumerate().map(|(i, run)| match run.number(&name) {
            None => NONE.to_owned(),
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

/// Returns the relative change, such as ` (+12 %)`, or the factor if it is at least ten, such as
/// ` (17x)`. Returns an empty text if `first` is missing or 0.
pub(super) fn change(first: Option<f64>, value: f64) -> String {
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

/// Returns a table with a row for each run that was not completed without errors.
fn unfinished(of: &Compared) -> Option<Table> {
    let row = |run: &Finished| {
        let reason = run.reason().unwrap_or_default();
        (!run.is_whole()).then(|| vec![run.name.clone(), run.status().to_owned(), reason])
    };
    let rows: Vec<Vec<String>> = of.runs.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Table {
        id: "unfinished".to_owned(),
        title: "Runs that were refused, failed, or did not come to their end".to_owned(),
        headings: ["run", "status", "reason"].map(str::to_owned).into(),
        rows,
    })
}

/// Returns a CSV with a row per run: its status, the inputs that differ, and all numbers.
pub(super) fn csv(of: &Compared) -> String {
    let differences = of.differences.iter().map(|difference| difference.name.clone());
    let names = of.number_names();
    let header = ["run", "status", "reason"].into_iter().map(str::to_owned);
    let header = header.chain(differences).chain(names.iter().cloned());
    let rows = of.runs.iter().enumerate().map(|(i, run)| {
        let values = of.differences.iter().map(|difference| difference.values[i].clone());
        let numbers = names
            .iter()
            .map(|name| run.number(name).map_or(String::new(), |n| n.value.to_string()));
        let own = [run.name.clone(), run.status().to_owned(), run.reason().unwrap_or_default()];
        own.into_iter().chain(values).chain(numbers).collect()
    });
    crate::csv::csv(header, rows)
}

/// Returns the runs for programs, with the data of the CSV.
pub(super) fn json(of: &Compared) -> Value {
    let one = |(i, run): (usize, &Finished)| {
        let inputs = of.differences.iter().map(|d| (d.name.clone(), d.values[i].clone().into()));
        let numbers = run.numbers.iter().map(|number| (number.name.clone(), number.value.into()));
        let mut one = json!({
            "name": run.name,
            "status": run.status(),
            "inputs": inputs.collect::<serde_json::Map<_, _>>(),
            "numbers": numbers.collect::<serde_json::Map<_, _>>(),
        });
        if let Some(reason) = run.reason() {
            one["reason"] = reason.into();
        }
        let thin: Vec<&str> =
            run.numbers.iter().filter(|n| n.is_thin).map(|n| n.name.as_str()).collect();
        if !thin.is_empty() {
            one["too_few_samples"] = json!(thin);
        }
        one
    };
    of.runs.iter().enumerate().map(one).collect()
}
