//! Tests of the files of a report, and of the reports that are refused.

use crate::*;

fn lines(id: &str, points: &[(f64, f64)]) -> Figure {
    Figure::new(
        id,
        "Throughput <by> degree",
        "Figure 9 of the paper",
        FigureKind::Lines {
            x: Axis::linear("degree", Unit::Number),
            y: Axis::linear("throughput", Unit::OperationsPerSecond),
            series: vec![Series::new("a, \"b\"", points.iter().copied())],
        },
    )
}

fn bars(values: Vec<Option<f64>>) -> Figure {
    let kind = FigureKind::Bars {
        over: "workload".to_owned(),
        categories: vec!["A".to_owned(), "B".to_owned()],
        y: Axis::log("latency", Unit::Microseconds),
        series: vec![BarSeries { name: "pink".to_owned(), values }],
    };
    Figure::new("bars", "", "", kind)
}

fn cdf(points: &[(f64, f64)]) -> Figure {
    let kind = FigureKind::Cdf {
        x: Axis::log("latency", Unit::Microseconds),
        of: "gets".to_owned(),
        tail: true,
        series: vec![Series::new("pink", points.iter().copied())],
    };
    Figure::new("cdf", "", "", kind)
}

fn report(figures: Vec<Figure>) -> Report {
    Report {
        title: "</script><script>alert(1)</script>".to_owned(),
        summary: "a & b".to_owned(),
        scale: "1/10".to_owned(),
        command: "levelhead reproduce pink".to_owned(),
        figures,
        comparisons: vec![Comparison {
            id: "tail".to_owned(),
            what: "p99 of gets".to_owned(),
            paper: "2.1x lower (Fig. 9)".to_owned(),
            ours: "1.9x".to_owned(),
            holds: Verdict::Holds,
            sentence: "lower, \"as\" said".to_owned(),
            counted: Counted::Yes,
        }],
        notes: vec!["<b>".to_owned()],
    }
}

fn file(report: &Report, name: &str) -> String {
    let files = report.files().expect("a good report");
    files.into_iter().find(|file| file.0 == name).expect("the file is there").1
}

fn refusal(figures: Vec<Figure>) -> String {
    report(figures).files().expect_err("it must be refused").to_string()
}

#[test]
fn every_figure_has_its_files() {
    let report = report(vec![lines("one", &[(1.0, 2.5)]), bars(vec![Some(1.0), None])]);
    let names: Vec<String> =
        report.files().expect("a good report").into_iter().map(|file| file.0).collect();
    let expected = [
        "index.html",
        "report.json",
        "comparisons.csv",
        "comparisons.json",
        "one.csv",
        "one.json",
        "bars.csv",
        "bars.json",
    ];
    assert_eq!(names, expected);
}

#[test]
fn csv_has_units_in_its_headings() {
    let report = report(vec![
        lines("one", &[(1.0, 2.5)]),
        bars(vec![Some(1.0), None]),
        cdf(&[(10.0, 0.5), (12.5, 1.0)]),
    ]);
    assert_eq!(
        file(&report, "one.csv"),
        "series,degree,throughput (operations/s)\n\"a, \"\"b\"\"\",1,2.5\n"
    );
    assert_eq!(file(&report, "bars.csv"), "workload,pink (us)\nA,1\nB,\n");
    assert_eq!(
        file(&report, "cdf.csv"),
        "series,latency (us),share of gets\npink,10,0.5\npink,12.5,1\n"
    );
    assert_eq!(
        file(&report, "comparisons.csv"),
        "id,what,paper,ours,holds,counted,sentence\n\
         tail,p99 of gets,2.1x lower (Fig. 9),1.9x,holds,yes,\"lower, \"\"as\"\" said\"\n"
    );
}

#[test]
fn json_says_what_is_plotted() {
    let json = file(&report(vec![bars(vec![Some(1.0), None])]), "bars.json");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["kind"], "bars");
    assert_eq!(value["y"], serde_json::json!({"label": "latency", "unit": "us", "scale": "log"}));
    assert_eq!(value["series"][0]["values"], serde_json::json!([1.0, null]));
}

