//! `PinK` with all requests of the paper, at equal rates, with slower firmware, and with objects of
//! the paper's size.

use report::{Axis, BarSeries, Comparison, Figure, FigureKind, Unit, Verdict};

use super::ratios::one_ratio_of;
use crate::pink::beyond::{COSTS, RATES, rate_of};
use crate::pink::measured::{Measured, of_design};
use crate::pink::size::READS;
use crate::pink::system::{Cell, System};
use crate::words::{beside, change, row};

/// Workloads that run with all requests.
const FULL: [&str; 2] = ["a", "f"];
/// Statistics of a tail, with their names.
const TAIL: [(&str, Value); 5] = [
    ("mean", |latency| latency.mean_us),
    ("p99", |latency| latency.p99_us),
    ("p99.9", |latency| latency.p999_us),
    ("p99.99", |latency| latency.p9999_us),
    ("longest", |latency| latency.max_us),
];

type Value = fn(&workload::LatencySummary) -> f64;

pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    let full = &measured.full;
    vec![
        tails(full, "pink-full-gets", "Gets of A and F with all requests of the paper", |c| &c.get),
        tails(full, "pink-full-puts", "Puts of A and F with all requests of the paper", |c| &c.put),
        full_throughput(full),
        rated(&measured.rated, "p99", |cell| cell.get.p99_us),
        rated(&measured.rated, "mean", |cell| cell.get.mean_us),
        rated_puts(&measured.rated),
        costs(measured, "pink-costs-p99", "p99 of gets", Unit::Microseconds, |c| c.get.p99_us),
        costs(measured, "pink-costs-throughput", "throughput", Unit::OperationsPerSecond, |cell| {
            cell.operations_per_second
        }),
    ]
}

fn tails(
    systems: &[System],
    id: &str,
    title: &str,
    of: fn(&Cell) -> &workload::LatencySummary,
) -> Figure {
    let points = || FULL.into_iter().flat_map(|workload| TAIL.map(|point| (workload, point)));
    let bars = |system: &System| {
        let values = points().map(|(workload, (_, value))| value(of(system.ran(workload))));
        BarSeries::new(system.name.clone(), values)
    };
    let name = |(workload, (name, _)): (&str, _)| format!("{} {name}", workload.to_uppercase());
    Figure::new(
        id,
        title,
        "Each workload on a freshly loaded drive, in a closed loop of 64.",
        FigureKind::Bars {
            over: "workload, point".to_owned(),
            categories: points().map(name).collect(),
            y: Axis::log("latency", Unit::Microseconds),
            series: systems.iter().map(bars).collect(),
        },
    )
}

fn full_throughput(systems: &[System]) -> Figure {
    let bars = |system: &System| {
        let cells = FULL.map(|workload| system.ran(workload).operations_per_second);
        BarSeries::new(system.name.clone(), cells)
    };
    Figure::new(
        "pink-full-throughput",
        "Throughput of A and F with all requests of the paper",
        "Each workload on a freshly loaded drive, in a closed loop of 64.",
        FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: FULL.map(str::to_uppercase).to_vec(),
            y: Axis::linear("throughput", Unit::OperationsPerSecond),
            series: systems.iter().map(bars).collect(),
        },
    )
}

fn at_rate(workload: &str) -> String {
    format!("{} at {}/s", workload.to_uppercase(), rate_of(workload))
}

/// Returns a figure of the latency of gets of A to F and of range queries of E.
fn rated(systems: &[System], name: &str, of: fn(&Cell) -> f64) -> Figure {
    let value = |system: &System, workload: &str| {
        let cell = system.cell(workload)?;
        let of_scans = || Cell { get: cell.scan, ..Cell::default() };
        Some(if workload == "e" { of(&of_scans()) } else { of(cell) })
    };
    let bars = |system: &System| BarSeries {
        name: system.name.clone(),
        values: RATES.iter().map(|(workload, _)| value(system, workload)).collect(),
    };
    Figure::new(
        format!("pink-rated-{name}"),
        format!("Latency at equal rates: {name}"),
        "Open loop, from intended start times, each workload on a freshly loaded drive. Gets; \
                  of E range queries.",
        FigureKind::Bars {
            over: "workload, operations a second".to_owned(),
            categories: RATES.iter().map(|(workload, _)| at_rate(workload)).collect(),
            y: Axis::log(format!("{name} latency"), Unit::Microseconds),
            series: systems.iter().map(bars).collect(),
        },
    )
}

