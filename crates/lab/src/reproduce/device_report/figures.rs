//! The figures.

use crate::report::{Axis, Figure, FigureKind, Series, Unit};
use crate::reproduce::device::{Measured, Watched};
use crate::reproduce::device_clients::Sample;
use crate::reproduce::device_samples::{Latency, over_time};

/// Stretches of time that a series is drawn in.
const STRETCHES: usize = 400;

pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    vec![
        series(
            "device-2a",
            "Reads while the write buffer is emptied",
            "64 MB are written, then only read, in order. Beside figure 2a.",
            &[("baseline", &measured.buffer_flush)],
        ),
        series(
            "device-2b",
            "Reads while garbage is collected",
            "Reads in order beside random writes that use up the free space. Beside figure 2b, on \
             the drive with a 128th of the flash.",
            &[("baseline", &measured.collection)],
        ),
        series(
            "device-2c",
            "Reads while blocks are reclaimed",
            "Some blocks were read four times over, and are read again at random. Beside figure 2c.",
            &[("baseline", &measured.reclaim)],
        ),
        lockdowns(measured),
        series(
            "device-8a",
            "Reads after writes, without windows and with",
            "Writes stop when the reads begin. The prototype is in DTWIN first, then in NDWIN. \
             Beside figure 8a.",
            &[("baseline", &measured.plain), ("prototype", &measured.windowed)],
        ),
        series(
            "device-8b",
            "Reads through windows in turns",
            "What is to be written is written in NDWIN. Beside figure 8b.",
            &[("prototype", &measured.alternating)],
        ),
        series(
            "device-8c",
            "Reads beside writes",
            "In one space, beside a set that is written, and alone; windows are off. Beside \
             figure 8c.",
            &[
                ("one space", &measured.mixed),
                ("two sets", &measured.isolated),
                ("no writes", &measured.undisturbed),
            ],
        ),
        curve(measured),
    ]
}

/// Mean and longest latency over time of each of some series.
fn series(id: &str, title: &str, caption: &str, watched: &[(&str, &Watched)]) -> Figure {
    let lines = watched.iter().flat_map(|(name, watched)| {
        let line = |what: &str, statistic: fn(&Latency) -> f64| {
            let points = over_time(&watched.reads, STRETCHES, statistic);
            Series::new(format!("{name}, {what}"), points)
        };
        [line("longest", |l| l.longest_us), line("mean", |l| l.mean_us)]
    });
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: format!("{caption} Each point stands for one of {STRETCHES} stretches of time."),
        kind: FigureKind::Lines {
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::log("read latency", Unit::Microseconds),
            series: lines.collect(),
        },
    }
}

fn lockdowns(measured: &Measured) -> Figure {
    let points = measured
        .lockdowns
        .iter()
        .map(|lockdown| (lockdown.written_bytes as f64 / 1e6, lockdown.took.as_micros_f64() / 1e3));
    Figure {
        id: "device-7b".to_owned(),
        title: "Lockdown by what was written in NDWIN".to_owned(),
        caption: "From the command to select DTWIN to its completion, NDWIN having lasted its \
                  minimum; written in order, as fast as the set takes it. Beside figure 7b."
            .to_owned(),
        kind: FigureKind::Lines {
            x: Axis::log("written in NDWIN", Unit::Other("MB".to_owned())),
            y: Axis::linear("lockdown", Unit::Other("ms".to_owned())),
            series: vec![Series::new("prototype", points)],
        },
    }
}

fn curve(measured: &Measured) -> Figure {
    let of = |get: fn(&crate::reproduce::device::Point) -> f64| {
        measured.curve.iter().map(move |point| (f64::from(point.depth), get(point)))
    };
    let bound = measured.bounds.smallest().1;
    let bounds = measured.curve.iter().map(|point| (f64::from(point.depth), bound));
    Figure {
        id: "device-saturation".to_owned(),
        title: "Random reads by queue depth".to_owned(),
        caption:
            "4 KiB, the drive in one set, and the bound that arithmetic gives: a check of the \
                  model, not in the paper."
                .to_owned(),
        kind: FigureKind::Lines {
            x: Axis::log("queue depth", Unit::Number),
            y: Axis::linear("reads", Unit::Other("per second".to_owned())),
            series: vec![
                Series::new("baseline", of(|point| point.reads_per_second)),
                Series::new("bound", bounds),
            ],
        },
    }
}

/// Longest read of a series, for the comparisons.
pub(super) fn longest(samples: &[Sample]) -> f64 {
    Latency::all(samples).longest_us
}
