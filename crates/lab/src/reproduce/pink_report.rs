//! What came of `PinK`'s experiments, as figures and beside the published statements.

use super::pink::{Cell, Measured, READS, Size, System, WORKLOADS};
use super::words::{change, holds, row, verdict};
use super::{Plan, Scale, pink_memory};
use crate::count_text;
use crate::report::{
    Axis, BarSeries, Comparison, Figure, FigureKind, Report, Series, Unit, Verdict,
};

/// The report.
pub(super) fn report(plan: &Plan<'_>, measured: &Measured) -> Report {
    let size = Size::of(plan.scale);
    let against_hash = |of| change_text(measured, of);
    let part = match plan.scale {
        Scale::Quick => format!(
            "a drive of a {}th of the paper's (flash, memory and pairs alike)",
            size.divisor
        ),
        Scale::Paper => "the paper's drive".to_owned(),
    };
    let mut comparisons = headline_rows(measured);
    comparisons.extend(direction_rows(measured));
    comparisons.extend(pink_memory::rows());
    Report {
        title: "PinK (USENIX ATC'20): an LSM-tree with bounded tails inside the drive".to_owned(),
        summary: format!(
            "Against the hash-indexed drive, over YCSB {}: p99 of gets {}, mean {}, throughput {}. \
             No get of PinK takes more than {} flash reads, of the LSM-tree up to {}, of hash up \
             to {}.",
            READS.join(", ").to_uppercase(),
            against_hash(|cell| cell.get.p99_us),
            against_hash(|cell| cell.get.mean_us),
            against_hash(|cell| cell.operations_per_second),
            most_reads(system(measured, "pink")),
            most_reads(system(measured, "lightstore")),
            most_reads(system(measured, "hash")),
        ),
        scale: format!(
            "{} pairs of 32 + 1024 bytes, {} operations of each workload ({} range queries), on \
             {part}",
            count_text(size.records),
            count_text(size.operations),
            count_text(size.scans),
        ),
        command: format!(
            "levelhead reproduce pink --scale {} --seed {}",
            plan.scale.name(),
            plan.seed
        ),
        figures: figures(measured),
        comparisons,
        notes: notes(plan.scale),
    }
}

fn notes(scale: Scale) -> Vec<String> {
    let mut notes = vec![
        "64 operations are outstanding at a time, as in the published code; workloads run one \
         after the other on one loaded drive, E last.",
        "The paper's figures were available without numbers: what is compared is what its abstract \
         and its slides state.",
        "The drive is an assumed one where the paper's flash card has no published times; every \
         number says so in the device profile pink-zcu102. All systems run on the same numbers.",
        "Compaction goes by slices in all LSM-trees; the published code merges whole levels.",
    ];
    if scale == Scale::Quick {
        notes.push(
            "The small drive has as many dies as the large one, and blocks of a sixteenth of \
             the pages whose erase takes a sixteenth of the time.",
        );
    }
    notes.into_iter().map(str::to_owned).collect()
}

fn system<'a>(measured: &'a Measured, design: &str) -> &'a System {
    let mut systems = measured.systems.iter();
    systems.find(|system| system.design == design).expect("every system was run")
}

