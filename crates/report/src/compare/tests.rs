//! Tests of comparisons, on texts in the format that the program writes.

use crate::compare::*;

fn bench(name: &str, design: &str, depth: u32, rate: f64, p99: f64) -> Finished {
    let result = format!(
        "{{\"levelhead\": \"0\", \"design\": \"{design}\", \"device\": \"d\", \"workload\": \"a\", \"seed\": 1,
          \"records\": 10, \"inputs\": {{\"design\": {{\"name\": \"{design}\", \"engine\": {{\"fill\": 0.7}}}},
          \"options\": {{\"queue_depth\": {depth}, \"rate\": null}}, \"properties\": {{\"threadcount\": \"{depth}\"}}}},
          \"operations\": {{\"get\": {{\"count\": 5000, \"p50_us\": 10.0, \"p99_us\": {p99}, \"max_us\": 99.0}}}},
          \"throughput_ops_per_second\": {rate}, \"flash_reads_per_get\": [1, 1], \"load\": {{}}, \"flash\": {{}}}}"
    );
    let latency = "operation,quantile,latency_us\nget,0.5,10\nget,0.99,20\n";
    let timeline =
        "start_s,operations_per_s,get_p99_us,put_p99_us\n3.0,9,20.5,0.0\n3.1,9,21.5,0.0\n";
    Finished::new(name, &result, Some(latency), Some(timeline)).expect("a result")
}

#[test]
fn what_differs_is_named_and_what_follows_from_it_is_not() {
    let runs = vec![bench("a", "pink", 1, 100.0, 20.0), bench("b", "hash", 4, 150.0, 20.0)];
    let both = SideBySide::new(runs, false).expect("two benches");
    let names: Vec<&str> = both.compared.differences.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["design", "queue_depth"]);
    let table = both.table();
    assert!(table.contains("| a   |   pink |"), "{table}");
    assert!(table.contains("150 (+50 %)") && table.contains("20 (=)"), "{table}");
    assert!(
        both.csv().starts_with("run,status,reason,design,queue_depth,operations/s,\"get p50, us\""),
        "{}",
        both.csv()
    );
}

#[test]
fn a_run_that_failed_is_marked_and_on_no_line() {
    let failed = |name: &str, depth| {
        let mut run = bench(name, "pink", depth, 100.0, 20.0);
        run.json["verification"] =
            serde_json::json!({ "mismatches": 0, "errors": 1, "first_error": "no memory" });
        run
    };
    let whole = |name: &str, depth| bench(name, "pink", depth, 90.0, 20.0);
    let runs = vec![whole("1 deep", 1), whole("4 deep", 4), failed("64 deep", 64)];
    let sweep = SideBySide::new(runs, true).expect("three benches");
    let (table, csv) = (sweep.table(), sweep.csv());
    assert!(table.contains("64 deep (failed)") && table.contains("\n64 deep failed"), "{table}");
    assert!(
        table.ends_with(": no memory") && csv.contains("\n64 deep,failed,no memory,"),
        "{table}\n{csv}"
    );
    let files = sweep.files("Sweep", "levelhead bench").expect("a page");
    let lines = files.iter().find(|(name, _)| name == "by-queue-depth-throughput.csv");
    assert_eq!(lines.expect("a line").1.lines().count(), 3);
    assert!(
        files.iter().any(|(name, text)| name == "index.html" && text.contains("64 deep failed"))
    );
}

#[test]
fn a_run_that_wrote_nothing_amplified_nothing() {
    let mut load_only = bench("c", "pink", 1, 1.0, 1.0);
    load_only.json["write_amplification"] = 1.5.into();
    let numbers = numbers::of_bench(&load_only.json);
    assert!(numbers.iter().all(|number| number.name != numbers::AMPLIFICATION), "{numbers:?}");
}

#[test]
fn a_store_on_files_runs_in_real_time() {
    let mut run = bench("c", "pink", 1, 1.0, 1.0);
    run.json["virtual_seconds"] = 2.0.into();
    let has =
        |run: &Finished, name: &str| numbers::of_bench(&run.json).iter().any(|n| n.name == name);
    assert!(has(&run, "virtual time of the run, s"));
    run.json["store"] = serde_json::json!({ "directories": 1 });
    assert!(has(&run, "real time of the run, s") && !has(&run, "virtual time of the run, s"));
}

#[test]
fn streams_differ_in_keys() {
    let of = |name: &str, streams: &str| {
        let job = format!(
            "{{\"levelhead\": \"0\", \"streams\": [], \"inputs\": {{\"job\": {{\"name\": \"j\", \"stream\": {streams}}}}}}}"
        );
        Finished::new(name, &job, None, None).expect("a job")
    };
    let names = |a: &str, b: &str| {
        let both = SideBySide::new(vec![of("a", a), of("b", b)], false).expect("two jobs");
        let of = |d: &differences::Difference| format!("{} {}", d.name, d.values.join("/"));
        both.compared.differences.iter().map(of).collect::<Vec<_>>()
    };
    let (one, four) = ("{\"name\": \"r\", \"iodepth\": 1}", "{\"name\": \"r\", \"iodepth\": 4}");
    assert_eq!(names(&format!("[{one}]"), &format!("[{four}]")), ["stream.iodepth 1/4"]);
    let write = "{\"name\": \"w\", \"bs\": 4096}";
    let both = [one, four].map(|read| format!("[{read}, {write}]"));
    assert_eq!(names(&both[0], &both[1]), ["stream.r.iodepth 1/4"]);
}

