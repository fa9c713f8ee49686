//! Throughput and p99 latencies over each numeric input that differs between runs.

use super::names::{id, subject};
use crate::compare::compared::Compared;
use crate::compare::differences::{Difference, SEED};
use crate::compare::numbers::THROUGHPUT;
use crate::compare::parts::{MOST_LINES, Part, parts};
use crate::statistics::Estimate;
use crate::{Axis, Figure, FigureKind, Series, Unit};

/// Runs that differ only in the numeric input and the seed.
struct Line {
    name: String,
    runs: Vec<usize>,
}

/// A numeric input that differs between runs.
struct Across<'a> {
    of: &'a Compared,
    name: &'a str,
    /// The value in each run.
    values: Vec<Option<f64>>,
    lines: Vec<Line>,
    has_seeds: bool,
}

/// Returns the figures over each numeric input that differs between runs.
pub(super) fn by_numbers(of: &Compared) -> Vec<Figure> {
    let across = (0..of.differences.len()).filter_map(|at| across(of, at));
    across.flat_map(|across| figures(&across)).collect()
}

fn across(of: &Compared, at: usize) -> Option<Across<'_>> {
    let difference: &Difference = &of.differences[at];
    let values = difference.numbers().filter(|_| difference.name != SEED)?;
    let seed = of.differences.iter().position(|other| other.name == SEED);
    let apart: Vec<usize> = [at].into_iter().chain(seed).collect();
    let lines = of.groups(&apart).into_iter().map(|(name, runs)| Line { name, runs });
    let across = Across {
        of,
        name: &difference.name,
        values,
        lines: lines.collect(),
        has_seeds: seed.is_some(),
    };
    let is_line = |line: &Line| {
        let mut places = line.runs.iter().filter_map(|run| across.values[*run]);
        let first = places.next();
        places.any(|place| Some(place) != first)
    };
    across.lines.iter().any(is_line).then_some(across)
}

fn figures(across: &Across<'_>) -> Vec<Figure> {
    let wanted = across.of.number_names().into_iter().filter(|number| {
        number.ends_with(THROUGHPUT)
            || number.ends_with(" p99, us") && !number.starts_with("load: ")
    });
    let of_number = |number: String| {
        let lines: Vec<(usize, Series)> = across
            .lines
            .iter()
            .map(|line| (line.runs[0], series(across, line, &number)))
            .filter(|(_, series)| !series.points.is_empty())
            .collect();
        let parts = parts(across.of, lines, |(run, _)| *run, MOST_LINES).into_iter();
        let parts = parts.filter(|part| !part.items.is_empty());
        let figures = parts.map(|part| figure(across, &number, part.map(|(_, series)| series)));
        figures.collect::<Vec<_>>()
    };
    wanted.flat_map(of_number).collect()
}

/// Returns a point for each value, which is the mean if there are several seeds. Omits runs that
/// failed.
fn series(across: &Across<'_>, line: &Line, number: &str) -> Series {
    let mut found: Vec<(f64, Vec<f64>)> = Vec::new();
    for run in &line.runs {
        let finished = &across.of.runs[*run];
        let value = finished.number(number).filter(|_| finished.failure().is_none());
        let Some((place, value)) = across.values[*run].zip(value.map(|of| of.value)) else {
            continue;
        };
        match found.iter_mut().find(|(other, _)| other.total_cmp(&place).is_eq()) {
            Some((_, values)) => values.push(value),
            None => found.push((place, vec![value])),
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let estimates: Vec<(f64, Estimate)> =
        found.iter().filter_map(|(place, values)| Some((*place, Estimate::of(values)?))).collect();
    let points = estimates.iter().map(|(place, estimate)| (*place, estimate.mean));
    let ci95 = estimates.iter().map(|(_, estimate)| estimate.ci95);
    Series::new(line.name.clone(), points).with_ci95(ci95)
}

fn figure(across: &Across<'_>, number: &str, part: Part<Series>) -> Figure {
    let name = across.name;
    let is_rate = number.ends_with(THROUGHPUT);
    let unit = if is_rate { Unit::OperationsPerSecond } else { Unit::Microseconds };
    let what = match subject(number, THROUGHPUT) {
        _ if !is_rate => number.trim_end_matches(", us").to_owned(),
        "" => "throughput".to_owned(),
        of => format!("{of}, throughput"),
    };
    let caption = if across.has_seeds {
        "Each point is the mean over the seeds, with its 95 % confidence interval."
    } else {
        "Each run is a point."
    };
    let mut points = part.items.iter().flat_map(|series| &series.points);
    let is_above_zero = points.all(|point| point.0 > 0.0);
    let x = if is_above_zero {
        Axis::log(name, Unit::Number)
    } else {
        Axis::linear(name, Unit::Number)
    };
    Figure::new(
        id("by", &part.named(&format!("{name}-{what}"))),
        part.named(&format!("{what} by {name}")),
        part.captioned(caption),
        FigureKind::Lines { x, y: Axis::linear(what, unit), series: part.items },
    )
}