/// Geometric mean over the read workloads of what `of` gives for a system over what it gives for
/// another.
fn ratio(measured: &Measured, design: &str, over: &str, of: fn(&Cell) -> f64) -> f64 {
    let ratios = READS.map(|workload| one_ratio(measured, design, over, workload, of));
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

fn one_ratio(
    measured: &Measured,
    design: &str,
    over: &str,
    workload: &str,
    of: fn(&Cell) -> f64,
) -> f64 {
    let value = |design| of(system(measured, design).cell(workload).expect("all ran it"));
    value(design) / value(over)
}

fn change_text(measured: &Measured, of: fn(&Cell) -> f64) -> String {
    change(1.0, ratio(measured, "pink", "hash", of))
}

fn most_reads(system: &System) -> usize {
    system.cells.iter().map(|cell| cell.most_reads).max().unwrap_or(0)
}

// Figures.

fn figures(measured: &Measured) -> Vec<Figure> {
    let mut figures = vec![throughput(measured)];
    figures.extend(READS.map(|workload| latency(measured, workload)));
    figures.push(latency_bars(measured, "p99", |cell| cell.get.p99_us));
    figures.push(latency_bars(measured, "mean", |cell| cell.get.mean_us));
    figures.push(flash_reads(measured));
    figures.push(background(measured));
    figures.push(pinning_latency(measured));
    figures.push(pinning_traffic(measured));
    figures.push(search_aids(measured));
    figures.extend(heights(measured));
    figures.extend(pink_memory::figures());
    figures
}

fn throughput(measured: &Measured) -> Figure {
    let bars = |system: &System| {
        let run = WORKLOADS.iter().map(|workload| system.cell(workload));
        let values = std::iter::once(Some(&system.load)).chain(run);
        BarSeries {
            name: system.name.clone(),
            values: values.map(|cell| cell.map(|cell| cell.operations_per_second)).collect(),
        }
    };
    let names = WORKLOADS.map(str::to_uppercase);
    Figure {
        id: "pink-throughput".to_owned(),
        title: "Throughput by YCSB workload".to_owned(),
        caption: "E counts range queries; hash has none.".to_owned(),
        kind: FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: std::iter::once("Load".to_owned()).chain(names).collect(),
            y: Axis::log("throughput", Unit::OperationsPerSecond),
            series: measured.systems.iter().map(bars).collect(),
        },
    }
}

fn latency(measured: &Measured, workload: &str) -> Figure {
    let line = |system: &System| {
        let histogram = system.cell(workload)?.get_histogram.as_ref()?;
        Some(Series::latency_cdf(system.name.clone(), histogram))
    };
    Figure {
        id: format!("pink-latency-{workload}"),
        title: format!("Latency of gets, YCSB-{}", workload.to_uppercase()),
        caption: "Every get from its start to its end, with 64 operations outstanding.".to_owned(),
        kind: FigureKind::Cdf {
            x: Axis::log("latency of gets", Unit::Microseconds),
            of: "gets".to_owned(),
            tail: true,
            series: measured.systems.iter().filter_map(line).collect(),
        },
    }
}

fn latency_bars(measured: &Measured, name: &str, of: fn(&Cell) -> f64) -> Figure {
    let bars = |system: &System| {
        let cells = READS.map(|workload| system.cell(workload).expect("all ran it"));
        BarSeries::new(system.name.clone(), cells.map(of))
    };
    Figure {
        id: format!("pink-{name}"),
        title: format!("Latency of gets by workload: {name}"),
        caption: "Lower is better.".to_owned(),
        kind: FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: READS.map(str::to_uppercase).to_vec(),
            y: Axis::linear(format!("{name} latency of gets"), Unit::Microseconds),
            series: measured.systems.iter().map(bars).collect(),
        },
    }
}

/// Reads that are told apart; the last stands for all above.
const COUNTED: usize = 7;

fn flash_reads(measured: &Measured) -> Figure {
    let shares = |system: &System| {
        let counts = &system.cell("c").expect("all ran it").reads_per_get;
        let all = counts.iter().sum::<u64>().max(1) as f64;
        let at = |reads: usize| counts.get(reads).copied().unwrap_or(0);
        let more: u64 = counts.iter().skip(COUNTED - 1).sum();
        let counted = (0..COUNTED - 1).map(at).chain([more]);
        BarSeries::new(system.name.clone(), counted.map(|gets| gets as f64 / all * 100.0))
    };
    let mut categories: Vec<String> = (0..COUNTED).map(|reads| reads.to_string()).collect();
    categories[COUNTED - 1].push_str(" or more");
    Figure {
        id: "pink-flash-reads".to_owned(),
        title: "Flash accesses of a get, YCSB-C".to_owned(),
        caption: "A get that shares the read of another still counts it as its own.".to_owned(),
        kind: FigureKind::Bars {
            over: "flash reads".to_owned(),
            categories,
            y: Axis::log("share of gets", Unit::Percent),
            series: measured.systems.iter().map(shares).collect(),
        },
    }
}