#[test]
fn text_stays_text_in_the_page() {
    let page = file(&report(vec![lines("one", &[(1.0, 2.5)])]), "index.html");
    assert!(!page.contains("<script>alert"), "the title runs as a script");
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    assert!(page.contains("Throughput &lt;by&gt; degree"));
    assert!(page.contains("<li>&lt;b&gt;</li>"));
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let make = || report(vec![lines("one", &[(1.0, 2.5)]), cdf(&[(1.0, 0.5)])]);
    assert!(make().files() == make().files(), "two runs differ");
}

#[test]
fn ids_are_unique_and_name_files() {
    let one = || lines("one", &[(1.0, 2.0)]);
    assert!(refusal(vec![one(), one()]).contains("the id `one`"));
    for id in ["", "a/b", "Big", "report", "comparisons", "-x", "a b"] {
        assert!(refusal(vec![lines(id, &[(1.0, 2.0)])]).contains("small letters"), "{id}");
    }
    let mut report = report(Vec::new());
    report.comparisons.push(report.comparisons[0].clone());
    assert_eq!(report.files(), Err(ReportError::SameId("tail".to_owned())));
}

#[test]
fn what_cannot_be_drawn_is_refused_in_words() {
    assert!(refusal(vec![lines("one", &[])]).contains("has no points"));
    assert!(refusal(vec![lines("one", &[(1.0, f64::NAN)])]).contains("(1, NaN)"));
    assert!(refusal(vec![bars(vec![Some(1.0)])]).contains("1 bars for 2 groups"));
    assert!(refusal(vec![bars(vec![None, None])]).contains("no bars"));
    assert!(refusal(vec![bars(vec![Some(f64::INFINITY), None])]).contains("bar of inf"));
    assert!(refusal(vec![cdf(&[(1.0, 50.0)])]).contains("0 to 1"));
    assert!(refusal(vec![cdf(&[(2.0, 0.5), (1.0, 0.9)])]).contains("goes down"));
}

#[test]
fn marks_are_in_the_json_and_checked() {
    let marked = || {
        lines("one", &[(1.0, 2.5)])
            .about("a, \"b\"")
            .with_published([Published::new("2.1 (Fig. 9)", 2.1)])
            .with_shaded([Stretch { name: "DTWIN".to_owned(), from: 0.0, to: 1.0 }])
    };
    let value: serde_json::Value =
        serde_json::from_str(&file(&report(vec![marked()]), "one.json")).expect("JSON");
    assert_eq!(value["published"][0]["value"], 2.1);
    assert_eq!((&value["shaded"][0]["to"], &value["subject"]), (&1.0.into(), &"a, \"b\"".into()));
    assert!(refusal(vec![marked().about("hash")]).contains("about `hash`"));
    let of = |group: &str| Published::of_group(group, "2.1", 2.1);
    assert!(refusal(vec![marked().with_published([of("A")])]).contains("of `A`, which"));
    let bars = || bars(vec![Some(1.0), None]);
    assert!(report(vec![bars().with_published([of("A")])]).files().is_ok());
    assert!(refusal(vec![bars().with_published([of("C")])]).contains("of `C`, which"));
    assert!(refusal(vec![bars().with_published([Published::new("x", f64::NAN)])]).contains("NaN"));
    let backwards = Stretch { name: "DTWIN".to_owned(), from: 2.0, to: 1.0 };
    assert!(refusal(vec![marked().with_shaded([backwards])]).contains("cannot be shaded"));
}

