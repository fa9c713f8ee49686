//! The figures.

use report::units::{bytes_text, count_text};
use report::{Axis, BarSeries, Figure, FigureKind, Published, Series, Unit};

use super::tails::{CONCLUDED_TAIL, PUBLISHED_TAIL, published_gain};
use crate::iter::bounds::Board;
use crate::iter::measured::{Index, Layout, Measured, OnStand, Run, Swept, Tail, VersionMemory};
use crate::iter::size::{
    DEGREE_SCAN, DEGREES, LONG_SCAN, SIZES, SUMMARY_ENTRY_BYTES, SWEPT_BYTES, TAIL_BYTES,
};

pub(super) fn figures(board: &Board, measured: &Measured) -> Vec<Figure> {
    let mut figures = vec![
        index_prefetch(measured),
        tails(board, measured, false),
        tails(board, measured, true),
        index_percentiles(measured),
        by_fixed(measured),
    ];
    figures.extend(Layout::ALL.map(|layout| gains(measured, layout)));
    figures.extend(SIZES.map(|size| by_degree(measured, size)));
    figures.extend(SIZES.map(|size| by_length(measured, size)));
    figures.push(seek_and_next(measured));
    figures.push(version_memory(measured));
    figures
}

fn index_prefetch(measured: &Measured) -> Figure {
    let runs = |index| &measured.tail(index, Layout::Random).runs;
    let (pages, tables) = (runs(Index::Pages), runs(Index::Tables));
    Figure::new(
        "iter-index-prefetch",
        "Latency of Next in long scans, with and without index prefetch",
        format!(
            "4 KiB values, random layout, scans of up to {} pairs, values read when they are asked for or eight \
             ahead. Corresponds to the slide \"Effect of Index Prefetching\".",
            count_text(LONG_SCAN)
        ),
        FigureKind::Cdf {
            x: Axis::log("latency of Next", Unit::Microseconds),
            of: "Nexts".to_owned(),
            tail: true,
            series: vec![
                Series::latency_cdf("B (no prefetch), single pages", &pages.baseline.next),
                Series::latency_cdf("I (index prefetch), single pages", &pages.with_index.next),
                Series::latency_cdf("B, tables", &tables.baseline.next),
                Series::latency_cdf("I, tables", &tables.with_index.next),
                Series::latency_cdf("B with D = 8, tables", &tables.ahead.next),
                Series::latency_cdf("I with D = 8, tables", &tables.ahead_with_index.next),
            ],
        },
    )
}

fn index_percentiles(measured: &Measured) -> Figure {
    let of = |quantile: f64, with_index: bool| {
        let values = measured.stands.iter().map(move |stand| {
            let run = if with_index { &stand.with_index } else { &stand.baseline };
            run.next_us(quantile)
        });
        values.collect::<Vec<_>>()
    };
    Figure::new(
        "iter-index-percentiles",
        "Tails of Next in long scans",
        "Without (B) and with (I) index prefetch, by value size and layout.",
        FigureKind::Bars {
            over: "values".to_owned(),
            categories: measured.stands.iter().map(OnStand::name).collect(),
            y: Axis::linear("latency of Next", Unit::Microseconds),
            series: vec![
                BarSeries::new("B, p99.9", of(0.999, false)),
                BarSeries::new("I, p99.9", of(0.999, true)),
                BarSeries::new("B, p99.99", of(0.9999, false)),
                BarSeries::new("I, p99.99", of(0.9999, true)),
            ],
        },
    )
}

/// Returns a figure of the gain of index prefetch in the tail by form of the index, beside its
/// upper bound.
fn tails(board: &Board, measured: &Measured, is_ahead: bool) -> Figure {
    let all: Vec<&Tail> = Layout::ALL
        .into_iter()
        .flat_map(|layout| Index::ALL.map(|index| measured.tail(index, layout)))
        .collect();
    let of = |value: &dyn Fn(&Tail) -> f64| all.iter().map(|tail| value(tail)).collect::<Vec<_>>();
    let ratio =
        |quantile: fn(&Tail) -> f64| of(&|tail: &Tail| tail.runs.ratio(quantile(tail), is_ahead));
    let (values, id) =
        if is_ahead { ("read eight ahead", "-ahead") } else { ("not read ahead", "") };
    Figure::new(
        format!("iter-tails{id}"),
        format!("What index prefetch gains in the tail of Next, values {values}"),
        format!(
            "Latency of Next without index prefetch over that with it, {} values: at p99.9, and in the middle of those that wait for \
             the index; beside what the board allows if nothing else is in the way.",
            bytes_text(TAIL_BYTES)
        ),
        FigureKind::Bars {
            over: "index".to_owned(),
            categories: all
                .iter()
                .map(|tail| format!("{}, {}", tail.index.name(), tail.layout.name()))
                .collect(),
            y: Axis::linear("gain", Unit::Other("x".to_owned())),
            series: vec![
                BarSeries::new("at p99.9", ratio(|_| 0.999)),
                BarSeries::new(
                    "where units are met",
                    ratio(|tail| tail.runs.where_units_are_met()),
                ),
                BarSeries::new(
                    "at most",
                    of(&|tail: &Tail| board.most_tail(TAIL_BYTES, &tail.phases, is_ahead)),
                ),
            ],
        },
    )
    .with_published([if is_ahead {
        Published::new("2x at p99.9, as concluded", CONCLUDED_TAIL)
    } else {
        Published::new("about 3.6x at p99.9", PUBLISHED_TAIL)
    }])
}

