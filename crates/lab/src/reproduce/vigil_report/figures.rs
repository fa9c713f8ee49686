//! The figures.

use crate::report::{Axis, BarSeries, Figure, FigureKind, Series, Unit};
use crate::reproduce::vigil::{
    CACHE_LIMITS_MB, CONFIGURATIONS, Cell, Measured, READ_RATES, WORKLOADS, all,
};

pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    let mut figures = vec![
        bars(
            measured,
            "p999",
            "p99.9",
            11,
            "The paper has less than 500 us with O-Vigil.",
            |cell| cell.get.p999_us,
        ),
        bars(measured, "p9999", "p99.99", 13, "", |cell| cell.get.p9999_us),
        bars(measured, "mean", "mean", 14, "The paper has a third less with O-Vigil.", |cell| {
            cell.get.mean_us
        }),
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

fn bars(
    measured: &Measured,
    id: &str,
    name: &str,
    number: u32,
    words: &str,
    of: fn(&Cell) -> f64,
) -> Figure {
    let of_configuration = |(configuration, name)| {
        let values = WORKLOADS.map(|(workload, _)| of(measured.cell(workload, configuration)));
        BarSeries::new(name, values)
    };
    Figure {
        id: format!("vigil-{id}"),
        title: format!("Latency of gets by workload: {name}"),
        caption: format!("Lower is better. Beside figure {number}. {words}").trim_end().to_owned(),
        kind: FigureKind::Bars {
            over: "workload".to_owned(),
            categories: WORKLOADS.map(|(_, title)| title.to_owned()).into(),
            y: Axis::linear(format!("{name} latency of gets"), Unit::Microseconds),
            series: all().map(of_configuration).collect(),
        },
    }
}

fn distribution(measured: &Measured, workload: &str, title: &str) -> Figure {
    let line = |(configuration, name)| {
        let gets = measured.cell(workload, configuration).gets.histogram()?;
        Some(Series::latency_cdf(name, &gets))
    };
    Figure {
        id: format!("vigil-gets-{workload}"),
        title: format!("Latency of gets, {title}"),
        caption: "Every get from its intended start to its end. Beside figures 3a and 13."
            .to_owned(),
        kind: FigureKind::Cdf {
            x: Axis::log("latency of gets", Unit::Microseconds),
            of: "gets".to_owned(),
            tail: true,
            series: CONFIGURATIONS.into_iter().filter_map(line).collect(),
        },
    }
}

/// The longest Get of each second.
fn longest(name: &str, cell: &Cell) -> Series {
    let points = (0..).map(f64::from).zip(cell.longest_get_us.iter().copied());
    Series::new(name, points.filter(|(_, longest)| *longest > 0.0))
}

fn over_time(measured: &Measured) -> Figure {
    let shown =
        CONFIGURATIONS.into_iter().filter(|(name, _)| ["base", "plm", "o-vigil"].contains(name));
    Figure {
        id: "vigil-over-time".to_owned(),
        title: "Longest get of each second, UserDB".to_owned(),
        caption: "Beside figure 12.".to_owned(),
        kind: by_second(
            shown
                .map(|(configuration, name)| longest(name, measured.cell("userdb", configuration)))
                .collect(),
        ),
    }
}

fn background(measured: &Measured) -> Figure {
    Figure {
        id: "vigil-background".to_owned(),
        title: "Longest get of each second, with and without writes".to_owned(),
        caption: "Base under UserDB, and under its gets alone: what flushes and compactions do to reads. Beside figure 3c."
            .to_owned(),
        kind: by_second(vec![
            longest("UserDB", measured.cell("userdb", "base")),
            longest("its gets alone", &measured.reads_alone),
        ]),
    }
}

fn breakdown(measured: &Measured) -> Figure {
    let times = &measured.cell("userdb", "base").get_times;
    let (usual, slowest) = (times.storage_share, times.slowest_storage_share);
    Figure {
        id: "vigil-breakdown".to_owned(),
        title: "Where the time of gets goes, UserDB, Base".to_owned(),
        caption: "All gets, and the slowest thousandth. Beside figure 3b, which has 87 % storage for the slowest and about half \
                  for the usual ones."
            .to_owned(),
        kind: FigureKind::Bars {
            over: "gets".to_owned(),
            categories: vec!["all".to_owned(), "the slowest thousandth".to_owned()],
            y: Axis::linear("share of their time", Unit::Percent),
            series: vec![
                BarSeries::new("storage", [100.0 * usual, 100.0 * slowest]),
                BarSeries::new("processor", [100.0 * (1.0 - usual), 100.0 * (1.0 - slowest)]),
            ],
        },
    }
}

fn delayed_compaction(measured: &Measured) -> Figure {
    let [in_time, late] = &measured.delayed_compaction;
    Figure {
        id: "vigil-delayed-compaction".to_owned(),
        title: "Longest get of each second, compactions in time and put off".to_owned(),
        caption: "YCSB-A without filters, Base. Put off: L0 is compacted from 40 tables on instead of four. Beside figure 4a, \
                  which has less than 1 ms and up to 3.1 ms."
            .to_owned(),
        kind: by_second(vec![longest("in time", in_time), longest("put off", late)]),
    }
}

fn delayed_flush(measured: &Measured) -> Figure {
    let [open, closed] = &measured.delayed_flush;
    Figure {
        id: "vigil-delayed-flush".to_owned(),
        title: "Longest get of each second, flushes put off".to_owned(),
        caption: "YCSB-A, Base with two memtables, flushes at 2.5 MB/s: puts wait, and in the open loop all that is to begin \
                  behind them. Beside figure 4b, which has up to 27.4 times the usual get."
            .to_owned(),
        kind: by_second(vec![
            longest("flushes in time", measured.cell("a", "base")),
            longest("put off, open loop", open),
            longest("put off, closed loop", closed),
        ]),
    }
}

/// Latencies over the seconds of a run.
fn by_second(series: Vec<Series>) -> FigureKind {
    FigureKind::Lines {
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::log("longest get", Unit::Microseconds),
        series,
    }
}

/// Memory over time, as figure 15a has it.
fn memory(measured: &Measured) -> Figure {
    let samples = &measured.cell("zippydb", "o-vigil").memory;
    let line = |name: &str, of: fn(&(f64, u64, u64)) -> u64| {
        Series::new(name, samples.iter().map(|sample| (sample.0, of(sample) as f64)))
    };
    Figure {
        id: "vigil-memory".to_owned(),
        title: "Memory over time, ZippyDB, O-Vigil".to_owned(),
        caption: "Memtables count until their flush is durable. Beside figure 15a.".to_owned(),
        kind: FigureKind::Lines {
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::linear("memory", Unit::Bytes),
            series: vec![line("memtables", |at| at.1), line("plm_cache", |at| at.2)],
        },
    }
}

fn scans(measured: &Measured) -> Figure {
    let line = |cell: &Cell| Some(Series::latency_cdf(cell.name.clone(), &cell.scans.histogram()?));
    Figure {
        id: "vigil-scans".to_owned(),
        title: "Latency of range queries, YCSB-E".to_owned(),
        caption: "Beside figure 16.".to_owned(),
        kind: FigureKind::Cdf {
            x: Axis::log("latency of range queries", Unit::Microseconds),
            of: "range queries".to_owned(),
            tail: true,
            series: measured.scans.iter().filter_map(line).collect(),
        },
    }
}

fn cache_limits(measured: &Measured) -> Figure {
    let line = |name: &str, of: fn(&Cell) -> f64| {
        let points = CACHE_LIMITS_MB.into_iter().zip(&measured.limits);
        Series::new(name, points.map(|(limit, cell)| (limit as f64, of(cell))))
    };
    Figure {
        id: "vigil-cache-limit".to_owned(),
        title: "Latency of gets by the limit of plm_cache, YCSB-A, O-Vigil".to_owned(),
        caption: "Limits at the paper's size. Beside figure 15b.".to_owned(),
        kind: FigureKind::Lines {
            x: Axis::log("limit of plm_cache", Unit::Other("MB".to_owned())),
            y: Axis::log("latency of gets", Unit::Microseconds),
            series: vec![
                line("mean", |cell| cell.get.mean_us),
                line("p99.9", |cell| cell.get.p999_us),
            ],
        },
    }
}

fn cached(measured: &Measured) -> Figure {
    let most = |configuration| {
        WORKLOADS.map(|(workload, _)| {
            let windows = measured.cell(workload, configuration).windows;
            windows.map_or(0.0, |windows| windows.most_cached_bytes as f64)
        })
    };
    let shown = all().filter(|(name, _)| ["r-vigil", "o-vigil", "rails"].contains(name));
    Figure {
        id: "vigil-cached".to_owned(),
        title: "Most bytes in plm_cache".to_owned(),
        caption: "What waits for the slots of its sets, parity included.".to_owned(),
        kind: FigureKind::Bars {
            over: "workload".to_owned(),
            categories: WORKLOADS.map(|(_, title)| title.to_owned()).into(),
            y: Axis::linear("plm_cache", Unit::Bytes),
            series: shown.map(|(name, title)| BarSeries::new(title, most(name))).collect(),
        },
    }
}

fn reconstruction(measured: &Measured) -> Figure {
    let line = |name: &str, of: fn(&Cell) -> f64| {
        let points = READ_RATES.into_iter().zip(&measured.rates);
        Series::new(name, points.map(|(rate, cell)| (rate, of(cell))))
    };
    Figure {
        id: "vigil-reconstruction".to_owned(),
        title: "Latency of gets by their rate, R-Vigil, no writes".to_owned(),
        caption: "A third of the gets is rebuilt from the two other sets. Beside section 6.2."
            .to_owned(),
        kind: FigureKind::Lines {
            x: Axis::linear("gets a second", Unit::OperationsPerSecond),
            y: Axis::log("latency of gets", Unit::Microseconds),
            series: vec![
                line("mean", |cell| cell.get.mean_us),
                line("p99", |cell| cell.get.p99_us),
            ],
        },
    }
}