/// Bytes of background work of a system over Load and A, per byte that users wrote.
fn per_user_byte(system: &System, of: fn(&Cell) -> f64) -> f64 {
    let cells = [Some(&system.load), system.cell("a")];
    let cells = cells.into_iter().flatten();
    let written: f64 = cells.clone().map(|cell| cell.traffic.user_pages).sum();
    cells.map(of).sum::<f64>() / written
}

/// A kind of background traffic: its name, and its pages in a cell.
type Traffic = (&'static str, fn(&Cell) -> f64);

const TRAFFIC: [Traffic; 4] = [
    ("compaction reads", |cell| cell.traffic.compaction_read as f64),
    ("compaction writes", |cell| cell.traffic.compaction_written as f64),
    ("collection reads", |cell| cell.traffic.gc_read as f64),
    ("collection writes", |cell| cell.traffic.gc_written as f64),
];

fn traffic_bars(id: &str, title: &str, caption: &str, over: &str, systems: &[System]) -> Figure {
    let bars = |(name, of): Traffic| {
        BarSeries::new(name, systems.iter().map(|system| per_user_byte(system, of)))
    };
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        kind: FigureKind::Bars {
            over: over.to_owned(),
            categories: systems.iter().map(|system| system.name.clone()).collect(),
            y: Axis::linear("bytes per byte written by users", Unit::Number),
            series: TRAFFIC.map(bars).to_vec(),
        },
    }
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
        "Merges between pinned levels cost no flash I/O.",
        "levels pinned",
        &measured.pinned,
    )
}

fn pinning_latency(measured: &Measured) -> Figure {
    let bars = |name: &str, workload: &str, of: fn(&Cell) -> f64| {
        let cells = measured.pinned.iter().map(|system| system.cell(workload).expect("all ran it"));
        BarSeries::new(name, cells.map(of))
    };
    let series = vec![
        bars("YCSB-C, mean", "c", |cell| cell.get.mean_us),
        bars("YCSB-C, p99", "c", |cell| cell.get.p99_us),
        bars("YCSB-A, mean", "a", |cell| cell.get.mean_us),
        bars("YCSB-A, p99", "a", |cell| cell.get.p99_us),
    ];
    Figure {
        id: "pink-pinning-latency".to_owned(),
        title: "Latency of gets by levels pinned".to_owned(),
        caption: "Without filters every level that is not pinned costs a get a read.".to_owned(),
        kind: FigureKind::Bars {
            over: "levels pinned".to_owned(),
            categories: measured.pinned.iter().map(|system| system.name.clone()).collect(),
            y: Axis::log("latency of gets", Unit::Microseconds),
            series,
        },
    }
}

/// `PinK` with all its levels pinned, after the same workloads as NO-OPT.
fn with_search_aids(measured: &Measured) -> &System {
    measured.pinned.last().expect("levels were pinned")
}

fn search_aids(measured: &Measured) -> Figure {
    let bars = |system: &System| {
        let get = system.cell("c").expect("all ran it").operations_per_second;
        BarSeries::new(system.name.clone(), [system.load.operations_per_second, get])
    };
    Figure {
        id: "pink-search-aids".to_owned(),
        title: "Prefixes and range pointers".to_owned(),
        caption: "NO-OPT searches every level list by whole keys. Beside slide 30.".to_owned(),
        kind: FigureKind::Bars {
            over: "workload".to_owned(),
            categories: vec!["Load".to_owned(), "YCSB-C".to_owned()],
            y: Axis::linear("throughput", Unit::OperationsPerSecond),
            series: vec![bars(&measured.plain), bars(with_search_aids(measured))],
        },
    }
}

