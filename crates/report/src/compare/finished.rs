//! Finished runs, parsed from their files.

use serde_json::Value;

use super::lacking::Failure;
use super::numbers::{self, Number};

/// A result with its curves, or the reason why there is no result.
pub struct Finished {
    /// Name in the comparison.
    pub name: String,
    /// `result.json`; null without a result.
    pub(super) json: Value,
    /// The reason why there is no result.
    lack: Option<Failure>,
    /// Whether the run is a job on a block drive.
    pub(super) is_job: bool,
    /// The numbers of the result.
    pub(super) numbers: Vec<Number>,
    /// Distributions of latencies: points of a latency in microseconds, and the share of operations
    /// at or below it.
    pub(super) latencies: Vec<Curve>,
    /// The p99 latency over time: points of seconds since the start of the run, and microseconds.
    pub(super) timelines: Vec<Curve>,
}

/// A named series of points. The name is that of an operation, such as `get`, or of a stream and
/// its direction.
pub(super) struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Finished {
    /// Parses a result from the texts of its files. The curves of missing files are empty.
    ///
    /// # Errors
    /// Returns a text if `result` is not a result, or if a CSV file is malformed.
    pub fn new(
        name: impl Into<String>,
        result: &str,
        latency_csv: Option<&str>,
        timeline_csv: Option<&str>,
    ) -> Result<Self, String> {
        let json: Value =
            serde_json::from_str(result).map_err(|error| format!("it is no JSON: {error}"))?;
        let (is_bench, is_job) = (json["operations"].is_object(), json["streams"].is_array());
        if json["levelhead"].as_str().is_none() || is_bench == is_job {
            return Err("it is no result of levelhead bench or levelhead device".to_owned());
        }
        let numbers = if is_job { numbers::of_job(&json) } else { numbers::of_bench(&json) };
        let latency = latency_csv.map_or(Ok(Vec::new()), |csv| rows(csv, "latency.csv"))?;
        let timeline = timeline_csv.map_or(Ok(Vec::new()), |csv| rows(csv, "timeline.csv"))?;
        let mut timelines =
            if is_job { timelines_of_job(&timeline) } else { timelines_of_bench(&timeline) };
        let mut latencies = latencies(&latency);
        if numbers::before_direction(&json, &json["streams"][0]).is_empty() {
            for curve in latencies.iter_mut().chain(&mut timelines) {
                curve.name = curve.name.rsplit(": ").next().unwrap_or_default().to_owned();
            }
        }
        let (name, lack) = (name.into(), None);
        Ok(Self { name, json, lack, is_job, numbers, latencies, timelines })
    }

    /// Returns a run without a result.
    pub fn without_result(name: impl Into<String>, failure: Failure) -> Self {
        Self {
            name: name.into(),
            json: Value::Null,
            lack: Some(failure),
            is_job: false,
            numbers: Vec::new(),
            latencies: Vec::new(),
            timelines: Vec::new(),
        }
    }

    /// Whether the run has a result.
    pub fn has_result(&self) -> bool {
        self.lack.is_none()
    }

    /// Whether the run was completed without errors.
    pub fn is_whole(&self) -> bool {
        self.status() == DONE
    }

    /// Returns `done`, `failed`, `interrupted`, `refused` or `not run`.
    pub fn status(&self) -> &'static str {
        let is_to_its_end = matches!(self.json["interrupted"], Value::Null | Value::Bool(false));
        match &self.lack {
            Some(failure) => failure.status.word(),
            None if self.failure().is_some() => "failed",
            None if is_to_its_end => DONE,
            None => "interrupted",
        }
    }

    /// Returns the reason why there is no result, or the first failure of the run.
    pub fn reason(&self) -> Option<String> {
        let of_lack = self.lack.as_ref().map(|failure| failure.reason.clone());
        of_lack.or_else(|| self.failure())
    }

    /// Returns the requested value of a key, if the run has no result.
    pub(super) fn asked(&self, key: &str) -> Option<String> {
        self.lack.as_ref()?.asked(key)
    }

    /// Returns the number with this name.
    pub(super) fn number(&self, name: &str) -> Option<&Number> {
        self.numbers.iter().find(|number| number.name == name)
    }

    /// Returns the name, with the status unless that is `done`.
    pub(super) fn shown_name(&self) -> String {
        match self.status() {
            DONE => self.name.clone(),
            status => format!("{} ({status})", self.name),
        }
    }

    /// Returns the first wrong answer or the first error of the run. The numbers of such a run are
    /// not comparable: they cover only the operations before the error, or include wrong answers.
    pub(super) fn failure(&self) -> Option<String> {
        let found = &self.json["verification"];
        let words = |field: &str| found[field].as_str().map(str::to_owned);
        let count = |field: &str| found[field].as_u64().filter(|count| *count > 0);
        if let Some(wrong) = count("mismatches") {
            return Some(words("first_mismatch").unwrap_or(format!("{wrong} wrong answers")));
        }
        let errors = count("errors").map(|errors| format!("{errors} errors"));
        words("first_error").or(errors)
    }
}

