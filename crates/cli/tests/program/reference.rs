//! `docs/reference.md` and the program agree on keys of files, properties, fields of JSON and
//! columns of CSV.

use std::collections::BTreeSet;
use std::fs;

use catalogue::{Entry, Holds};
use serde_json::Value;

use crate::{levelhead, scratch, stderr, traces};

const REFERENCE: &str = include_str!("../../../../docs/reference.md");

/// Returns the part of the page below a heading.
fn section(heading: &str) -> &'static str {
    let start = format!("## {heading}\n");
    let (_, rest) = REFERENCE.split_once(&start).unwrap_or_else(|| panic!("no {start}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

/// Returns the names in the first column of a section's tables, with their descriptions.
fn rows(heading: &str) -> Vec<(&'static str, &'static str)> {
    let rows = section(heading).lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once("` | ")).collect()
}

fn names(heading: &str) -> BTreeSet<&'static str> {
    let rows = rows(heading);
    let names: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), rows.len(), "{heading} has a name twice");
    names
}

fn assert_keys<T: Entry>(heading: &str) {
    let keys = catalogue::keys::<T>();
    let said = names(heading);
    let known: BTreeSet<&str> = keys.iter().map(|key| key.path.as_str()).collect();
    let unsaid: Vec<_> = known.difference(&said).collect();
    let unknown: Vec<_> = said.difference(&known).collect();
    assert!(
        unsaid.is_empty() && unknown.is_empty(),
        "{heading}: not said {unsaid:?}; no keys {unknown:?}"
    );
    for (name, text) in rows(heading) {
        assert!(
            text.trim_end_matches(['|', ' ']).len() > 5,
            "{heading}: nothing is said of {name}"
        );
        let key = keys.iter().find(|key| key.path == name).expect("as above");
        if let Holds::Word(words) = &key.holds {
            let missing: Vec<_> =
                words.iter().filter(|word| !text.contains(&format!("`{word}`"))).collect();
            assert!(missing.is_empty(), "{heading}: {name} may also be {missing:?}");
        }
    }
}

#[test]
fn every_key_of_every_file_is_in_the_reference() {
    assert_keys::<stacks::design::Design>("Designs");
    assert_keys::<stacks::kvssd::DeviceProfile>("KV drives");
    assert_keys::<drives::ssd::SsdProfile>("Block drives");
    assert_keys::<stacks::host::HostProfile>("Hosts");
    assert_keys::<kvbench::configuration::Configuration>("Configurations");
    assert_keys::<blockbench::Job>("Jobs");
}

#[test]
fn every_property_is_in_the_reference() {
    let known: BTreeSet<&str> = workload::property_names().collect();
    assert_eq!(names("Properties of workloads"), known);
}

/// Collects the paths of all fields, with `*` in place of arbitrary names.
fn fields(value: &Value, path: &str, documented: &BTreeSet<&str>, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let named = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let any = format!("{path}.*");
                let path = if documented.contains(any.as_str()) { any } else { named };
                if !documented.contains(format!("{path}.*").as_str()) {
                    found.insert(path.clone());
                }
                // Inputs have the fields of their files.
                if path != "inputs.*" {
                    fields(value, &path, documented, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|one| fields(one, path, documented, found)),
        _ => {}
    }
}

/// Runs commands that print JSON, and compares the fields with the reference.
fn assert_fields(heading: &str, commands: &[&str], source: &str) {
    let documented = names(heading);
    let mut found = BTreeSet::new();
    for command in commands {
        let arguments: Vec<&str> = command.split_whitespace().chain(["--json"]).collect();
        let output = levelhead(&arguments);
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        fields(&json, "", &documented, &mut found);
    }
    let unsaid: Vec<_> = found.iter().filter(|path| !documented.contains(path.as_str())).collect();
    assert!(unsaid.is_empty(), "{heading}: not in docs/reference.md: {unsaid:?}");
    // A documented field that no run printed must at least be a field in the source.
    for path in documented.into_iter().filter(|path| !found.contains(*path)) {
        let name = path.trim_end_matches(".*").rsplit('.').next().unwrap_or(path);
        let is_field = source.contains(&format!("pub {name}: "));
        assert!(is_field, "{heading}: {path} is no field");
    }
}