fn rated_puts(systems: &[System]) -> Figure {
    let points = || {
        ["a", "b", "d", "f"]
            .into_iter()
            .flat_map(|workload| [TAIL[1], TAIL[2], TAIL[4]].map(|point| (workload, point)))
    };
    let bars = |system: &System| {
        let values = points().map(|(workload, (_, value))| value(&system.ran(workload).put));
        BarSeries::new(system.name.clone(), values)
    };
    let name = |(workload, (name, _)): (&str, _)| format!("{} {name}", workload.to_uppercase());
    Figure::new(
        "pink-rated-puts",
        "Latency of puts at equal rates",
        "Open loop, from intended start times.",
        FigureKind::Bars {
            over: "workload, point".to_owned(),
            categories: points().map(name).collect(),
            y: Axis::log("latency of puts", Unit::Microseconds),
            series: systems.iter().map(bars).collect(),
        },
    )
}

fn costs(measured: &Measured, id: &str, what: &str, unit: Unit, of: fn(&Cell) -> f64) -> Figure {
    let each = || {
        COSTS
            .iter()
            .zip(&measured.costly)
            .flat_map(|(times, pair)| pair.iter().map(move |system| (times, system)))
    };
    let bars = |(times, system): (&u32, &System)| {
        let values = system.cells.iter().map(of);
        BarSeries::new(format!("{}, times {times}", system.name), values)
    };
    let workloads = &measured.costly[0][0].cells;
    Figure::new(
        id,
        format!("Firmware that takes one, five and ten times as long: {what}"),
        "Commands and all work of the index; flash, link and pipeline as they are. Closed loop of 64.",
        FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: workloads.iter().map(|cell| cell.workload.to_uppercase()).collect(),
            y: Axis::linear(what, unit),
            series: each().map(bars).collect(),
        },
    )
}

pub(super) fn rows(measured: &Measured) -> Vec<Comparison> {
    let mut rows = full_rows(measured);
    rows.push(put_tails(measured));
    rows.extend(tails_of_trees(measured));
    rows.push(rated_row(measured));
    rows.extend(cost_rows(measured));
    rows.push(aids_of_slow_firmware(measured));
    rows.push(with_key(measured));
    rows
}

fn full_rows(measured: &Measured) -> Vec<Comparison> {
    let (hash, pink) = (of_design(&measured.full, "hash"), of_design(&measured.full, "pink"));
    let one = |name: &str, what: &str, published: f64, text: &str, of: fn(&Cell) -> f64| {
        let ratios = FULL.map(|workload| (workload, one_ratio_of(pink, hash, workload, of)));
        let ours = (ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / 2.0).exp();
        let words = ratios.map(|(workload, ratio)| {
            let of = |system: &System| of(system.ran(workload));
            let (hash, pink) = (of(hash), of(pink));
            format!("{} {}: {hash:.0} and {pink:.0}", workload.to_uppercase(), change(1.0, ratio))
        });
        let collected = |system: &System| FULL.map(|workload| system.ran(workload).collected);
        row(
            &format!("pink-full-{name}"),
            &format!("{what}, PinK against hash, A and F with as many requests as pairs"),
            &format!("{text} over all workloads (abstract)"),
            beside(published, ours, change(1.0, ours)),
            Verdict::of_gain(published, ours),
            format!(
                "{}. Extents collected in A and F: {:?} by hash, {:?} by PinK.",
                words.join("; "),
                collected(hash),
                collected(pink)
            ),
        )
        .again()
    };
    vec![
        one("p99", "p99 of gets", 0.27, "-73 %", |cell| cell.get.p99_us),
        one("mean", "mean of gets", 0.58, "-42 %", |cell| cell.get.mean_us),
        one("throughput", "throughput", 1.37, "+37 %", |cell| cell.operations_per_second),
    ]
}

