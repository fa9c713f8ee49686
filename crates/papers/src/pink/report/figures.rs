//! The figures.

use report::{Axis, BarSeries, Figure, FigureKind, Published, Series, Unit};

use super::ratios::{
    COLLECTION_READS, COLLECTION_WRITES, COMPACTION_READS, COMPACTION_WRITES, Pages, per_user_byte,
    with_search_aids,
};
use crate::pink::measured::Measured;
use crate::pink::memory;
use crate::pink::size::{READS, WORKLOADS};
use crate::pink::system::{Cell, System};

pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    let mut figures = vec![throughput(measured)];
    figures.extend(READS.map(|workload| latency(measured, workload)));
    figures.push(latency_bars(measured, "p99", (0.27, "-73 %"), |cell| cell.get.p99_us));
    figures.push(latency_bars(measured, "mean", (0.58, "-42 %"), |cell| cell.get.mean_us));
    figures.push(put_tails(measured));
    figures.push(flash_reads(measured));
    figures.push(background(measured));
    figures.push(pinning_latency(measured));
    figures.push(pinning_traffic(measured));
    figures.push(search_aids(measured));
    figures.extend(heights(measured));
    figures.extend(super::beyond::figures(measured));
    figures.extend(super::motivation::figures(&measured.motivation));
    figures.extend(memory::figures());
    figures
}

fn throughput(measured: &Measured) -> Figure {
    let bars = |system: &System| {
        let run = WORKLOADS.iter().map(|workload| system.cell(workload));
        let values = std::iter::once(system.load.as_ref()).chain(run);
        BarSeries {
            name: system.name.clone(),
            values: values.map(|cell| cell.map(|cell| cell.operations_per_second)).collect(),
        }
    };
    let names = WORKLOADS.map(str::to_uppercase);
    Figure::new(
        "pink-throughput",
        "Throughput by YCSB workload",
        "E counts range queries; hash has none. \"paper\" is where PinK would be if it gained against hash, in each workload, \
         what the abstract gives for all.",
        FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: std::iter::once("Load".to_owned()).chain(names).collect(),
            y: Axis::linear("throughput", Unit::OperationsPerSecond),
            series: measured.systems.iter().map(bars).collect(),
        },
    )
    .with_published(against_hash(measured, (1.37, "+37 %"), |cell| cell.operations_per_second))
}

fn latency(measured: &Measured, workload: &str) -> Figure {
    let line = |system: &System| {
        let histogram = system.cell(workload)?.gets.histogram()?;
        Some(Series::latency_cdf(system.name.clone(), &histogram))
    };
    Figure::new(
        format!("pink-latency-{workload}"),
        format!("Latency of gets, YCSB-{}", workload.to_uppercase()),
        "Every get from its start to its end, with 64 operations outstanding.",
        FigureKind::Cdf {
            x: Axis::log("latency of gets", Unit::Microseconds),
            of: "gets".to_owned(),
            tail: true,
            series: measured.systems.iter().filter_map(line).collect(),
        },
    )
    .about(&measured.system("pink").name)
}

/// Returns the published values of `PinK` in each workload: the abstract's factor, which is over
/// all workloads, times the measured value of hash.
fn against_hash(
    measured: &Measured,
    (factor, text): (f64, &str),
    of: fn(&Cell) -> f64,
) -> Vec<Published> {
    let hash = measured.system("hash");
    let mark = |workload: &str| {
        let value = factor * of(hash.ran(workload));
        Published::of_group(workload.to_uppercase(), format!("PinK, {text} of hash here"), value)
    };
    READS.map(mark).to_vec()
}

fn latency_bars(
    measured: &Measured,
    name: &str,
    published: (f64, &str),
    of: fn(&Cell) -> f64,
) -> Figure {
    let bars = |system: &System| {
        let cells = READS.map(|workload| system.ran(workload));
        BarSeries::new(system.name.clone(), cells.map(of))
    };
    Figure::new(
        format!("pink-{name}"),
        format!("Latency of gets by workload: {name}"),
        "Lower is better. \"paper\" is where PinK would be if it gained against hash, in each workload, what the abstract \
         gives for all.",
        FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: READS.map(str::to_uppercase).to_vec(),
            y: Axis::linear(format!("{name} latency of gets"), Unit::Microseconds),
            series: measured.systems.iter().map(bars).collect(),
        },
    )
    .with_published(against_hash(measured, published, of))
}