#[test]
fn several_sets_amplify_what_was_written_to_all_of_them() {
    let of = |sets: &str| {
        let job = serde_json::from_str(&format!("{{\"streams\": [], \"sets\": {sets}}}"));
        let numbers = numbers::of_job(&job.expect("it is JSON"));
        let all = numbers.iter().find(|number| number.name == "all sets: write amplification");
        all.map(|number| number.value)
    };
    let set = |number: u8, amplification: &str, written: u32| {
        format!(
            "{{\"set\": {number}, \"write_amplification\": {amplification}, \"blocks_written\": {written}}}"
        )
    };
    let (few, many, none) = (set(1, "2.0", 100), set(2, "4.0", 300), set(3, "null", 0));
    assert_eq!(of(&format!("[{few},{many},{none}]")), Some(3.5));
    assert_eq!(of(&format!("[{few},{none}]")), None, "the set's own number says it");
}

#[test]
fn numbers_and_changes_are_written_for_people() {
    for (value, text) in [
        (2.0, "2"),
        (0.0, "0"),
        (2.5, "2.50"),
        (17_249.4, "17 249"),
        (1.666, "1.67"),
        (0.001_93, "0.00193"),
    ] {
        assert_eq!(numbers::number_text(value), text);
    }
    let changes = [
        (100.0, " (=)"),
        (50.0, " (+100 %)"),
        (97.0, " (+3.1 %)"),
        (4.0, " (25x)"),
        (200.0, " (-50 %)"),
        (33_900.0, " (-99.7 %)"),
        (1e9, " (-99.99999 %)"),
    ];
    for (first, text) in &changes {
        assert_eq!(tables::change(Some(*first), 100.0), *text);
    }
    assert_eq!(
        (tables::change(Some(0.0), 1.0), tables::change(None, 1.0)),
        (String::new(), String::new())
    );
}

#[test]
fn runs_that_differ_in_a_number_make_lines_over_it() {
    let runs = [("pink", 1), ("pink", 4), ("hash", 1), ("hash", 4)];
    let runs = runs.map(|(design, depth)| {
        bench(&format!("{design}, {depth}"), design, depth, f64::from(depth) * 10.0, 20.0)
    });
    let sweep = SideBySide::new(runs.into(), true).expect("four benches");
    let files = sweep.files("Sweep", "levelhead bench").expect("a page");
    let file = |name: &str| &files.iter().find(|(file, _)| file == name).expect(name).1;
    let lines = file("by-queue-depth-throughput.csv");
    assert_eq!(lines.lines().count(), 5, "{lines}");
    assert!(lines.contains("pink,4,40"), "{lines}");
    assert!(file("index.html").contains("<h2>The runs</h2>"));
    assert!(files.iter().any(|(name, _)| name == "latency-get.csv"));
    assert!(files.iter().any(|(name, _)| name == "timeline-get.csv"));
    assert_eq!(file("runs.csv").lines().count(), 5);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let one = || bench("a", "pink", 1, 1.0, 1.0);
    let words = |runs| SideBySide::new(runs, false).err().expect("it makes no sense");
    assert!(words(vec![one()]).contains("two results and more"));
    assert!(words(vec![one(), one()]).contains("a is named twice"));
    let job = "{\"levelhead\": \"0\", \"streams\": []}";
    let job = Finished::new("j", job, None, None).expect("a result of a job");
    assert!(words(vec![one(), job]).contains("j of levelhead device"));
}

fn job(name: &str, asked_s: f64) -> Finished {
    let result = format!(
        "{{\"levelhead\": \"0\", \"job\": \"windows\", \"streams\": [{{\"name\": \"reads\", \"directions\": {{}}}}], \"sets\": [],
          \"virtual_seconds\": 9.0, \"windows\": [{{\"set\": 1, \"to\": \"DTWIN\", \"asked_s\": {asked_s}, \"took_ms\": 500.0}},
          {{\"set\": 1, \"to\": \"NDWIN\", \"asked_s\": 4.0, \"took_ms\": 0.0}},
          {{\"set\": 1, \"to\": \"DTWIN\", \"asked_s\": 6.0, \"took_ms\": 0.0}}]}}"
    );
    let timeline =
        "stream,direction,start_s,operations,mean_us,p99_us,max_us\nreads,read,0,1,9,10,11\n";
    Finished::new(name, &result, None, Some(timeline)).expect("a result")
}

#[test]
fn windows_are_shaded_where_all_runs_have_the_same() {
    let shaded = |jobs: [Finished; 2]| {
        let both = SideBySide::new(jobs.into(), true).expect("two jobs");
        let files = both.files("Jobs", "levelhead compare").expect("a page");
        let timeline = files.iter().find(|file| file.0 == "timeline-reads--read.json");
        let timeline: serde_json::Value =
            serde_json::from_str(&timeline.expect("a figure").1).expect("JSON");
        timeline["shaded"].clone()
    };
    let expected = serde_json::json!([
        {"name": "set 1: DTWIN", "from": 2.5, "to": 4.0},
        {"name": "set 1: DTWIN", "from": 6.0, "to": 9.0}
    ]);
    assert_eq!(shaded([job("a", 2.0), job("b", 2.0)]), expected);
    assert!(shaded([job("a", 2.0), job("b", 3.0)]).is_null());
}