#[test]
fn published_claims_are_counted_once_and_the_rule_stands_below_them() {
    let mut report = report(vec![lines("one", &[(1.0, 2.5)])]);
    let claim = report.comparisons[0].clone();
    let other = |id: &str, holds| Comparison { id: id.to_owned(), holds, ..claim.clone() };
    report.comparisons.extend([
        other("missed", Verdict::DoesNotHold),
        other("again", Verdict::Deviates).again(),
        other("arithmetic", Verdict::NotApplicable),
        other("tuned", Verdict::Holds).fitted(),
    ]);
    let page = file(&report, "index.html");
    assert!(page.contains("<dt>2 published claims</dt>"), "the page counts others");
    assert!(page.contains("holds: 1<") && page.contains("deviates: 0<"), "or miscounts");
    assert!(page.contains("does not hold: 1<") && page.contains("not counted: 2 "), "or miscounts");
    assert!(page.contains("<dt>1 fitted besides</dt>"), "or has those that are fitted among them");
    assert!(page.contains("holds</span>, fitted") && page.contains("deviates</span>, not counted"));
    let table = report.table();
    for text in [&page, &table] {
        assert!(text.contains("within 30 %") && text.contains("otherwise does not hold"));
    }
    let tally = "Of 2 published claims holds: 1, deviates: 0, does not hold: 1. Of 1 fitted ones besides holds: 1, deviates: 0, does not hold: 0.";
    assert!(table.contains(tally), "{table}");
}

#[test]
fn the_table_of_comparisons_says_which_rows_count() {
    let mut report = report(Vec::new());
    let claim = report.comparisons[0].clone();
    let other = |id: &str, holds| Comparison { id: id.to_owned(), holds, ..claim.clone() };
    report.comparisons.extend([
        other("again", Verdict::Deviates).again(),
        other("tuned", Verdict::Holds).fitted(),
        other("arithmetic", Verdict::NotApplicable),
    ]);
    let csv = file(&report, "comparisons.csv");
    for cells in [",holds,yes,", ",deviates,no,", ",holds,fitted,", ",not applicable,no,"] {
        assert_eq!(csv.matches(cells).count(), 1, "{cells} in {csv}");
    }
}

#[test]
fn figures_stand_before_rows() {
    let page =
        file(&report(vec![lines("one", &[(1.0, 2.5)]), bars(vec![Some(1.0), None])]), "index.html");
    let at = |text: &str| page.find(text).expect("it is there");
    assert!(at("<figure id=\"bars\"") < at("<section id=\"comparisons\""));
    assert!(at("<a href=\"#bars\"") < at("<a href=\"#comparisons\""));
}

#[test]
fn columns_of_numbers_go_to_the_right_and_texts_to_the_left() {
    let table = Table {
        id: "runs".to_owned(),
        title: "Runs".to_owned(),
        headings: ["run", "design", "get p99, us"].map(str::to_owned).to_vec(),
        rows: vec![["a", "pink", "2 030"].map(str::to_owned).to_vec()],
    };
    let files =
        report(Vec::new()).files_with(&[table], &serde_json::json!({})).expect("a good report");
    assert!(
        files[0].1.contains(
            "<tr><th scope=\"row\">a</th><td>pink</td><td class=\"number\">2 030</td></tr>"
        )
    );
}

#[test]
fn the_table_is_for_a_terminal() {
    let table = report(Vec::new()).table();
    let drawn = |line: &&str| line.starts_with(['|', '+']);
    assert!(table.lines().filter(drawn).all(|line| line.chars().count() <= 100), "{table}");
    assert!(table.contains("holds") && table.contains("p99 of gets"), "{table}");
    let empty = Report { comparisons: Vec::new(), ..report(Vec::new()) };
    assert_eq!(empty.table(), "nothing to compare with a paper");
}

#[test]
fn a_histogram_becomes_a_distribution() {
    let mut histogram = hdrhistogram::Histogram::<u64>::new(3).expect("3 digits are possible");
    for us in 1..=1_000 {
        histogram.record(us * 1_000).expect("it grows");
    }
    let series = Series::latency_cdf("gets", &histogram);
    let (slowest, share) = *series.points.last().expect("points");
    assert!((999.0..1_002.0).contains(&slowest), "{slowest}");
    assert!((share - 1.0).abs() < f64::EPSILON);
    assert!(report(vec![cdf(&series.points)]).files().is_ok());
}
