//! The page of results side by side.

use serde_json::Value;

use super::numbers::{AMPLIFICATION, THROUGHPUT};
use super::{Difference, Finished, SideBySide};
use crate::report::{Axis, BarSeries, Figure, FigureKind, Report, Series, Stretch, Unit};

/// More lines than this in one plot are told apart by nobody.
const MOST_LINES: usize = 12;

pub(super) fn report(of: &SideBySide, title: &str, command: &str) -> Report {
    let mut figures = by_number(of);
    figures.extend(bars(of, THROUGHPUT, "Throughput", Unit::OperationsPerSecond));
    figures.extend(distributions(of));
    figures.extend(timelines(of));
    figures.extend(bars(of, AMPLIFICATION, "Write amplification", Unit::Number));
    let names: Vec<&str> =
        of.differences.iter().map(|difference| difference.name.as_str()).collect();
    let summary = match names[..] {
        [] => "Nothing that the results tell went in differently.".to_owned(),
        _ => format!("What went in differently: {}.", names.join(", ")),
    };
    let left_out = of.runs.len().saturating_sub(MOST_LINES);
    let note = (left_out > 0).then(|| {
        format!("Figures of latencies show the first {MOST_LINES} runs; {left_out} are left out.")
    });
    Report {
        title: title.to_owned(),
        summary,
        scale: format!("{} runs", of.runs.len()),
        command: command.to_owned(),
        figures,
        comparisons: Vec::new(),
        notes: note.into_iter().chain(of.failures()).collect(),
    }
}

/// An id of a figure made of a name.
fn id(prefix: &str, name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    format!("{prefix}-{}", name.chars().map(letter).collect::<String>())
}

/// A name of what a number is of: all of `reads: read operations/s` but the end.
fn subject<'a>(name: &'a str, end: &str) -> &'a str {
    name.strip_suffix(end).unwrap_or(name).trim_end_matches([' ', ':'])
}

/// Bars of each number whose name ends so, a group for each run.
fn bars(of: &SideBySide, end: &str, title: &str, unit: Unit) -> Option<Figure> {
    let names: Vec<String> =
        of.number_names().into_iter().filter(|name| name.ends_with(end)).collect();
    let series: Vec<BarSeries> = names
        .iter()
        .map(|name| BarSeries {
            name: Some(subject(name, end))
                .filter(|name| !name.is_empty())
                .unwrap_or("all")
                .to_owned(),
            values: of.runs.iter().map(|run| run.number(name).map(|number| number.value)).collect(),
        })
        .filter(|bars| bars.values.iter().any(Option::is_some))
        .collect();
    (!series.is_empty()).then(|| {
        Figure::new(
            id("bars", title),
            title,
            "A bar for each run.",
            FigureKind::Bars {
                over: "run".to_owned(),
                categories: of.runs.iter().map(Finished::shown_name).collect(),
                y: Axis::linear(title.to_lowercase(), unit),
                series,
            },
        )
    })
}

/// Names of the curves that `pick` gives, each once.
fn curve_names(of: &SideBySide, pick: fn(&Finished) -> &[super::finished::Curve]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for curve in of.runs.iter().flat_map(pick) {
        if !names.contains(&curve.name) {
            names.push(curve.name.clone());
        }
    }
    names
}

/// A line for each of the first runs that has such a curve.
fn lines(
    of: &SideBySide,
    name: &str,
    pick: fn(&Finished) -> &[super::finished::Curve],
) -> Vec<Series> {
    let curve = |run: &Finished| {
        let curve = pick(run).iter().find(|curve| curve.name == name)?;
        Some(Series::new(run.shown_name(), curve.points.iter().copied()))
    };
    of.runs.iter().take(MOST_LINES).filter_map(curve).collect()
}

fn distributions(of: &SideBySide) -> Vec<Figure> {
    let names = curve_names(of, |run| &run.latencies);
    let figure = |name: String| {
        let series = lines(of, &name, |run| &run.latencies);
        (!series.is_empty()).then(|| {
            Figure::new(
                id("latency", &name),
                format!("Latency: {name}"),
                "The share of operations that took no longer.",
                FigureKind::Cdf {
                    x: Axis::log("latency", Unit::Microseconds),
                    of: "operations".to_owned(),
                    tail: true,
                    series,
                },
            )
        })
    };
    names.into_iter().filter_map(figure).collect()
}

