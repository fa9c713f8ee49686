//! The figures.

use crate::report::{Axis, BarSeries, Figure, FigureKind, Series, Unit};
use crate::reproduce::vigil::{
    CACHE_LIMITS_MB, CONFIGURATIONS, Measured, READ_RATES, WORKLOADS, all,
};
use crate::reproduce::vigil_run::Cell;

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
    figures.push(scans(measured));
    figures.push(cache_limits(measured));
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
        let gets = measured.cell(workload, configuration).gets.as_ref()?;
        Some(Series::latency_cdf(name, gets))
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
    let mut seconds: Vec<f64> = Vec::new();
    for window in &cell.timeline {
        let second = (window.start.as_secs_f64() - cell.started) as usize;
        seconds.resize(seconds.len().max(second + 1), 0.0);
        seconds[second] = seconds[second].max(window.gets.max_us);
    }
    let points = (0..).map(f64::from).zip(seconds);
    Series::new(name, points.filter(|(_, longest)| *longest > 0.0))
}

fn over_time(measured: &Measured) -> Figure {
    let shown =
        CONFIGURATIONS.into_iter().filter(|(name, _)| ["base", "plm", "o-vigil"].contains(name));
    Figure {
        id: "vigil-over-time".to_owned(),
        title: "Longest get of each second, UserDB".to_owned(),
        caption: "Beside figure 12.".to_owned(),
        kind: FigureKind::Lines {
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::log("longest get", Unit::Microseconds),
            series: shown
                .map(|(configuration, name)| longest(name, measured.cell("userdb", configuration)))
                .collect(),
        },
    }
}

fn background(measured: &Measured) -> Figure {
    Figure {
        id: "vigil-background".to_owned(),
        title: "Longest get of each second, with and without writes".to_owned(),
        caption: "Base under UserDB, and under its gets alone: what flushes and compactions do to reads. Beside figure 3c."
            .to_owned(),
        kind: FigureKind::Lines {
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::log("longest get", Unit::Microseconds),
            series: vec![
                longest("UserDB", measured.cell("userdb", "base")),
                longest("its gets alone", &measured.reads_alone),
            ],
        },
    }
}

fn scans(measured: &Measured) -> Figure {
    let line = |cell: &Cell| Some(Series::latency_cdf(cell.name.clone(), cell.scans.as_ref()?));
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
        caption: "Beside figure 15a, which has it over time for ZippyDB.".to_owned(),
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