fn put_tails(measured: &Measured) -> Comparison {
    let words = measured.full.iter().map(|system| {
        let of = |workload| {
            let put = system.ran(workload).put;
            let workload = workload.to_uppercase();
            format!(
                "{workload} {:.1}, {:.1}, {:.0}",
                put.p999_us / 1e3,
                put.p9999_us / 1e3,
                put.max_us / 1e3
            )
        };
        format!("{}: {}", system.name, FULL.map(of).join("; "))
    });
    let words: Vec<String> = words.collect();
    let longest = |design| {
        let system = of_design(&measured.full, design);
        FULL.map(|workload| system.ran(workload).put.max_us).into_iter().fold(0.0, f64::max) / 1e3
    };
    row(
        "pink-full-puts",
        "longest put of A and F with as many requests as pairs, hash and PinK",
        "nothing",
        format!("{:.0} ms and {:.0} ms", longest("hash"), longest("pink")),
        Verdict::NotApplicable,
        format!("p99.9, p99.99 and the longest, in ms. {}.", words.join(". ")),
    )
}

/// Returns rows that compare gets of `PinK` with gets of the LSM-tree with filters, because `PinK`
/// bounds the reads of a get.
fn tails_of_trees(measured: &Measured) -> Vec<Comparison> {
    let words = |systems: &[System], workload: &str, label: &str| {
        let of = |design| of_design(systems, design).ran(workload).get;
        let (lsm, pink) = (of("lightstore"), of("pink"));
        let points = TAIL[1..]
            .iter()
            .map(|(name, value)| format!("{name} {}", change(value(&lsm), value(&pink))));
        format!("{label}: {}", points.collect::<Vec<_>>().join(", "))
    };
    let full = FULL.map(|workload| words(&measured.full, workload, &workload.to_uppercase()));
    let p99: Value = |latency| latency.p99_us;
    let is_shorter = |systems: &[System], workload: &str| {
        let of = |design| p99(&of_design(systems, design).ran(workload).get);
        Verdict::of_less(of("pink") / of("lightstore"))
    };
    let all = |systems, workloads: &[&str]| {
        Verdict::of_all(workloads.iter().map(|workload| is_shorter(systems, workload)))
    };
    let rated = READS.map(|workload| words(&measured.rated, workload, &at_rate(workload)));
    let reads = |design| of_design(&measured.full, design).most_reads();
    vec![
        row(
            "pink-full-lsm",
            "tail of gets, PinK against the LSM-tree, A and F with as many requests as pairs",
            "shorter: no get takes more than two flash reads (slides; no value)",
            full.join("; "),
            all(&measured.full, &FULL),
            format!(
                "Most flash reads of a get: {} and {}. The verdict is on p99 of both workloads. In a closed \
                 loop the faster system also has more writes in the way of its gets.",
                reads("lightstore"),
                reads("pink")
            ),
        )
        .again(),
        row(
            "pink-rated-lsm",
            "the same at equal rates",
            "shorter: no get takes more than two flash reads (slides; no value)",
            "see right",
            all(&measured.rated, &READS),
            format!("{}. The verdict is on p99.", rated.join("; ")),
        )
        .again(),
    ]
}

