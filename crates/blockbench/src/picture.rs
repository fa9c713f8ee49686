//! The report of a job as pictures, and as CSV of the numbers behind them.

use std::fmt::Write;

use report::chart::{Band, Chart, Note, Scale, Series};
use report::quantiles::{tail, with_longest};

use crate::device::DeviceSpec;
use crate::job::WindowName;
use crate::operation::Direction;
use crate::report::{DirectionReport, JobReport, StreamReport};
use crate::timeline::TimelinePoint;

/// Up to this many pairs of stream and direction, the timeline shows maximum, p99 and mean of each;
/// with more pairs only p99.
const FEW: usize = 2;

/// The value of a bucket that a line of the timeline shows.
type Value = fn(&TimelinePoint) -> f64;

/// A stream and direction with a line of its own.
struct Line<'a> {
    /// The stream's index in the job.
    index: usize,
    stream: &'a StreamReport,
    direction: Direction,
    part: &'a DirectionReport,
}

impl Line<'_> {
    /// Returns the unique name of the line.
    fn name(&self) -> String {
        let StreamReport { name, .. } = self.stream;
        match self.stream.parts().count() {
            1 => name.clone(),
            _ => format!("{name} {}", self.direction.name()),
        }
    }
}

/// Returns all streams and directions with operations.
fn lines(report: &JobReport) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for (index, stream) in report.streams.iter().enumerate() {
        let line = |(direction, part)| Line { index, stream, direction, part };
        lines.extend(stream.parts().map(line));
    }
    lines
}

/// Returns latency by quantile, stream and direction as CSV.
pub fn latency_csv(report: &JobReport) -> String {
    let mut csv = "stream,direction,quantile,latency_us\n".to_owned();
    for Line { stream, direction, part, .. } in lines(report) {
        let stream = quoted(&stream.name);
        for (quantile, ns) in with_longest(&part.histogram) {
            let us = ns as f64 / 1e3;
            writeln!(csv, "{stream},{},{quantile:.7},{us}", direction.name())
                .expect("a string takes any text");
        }
    }
    csv
}

/// Returns latency by bucket of virtual time, stream and direction as CSV.
pub fn timeline_csv(report: &JobReport) -> String {
    let mut csv =
        "stream,direction,start_s,operations,mean_us,p50_us,p99_us,p999_us,max_us\n".to_owned();
    for Line { index, stream, direction, .. } in lines(report) {
        let stream = quoted(&stream.name);
        for point in report.timeline.of(index, direction) {
            writeln!(
                csv,
                "{stream},{},{},{},{:.3},{:.3},{:.3},{:.3},{:.3}",
                direction.name(),
                point.start.as_secs_f64(),
                point.count,
                point.mean_us,
                point.p50_us,
                point.p99_us,
                point.p999_us,
                point.max_us
            )
            .expect("a string takes any text");
        }
    }
    csv
}

/// Returns individual latencies as CSV; `None` if the job kept none.
pub fn samples_csv(report: &JobReport) -> Option<String> {
    let mut csv = "stream,direction,at_s,latency_us\n".to_owned();
    let header = csv.len();
    for Line { stream, direction, part, .. } in lines(report) {
        let stream = quoted(&stream.name);
        for sample in &part.samples {
            let (at, us) = (sample.at.as_secs_f64(), sample.latency.as_micros_f64());
            writeln!(csv, "{stream},{},{at:.9},{us:.3}", direction.name())
                .expect("a string takes any text");
        }
    }
    (csv.len() > header).then_some(csv)
}

/// Quotes a name for CSV, if necessary.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

/// Returns a chart of latency over the share of operations that took longer, both logarithmic: the
/// tail is on the right.
pub fn latency_svg(spec: &DeviceSpec, report: &JobReport) -> String {
    let series = lines(report).into_iter().map(|line| {
        let (histogram, count) = (&line.part.histogram, line.part.histogram.len());
        let quantiles = with_longest(histogram).into_iter();
        let points = quantiles.map(|(quantile, ns)| (tail(quantile, count), ns as f64 / 1e3));
        Series { name: line.name(), points: points.collect() }
    });
    Chart {
        title: format!("Latency: {}", title(spec)),
        x: Scale::tail("percentile of operations"),
        y: Scale::log("latency, microseconds of virtual time"),
        series: series.filter(|series| !series.points.is_empty()).collect(),
        note: Note::End,
        bands: Vec::new(),
    }
    .render()
}

/// Returns a chart of latency over virtual time, with the deterministic windows of the sets.
pub fn timeline_svg(spec: &DeviceSpec, report: &JobReport) -> String {
    let points = |line: &Line<'_>| report.timeline.of(line.index, line.direction);
    let mut lines = lines(report);
    lines.retain(|line| !points(line).is_empty());
    let kinds: &[(&str, Value)] = if lines.len() <= FEW {
        &[("max", |p| p.max_us), ("p99", |p| p.p99_us), ("mean", |p| p.mean_us)]
    } else {
        &[("p99", |p| p.p99_us)]
    };
    let mut series = Vec::new();
    for line in &lines {
        series.extend(kinds.iter().map(|(kind, value)| Series {
            name: format!("{} {kind}", line.name()),
            points: points(line).iter().map(|p| (p.start.as_secs_f64(), value(p))).collect(),
        }));
    }
    Chart {
        title: format!("Latency over time: {}", title(spec)),
        x: Scale::linear("virtual time since the job began, seconds"),
        y: Scale::log("latency, microseconds of virtual time"),
        series,
        note: Note::Highest,
        bands: deterministic(report),
    }
    .render()
}

/// Returns the times of sets in DTWIN, by the host's commands.
fn deterministic(report: &JobReport) -> Vec<Band> {
    let end = report.elapsed();
    let entered = report.windows.iter().filter(|window| window.to == WindowName::Dtwin);
    let bands = entered.map(|window| {
        let later = report.windows.iter().filter(|other| other.set == window.set);
        let left = later.map(|other| other.asked).find(|asked| *asked > window.reached);
        Band {
            name: format!("set {}: DTWIN", window.set),
            from: window.reached.as_secs_f64(),
            to: left.unwrap_or(end).as_secs_f64(),
        }
    });
    bands.collect()
}

fn title(spec: &DeviceSpec) -> String {
    format!("{} on {}", spec.job.name, spec.profile.name)
}
