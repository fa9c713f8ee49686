//! The figures.

use report::{Axis, BarSeries, Figure, FigureKind, Published, Series, Unit};

use crate::vigil::cell::Cell;
use crate::vigil::measured::Measured;
use crate::vigil::size::{CACHE_LIMITS_MB, CONFIGURATIONS, READ_RATES, WORKLOADS, all};

const P9999: fn(&Cell) -> f64 = |cell| cell.get.p9999_us;
const MEAN: fn(&Cell) -> f64 = |cell| cell.get.mean_us;

pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    let against_base = |workload: &str, factor: f64, text: &str, of: fn(&Cell) -> f64| {
        let (_, title) = WORKLOADS.iter().find(|(name, _)| *name == workload)?;
        let value = factor * of(measured.cell(workload, "base"));
        Some(Published::of_group(*title, format!("O-Vigil, {text} of Base here"), value))
    };
    let tails = [("a", 0.06, "-94 %"), ("userdb", 0.31, "-69 %"), ("d", 0.22, "-78 %")];
    let tails = tails.map(|(workload, factor, text)| against_base(workload, factor, text, P9999));
    let means = WORKLOADS.map(|(workload, _)| against_base(workload, 0.66, "-34 %", MEAN));
    let mut figures = vec![
        bars(measured, "p999", "p99.9", 11, |cell| cell.get.p999_us)
            .with_published([Published::new("O-Vigil, less than 500 us", 500.0)]),
        bars(measured, "p9999", "p99.99", 13, P9999).with_published(tails.into_iter().flatten()),
        bars(measured, "mean", "mean", 14, MEAN).with_published(means.into_iter().flatten()),
    ];
    figures.extend(WORKLOADS.map(|(workload, title)| distribution(measured, workload, title)));
    figures.push(over_time(measured));
    figures.push(background(measured));
    figures.push(breakdown(measured));
    figures.push(delayed_compaction(measured));
    figures.push(delayed_flush(measured));
    figures.push(scans(measured));
    figures.push(cache_limits(measured));
    figures.push(memory(measured));
    figures.push(cached(measured));
    figures.push(reconstruction(measured));
    figures
}

fn bars(measured: &Measured, id: &str, name: &str, number: u32, of: fn(&Cell) -> f64) -> Figure {
    let of_configuration = |(configuration, name)| {
        let values = WORKLOADS.map(|(workload, _)| of(measured.cell(workload, configuration)));
        BarSeries::new(name, values)
    };
    Figure::new(
        format!("vigil-{id}"),
        format!("Latency of gets by workload: {name}"),
        format!("Lower is better. Corresponds to figure {number}."),
        FigureKind::Bars {
            over: "workload".to_owned(),
            categories: WORKLOADS.map(|(_, title)| title.to_owned()).into(),
            y: Axis::linear(format!("{name} latency of gets"), Unit::Microseconds),
            series: all().map(of_configuration).collect(),
        },
    )
}

fn distribution(measured: &Measured, workload: &str, title: &str) -> Figure {
    let line = |(configuration, name)| {
        let gets = measured.cell(workload, configuration).gets.histogram()?;
        Some(Series::latency_cdf(name, &gets))
    };
    Figure::new(
        format!("vigil-gets-{workload}"),
        format!("Latency of gets, {title}"),
        "Every get from its intended start to its end. Corresponds to figures 3a and 13.",
        FigureKind::Cdf {
            x: Axis::log("latency of gets", Unit::Microseconds),
            of: "gets".to_owned(),
            tail: true,
            series: CONFIGURATIONS.into_iter().filter_map(line).collect(),
        },
    )
    .about("O-Vigil")
}

/// Returns the longest Get of each second.
fn longest(name: &str, cell: &Cell) -> Series {
    let points = (0..).map(f64::from).zip(cell.longest_get_us.iter().copied());
    Series::new(name, points.filter(|(_, longest)| *longest > 0.0))
}

