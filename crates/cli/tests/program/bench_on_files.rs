//! `levelhead bench --store`: real stores, with results of the same form as simulated ones.

use std::fs;

use serde_json::Value;

use crate::{levelhead, scratch, stderr};

const SMALL: [&str; 5] = ["bench", "--records", "2000", "--operations", "1000"];

#[test]
fn a_bench_on_a_store_gives_tables_json_and_pictures() {
    let (store, out) = (scratch("bench-store"), scratch("bench-store-out"));
    let path = store.to_str().expect("the path is text");
    let flags = ["--store", path, "--queue-depth", "2", "--out", out.to_str().expect("the same")];
    let output = levelhead(&[&SMALL[..], &flags].concat());
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("the store stays in "), "{said}");
    let table = String::from_utf8(output.stdout).expect("it writes text");
    assert!(
        table.contains("2 000 pairs of 32 + 1024 bytes, closed loop, 2 outstanding"),
        "{table}"
    );
    assert!(table.contains(" s of real time (load"), "{table}");
    assert!(table.contains("verified: all ") && table.contains("| reads per get "), "{table}");
    for file in
        ["result.json", "result.txt", "latency.csv", "timeline.csv", "latency.svg", "timeline.svg"]
    {
        assert!(fs::metadata(out.join(file)).is_ok_and(|file| file.len() > 0), "{file}");
    }
    let text = fs::read_to_string(out.join("latency.svg")).expect("it is there");
    assert!(text.contains("microseconds of real time"));
    let json: Value =
        serde_json::from_slice(&fs::read(out.join("result.json")).expect("it is there"))
            .expect("it is JSON");
    assert_eq!(json["store"]["durability"], "group");
    assert_eq!(json["verification"]["mismatches"], 0);
    let (gets, puts) = (&json["operations"]["get"]["count"], &json["operations"]["put"]["count"]);
    assert_eq!(gets.as_u64().zip(puts.as_u64()).map(|(gets, puts)| gets + puts), Some(1000));
    // The store is an ordinary one, and no later bench overwrites it.
    let counted = levelhead(&["stats", "--store", path, "--count"]);
    assert!(
        String::from_utf8_lossy(&counted.stdout).contains("pairs        2 000\n"),
        "{}",
        stderr(&counted)
    );
    let again = levelhead(&[&SMALL[..], &["--store", path]].concat());
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("has something in it"), "{}", stderr(&again));
    fs::remove_dir_all(&store).expect("it is ours");
}

#[test]
fn scans_and_open_loops_run_on_a_store_and_flags_of_simulations_do_not() {
    let store = scratch("bench-store-e");
    let path = store.to_str().expect("the path is text");
    let flags =
        ["--store", path, "--workload", "e", "--rate", "4k", "--durability", "interval", "--json"];
    let output = levelhead(&[&SMALL[..], &flags].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(json["verification"]["checked_pairs"].as_u64() > Some(1000), "{json}");
    assert!(json["operations"]["scan"]["count"].as_u64() > Some(900), "{json}");
    fs::remove_dir_all(&store).expect("it is ours");
    let refused = levelhead(&["bench", "--store", path, "--design", "pink"]);
    assert_eq!(refused.status.code(), Some(2));
    let refused = levelhead(&["bench", "--durability", "each"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    for (windows, words) in [("dynamic", "for simulated drives"), ("rails", "three directories")] {
        let refused = levelhead(&["bench", "--store", path, "--windows", windows]);
        assert!(stderr(&refused).contains(words), "{}", stderr(&refused));
    }
    let refused = levelhead(&["bench", "--windows", "plm"]);
    assert!(stderr(&refused).contains("for a store on drives"), "{}", stderr(&refused));
    let many = levelhead(&["bench", "--store", path, "--queue-depth", "5000"]);
    assert!(stderr(&many).contains("--queue-depth may be 1024 at most"), "{}", stderr(&many));
    assert!(!store.exists());
}

#[test]
fn a_bench_over_three_directories_says_what_its_windows_did() {
    let place = scratch("bench-store-rails");
    let paths: Vec<String> =
        (0..3).map(|n| place.join(n.to_string()).display().to_string()).collect();
    let mut flags = vec!["--windows", "rails", "--capacity", "4GiB"];
    for path in &paths {
        flags.extend(["--store", path.as_str()]);
    }
    let output = levelhead(&[&SMALL[..], &flags].concat());
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let line = said.lines().find(|line| line.contains("windows, load and settling included"));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("slots") && line.contains("0 others"), "{line}");
    fs::remove_dir_all(&place).expect("it is ours");
}
