//! The figures.

use report::{Axis, Figure, FigureKind, Published, Series, Stretch, Unit};

use crate::device::measured::{Measured, Point, Watched};
use crate::device::size::STRETCHES;

pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    vec![
        buffer_flush(measured),
        collection(measured),
        series(
            "device-2c",
            "Reads while blocks are reclaimed",
            "Blocks read often enough to need reclaim; then random reads. Corresponds to figure 2c.",
            &[("baseline", &measured.reclaim)],
        )
        .with_published([Published::new("longest read, 2.5 ms", 2_500.0)]),
        lockdowns(measured),
        series(
            "device-8a-baseline",
            "Reads after writes, without windows",
            "Writes stop when the reads begin. Corresponds to figure 8a, baseline.",
            &[("baseline", &measured.plain)],
        )
        .with_published([Published::new("spikes of 402 us", 402.0)]),
        windowed(measured),
        alternating(measured),
        isolation(measured),
        curve(measured),
    ]
}

fn buffer_flush(measured: &Measured) -> Figure {
    let watched = &measured.buffer_flush;
    let typical = watched.after.median_us;
    series(
        "device-2a",
        "Reads while the write buffer is emptied",
        "64 MB are written, then only read, in order. Corresponds to figure 2a.",
        &[("baseline", watched)],
    )
    .with_published([Published::new("longest read, 7.75 times our typical one", 7.75 * typical)])
}

fn collection(measured: &Measured) -> Figure {
    series(
        "device-2b",
        "Reads while garbage is collected",
        "Reads in order beside random writes that use up the free space. Corresponds to figure 2b, on the drive with a \
         128th of the flash.",
        &[("baseline", &measured.collection)],
    )
    .with_shaded(measured.collecting.iter().map(|ends| stretch("garbage collection", *ends)))
    .with_published([
        Published::new("longest read, 9.8 ms", 9_800.0),
        Published::new("typical read before collection, 16.2 us", 16.2),
    ])
}

fn windowed(measured: &Measured) -> Figure {
    let watched = &measured.windowed;
    series(
        "device-8a",
        "Reads after writes, with windows",
        "Writes stop when the reads begin; the prototype is in DTWIN first, then in NDWIN. Corresponds to figure 8a, \
         prototype.",
        &[("prototype", watched)],
    )
    .with_shaded([stretch(DTWIN, (0.0, watched.turn_s))])
    .with_published([
        Published::new("longest read in NDWIN, 736 us", 736.0),
        Published::new("every read in DTWIN, less than 200 us", 200.0),
        Published::new("mean read in DTWIN, 74 us", 74.0),
    ])
}

fn alternating(measured: &Measured) -> Figure {
    let windows = measured.alternating.turns_s.chunks_exact(2);
    series(
        "device-8b",
        "Reads through windows in turns",
        "All writes happen in NDWIN. Corresponds to figure 8b.",
        &[("prototype", &measured.alternating.watched)],
    )
    .with_shaded(windows.map(|ends| stretch(DTWIN, (ends[0], ends[1]))))
    .with_published([Published::new("every read in DTWIN, less than 200 us", 200.0)])
}

fn isolation(measured: &Measured) -> Figure {
    series(
        "device-8c",
        "Reads beside writes",
        "In one space, beside a set that is written, and alone; windows are off. The lines of two sets and of no writes \
         lie on each other: that is the result. Corresponds to figure 8c.",
        &[
            ("one space", &measured.mixed),
            ("two sets", &measured.isolated),
            ("no writes", &measured.undisturbed),
        ],
    )
    .with_published([Published::new("longest read in one space, 2 ms", 2_000.0)])
}

const DTWIN: &str = "DTWIN";

fn stretch(name: &str, (from, to): (f64, f64)) -> Stretch {
    Stretch { name: name.to_owned(), from, to }
}

/// Returns a figure of the mean and the longest latency over time, for each series.
fn series(id: &str, title: &str, caption: &str, watched: &[(&str, &Watched)]) -> Figure {
    let lines = watched.iter().flat_map(|(name, watched)| {
        let line = |what: &str, points: &[(f64, f64)]| {
            Series::new(format!("{name}, {what}"), points.iter().copied())
        };
        [line("longest", &watched.longest_over_time), line("mean", &watched.mean_over_time)]
    });
    Figure::new(
        id,
        title,
        format!("{caption} Each point: 1/{STRETCHES} of the run."),
        FigureKind::Lines {
            x: Axis::linear("time since the first read", Unit::Seconds),
            y: Axis::log("read latency", Unit::Microseconds),
            series: lines.collect(),
        },
    )
}

fn lockdowns(measured: &Measured) -> Figure {
    let lockdowns = measured.lockdowns.iter();
    let points = lockdowns.map(|lockdown| (lockdown.written_bytes as f64 / 1e6, lockdown.took_ms));
    Figure::new(
        "device-7b",
        "Lockdown by what was written in NDWIN",
        "From the command to select DTWIN to its completion, NDWIN having lasted its \
                  minimum; written in order, as fast as the set takes it. Corresponds to figure 7b.",
        FigureKind::Lines {
            x: Axis::log("written in NDWIN", Unit::Other("MB".to_owned())),
            y: Axis::linear("lockdown", Unit::Other("ms".to_owned())),
            series: vec![Series::new("prototype", points)],
        },
    )
    .with_published([Published::new("less than 20 ms", 20.0)])
}

fn curve(measured: &Measured) -> Figure {
    let of = |get: fn(&Point) -> f64| {
        measured.curve.iter().map(move |point| (f64::from(point.depth), get(point)))
    };
    let bound = measured.bounds.smallest().1;
    let bounds = measured.curve.iter().map(|point| (f64::from(point.depth), bound));
    Figure::new(
        "device-saturation",
        "Random reads by queue depth",
        "4 KiB, the drive in one set, and the bound that arithmetic gives: a check of the \
                  model, not in the paper.",
        FigureKind::Lines {
            x: Axis::log("queue depth", Unit::Number),
            y: Axis::linear("reads", Unit::Other("reads/s".to_owned())),
            series: vec![
                Series::new("baseline", of(|point| point.reads_per_second)),
                Series::new("bound", bounds),
            ],
        },
    )
}