fn put_tails(measured: &Measured) -> Figure {
    let with_puts = READS.map(|workload| (workload != "c").then_some(workload));
    let with_puts: Vec<&str> = with_puts.into_iter().flatten().collect();
    let bars = |system: &System| {
        let cells = with_puts.iter().map(|workload| system.ran(workload));
        BarSeries::new(system.name.clone(), cells.map(|cell| cell.put.p999_us))
    };
    Figure::new(
        "pink-puts-p999",
        "Latency of puts by workload: p99.9",
        "A put waits where memtables are full and their flush waits for space.",
        FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: with_puts.iter().map(|workload| workload.to_uppercase()).collect(),
            y: Axis::log("p99.9 latency of puts", Unit::Microseconds),
            series: measured.systems.iter().map(bars).collect(),
        },
    )
}

/// Number of bars by flash reads. The last bar includes all larger numbers.
const COUNTED: usize = 7;

fn flash_reads(measured: &Measured) -> Figure {
    let counts = |system: &System| system.ran("c").reads_per_get.clone();
    let all = measured.systems.iter().map(counts);
    let most = all.filter_map(|counts| counts.iter().rposition(|gets| *gets > 0)).max();
    let counted = (most.unwrap_or(0) + 1).min(COUNTED);
    let shares = |system: &System| {
        let counts = counts(system);
        let all = counts.iter().sum::<u64>().max(1) as f64;
        let at = |reads: usize| counts.get(reads).copied().unwrap_or(0);
        let more: u64 = counts.iter().skip(counted - 1).sum();
        let gets = (0..counted - 1).map(at).chain([more]);
        let share = |gets: u64| (gets > 0).then(|| gets as f64 / all * 100.0);
        BarSeries { name: system.name.clone(), values: gets.map(share).collect() }
    };
    let mut categories: Vec<String> = (0..counted).map(|reads| reads.to_string()).collect();
    if most.is_some_and(|most| most >= COUNTED) {
        categories[COUNTED - 1].push_str(" or more");
    }
    Figure::new(
        "pink-flash-reads",
        "Flash accesses of a get, YCSB-C",
        "A get that shares the read of another still counts it as its own. Where nothing stands, no get took as many. \
         On a linear axis the tails do not show.",
        FigureKind::Bars {
            over: "flash reads".to_owned(),
            categories,
            y: Axis::log("share of gets", Unit::Percent),
            series: measured.systems.iter().map(shares).collect(),
        },
    )
}

const TRAFFIC: [(&str, Pages); 4] = [
    ("compaction reads", COMPACTION_READS),
    ("compaction writes", COMPACTION_WRITES),
    ("collection reads", COLLECTION_READS),
    ("collection writes", COLLECTION_WRITES),
];

fn traffic_bars(id: &str, title: &str, caption: &str, over: &str, systems: &[System]) -> Figure {
    let bars = |(name, of): (&str, Pages)| {
        BarSeries::new(name, systems.iter().map(|system| per_user_byte(system, of)))
    };
    Figure::new(
        id,
        title,
        caption,
        FigureKind::Bars {
            over: over.to_owned(),
            categories: systems.iter().map(|system| system.name.clone()).collect(),
            y: Axis::linear("bytes per byte written by users", Unit::Number),
            series: TRAFFIC.map(bars).to_vec(),
        },
    )
}

fn background(measured: &Measured) -> Figure {
    traffic_bars(
        "pink-background",
        "Compaction and collection, Load and YCSB-A together",
        "Objects that a collection re-inserts are written by the next flush and not counted here; \
         what hash writes as compaction is bucket pages.",
        "system",
        &measured.systems,
    )
}

