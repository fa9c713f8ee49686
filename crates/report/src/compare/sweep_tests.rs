//! Tests of sweeps: several keys that differ, runs without a result, seeds, and many runs.

use serde_json::{Value, json};

use crate::compare::*;

/// Returns a bench whose design and device have one key each.
fn bench(name: &str, design: (&str, f64), device: (&str, f64), seed: u64, rate: f64) -> Finished {
    let result = json!({
        "levelhead": "0", "design": design.0, "device": device.0, "workload": "a",
        "seed": seed, "records": 10,
        "inputs": {
            "design": {
                "name": design.0,
                "engine": { "gc_start": design.1, "levels": design.0.len() },
            },
            "device": { "name": device.0, "controller": { "command_us": device.1 } },
        },
        "operations": { "get": {
            "count": 5_000, "p50_us": 10.0, "p99_us": rate / 10.0, "p999_us": 30.0, "max_us": 99.0,
        } },
        "throughput_ops_per_second": rate, "load": {}, "flash": {},
    });
    let latency = "operation,quantile,latency_us\nget,0.5,10\nget,0.99,20\n";
    Finished::new(name, &result.to_string(), Some(latency), None).expect("a result")
}

fn job(name: &str, rw: &str, depth: u32) -> Finished {
    let result = json!({
        "levelhead": "0", "profile": "d", "job": rw, "seed": 1,
        "inputs": { "job": { "name": rw, "stream": [{ "rw": rw, "depth": depth }] } },
        "streams": [{ "name": "stream", "directions": { "read": {
            "operations_per_second": f64::from(depth) * 10.0, "bytes_per_second": 1.0,
            "latency": { "count": 5_000_000, "p99_us": 50.0 } } } }],
    });
    Finished::new(name, &result.to_string(), None, None).expect("a result")
}

fn page(runs: Vec<Finished>) -> Vec<(String, String)> {
    let sweep = SideBySide::new(runs, true).expect("runs of one kind");
    sweep.files("Sweep", "levelhead bench").expect("a page")
}

fn file<'a>(files: &'a [(String, String)], name: &str) -> &'a str {
    let names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
    let found = files.iter().find(|(file, _)| file == name);
    &found.unwrap_or_else(|| panic!("no {name} among {names:?}")).1
}

#[test]
fn the_page_says_how_a_run_is_had_again() {
    let files = page(vec![job("a", "randread", 1), job("b", "randwrite", 1)]);
    let page = file(&files, "index.html");
    assert!(page.contains("is enough for `levelhead rerun`"), "{page}");
}

fn json_of(files: &[(String, String)], name: &str) -> Value {
    serde_json::from_str(file(files, name)).expect("it is JSON")
}

/// Returns a job that collected `collections` superblocks.
fn collecting(seed: u64, collections: u64) -> Finished {
    let mut run = job(&format!("seed {seed}"), "randwrite", 1);
    run.json["seed"] = seed.into();
    run.json["sets"] = json!([{ "set": 1, "collections": collections, "blocks_read": 0 }]);
    Finished::new(format!("seed {seed}"), &run.json.to_string(), None, None).expect("a result")
}

#[test]
fn means_over_seeds_count_the_runs_in_which_nothing_happened() {
    let runs = [0, 9, 0, 11, 0].into_iter().zip(1..).map(|(count, seed)| collecting(seed, count));
    let files = page(runs.collect());
    let report = json_of(&files, "report.json");
    let numbers = &report["seeds"][0]["numbers"];
    assert_eq!(numbers["set 1: superblocks collected"]["mean"], 4.0, "{numbers}");
    assert_eq!(numbers["set 1: blocks read"], Value::Null, "it read none in any of them");
}