/// Returns a figure of the gain of value prefetch by the times of the board, beside its upper
/// bound.
fn by_fixed(measured: &Measured) -> Figure {
    let swept = &measured.swept;
    let of = |value: fn(&Swept) -> f64| swept.iter().map(value).collect::<Vec<_>>();
    Figure::new(
        "iter-gain-by-fixed",
        "What value prefetch gains, by the time of firmware and host, and by tR",
        format!(
            "{} values; those times are not known of the board. Where no tR stands it is the profile's. The paper does not say for which sizes its gains are.",
            bytes_text(SWEPT_BYTES)
        ),
        FigureKind::Bars {
            over: "firmware and host, tR".to_owned(),
            categories: swept.iter().map(by_fixed_name).collect(),
            y: Axis::linear("gain", Unit::Other("x".to_owned())),
            series: vec![
                BarSeries::new("measured", of(|one| one.best().1)),
                BarSeries::new("at most", of(|one| one.most)),
            ],
        },
    )
    .with_published(swept.iter().map(|one| {
        let published = published_gain(one.layout);
        Published::of_group(by_fixed_name(one), format!("{published}x, {}", one.layout.name()), published)
    }))
}

fn by_fixed_name(one: &Swept) -> String {
    format!("{}, {}", one.times(), one.layout.name())
}

fn gains(measured: &Measured, layout: Layout) -> Figure {
    let line = |size: u64| {
        let gains = measured.stand(size, layout).gains();
        Series::new(bytes_text(size), gains.map(|(degree, gain)| (f64::from(degree), gain)))
    };
    let published = published_gain(layout);
    Figure::new(
        format!("iter-gain-by-degree-{}", layout.name()),
        format!("What value prefetch gains, {} layout", layout.name()),
        format!("Throughput over that without value prefetch, scans of {DEGREE_SCAN} pairs."),
        FigureKind::Lines {
            x: Axis::linear("degree D", Unit::Number),
            y: Axis::linear("gain", Unit::Other("x".to_owned())),
            series: SIZES.map(line).to_vec(),
        },
    )
    .with_published([Published::new(format!("most, {published}x"), published)])
}

fn by_degree(measured: &Measured, size: u64) -> Figure {
    let line = |layout: Layout| {
        let runs = measured.stand(size, layout).by_degree.iter();
        Series::new(layout.name(), runs.map(|run| (f64::from(run.degree), run.bytes_per_second)))
    };
    Figure::new(
        format!("iter-degree-{size}"),
        format!("Throughput by degree of value prefetch, {} values", bytes_text(size)),
        format!(
            "Scans of {DEGREE_SCAN} pairs. Corresponds to the slide \"Effect of Prefetching Degree\"."
        ),
        FigureKind::Lines {
            x: Axis::linear("degree D", Unit::Number),
            y: Axis::linear("throughput", Unit::BytesPerSecond),
            series: Layout::ALL.map(line).to_vec(),
        },
    )
}

fn by_length(measured: &Measured, size: u64) -> Figure {
    let line = |layout: Layout, degree: u32| {
        let runs = measured.stand(size, layout).by_length.iter();
        let points = runs.filter(|run| run.degree == degree);
        let points = points.map(|run| (run.length as f64, run.bytes_per_second));
        Series::new(format!("{}, D = {degree}", layout.name()), points)
    };
    let degrees = [0, *DEGREES.end()];
    let lines = Layout::ALL.into_iter().flat_map(|layout| degrees.map(|d| line(layout, d)));
    Figure::new(
        format!("iter-length-{size}"),
        format!("Throughput by scan length, {} values", bytes_text(size)),
        "Corresponds to the slide \"Effect of Scan Length in Range Query\".",
        FigureKind::Lines {
            x: Axis::log("scan length", Unit::Other("pairs".to_owned())),
            y: Axis::linear("throughput", Unit::BytesPerSecond),
            series: lines.collect(),
        },
    )
}

fn seek_and_next(measured: &Measured) -> Figure {
    let of = |degree: usize, latency: fn(&Run) -> f64| {
        SIZES.map(|size| latency(&measured.stand(size, Layout::Random).by_degree[degree]))
    };
    let most = *DEGREES.end() as usize;
    Figure::new(
        "iter-seek-next",
        "Mean latency of Seek and Next",
        "Random layout. Corresponds to the slide \"Effect of Value Prefetching\".",
        FigureKind::Bars {
            over: "values".to_owned(),
            categories: SIZES.map(bytes_text).to_vec(),
            y: Axis::linear("mean latency", Unit::Microseconds),
            series: vec![
                BarSeries::new("Seek, D = 0", of(0, |run| run.seek.mean_us)),
                BarSeries::new("Seek, D = 8", of(most, |run| run.seek.mean_us)),
                BarSeries::new("Next, D = 0", of(0, |run| run.next.mean_us)),
                BarSeries::new("Next, D = 8", of(most, |run| run.next.mean_us)),
            ],
        },
    )
}

fn version_memory(measured: &Measured) -> Figure {
    let line = |name: &str, of: fn(&VersionMemory) -> u64| {
        let points = (1..).zip(&measured.versions);
        Series::new(name, points.map(|(count, memory)| (f64::from(count), of(memory) as f64)))
    };
    Figure::new(
        "iter-version-memory",
        "Memory of versions by open iterators",
        format!(
            "A twentieth of the pairs is overwritten between two iterators. The store has {} \
             segments; a summary takes {SUMMARY_ENTRY_BYTES} bytes for each.",
            count_text(measured.segments)
        ),
        FigureKind::Lines {
            x: Axis::linear("open iterators", Unit::Number),
            y: Axis::log("memory", Unit::Bytes),
            series: vec![
                line("one full summary per iterator", |memory| memory.summaries),
                line("pooled descriptors and views", |memory| memory.pooled),
                line("memtables that snapshots hold", |memory| memory.memtables),
            ],
        },
    )
}