/// When sets were in their deterministic windows, if all runs took them there at the same instants.
fn windows(of: &SideBySide) -> Vec<Stretch> {
    let all: Vec<Vec<Stretch>> = of.runs.iter().map(deterministic).collect();
    let is_same = all.iter().all(|one| *one == all[0]);
    if is_same { all.into_iter().next().unwrap_or_default() } else { Vec::new() }
}

/// From each command that took a set into its deterministic window to the next one of that set.
fn deterministic(run: &Finished) -> Vec<Stretch> {
    let all: &[Value] = run.json["windows"].as_array().map_or(&[], Vec::as_slice);
    let entered = |window: &&Value| window["to"] == "DTWIN";
    let stretch = |window: &Value| {
        let reached = window["asked_s"].as_f64()? + window["took_ms"].as_f64()? / 1e3;
        let of_set = all.iter().filter(|other| other["set"] == window["set"]);
        let left = of_set.filter_map(|other| other["asked_s"].as_f64()).find(|at| *at > reached);
        let to = left.or(run.json["virtual_seconds"].as_f64())?;
        let name = format!("set {}: DTWIN", window["set"]);
        Some(Stretch { name, from: reached, to: to.max(reached) })
    };
    all.iter().filter(entered).filter_map(stretch).collect()
}

fn timelines(of: &SideBySide) -> Vec<Figure> {
    let shaded = windows(of);
    let names = curve_names(of, |run| &run.timelines);
    let figure = |name: String| {
        let series = lines(of, &name, |run| &run.timelines);
        (!series.is_empty()).then(|| {
            Figure::new(
                id("timeline", &name),
                format!("99th percentile over time: {name}"),
                "Of each slice of the run.",
                FigureKind::Lines {
                    x: Axis::linear("time since the run began", Unit::Seconds),
                    y: Axis::log("latency, p99", Unit::Microseconds),
                    series,
                },
            )
            .with_shaded(shaded.clone())
        })
    };
    names.into_iter().filter_map(figure).collect()
}

/// Lines of throughput and of tails over the first number that several runs differ in.
fn by_number(of: &SideBySide) -> Vec<Figure> {
    let Some((at, across)) = number_across(of) else { return Vec::new() };
    let name = of.differences[at].name.clone();
    let groups = groups(of, at);
    if groups.iter().all(|(_, runs)| runs.len() < 2) {
        return Vec::new();
    }
    let numbers = of.number_names();
    let wanted = numbers.into_iter().filter(|number| {
        number.ends_with(THROUGHPUT)
            || number.ends_with(" p99, us") && !number.starts_with("load: ")
    });
    let figure = |number: String| {
        let series = groups.iter().map(|(group, runs)| {
            let point = |run: &usize| Some((across[*run], of.runs[*run].number(&number)?.value));
            // The numbers of a run that failed have no place on a line.
            let whole = runs.iter().filter(|run| of.runs[**run].failure().is_none());
            let mut points: Vec<(f64, f64)> = whole.filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series::new(group.clone(), points)
        });
        let is_rate = number.ends_with(THROUGHPUT);
        let unit = if is_rate { Unit::OperationsPerSecond } else { Unit::Microseconds };
        let what = match subject(&number, THROUGHPUT) {
            _ if !is_rate => number.trim_end_matches(", us").to_owned(),
            "" => "throughput".to_owned(),
            of => format!("{of}, throughput"),
        };
        Figure::new(
            id("by", &format!("{name}-{what}")),
            format!("{what} by {name}"),
            "Each run is a point.",
            FigureKind::Lines {
                x: Axis::log(name.clone(), Unit::Number),
                y: Axis::linear(what.clone(), unit),
                series: series.filter(|series| !series.points.is_empty()).collect(),
            },
        )
    };
    wanted.map(figure).collect()
}

/// The difference that is a number above zero in every run, and these numbers.
fn number_across(of: &SideBySide) -> Option<(usize, Vec<f64>)> {
    let numbers = |(at, difference): (usize, &Difference)| {
        let numbers = difference.numbers()?;
        (difference.name != "seed" && numbers.iter().all(|n| *n > 0.0)).then_some((at, numbers))
    };
    of.differences.iter().enumerate().find_map(numbers)
}

/// Runs that differ in nothing but that, with a name.
fn groups(of: &SideBySide, across: usize) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for run in 0..of.runs.len() {
        let others = of.differences.iter().enumerate().filter(|(at, _)| *at != across);
        let values: Vec<&str> = others.map(|(_, other)| other.values[run].as_str()).collect();
        let name = if values.is_empty() { "all runs".to_owned() } else { values.join(", ") };
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((name, vec![run])),
        }
    }
    groups
}