#[test]
fn a_key_is_told_though_jobs_differ_too() {
    let runs = ["randread", "randwrite"]
        .into_iter()
        .flat_map(|rw| [1, 4, 16].map(|depth| job(&format!("{rw}, iodepth={depth}"), rw, depth)));
    let files = page(runs.collect());
    let csv = file(&files, "runs.csv");
    assert!(
        csv.starts_with("run,status,reason,job,stream.depth,stream: read operations/s"),
        "{csv}"
    );
    assert!(csv.contains("\n\"randwrite, iodepth=16\",done,,randwrite,16,160,"), "{csv}");
    // Keys that the name of a job determines have no column.
    assert!(!csv.contains("stream.rw"), "{csv}");
    let lines = file(&files, "by-stream-depth-stream--read--throughput.csv");
    assert_eq!(lines.matches("\nrandread,").count(), 3, "{lines}");
    assert_eq!(lines.matches("\nrandwrite,").count(), 3, "{lines}");
}

#[test]
fn jobs_of_the_command_line_have_the_same_numbers() {
    let run = |rw: &str, depth: u32| {
        let mut result = job("", rw, depth).json;
        result["streams"][0]["name"] = rw.into();
        let latency = format!("stream,direction,quantile,latency_us\n{rw},read,0.5,10\n");
        let name = format!("{rw}, {depth}");
        Finished::new(name, &result.to_string(), Some(&latency), None).expect("a result")
    };
    let runs = ["randread", "read"].into_iter().flat_map(|rw| [1, 4].map(|depth| run(rw, depth)));
    let files = page(runs.collect());
    let csv = file(&files, "runs.csv");
    assert!(csv.starts_with("run,status,reason,job,stream.depth,read operations/s,"), "{csv}");
    assert_eq!(file(&files, "latency-read.csv").lines().count(), 5);
    assert!(file(&files, "by-stream-depth-read--throughput.csv").contains("\nread,4,40\n"));
}

#[test]
fn keys_of_two_designs_and_two_devices_have_columns_and_figures() {
    let mut runs = Vec::new();
    for design in ["pink", "lightstore"] {
        for (device, us) in [("a", 5.0), ("a", 10.0), ("b", 5.0), ("b", 10.0)] {
            for gc in [0.05, 0.1] {
                let name = format!("{design}, {device}, {us}, {gc}");
                runs.push(bench(&name, (design, gc), (device, us), 1, 100.0 * us));
            }
        }
    }
    let files = page(runs);
    let csv = file(&files, "runs.csv");
    let header = "run,status,reason,design,device,engine.gc_start,controller.command_us,";
    // Keys are in the order of their files, and a key that a name determines (`levels`) is omitted.
    let columns = ["design", "device", "controller.command_us", "engine.gc_start"];
    let first: Vec<&str> = csv.lines().next().unwrap_or_default().split(',').take(7).collect();
    assert!(columns.iter().all(|column| first.contains(column)), "{header} {first:?}");
    assert!(!csv.contains("levels"), "{csv}");
    let lines = file(&files, "by-controller-command-us-throughput.csv");
    assert_eq!(lines.lines().count(), 1 + 16, "{lines}");
    assert!(lines.contains("\"pink, a, engine.gc_start=0.05\",5,500"), "{lines}");
    assert!(file(&files, "by-engine-gc-start-throughput.csv").contains("controller.command_us=10"));
}

#[test]
fn a_key_at_two_places_is_one_key() {
    let run = |name: &str, design: &str, place: &str, gc: f64| {
        let mut run = bench(name, (design, 0.0), ("a", 5.0), 1, 100.0 * gc);
        run.json["inputs"]["design"] = json!({ "name": design, place: { "gc_start": gc } });
        run
    };
    let runs = vec![
        run("pink, 1", "pink", "engine", 1.0),
        run("pink, 2", "pink", "engine", 2.0),
        run("hash, 1", "hash", "table", 1.0),
        run("hash, 2", "hash", "table", 2.0),
    ];
    let files = page(runs);
    let csv = file(&files, "runs.csv");
    assert!(csv.starts_with("run,status,reason,design,gc_start,operations/s,"), "{csv}");
    let lines = file(&files, "by-gc-start-throughput.csv");
    assert!(lines.contains("\npink,2,200\n") && lines.contains("\nhash,2,200\n"), "{lines}");
}