fn pinning_traffic(measured: &Measured) -> Figure {
    traffic_bars(
        "pink-pinning-traffic",
        "Background work by levels pinned, Load and YCSB-A together",
        "Merges between pinned levels cost no flash I/O. But a third one is cut to what memory is left, and a merge into the last \
         level writes as many times what it takes in as that is larger: on a 64th 40 times, in place of twice 7 with two pinned, so that three write \
         more than two. At the paper's size it is 33 times in place of twice 21, and 0 to 3 pinned levels write 1.33, 1.18, 0.59 \
         and 0.29 bytes (docs/reproduction.md).",
        "levels pinned",
        &measured.pinned,
    )
}

fn pinning_latency(measured: &Measured) -> Figure {
    let bars = |name: &str, workload: &str, of: fn(&Cell) -> f64| {
        let cells = measured.pinned.iter().map(|system| system.ran(workload));
        BarSeries::new(name, cells.map(of))
    };
    let series = vec![
        bars("YCSB-C, mean", "c", |cell| cell.get.mean_us),
        bars("YCSB-C, p99", "c", |cell| cell.get.p99_us),
        bars("YCSB-A, mean", "a", |cell| cell.get.mean_us),
        bars("YCSB-A, p99", "a", |cell| cell.get.p99_us),
    ];
    Figure::new(
        "pink-pinning-latency",
        "Latency of gets by levels pinned",
        "Without filters every level that is not pinned costs a get a read.",
        FigureKind::Bars {
            over: "levels pinned".to_owned(),
            categories: measured.pinned.iter().map(|system| system.name.clone()).collect(),
            y: Axis::linear("latency of gets", Unit::Microseconds),
            series,
        },
    )
}

fn search_aids(measured: &Measured) -> Figure {
    let bars = |name: &str, system: &System| {
        let get = system.ran("c").operations_per_second;
        BarSeries::new(name, [system.load().operations_per_second, get])
    };
    Figure::new(
        "pink-search-aids",
        "Prefixes and range pointers",
        "NO-OPT searches every level list by whole keys. Corresponds to slide 30.",
        FigureKind::Bars {
            over: "workload".to_owned(),
            categories: vec!["Load".to_owned(), "YCSB-C".to_owned()],
            y: Axis::linear("throughput", Unit::OperationsPerSecond),
            series: vec![
                bars("NO-OPT", &measured.plain),
                bars("prefixes and range pointers", with_search_aids(measured)),
            ],
        },
    )
}

fn heights(measured: &Measured) -> [Figure; 2] {
    let height = |system: &System| system.levels.map_or(0, |levels| levels.all) as f64;
    let line = |name: &str, of: &dyn Fn(&System) -> f64| {
        Series::new(name, measured.heights.iter().map(|system| (height(system), of(system))))
    };
    let x = || Axis::linear("levels below the memtable", Unit::Number);
    let pinned = measured.heights.iter().filter_map(|system| {
        let levels = system.levels?;
        Some(format!("{} of {}", levels.pinned, levels.all))
    });
    let pinned = pinned.collect::<Vec<_>>().join(", ");
    let reads = Figure::new(
        "pink-heights-reads",
        "Flash reads of a get by height of the tree",
        format!("As many levels are pinned as fit in memory: {pinned}. Corresponds to slide 31."),
        FigureKind::Lines {
            x: x(),
            y: Axis::linear("flash reads of a get", Unit::Number),
            series: vec![
                line("most reads", &|system| system.most_reads() as f64),
                line("mean reads (YCSB-C)", &|s| s.cell("c").map_or(0.0, |cell| cell.mean_reads)),
            ],
        },
    );
    let traffic = |of: Pages| move |system: &System| per_user_byte(system, of);
    let work = Figure::new(
        "pink-heights-traffic",
        "Compaction by height of the tree",
        "Load and YCSB-A together. What is merged into the levels in flash grows with how \
                  much larger the last level is than the one above.",
        FigureKind::Lines {
            x: x(),
            y: Axis::linear("bytes per byte written by users", Unit::Number),
            series: vec![
                line("compaction reads", &traffic(COMPACTION_READS)),
                line("compaction writes", &traffic(COMPACTION_WRITES)),
            ],
        },
    );
    [reads, work]
}
