//! A report with each kind of figure, and with plausible, invented numbers.

use report::{
    Axis, BarSeries, Comparison, Counted, Figure, FigureKind, Published, Report, Scale, Series,
    Stretch, Unit, Verdict,
};

const DESIGNS: [&str; 4] = ["pink", "hash", "lsm in host", "lsm with bloom filters"];

pub(crate) fn report() -> Report {
    Report {
        title: "PinK: an LSM-tree in the drive with its top levels in memory".to_owned(),
        summary: "The tail of the gets is short, as the paper says: no get takes more than two \
                  flash reads. Throughput follows the paper's order of designs; the distance \
                  between them is smaller here."
            .to_owned(),
        scale:
            "1/10 of the paper: 4.4 million pairs of 32 B + 1 KB on a 6.4 GB drive; one million \
                operations a run"
                .to_owned(),
        command: "levelhead reproduce pink --scale 0.1 --seed 1 --out results/pink".to_owned(),
        figures: vec![cdf(), tail(), throughput(), latency(), degree(), timeline()],
        comparisons: comparisons(),
        notes: vec![
            "Every number here is invented; the page is what is looked at.".to_owned(),
            "Text that looks like markup stays text: <b>bold</b>, </script>, \"quotes\", &amp;."
                .to_owned(),
        ],
    }
}

/// Returns a distribution with a body and a tail, in microseconds. A larger `n` is slower.
fn distribution(n: usize, name: &str) -> Series {
    let middle = 300.0 * (1.0 + n as f64 * 0.7);
    let points = (1..=100).map(|step| {
        let rest = 10_f64.powf(-5.0 * f64::from(step) / 100.0);
        let tail = 1.0 + (n as f64 + 0.6) * -rest.log10();
        (middle * (1.0 - rest * 0.7) * tail, 1.0 - rest)
    });
    Series::new(name, points.chain([(middle * (n as f64 + 0.7) * 6.0 + 900.0, 1.0)]))
}

fn distributions() -> Vec<Series> {
    DESIGNS.into_iter().enumerate().map(|(n, name)| distribution(n, name)).collect()
}

fn cdf() -> Figure {
    Figure::new(
        "pink-fig-latency-cdf",
        "Latency of gets, YCSB-A",
        "Beside figure 8 (a) of the paper: pink's curve is the steepest, and it ends first.",
        FigureKind::Cdf {
            x: Axis::log("latency", Unit::Microseconds),
            of: "gets".to_owned(),
            tail: false,
            series: distributions(),
        },
    )
}

fn tail() -> Figure {
    Figure::new(
        "pink-fig-latency-tail",
        "The tail of the same gets",
        "The same numbers; each further nine is one step up.",
        FigureKind::Cdf {
            x: Axis::log("latency", Unit::Microseconds),
            of: "gets".to_owned(),
            tail: true,
            series: distributions(),
        },
    )
    .about(DESIGNS[0])
    .with_published([Published::new("p99.9, 3.9 ms", 3_900.0)])
}

fn workloads() -> Vec<String> {
    ["A", "B", "C", "D", "E", "F"].map(str::to_owned).into()
}

fn bars(n: usize, name: &str, height: f64) -> BarSeries {
    let heights = [1.0, 0.7, 0.55, 1.3, 0.2, 0.6].into_iter().enumerate();
    let values = heights.map(|(group, share)| {
        // The second design cannot scan.
        (n != 1 || group != 4).then(|| height * share / (1.0 + n as f64 * 0.4))
    });
    BarSeries { name: name.to_owned(), values: values.collect() }
}

fn throughput() -> Figure {
    Figure::new(
        "pink-fig-throughput",
        "Throughput by workload",
        "Beside figure 9 (a). The hash design has no order and so no scans: no bar for E.",
        FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: workloads(),
            y: Axis::linear("throughput", Unit::OperationsPerSecond),
            series: (0..).zip(DESIGNS).map(|(n, name)| bars(n, name, 209_181.0)).collect(),
        },
    )
    .with_published([
        Published::of_group(&workloads()[0], "PinK, +37 % of hash here", 150_000.0),
        Published::new("all, at most 300 thousand", 300_000.0),
    ])
}

fn latency() -> Figure {
    Figure::new(
        "pink-fig-p99",
        "99th percentile of gets by workload",
        "As dots on a logarithmic axis, because the designs are far apart.",
        FigureKind::Bars {
            over: "YCSB workload".to_owned(),
            categories: workloads(),
            y: Axis::log("latency, p99", Unit::Microseconds),
            series: vec![
                bars(0, DESIGNS[0], 2_500.0),
                bars(1, DESIGNS[1], 29_000.0),
                bars(2, DESIGNS[2], 250_000.0),
            ],
        },
    )
}