#[test]
fn every_field_of_json_is_in_the_reference() {
    let store = scratch("reference-store");
    let on_files = format!(
        "bench --records 2000 --operations 1000 --queue-depth 2 --store {}",
        store.to_str().expect("the path is text")
    );
    let trace = traces::file("reference.csv", traces::TWITTER);
    let of_trace = format!("bench --trace {}", trace.display());
    let benches = [
        "bench --records 2000 --operations 2000",
        "bench --records 2000 --operations 2000 --design hash",
        "bench --records 2000 --operations 500 --design pink-hw --workload e",
        "bench --records 2000 --operations 2000 --configuration o-vigil",
        "bench --records 2000 --operations 2000 --configuration hedged --rate 20k",
        "bench --records 2000 --operations 2000 --configuration silk",
        &on_files,
        &of_trace,
    ];
    let sources = [
        include_str!("../../../kvbench/src/result.rs"),
        include_str!("../../../kvbench/src/result/device.rs"),
        include_str!("../../../kvbench/src/ageing.rs"),
        include_str!("../../../blockbench/src/inputs.rs"),
        include_str!("../../../report/src/resolution.rs"),
        include_str!("../../../blockbench/src/traces.rs"),
        include_str!("../../../engine/src/stats.rs"),
    ];
    assert_fields("JSON of `levelhead bench`", &benches, &sources.concat());
    let trace = traces::file("reference.blkparse", traces::BLKPARSE);
    let of_trace = format!("device --replay {} --precondition empty", trace.display());
    let jobs = [
        &of_trace,
        "device --rw randrw --operations 2000 --fsync 10",
        "device --rw randread --rate-iops 5000 --numjobs 2 --operations 100",
        "device --rw randrw --trim-percent 20 --bssplit 4k/60:64k/40 --random-distribution zipf:1.1 --nvm-set all --operations 500",
        "device --job windows --set stream.duration_s=0.1 --set stream.rate_iops=1000",
    ];
    let sources = [
        include_str!("../../../blockbench/src/result.rs"),
        include_str!("../../../blockbench/src/inputs.rs"),
        include_str!("../../../report/src/resolution.rs"),
        include_str!("../../../blockbench/src/traces.rs"),
        include_str!("../../../workload/src/record/summary.rs"),
    ];
    assert_fields("JSON of `levelhead device`", &jobs, &sources.concat());
}

/// Returns the columns of a CSV file according to the reference.
fn columns(file: &str) -> Vec<&'static str> {
    let lines = section("CSV").lines().skip_while(|line| !line.contains(file));
    let own = lines.enumerate().take_while(|(n, line)| *n == 0 || line.starts_with("| |"));
    own.filter_map(|(_, line)| line.split('|').nth(2)?.trim().strip_prefix('`')?.strip_suffix('`'))
        .collect()
}

#[test]
fn every_column_of_csv_is_in_the_reference() {
    for (command, what, files) in [
        ("bench --records 2000 --operations 2000", "a bench", &["latency.csv", "timeline.csv"][..]),
        (
            "device --rw randrw --operations 500 --set samples=10",
            "a job",
            &["latency.csv", "timeline.csv", "samples.csv"],
        ),
    ] {
        let out = scratch(&format!("reference-{}", what.replace(' ', "-")));
        let place = out.to_str().expect("the path is text");
        let arguments: Vec<&str> = command.split_whitespace().chain(["--out", place]).collect();
        let output = levelhead(&arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        for file in files {
            let text = fs::read_to_string(out.join(file)).expect(file);
            let header: Vec<&str> = text.lines().next().unwrap_or_default().split(',').collect();
            assert_eq!(columns(&format!("`{file}` of {what}")), header, "{file}");
        }
    }
}