fn heights(measured: &Measured) -> [Figure; 2] {
    let height = |system: &System| {
        let levels = system.plan.as_ref().map_or(0, |plan| plan.capacities.len());
        levels as f64
    };
    let line = |name: &str, of: &dyn Fn(&System) -> f64| {
        Series::new(name, measured.heights.iter().map(|system| (height(system), of(system))))
    };
    let x = || Axis::linear("levels below the memtable", Unit::Number);
    let pinned = |s: &System| f64::from(s.plan.as_ref().map_or(0, |plan| plan.pinned));
    let reads = Figure {
        id: "pink-heights-reads".to_owned(),
        title: "Flash reads of a get by height of the tree".to_owned(),
        caption: "As many levels are pinned as fit in memory. Beside slide 31.".to_owned(),
        kind: FigureKind::Lines {
            x: x(),
            y: Axis::linear("flash reads, levels", Unit::Number),
            series: vec![
                line("most reads", &|system| most_reads(system) as f64),
                line("mean reads (YCSB-C)", &|s| s.cell("c").map_or(0.0, |cell| cell.mean_reads)),
                line("levels pinned", &pinned),
            ],
        },
    };
    let traffic = |of: fn(&Cell) -> f64| move |system: &System| per_user_byte(system, of);
    let work = Figure {
        id: "pink-heights-traffic".to_owned(),
        title: "Compaction by height of the tree".to_owned(),
        caption: "Load and YCSB-A together: a higher tree merges each entry into fewer others."
            .to_owned(),
        kind: FigureKind::Lines {
            x: x(),
            y: Axis::linear("bytes per byte written by users", Unit::Number),
            series: vec![
                line("compaction reads", &traffic(TRAFFIC[0].1)),
                line("compaction writes", &traffic(TRAFFIC[1].1)),
            ],
        },
    };
    [reads, work]
}

// What the paper says.

fn headline_rows(measured: &Measured) -> Vec<Comparison> {
    let headline = |name: &str, what: &str, published: f64, text: &str, of: fn(&Cell) -> f64| {
        let ours = ratio(measured, "pink", "hash", of);
        let by_workload = READS.map(|workload| {
            let one = one_ratio(measured, "pink", "hash", workload, of);
            format!("{} {}", workload.to_uppercase(), change(1.0, one))
        });
        row(
            &format!("pink-{name}-hash"),
            what,
            &format!("{text} (abstract)"),
            change(1.0, ours),
            verdict(published, ours, 1.0),
            format!("By workload: {}. {}", by_workload.join(", "), causes(measured)),
        )
    };
    let (p99, mean) = ("p99 of gets, PinK against hash", "mean of gets, PinK against hash");
    let throughput = "throughput, PinK against hash";
    vec![
        headline("p99", p99, 0.27, "-73 %", |cell| cell.get.p99_us),
        headline("mean", mean, 0.58, "-42 %", |cell| cell.get.mean_us),
        headline("throughput", throughput, 1.37, "+37 %", |cell| cell.operations_per_second),
    ]
}

/// What was measured about why reads take as long as they do.
fn causes(measured: &Measured) -> String {
    let of = |design: &str| {
        let cells = READS.map(|workload| system(measured, design).cell(workload).expect("ran it"));
        let mean = |of: fn(&Cell) -> f64| cells.iter().map(|cell| of(cell)).sum::<f64>() / 5.0;
        let (reads, behind) = (mean(|cell| cell.mean_reads), mean(|cell| cell.behind_writes));
        (reads, behind * 100.0)
    };
    let (hash, pink) = (of("hash"), of("pink"));
    format!(
        "A get takes {:.2} flash reads on average with hash (most {}) and {:.2} with PinK (most {}); \
         {:.0} % and {:.0} % of the reads found their die programming or erasing.",
        hash.0,
        most_reads(system(measured, "hash")),
        pink.0,
        most_reads(system(measured, "pink")),
        hash.1,
        pink.1
    )
}

fn direction_rows(measured: &Measured) -> Vec<Comparison> {
    let mut rows = vec![worst_case(measured), compaction(measured)];
    rows.extend(read_directions(measured));
    rows.push(aids_row(measured));
    rows.push(accelerator(measured));
    rows
}

fn worst_case(measured: &Measured) -> Comparison {
    let most = |design| most_reads(system(measured, design));
    let (pink, lsm, hash) = (most("pink"), most("lightstore"), most("hash"));
    row(
        "pink-worst-case",
        "most flash reads of a get",
        "PinK 2, LSM-tree 5, hash unbounded (slides)",
        format!("PinK {pink}, LSM-tree {lsm}, hash {hash}"),
        holds(pink <= 2 && pink < lsm),
        "PinK's bound is asserted on every get. That of the LSM-tree is 5; how many a run meets \
         depends on how many filters fail at once.",
    )
}