/// The status of a run that was completed without errors.
const DONE: &str = "done";

/// A row of a CSV file: cells by heading.
type Row = Vec<(String, String)>;

fn rows(csv: &str, file: &str) -> Result<Vec<Row>, String> {
    let mut lines = csv.lines();
    let headings = cells(lines.next().unwrap_or_default());
    let row = |(line, number): (&str, usize)| {
        let cells = cells(line);
        if cells.len() == headings.len() {
            Ok(headings.iter().cloned().zip(cells).collect())
        } else {
            let (has, wants) = (cells.len(), headings.len());
            Err(format!("{file}:{number}: it has {has} cells, and there are {wants} columns"))
        }
    };
    lines.zip(2..).map(row).collect()
}

/// Splits a line into cells, with quotes as in RFC 4180.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let (mut is_quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        let cell = cells.last_mut().expect("there is one from the start");
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
}

fn cell<'a>(row: &'a Row, heading: &str) -> Option<&'a str> {
    row.iter().find(|(name, _)| name == heading).map(|(_, cell)| cell.as_str())
}

fn number(row: &Row, heading: &str) -> Option<f64> {
    cell(row, heading)?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns the name of the row's curve: the operation, or the stream and its direction.
fn name(row: &Row) -> Option<String> {
    match (cell(row, "stream"), cell(row, "direction")) {
        (Some(stream), Some(direction)) => Some(format!("{stream}: {direction}")),
        _ => cell(row, "operation").map(str::to_owned),
    }
}

fn add(curves: &mut Vec<Curve>, name: String, point: (f64, f64)) {
    match curves.iter_mut().find(|curve| curve.name == name) {
        Some(curve) => curve.points.push(point),
        None => curves.push(Curve { name, points: vec![point] }),
    }
}

fn latencies(rows: &[Row]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for row in rows {
        let point = number(row, "latency_us").zip(number(row, "quantile"));
        if let Some((name, point)) = name(row).zip(point) {
            add(&mut curves, name, point);
        }
    }
    curves
}

fn timelines_of_job(rows: &[Row]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for row in rows {
        let point = number(row, "start_s").zip(number(row, "p99_us"));
        if let Some((name, point)) = name(row).zip(point.filter(|point| point.1 > 0.0)) {
            add(&mut curves, name, point);
        }
    }
    curves
}

fn timelines_of_bench(rows: &[Row]) -> Vec<Curve> {
    let begin = rows.first().and_then(|row| number(row, "start_s")).unwrap_or(0.0);
    let mut curves = Vec::new();
    for kind in ["get", "put"] {
        for row in rows {
            let point = number(row, "start_s").zip(number(row, &format!("{kind}_p99_us")));
            if let Some((at, us)) = point.filter(|point| point.1 > 0.0) {
                add(&mut curves, kind.to_owned(), (at - begin, us));
            }
        }
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_were_quoted() {
        assert_eq!(cells("a,\"b,c\",\"say \"\"no\"\"\","), ["a", "b,c", "say \"no\"", ""]);
        let words = rows("a,b\n1,2\n3\n", "x.csv").expect_err("a cell is missing");
        assert_eq!(words, "x.csv:3: it has 1 cells, and there are 2 columns");
    }

    #[test]
    fn what_is_no_result_is_refused() {
        let words = |text: &str| Finished::new("x", text, None, None).err().expect("no result");
        assert!(words("{").contains("no JSON"));
        assert!(words("[]").contains("no result of levelhead"));
        assert!(words("{\"levelhead\": \"1\"}").contains("no result of levelhead"));
    }
}