fn over_time(measured: &Measured) -> Figure {
    let shown =
        CONFIGURATIONS.into_iter().filter(|(name, _)| ["base", "plm", "o-vigil"].contains(name));
    Figure::new(
        "vigil-over-time",
        "Longest get of each second, UserDB",
        "Corresponds to figure 12.",
        by_second(
            shown
                .map(|(configuration, name)| longest(name, measured.cell("userdb", configuration)))
                .collect(),
        ),
    )
}

fn background(measured: &Measured) -> Figure {
    Figure::new(
        "vigil-background",
        "Longest get of each second, with and without writes",
        "Base under UserDB, and under its gets alone: what flushes and compactions do to reads. Corresponds to figure 3c.",
        by_second(vec![
            longest("UserDB", measured.cell("userdb", "base")),
            longest("its gets alone", &measured.reads_alone),
        ]),
    )
}

fn breakdown(measured: &Measured) -> Figure {
    let times = &measured.cell("userdb", "base").get_times;
    let (usual, slowest) = (times.storage_share, times.slowest_storage_share);
    Figure::new(
        "vigil-breakdown",
        "Where the time of gets goes, UserDB, Base",
        "All gets, and the slowest thousandth. Corresponds to figure 3b, which has 87 % storage for the slowest and about half \
                  for the usual ones.",
        FigureKind::Bars {
            over: "gets".to_owned(),
            categories: [ALL_GETS, SLOWEST].map(str::to_owned).to_vec(),
            y: Axis::linear("share of their time", Unit::Percent),
            series: vec![
                BarSeries::new("storage", [100.0 * usual, 100.0 * slowest]),
                BarSeries::new("processor", [100.0 * (1.0 - usual), 100.0 * (1.0 - slowest)]),
            ],
        },
    )
    .with_published([
        Published::of_group(ALL_GETS, "storage, about half", 50.0),
        Published::of_group(SLOWEST, "storage, 87 %", 87.0),
    ])
}

const ALL_GETS: &str = "all";
const SLOWEST: &str = "the slowest thousandth";

fn delayed_compaction(measured: &Measured) -> Figure {
    let [in_time, late] = &measured.delayed_compaction;
    Figure::new(
        "vigil-delayed-compaction",
        "Longest get of each second, compactions in time and put off",
        "YCSB-A without filters, Base. Put off: L0 is compacted from 40 tables on instead of four. Corresponds to figure 4a, \
                  which has less than 1 ms and up to 3.1 ms.",
        by_second(vec![longest("in time", in_time), longest("put off", late)]),
    )
    .with_published([
        Published::new("put off, up to 3.1 ms", 3_100.0),
        Published::new("in time, less than 1 ms", 1_000.0),
    ])
}

fn delayed_flush(measured: &Measured) -> Figure {
    let [open, closed] = &measured.delayed_flush;
    Figure::new(
        "vigil-delayed-flush",
        "Longest get of each second, flushes put off",
        "YCSB-A, Base with two memtables, flushes at 2.5 MB/s: puts wait, and in the open loop all that is to begin \
                  behind them. Corresponds to figure 4b, which has up to 27.4 times the usual get.",
        by_second(vec![
            longest("flushes in time", measured.cell("a", "base")),
            longest("put off, open loop", open),
            longest("put off, closed loop", closed),
        ]),
    )
    .with_published([Published::new(
        "put off, up to 27.4 times the usual get here",
        27.4 * closed.get.p50_us,
    )])
}

/// Returns a plot of latency by second of a run.
fn by_second(series: Vec<Series>) -> FigureKind {
    FigureKind::Lines {
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::log("longest get", Unit::Microseconds),
        series,
    }
}