#[test]
fn runs_without_a_result_are_told_with_their_reason() {
    let asked = |design: &str, gc: &str| {
        [("design", design), ("gc_start", gc)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    let failure = |status, reason: &str, gc| Failure::new(status, reason, asked("lightstore", gc));
    let runs = vec![
        bench("pink, 0.05", ("pink", 0.05), ("a", 5.0), 1, 100.0),
        bench("pink, 0.1", ("pink", 0.1), ("a", 5.0), 1, 200.0),
        Finished::without_result("light, 0.05", failure(Lack::Refused, "no room, at all", "0.05")),
        Finished::without_result("light, 0.1", failure(Lack::Failed, "no memory", "0.1")),
    ];
    let sweep = SideBySide::new(runs, true).expect("runs of one kind");
    let table = sweep.table();
    assert!(table.contains("| light, 0.05 (refused) |"), "{table}");
    assert!(
        table.contains("light, 0.05 was refused: no room, at all\nlight, 0.1 failed: no memory")
    );
    let files = sweep.files("Sweep", "levelhead bench").expect("a page");
    let csv = file(&files, "runs.csv");
    assert!(
        csv.contains("\n\"light, 0.05\",refused,\"no room, at all\",lightstore,0.05,"),
        "{csv}"
    );
    assert!(csv.contains("\n\"pink, 0.1\",done,,pink,0.1,200,"), "{csv}");
    let html = file(&files, "index.html");
    assert!(html.contains("4 runs: 1 failed, 1 refused") && html.contains("no room, at all"));
    let report = json_of(&files, "report.json");
    assert_eq!(report["runs"][2]["status"], "refused");
    assert_eq!(report["runs"][2]["reason"], "no room, at all");
    assert_eq!(report["runs"][1]["numbers"]["operations/s"], 200.0);
    assert_eq!(report["runs"][3]["inputs"]["design"], "lightstore");
}

#[test]
fn seeds_give_means_with_their_intervals() {
    let mut runs = Vec::new();
    for gc in [0.05, 0.1] {
        for (seed, rate) in [(1, 100.0), (2, 200.0), (3, 300.0)] {
            let name = format!("gc_start={gc}, seed {seed}");
            runs.push(bench(&name, ("pink", gc), ("a", 5.0), seed, rate + gc));
        }
    }
    let sweep = SideBySide::new(runs, true).expect("runs of one kind");
    // 100 times Student's 4.3027, divided by the square root of 3.
    let table = sweep.table();
    assert!(table.contains("| engine.gc_start=0.05 |     3 |"), "{table}");
    assert!(table.contains("200 \u{b1} 248"), "{table}");
    let files = sweep.files("Sweep", "levelhead bench").expect("a page");
    let csv = file(&files, "seeds.csv");
    let header = "runs,engine.gc_start,seeds,operations/s mean,operations/s ci95,";
    assert!(csv.starts_with(header) && csv.contains("\nengine.gc_start=0.1,0.1,3,200.1"), "{csv}");
    let seeds = &json_of(&files, "report.json")["seeds"];
    let ci95 = seeds[0]["numbers"]["operations/s"]["ci95"].as_f64().expect("of three seeds");
    assert!((ci95 - 248.4).abs() < 0.1, "{seeds}");
    assert_eq!(seeds[0]["numbers"]["get p99.9, us"]["too_few_samples"], true);
    assert!(seeds[0]["numbers"]["get p99, us"].get("too_few_samples").is_none());
    let lines = file(&files, "by-engine-gc-start-throughput.csv");
    assert!(
        lines.starts_with("series,engine.gc_start,throughput (operations/s),ci95\n"),
        "{lines}"
    );
    assert_eq!(lines.lines().count(), 3, "{lines}");
    assert!(file(&files, "index.html").contains("95 % confidence interval"));
}

#[test]
fn percentiles_of_too_few_samples_are_marked() {
    let runs = [1, 2].map(|n| bench(&n.to_string(), ("pink", f64::from(n)), ("a", 5.0), 1, 100.0));
    let sweep = SideBySide::new(runs.into(), true).expect("two benches");
    let table = sweep.table();
    // Of 5000 gets, 5 are slower than p99.9 and 50 slower than p99.
    assert!(table.contains(" 30* |") && table.contains(" 10 |"), "{table}");
    assert!(table.contains("\n* rests on too few samples"), "{table}");
    let files = sweep.files("Sweep", "levelhead bench").expect("a page");
    assert!(file(&files, "index.html").contains("The runs (* rests on too few samples"));
    let report = json_of(&files, "report.json");
    assert_eq!(report["runs"][0]["too_few_samples"], json!(["get p99.9, us"]));
    assert!(!file(&files, "runs.csv").contains('*'));
    let fine = [1, 4].map(|depth| job(&depth.to_string(), "randread", depth));
    let fine = SideBySide::new(fine.into(), true).expect("two jobs");
    assert!(!fine.table().contains('*'), "{}", fine.table());
}

#[test]
fn many_runs_make_figures_that_can_be_read() {
    let mut runs = Vec::new();
    for design in ["pink", "hash"] {
        for n in 1..=250_u32 {
            let key = f64::from(n) / 1000.0;
            runs.push(bench(
                &format!("{design}, gc_start={key}"),
                (design, key),
                ("a", 5.0),
                1,
                9.0,
            ));
        }
    }
    let files = page(runs);
    assert_eq!(file(&files, "runs.csv").lines().count(), 501);
    assert!(file(&files, "index.html").contains("<summary>All 500 rows</summary>"));
    let figure = |name: &str| json_of(&files, name);
    for design in ["pink", "hash"] {
        let bars = figure(&format!("bars-throughput--{design}.json"));
        let categories = bars["categories"].as_array().expect("a bar for each run");
        assert_eq!(categories.len(), parts::MOST_BARS, "{bars}");
        assert_eq!(categories[0], format!("{design}, gc_start=0.001"));
        assert_eq!(categories[parts::MOST_BARS - 1], format!("{design}, gc_start=0.25"));
        let caption = bars["caption"].as_str().expect("a text");
        assert!(caption.contains("Shown are 48 of 250, evenly chosen."), "{caption}");
        let latency = figure(&format!("latency-get--{design}.json"));
        assert_eq!(latency["series"].as_array().map(Vec::len), Some(12));
    }
    let report = json_of(&files, "report.json");
    assert_eq!(report["notes"], json!([]), "what is left out is told where it is");
    let lines = figure("by-engine-gc-start-throughput.json");
    assert_eq!(lines["series"].as_array().map(Vec::len), Some(2));
}

#[test]
fn legends_say_which_key_and_go_up() {
    let mut runs = Vec::new();
    for us in ["1", "10", "11", "2", "9"] {
        for gc in [0.1, 0.05] {
            let value = us.parse().expect("a number");
            runs.push(bench(&format!("{us}, {gc}"), ("pink", gc), ("a", value), 1, 100.0));
        }
    }
    let lines = json_of(&page(runs), "by-engine-gc-start-throughput.json");
    let names: Vec<&str> = lines["series"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|series| series["name"].as_str())
        .collect();
    let named = |us: &str| format!("controller.command_us={us}");
    assert_eq!(names, ["1.0", "2.0", "9.0", "10.0", "11.0"].map(named));
    assert_eq!(lines["series"][0]["points"][0][0], 0.05);
}

#[test]
fn names_that_look_alike_as_files_are_told_apart() {
    let runs = ["a.b", "a-b"].into_iter().flat_map(|design| {
        (1..=30).map(move |n| {
            bench(&format!("{design}, {n}"), (design, f64::from(n)), ("a", 5.0), 1, 100.0)
        })
    });
    let files = page(runs.collect());
    assert!(file(&files, "latency-get--a-b.json").contains("Latency: get, a.b"));
    assert!(file(&files, "latency-get--a-b-2.json").contains("Latency: get, a-b"));
}