fn rated_row(measured: &Measured) -> Comparison {
    let (hash, pink) = (of_design(&measured.rated, "hash"), of_design(&measured.rated, "pink"));
    let of: fn(&Cell) -> f64 = |cell| cell.get.p99_us;
    let ratios = READS.map(|workload| (workload, one_ratio_of(pink, hash, workload, of)));
    let logs = ratios.iter().map(|(_, ratio)| ratio.ln());
    let ours = (logs.sum::<f64>() / ratios.len() as f64).exp();
    let words =
        ratios.map(|(workload, ratio)| format!("{} {}", at_rate(workload), change(1.0, ratio)));
    let behind = |system: &System| {
        READS
            .into_iter()
            .filter(|workload| {
                system.ran(workload).operations_per_second < 0.98 * rate_of(workload)
            })
            .map(str::to_uppercase)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let late = measured.rated.iter().map(|system| (&system.name, behind(system)));
    let late = late.filter(|(_, workloads)| !workloads.is_empty());
    let late: Vec<String> = late.map(|(name, at)| format!("{name} in {at}")).collect();
    let late = if late.is_empty() { "nobody".to_owned() } else { late.join(", ") };
    row(
        "pink-rated-p99",
        "p99 of gets, PinK against hash, at equal rates",
        "-73 % (abstract; how requests came is not said)",
        beside(0.27, ours, change(1.0, ours)),
        Verdict::of_gain(0.27, ours),
        format!("{}. Fell behind the rate: {late}.", words.join(", ")),
    )
    .again()
}

fn cost_rows(measured: &Measured) -> Vec<Comparison> {
    let each = COSTS.iter().zip(&measured.costly);
    let one = |(times, [hash, pink]): (&u32, &[System; 2])| {
        let words = hash.cells.iter().zip(&pink.cells).map(|(hash, pink)| {
            format!(
                "{}: p99 {}, mean {}, throughput {}",
                hash.workload.to_uppercase(),
                change(hash.get.p99_us, pink.get.p99_us),
                change(hash.get.mean_us, pink.get.mean_us),
                change(hash.operations_per_second, pink.operations_per_second)
            )
        });
        let (of_hash, of_pink) = (&hash.cells[0], &pink.cells[0]);
        let ratio = |of: fn(&Cell) -> f64| of(of_pink) / of(of_hash);
        row(
            &format!("pink-costs-{times}"),
            &format!("PinK against hash, A, firmware that takes {times} times as long"),
            "-73 % of p99, -42 % of the mean, +37 % throughput (abstract)",
            format!(
                "{}, {}, {}",
                change(of_hash.get.p99_us, of_pink.get.p99_us),
                change(of_hash.get.mean_us, of_pink.get.mean_us),
                change(of_hash.operations_per_second, of_pink.operations_per_second)
            ),
            Verdict::of_all([
                Verdict::of_gain(0.27, ratio(|cell| cell.get.p99_us)),
                Verdict::of_gain(0.58, ratio(|cell| cell.get.mean_us)),
                Verdict::of_gain(1.37, ratio(|cell| cell.operations_per_second)),
            ]),
            format!("{}.", words.collect::<Vec<_>>().join(". ")),
        )
        .again()
    };
    each.map(one).collect()
}

/// Returns a row about prefixes and range pointers with the slowest firmware, where the saved
/// comparisons are the most expensive.
fn aids_of_slow_firmware(measured: &Measured) -> Comparison {
    let times = COSTS[COSTS.len() - 1];
    let [_, with] = &measured.costly[COSTS.len() - 1];
    let (with, without) = (with.ran("c"), measured.costly_plain.ran("c"));
    let faster = with.operations_per_second / without.operations_per_second;
    row(
        "pink-search-aids-costly",
        &format!("prefixes and range pointers, C, firmware that takes {times} times as long"),
        "faster Load and C (slide 30; no value)",
        change(1.0, faster),
        Verdict::of_more(faster),
        format!(
            "{:.0} in place of {:.0} operations/s; p99 of gets {}, mean {}. Load was not run with slower firmware.",
            with.operations_per_second,
            without.operations_per_second,
            change(without.get.p99_us, with.get.p99_us),
            change(without.get.mean_us, with.get.mean_us),
        ),
    )
    .again()
}

fn with_key(measured: &Measured) -> Comparison {
    let [hash, pink] = &measured.with_key;
    let of = |workload: &str| {
        let (hash, pink) = (hash.ran(workload), pink.ran(workload));
        format!(
            "{}: p99 {}, mean {}, throughput {}",
            workload.to_uppercase(),
            change(hash.get.p99_us, pink.get.p99_us),
            change(hash.get.mean_us, pink.get.mean_us),
            change(hash.operations_per_second, pink.operations_per_second)
        )
    };
    row(
        "pink-with-key",
        "PinK against hash with objects of 1,024 bytes, key and header among them",
        "nothing; the released code has objects of this size",
        of("a"),
        Verdict::NotApplicable,
        format!("Eight lie on a page, where seven of 1,070 bytes do. {}.", of("c")),
    )
}
