//! The page of a comparison.

mod by_number;
mod names;

use by_number::by_numbers;
use names::{id, subject, with_own_ids};
use serde_json::Value;

use super::compared::Compared;
use super::finished::{Curve, Finished};
use super::numbers::{AMPLIFICATION, THROUGHPUT};
use super::parts::{MOST_BARS, MOST_LINES, Part, parts};
use crate::{Axis, BarSeries, Figure, FigureKind, Report, Series, Stretch, Unit};

/// Returns the page as a report without comparisons.
pub(super) fn report(of: &Compared, title: &str, command: &str) -> Report {
    let mut figures = by_numbers(of);
    figures.extend(bars(of, THROUGHPUT, "Throughput", &Unit::OperationsPerSecond));
    figures.extend(distributions(of));
    figures.extend(timelines(of));
    figures.extend(bars(of, AMPLIFICATION, "Write amplification", &Unit::Number));
    let names: Vec<&str> =
        of.differences.iter().map(|difference| difference.name.as_str()).collect();
    let differences = match names[..] {
        [] => "Nothing that the results tell went in differently.".to_owned(),
        _ => format!("What went in differently: {}.", names.join(", ")),
    };
    let summary = format!(
        "{differences} The result.json of a run is enough for `levelhead rerun` to have it again."
    );
    Report {
        title: title.to_owned(),
        summary,
        scale: scale(of),
        command: command.to_owned(),
        figures: with_own_ids(figures),
        comparisons: Vec::new(),
        notes: of.failures(),
    }
}

/// Returns the number of runs, and the numbers of runs that were not completed, by status.
fn scale(of: &Compared) -> String {
    let count = |status: &str| of.runs.iter().filter(|run| run.status() == status).count();
    let others = ["interrupted", "failed", "refused", "not run"];
    let others = others.map(|status| (count(status), status)).into_iter();
    let others: Vec<String> = others
        .filter(|(count, _)| *count > 0)
        .map(|(count, status)| format!("{count} {status}"))
        .collect();
    let runs = format!("{} runs", of.runs.len());
    if others.is_empty() { runs } else { format!("{runs}: {}", others.join(", ")) }
}

/// Returns bars for each number whose name ends with `end`, with a group per run.
fn bars(of: &Compared, end: &str, title: &str, unit: &Unit) -> Vec<Figure> {
    let names: Vec<String> =
        of.number_names().into_iter().filter(|name| name.ends_with(end)).collect();
    let has_any = |run: &usize| names.iter().any(|name| of.runs[*run].number(name).is_some());
    let runs: Vec<usize> = (0..of.runs.len()).filter(has_any).collect();
    let most = (MOST_BARS / names.len().max(1)).max(4);
    let figure = |part: Part<usize>| {
        let of_name = |name: &String| BarSeries {
            name: Some(subject(name, end))
                .filter(|name| !name.is_empty())
                .unwrap_or("all")
                .to_owned(),
            values: part
                .items
                .iter()
                .map(|run| of.runs[*run].number(name).map(|number| number.value))
                .collect(),
        };
        let series = names.iter().map(of_name);
        let series: Vec<BarSeries> =
            series.filter(|bars| bars.values.iter().any(Option::is_some)).collect();
        let kind = FigureKind::Bars {
            over: "run".to_owned(),
            categories: part.items.iter().map(|run| of.runs[*run].shown_name()).collect(),
            y: Axis::linear(title.to_lowercase(), unit.clone()),
            series,
        };
        let caption = part.captioned("A bar for each run.");
        Figure::new(id("bars", &part.named(title)), part.named(title), caption, kind)
    };
    let parts = parts(of, runs, |run| *run, most).into_iter();
    parts.filter(|part| !part.items.is_empty()).map(figure).collect()
}

/// Returns the names of the curves that `pick` returns, each once.
fn curve_names(of: &Compared, pick: fn(&Finished) -> &[Curve]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for curve in of.runs.iter().flat_map(pick) {
        if !names.contains(&curve.name) {
            names.push(curve.name.clone());
        }
    }
    names
}

/// Returns a line for each run that has a curve of this name, in as many figures as necessary.
fn lines(of: &Compared, name: &str, pick: fn(&Finished) -> &[Curve]) -> Vec<Part<Series>> {
    let curve = |run: usize| pick(&of.runs[run]).iter().find(|curve| curve.name == name);
    let runs: Vec<usize> = (0..of.runs.len()).filter(|run| curve(*run).is_some()).collect();
    let series = |run: usize| {
        let points = curve(run).map_or(&[][..], |curve| &curve.points);
        Series::new(of.runs[run].shown_name(), points.iter().copied())
    };
    let parts = parts(of, runs, |run| *run, MOST_LINES).into_iter();
    parts.filter(|part| !part.items.is_empty()).map(|part| part.map(series)).collect()
}

fn distributions(of: &Compared) -> Vec<Figure> {
    let figure = |name: &str, part: Part<Series>| {
        let title = part.named(&format!("Latency: {name}"));
        let caption = part.captioned("The share of operations that took no longer.");
        let kind = FigureKind::Cdf {
            x: Axis::log("latency", Unit::Microseconds),
            of: "operations".to_owned(),
            tail: true,
            series: part.items,
        };
        Figure::new(id("latency", title.trim_start_matches("Latency: ")), title, caption, kind)
    };
    let names = curve_names(of, |run| &run.latencies);
    let of_name = |name: String| {
        let parts = lines(of, &name, |run| &run.latencies).into_iter();
        parts.map(|part| figure(&name, part)).collect::<Vec<_>>()
    };
    names.into_iter().flat_map(of_name).collect()
}

/// Returns the deterministic windows of the sets, if they are the same in all runs; otherwise
/// nothing.
fn windows(of: &Compared) -> Vec<Stretch> {
    let all: Vec<Vec<Stretch>> =
        of.runs.iter().filter(|run| run.has_result()).map(deterministic).collect();
    let is_same = all.iter().all(|one| Some(one) == all.first());
    if is_same { all.into_iter().next().unwrap_or_default() } else { Vec::new() }
}

/// Returns the time from each entry of a set into its deterministic window until the next command
/// to that set.
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

fn timelines(of: &Compared) -> Vec<Figure> {
    const TITLE: &str = "99th percentile over time: ";
    let shaded = windows(of);
    let figure = |name: &str, part: Part<Series>| {
        let title = part.named(&format!("{TITLE}{name}"));
        let caption = part.captioned("Of each slice of the run.");
        let kind = FigureKind::Lines {
            x: Axis::linear("time since the run began", Unit::Seconds),
            y: Axis::log("latency, p99", Unit::Microseconds),
            series: part.items,
        };
        Figure::new(id("timeline", title.trim_start_matches(TITLE)), title, caption, kind)
            .with_shaded(shaded.clone())
    };
    let names = curve_names(of, |run| &run.timelines);
    let of_name = |name: String| {
        let parts = lines(of, &name, |run| &run.timelines).into_iter();
        parts.map(|part| figure(&name, part)).collect::<Vec<_>>()
    };
    names.into_iter().flat_map(of_name).collect()
}
