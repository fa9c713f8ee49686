//! The figures.

use crate::report::{Axis, BarSeries, Figure, FigureKind, Series, Unit};
use crate::reproduce::iter::{DEGREE_SCAN, DEGREES, LONG_SCAN, SIZES, SUMMARY_ENTRY_BYTES};
use crate::reproduce::iter_measured::{Layout, Measured, OnStand, Run, VersionMemory};
use crate::{bytes_text, count_text};

pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    let mut figures = vec![index_prefetch(measured), index_percentiles(measured), gains(measured)];
    figures.extend(SIZES.map(|size| by_degree(measured, size)));
    figures.extend(SIZES.map(|size| by_length(measured, size)));
    figures.push(seek_and_next(measured));
    figures.push(version_memory(measured));
    figures
}

fn index_prefetch(measured: &Measured) -> Figure {
    let stand = measured.stand(4 << 10, Layout::Random);
    Figure {
        id: "iter-index-prefetch".to_owned(),
        title: "Latency of Next in long scans, with and without index prefetch".to_owned(),
        caption: format!(
            "4 KiB values, random layout, scans of up to {LONG_SCAN} pairs, no value prefetch. \
             Beside the slide \"Effect of Index Prefetching\"."
        ),
        kind: FigureKind::Cdf {
            x: Axis::log("latency of Next", Unit::Microseconds),
            of: "Nexts".to_owned(),
            tail: true,
            series: vec![
                Series::latency_cdf("IterKVSSD-B (no prefetch)", &stand.baseline.next),
                Series::latency_cdf("IterKVSSD-I (index prefetch)", &stand.with_index.next),
            ],
        },
    }
}

fn index_percentiles(measured: &Measured) -> Figure {
    let of = |quantile: f64, with_index: bool| {
        let values = measured.stands.iter().map(move |stand| {
            let run = if with_index { &stand.with_index } else { &stand.baseline };
            run.next_us(quantile)
        });
        values.collect::<Vec<_>>()
    };
    Figure {
        id: "iter-index-percentiles".to_owned(),
        title: "Tails of Next in long scans".to_owned(),
        caption: "Without (B) and with (I) index prefetch, by value size and layout.".to_owned(),
        kind: FigureKind::Bars {
            over: "values".to_owned(),
            categories: measured.stands.iter().map(OnStand::name).collect(),
            y: Axis::log("latency of Next", Unit::Microseconds),
            series: vec![
                BarSeries::new("B, p99.9", of(0.999, false)),
                BarSeries::new("I, p99.9", of(0.999, true)),
                BarSeries::new("B, p99.99", of(0.9999, false)),
                BarSeries::new("I, p99.99", of(0.9999, true)),
            ],
        },
    }
}

fn gains(measured: &Measured) -> Figure {
    let line = |stand: &OnStand| {
        Series::new(stand.name(), stand.gains().map(|(degree, gain)| (f64::from(degree), gain)))
    };
    Figure {
        id: "iter-gain-by-degree".to_owned(),
        title: "What value prefetch gains".to_owned(),
        caption: format!(
            "Throughput over that without value prefetch, scans of {DEGREE_SCAN} pairs."
        ),
        kind: FigureKind::Lines {
            x: Axis::linear("degree D", Unit::Number),
            y: Axis::linear("gain", Unit::Other("x".to_owned())),
            series: measured.stands.iter().map(line).collect(),
        },
    }
}

fn by_degree(measured: &Measured, size: u64) -> Figure {
    let line = |layout: Layout| {
        let runs = measured.stand(size, layout).by_degree.iter();
        Series::new(layout.name(), runs.map(|run| (f64::from(run.degree), run.bytes_per_second)))
    };
    Figure {
        id: format!("iter-degree-{size}"),
        title: format!("Throughput by degree of value prefetch, {} values", bytes_text(size)),
        caption: format!(
            "Scans of {DEGREE_SCAN} pairs. Beside the slide \"Effect of Prefetching Degree\"."
        ),
        kind: FigureKind::Lines {
            x: Axis::linear("degree D", Unit::Number),
            y: Axis::linear("throughput", Unit::BytesPerSecond),
            series: Layout::ALL.map(line).to_vec(),
        },
    }
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
    Figure {
        id: format!("iter-length-{size}"),
        title: format!("Throughput by scan length, {} values", bytes_text(size)),
        caption: "Beside the slide \"Effect of Scan Length in Range Query\".".to_owned(),
        kind: FigureKind::Lines {
            x: Axis::log("scan length", Unit::Other("pairs".to_owned())),
            y: Axis::linear("throughput", Unit::BytesPerSecond),
            series: lines.collect(),
        },
    }
}

fn seek_and_next(measured: &Measured) -> Figure {
    let of = |degree: usize, latency: fn(&Run) -> f64| {
        SIZES.map(|size| latency(&measured.stand(size, Layout::Random).by_degree[degree]))
    };
    let most = *DEGREES.end() as usize;
    Figure {
        id: "iter-seek-next".to_owned(),
        title: "Mean latency of Seek and Next".to_owned(),
        caption: "Random layout. Beside the slide \"Effect of Value Prefetching\".".to_owned(),
        kind: FigureKind::Bars {
            over: "values".to_owned(),
            categories: SIZES.map(bytes_text).to_vec(),
            y: Axis::log("mean latency", Unit::Microseconds),
            series: vec![
                BarSeries::new("Seek, D = 0", of(0, |run| run.seek.mean_us)),
                BarSeries::new("Seek, D = 8", of(most, |run| run.seek.mean_us)),
                BarSeries::new("Next, D = 0", of(0, |run| run.next.mean_us)),
                BarSeries::new("Next, D = 8", of(most, |run| run.next.mean_us)),
            ],
        },
    }
}

fn version_memory(measured: &Measured) -> Figure {
    let line = |name: &str, of: fn(&VersionMemory) -> u64| {
        let points = (1..).zip(&measured.versions);
        Series::new(name, points.map(|(count, memory)| (f64::from(count), of(memory) as f64)))
    };
    Figure {
        id: "iter-version-memory".to_owned(),
        title: "Memory of versions by open iterators".to_owned(),
        caption: format!(
            "A twentieth of the pairs is overwritten between two iterators. The store has {} \
             segments; a summary takes {SUMMARY_ENTRY_BYTES} bytes for each.",
            count_text(measured.segments)
        ),
        kind: FigureKind::Lines {
            x: Axis::linear("open iterators", Unit::Number),
            y: Axis::log("memory", Unit::Bytes),
            series: vec![
                line("one full summary per iterator", |memory| memory.summaries),
                line("pooled descriptors and views", |memory| memory.pooled),
                line("memtables that snapshots hold", |memory| memory.memtables),
            ],
        },
    }
}