/// Figure 15a: memory over time.
fn memory(measured: &Measured) -> Figure {
    let samples = &measured.cell("zippydb", "o-vigil").memory;
    let line = |name: &str, of: fn(&(f64, u64, u64)) -> u64| {
        Series::new(name, samples.iter().map(|sample| (sample.0, of(sample) as f64)))
    };
    Figure::new(
        "vigil-memory",
        "Memory over time, ZippyDB, O-Vigil",
        "Memtables count until their flush is durable. Corresponds to figure 15a.",
        FigureKind::Lines {
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::linear("memory", Unit::Bytes),
            series: vec![line("memtables", |at| at.1), line("plm_cache", |at| at.2)],
        },
    )
}

fn scans(measured: &Measured) -> Figure {
    let line = |cell: &Cell| Some(Series::latency_cdf(cell.name.clone(), &cell.scans.histogram()?));
    Figure::new(
        "vigil-scans",
        "Latency of range queries, YCSB-E",
        "Corresponds to figure 16.",
        FigureKind::Cdf {
            x: Axis::log("latency of range queries", Unit::Microseconds),
            of: "range queries".to_owned(),
            tail: true,
            series: measured.scans.iter().filter_map(line).collect(),
        },
    )
    .with_published([Published::new(
        "p99.9 of O-Vigil, 1.6 times shorter than SILK's here",
        measured.scans[0].scan.p999_us / 1.6,
    )])
}

fn cache_limits(measured: &Measured) -> Figure {
    let line = |name: &str, of: fn(&Cell) -> f64| {
        let points = CACHE_LIMITS_MB.into_iter().zip(&measured.limits);
        Series::new(name, points.map(|(limit, cell)| (limit as f64, of(cell))))
    };
    Figure::new(
        "vigil-cache-limit",
        "Latency of gets by the limit of plm_cache, YCSB-A, O-Vigil",
        "Limits at the paper's size. Corresponds to figure 15b.",
        FigureKind::Lines {
            x: Axis::log("limit of plm_cache", Unit::Other("MB".to_owned())),
            y: Axis::log("latency of gets", Unit::Microseconds),
            series: vec![
                line("mean", |cell| cell.get.mean_us),
                line("p99.9", |cell| cell.get.p999_us),
            ],
        },
    )
}

fn cached(measured: &Measured) -> Figure {
    let most = |configuration| {
        WORKLOADS.map(|(workload, _)| {
            let windows = measured.cell(workload, configuration).windows;
            windows.map_or(0.0, |windows| windows.most_cached_bytes as f64)
        })
    };
    let shown = all().filter(|(name, _)| ["r-vigil", "o-vigil", "rails"].contains(name));
    Figure::new(
        "vigil-cached",
        "Most bytes in plm_cache",
        "What waits for the slots of its sets, parity included.",
        FigureKind::Bars {
            over: "workload".to_owned(),
            categories: WORKLOADS.map(|(_, title)| title.to_owned()).into(),
            y: Axis::linear("plm_cache", Unit::Bytes),
            series: shown.map(|(name, title)| BarSeries::new(title, most(name))).collect(),
        },
    )
}

fn reconstruction(measured: &Measured) -> Figure {
    let line = |name: &str, of: fn(&Cell) -> f64| {
        let points = READ_RATES.into_iter().zip(&measured.rates);
        Series::new(name, points.map(|(rate, cell)| (rate, of(cell))))
    };
    Figure::new(
        "vigil-reconstruction",
        "Latency of gets by their rate, R-Vigil, no writes",
        "A third of the gets is rebuilt from the two other sets. Corresponds to section 6.2.",
        FigureKind::Lines {
            x: Axis::linear("gets a second", Unit::OperationsPerSecond),
            y: Axis::log("latency of gets", Unit::Microseconds),
            series: vec![
                line("mean", |cell| cell.get.mean_us),
                line("p99", |cell| cell.get.p99_us),
            ],
        },
    )
    .with_published([Published::new(
        "mean at the highest rate, 1.26 times ours at the lowest",
        1.26 * measured.rates[0].get.mean_us,
    )])
}