fn degree() -> Figure {
    let line = |n: usize| {
        let most = 30_000.0 * (n as f64 + 1.0);
        let degrees = [1, 2, 4, 8, 16, 32, 64].map(f64::from);
        Series::new(
            format!("scans of {}", 10_u32.pow(n as u32)),
            degrees.map(|degree| (degree, most * degree / (degree + 6.0))),
        )
    };
    Figure::new(
        "iter-fig-prefetch",
        "Throughput of scans by degree of prefetching",
        "More outstanding reads help until the dies are busy.",
        FigureKind::Lines {
            x: Axis { label: "pages ahead".to_owned(), unit: Unit::Number, scale: Scale::Log },
            y: Axis::linear("throughput", Unit::OperationsPerSecond),
            series: (0..4).map(line).collect(),
        },
    )
}

fn timeline() -> Figure {
    let line = |n: u32, name: &str| {
        let points = (0..600).map(|step| {
            let wave = (f64::from(step) / 9.0).sin() + (f64::from(step * step) / 700.0).cos();
            (f64::from(step) * 0.01, 400.0 * f64::from(n * n + 1) * (2.6 + wave))
        });
        Series::new(name, points)
    };
    Figure::new(
        "vigil-fig-timeline",
        "Latency over time",
        "Windows of 10 ms.",
        FigureKind::Lines {
            x: Axis::linear("virtual time", Unit::Seconds),
            y: Axis::log("latency of gets, p99", Unit::Microseconds),
            series: vec![line(0, "windows on"), line(2, "windows off")],
        },
    )
    .about("windows on")
    .with_shaded([(0.0, 2.0), (4.0, 5.5)].map(|(from, to)| Stretch {
        name: "DTWIN".to_owned(),
        from,
        to,
    }))
    .with_published([Published::new("every read in DTWIN, less than 500 us", 500.0)])
}

fn comparisons() -> Vec<Comparison> {
    let rows = [
        ("Flash reads of a get, at most", "2", "2", Verdict::Holds, "Asserted on every get."),
        (
            "p99 of gets against the hash design",
            "73 % lower (Fig. 8)",
            "71 % lower",
            Verdict::Holds,
            "Fewer flash reads on the way to an object.",
        ),
        (
            "Throughput against the hash design, YCSB-A",
            "+37 % (section 5.2, Fig. 9)",
            "+12 %",
            Verdict::Deviates,
            "The simulated drive has more dies than the paper's, so queues are shorter and there is \
             less to win.",
        ),
        (
            "Write amplification after the load",
            "2.1",
            "2.4",
            Verdict::Deviates,
            "Collection begins earlier: the drive here keeps more in reserve.",
        ),
        (
            "Memory for pinned levels",
            "< 0.1 % of the capacity",
            "0.094 %",
            Verdict::Holds,
            "60.2 MiB of 64 GB.",
        ),
        (
            "Sorting in hardware",
            "compaction 3x faster",
            "-",
            Verdict::NotApplicable,
            "The model charges one time for sorting; there is no other to compare it with.",
        ),
        (
            "Throughput of YCSB-C",
            "rises with pinned levels, most from L2 to L3",
            "does not rise from L2 to L3",
            Verdict::DoesNotHold,
            "At a tenth of the size L3 fits the memory whole, so pinning it changes nothing.",
        ),
        ("p99.99 of gets, YCSB-A", "3 900 us", "3 877 us", Verdict::Holds, "Within 1 %."),
    ];
    let comparison = |(n, (what, paper, ours, holds, sentence)): (usize, (&str, _, _, _, &str))| {
        let text = |text: &str| text.to_owned();
        let id = format!("pink-{n}");
        let (paper, ours): (&str, &str) = (paper, ours);
        Comparison {
            id,
            what: text(what),
            paper: text(paper),
            ours: text(ours),
            holds,
            sentence: text(sentence),
            counted: Counted::Yes,
        }
    };
    rows.into_iter().enumerate().map(comparison).collect()
}

/// Returns a report whose figures are at the limits of the allowed values.
pub(crate) fn odd() -> Report {
    let log = || Axis::log("<i>size</i>", Unit::Bytes);
    let lines = |id: &str, series| {
        Figure::new(
            id,
            "",
            "",
            FigureKind::Lines { x: log(), y: Axis::log("share", Unit::Percent), series },
        )
    };
    let one_value = FigureKind::Cdf {
        x: log(),
        of: "puts".to_owned(),
        tail: true,
        series: vec![Series::new("all at once", [(0.0, 1.0)])],
    };
    let zeros = FigureKind::Bars {
        over: "degree".to_owned(),
        categories: ["1", "2"].map(str::to_owned).into(),
        y: log(),
        series: vec![BarSeries::new("</script>", [0.0, 0.0])],
    };
    let many =
        (0..12).map(|n| Series::new(format!("{n}"), [(1.0, f64::from(n) + 1.0), (4.0, 2.0)]));
    let figures = vec![
        lines("one-point", vec![Series::new("<b>", [(1e9, 1e-7)])]),
        lines("below-zero", vec![Series::new("a", [(-1.0, 0.0), (0.0, -3.0), (2.0, 50.0)])]),
        lines("many", many.collect()),
        Figure::new("one-value", "", "", one_value),
        Figure::new("zeros", "", "", zeros),
    ];
    Report { figures, comparisons: Vec::new(), notes: Vec::new(), ..report() }
}
