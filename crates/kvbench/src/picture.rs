//! Charts of a bench result, and their data as CSV.

use std::fmt::Write;

use report::chart::{Chart, Note, Scale, Series};
use report::quantiles::{tail, with_longest};
use report::units::count_text;
use runtime::Nanos;
use workload::{OpKind, RunReport, WindowLatency};

use crate::result::BenchResult;
use crate::table::time;

/// Returns latency by kind of operation and quantile, as CSV.
pub fn latency_csv(run: &RunReport) -> String {
    let mut csv = "operation,quantile,latency_us\n".to_owned();
    for (kind, quantile, us) in latency_points(run) {
        writeln!(csv, "{},{quantile:.7},{us}", kind.name()).expect("a string takes any text");
    }
    csv
}

fn latency_points(run: &RunReport) -> Vec<(OpKind, f64, f64)> {
    let mut points = Vec::new();
    for kind in OpKind::ALL {
        let Some(latencies) = run.latencies(kind) else { continue };
        let all = with_longest(latencies).into_iter();
        points.extend(all.map(|(quantile, ns)| (kind, quantile, ns as f64 / 1e3)));
    }
    points
}

/// Returns one statistic of the latencies of a window.
type OfSlice = fn(&WindowLatency) -> f64;

/// Statistics of the latencies of a window, with their names in headings.
const OF_SLICE: [(&str, OfSlice); 6] = [
    ("mean", |latency| latency.mean_us),
    ("p50", |latency| latency.p50_us),
    ("p90", |latency| latency.p90_us),
    ("p99", |latency| latency.p99_us),
    ("p999", |latency| latency.p999_us),
    ("max", |latency| latency.max_us),
];

/// Returns throughput and latency by window of time, as CSV.
pub fn timeline_csv(run: &RunReport) -> String {
    let mut csv = "start_s,operations_per_s".to_owned();
    for kind in ["get", "put"] {
        for (name, _) in OF_SLICE {
            write!(csv, ",{kind}_{name}_us").expect("a string takes any text");
        }
    }
    csv.push('\n');
    let begin = run.timeline.windows.first().map_or(Nanos::ZERO, |window| window.start);
    for window in &run.timeline.windows {
        let start = (window.start - begin).as_secs_f64();
        write!(csv, "{start},{:.0}", window.throughput()).expect("a string takes any text");
        for latency in [&window.gets, &window.puts] {
            for (_, value) in OF_SLICE {
                // A window in which no operation ended has no latency: the cell is empty, not 0.
                let cell = if latency.count == 0 {
                    String::new()
                } else {
                    format!("{:.1}", value(latency))
                };
                write!(csv, ",{cell}").expect("a string takes any text");
            }
        }
        csv.push('\n');
    }
    csv
}

/// Returns a chart of latency by percentile, as SVG. Both axes are logarithmic; the tail is at the
/// right.
pub fn latency_svg(result: &BenchResult, run: &RunReport) -> String {
    let points = latency_points(run);
    let series = OpKind::ALL.into_iter().filter_map(|kind| {
        let of_kind = points.iter().filter(|(other, _, _)| *other == kind);
        let operations = run.count(kind);
        let points: Vec<(f64, f64)> =
            of_kind.map(|(_, quantile, us)| (tail(*quantile, operations), *us)).collect();
        (!points.is_empty()).then(|| Series { name: kind.name().replace('_', "-"), points })
    });
    Chart {
        title: format!("Latency: {}", title(result)),
        x: Scale::tail("percentile of operations"),
        y: Scale::log(&format!("latency, microseconds of {} time", time(result))),
        series: series.collect(),
        note: Note::End,
        bands: Vec::new(),
    }
    .render()
}

/// Returns a chart of the latency of gets and puts over time, as SVG.
pub fn timeline_svg(result: &BenchResult, run: &RunReport) -> String {
    let windows = &run.timeline.windows;
    let start = windows.first().map_or(0.0, |window| window.start.as_secs_f64());
    let line = |name: &str, value: fn(&workload::TimelineWindow) -> f64| {
        let points: Vec<(f64, f64)> = windows
            .iter()
            .map(|window| (window.start.as_secs_f64() - start, value(window)))
            .filter(|(_, us)| *us > 0.0)
            .collect();
        Series { name: name.to_owned(), points }
    };
    let series = [
        line("get max", |window| window.gets.max_us),
        line("get p99", |window| window.gets.p99_us),
        line("get mean", |window| window.gets.mean_us),
        line("put max", |window| window.puts.max_us),
        line("put p99", |window| window.puts.p99_us),
        line("put mean", |window| window.puts.mean_us),
    ];
    Chart {
        title: format!("Latency over time: {}", title(result)),
        x: Scale::linear(&format!("{} time since the run began, seconds", time(result))),
        y: Scale::log(&format!("latency, microseconds of {} time", time(result))),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        note: Note::Highest,
        bands: Vec::new(),
    }
    .render()
}

fn title(result: &BenchResult) -> String {
    format!(
        "{} on {}, workload {}, {} pairs",
        result.configuration.as_ref().unwrap_or(&result.design),
        result.device,
        result.workload,
        count_text(result.records)
    )
}