fn compaction(measured: &Measured) -> Comparison {
    let writes = |design| per_user_byte(system(measured, design), TRAFFIC[1].1);
    let reads = |design| per_user_byte(system(measured, design), TRAFFIC[0].1);
    let (pink, lsm) = (writes("pink"), writes("lightstore"));
    row(
        "pink-compaction",
        "compaction of PinK against that of the LSM-tree, Load and A",
        "less: pinned levels cost none (slides; no value)",
        format!(
            "writes {}, reads {}",
            change(lsm, pink),
            change(reads("lightstore"), reads("pink"))
        ),
        holds(pink < lsm),
        format!(
            "{pink:.2} bytes written by compaction for each byte of users, against {lsm:.2}. The \
             formulas of the released code give half to two thirds less."
        ),
    )
}

fn read_directions(measured: &Measured) -> Vec<Comparison> {
    vec![
        direction(measured, "p99", false, |cell| cell.get.p99_us),
        direction(measured, "mean", false, |cell| cell.get.mean_us),
        direction(measured, "throughput", true, |cell| cell.operations_per_second),
    ]
}

/// In how many workloads `PinK` beats hash on what `of` gives, and what was measured in the others.
fn direction(
    measured: &Measured,
    name: &str,
    more_is_better: bool,
    of: fn(&Cell) -> f64,
) -> Comparison {
    let ratios =
        READS.map(|workload| (workload, one_ratio(measured, "pink", "hash", workload, of)));
    let is_lost = |(_, ratio): &&(&str, f64)| (*ratio > 1.0) != more_is_better;
    let lost = ratios.iter().filter(is_lost);
    let why = lost.map(|(workload, ratio)| {
        let cell = |design| system(measured, design).cell(workload).expect("ran it");
        let (hash, pink) = (cell("hash"), cell("pink"));
        format!(
            "{}: {}, with {:.2} flash reads a get against {:.2}, {:.0} % and {:.0} % of them behind \
             a program or erase",
            workload.to_uppercase(),
            change(1.0, *ratio),
            pink.mean_reads,
            hash.mean_reads,
            pink.behind_writes * 100.0,
            hash.behind_writes * 100.0
        )
    });
    let why: Vec<String> = why.collect();
    row(
        &format!("pink-direction-{name}"),
        &format!("PinK beats hash on {name} in every read workload"),
        "it does (slides)",
        format!("in {} of {}", READS.len() - why.len(), READS.len()),
        holds(why.is_empty()),
        if why.is_empty() { "In all of them.".to_owned() } else { why.join("; ") },
    )
}

fn aids_row(measured: &Measured) -> Comparison {
    let of = |system: &System| {
        let gets = system.cell("c").expect("ran it").operations_per_second;
        (system.load.operations_per_second, gets)
    };
    let (with, without) = (of(with_search_aids(measured)), of(&measured.plain));
    row(
        "pink-search-aids",
        "prefixes and range pointers",
        "faster Load and C (slide 30; no value)",
        format!("Load {}, C {}", change(without.0, with.0), change(without.1, with.1)),
        holds(with.0 >= without.0 * 0.99 && with.1 >= without.1 * 0.99),
        "They save comparisons of whole keys, which the firmware's four cores do beside the reads \
         of 64 requests: where flash is the bottleneck little of it shows.",
    )
}

fn accelerator(measured: &Measured) -> Comparison {
    let (software, hardware) = (system(measured, "pink"), system(measured, "pink-hw"));
    let load = |system: &System| system.load.operations_per_second;
    let read = |system| per_user_byte(system, TRAFFIC[0].1);
    row(
        "pink-hw",
        "merge accelerator against software, Load",
        "faster merges, more flash I/O (slides; no value)",
        change(load(software), load(hardware)),
        Verdict::NotApplicable,
        format!(
            "No published number. The accelerator reads both inputs from flash and pinned segments \
             are written first: {:.2} bytes read for each byte of users in place of {:.2}.",
            read(hardware),
            read(software)
        ),
    )
}
