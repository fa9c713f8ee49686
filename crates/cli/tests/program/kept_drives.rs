//! `bench --save-drive` and `--drive`: a drive is loaded and aged once, and many runs start from
//! that state.

use std::fs;
use std::path::PathBuf;

use crate::{refusal, result, scratch, traces};

/// A small drive with large values, so that few pairs fill it.
const AGED: [&str; 9] = [
    "bench",
    "--device",
    "pink-zcu102-1gib",
    "--fill",
    "60%",
    "--age",
    "-p",
    "levelhead.valuebytes=16000",
    "--json",
];
const RUN: [&str; 2] = ["--operations", "3000"];
const VALUES: [&str; 2] = ["-p", "levelhead.valuebytes=16000"];

fn file(name: &str) -> PathBuf {
    scratch(&format!("{name}.drive"))
}

#[test]
fn what_runs_on_a_kept_drive_is_what_ran_when_it_was_kept() {
    let file = file("aged");
    let path = file.to_str().expect("the path is text");
    let _ = fs::remove_file(&file);
    let kept = result(&[&AGED[..], &RUN, &["--save-drive", path]].concat());
    assert_eq!(kept["ageing"]["is_steady"], true, "{}", kept["ageing"]);
    assert!(kept["flash"]["extents_collected"].as_u64() > Some(0), "nothing was collected");
    let of = |more: &[&str]| {
        result(&[&["bench", "--drive", path, "--json"][..], &VALUES, more].concat())
    };
    let on_it = |more: &[&str]| of(&[&RUN[..], more].concat());
    assert_eq!(on_it(&[]), kept);
    assert_eq!(on_it(&[]), kept, "the file is as it was");
    let reads = on_it(&["--workload", "c", "--queue-depth", "4"]);
    assert_eq!((&reads["load"], &reads["ageing"]), (&kept["load"], &kept["ageing"]));
    assert_eq!(reads["verification"]["mismatches"], 0);
    assert_eq!(reads["inputs"]["options"]["queue_depth"], 4);
    let scans = of(&["--workload", "e", "--operations", "50"]);
    assert_eq!(scans["verification"]["mismatches"], 0, "what scans give is checked too");

    // The keys of a trace are independent of the loaded ones.
    let trace = traces::file("on-a-kept-drive.csv", traces::TWITTER);
    let trace = ["--trace", trace.to_str().expect("the path is text")];
    let replayed = of(&trace);
    assert_eq!((&replayed["load"], &replayed["ageing"]), (&kept["load"], &kept["ageing"]));
    assert_eq!(replayed["operations"]["get"]["count"], 4, "{replayed}");
    assert_eq!(replayed["verification"]["mismatches"], 0);
    assert_eq!(of(&trace), replayed);

    // A run that needs another drive is refused, with advice on how to make it.
    let other = |more: &[&str]| refusal(&[&["bench", "--drive", path][..], &RUN, more].concat());
    assert!(other(&[]).contains("else for keys and values:"), "{}", other(&[]));
    let words = other(&[&VALUES[..], &["--design", "hash"]].concat());
    assert!(words.contains("else for design:") && words.contains("--save-drive"), "{words}");
    let words = other(&[&VALUES[..], &["--seed", "2"]].concat());
    assert!(words.contains("else for seed:"), "{words}");

    let words = refusal(&[&AGED[..], &RUN, &["--save-drive", path]].concat());
    assert!(words.contains("--force"), "{words}");
    let bytes = fs::read(&file).expect("it is there");
    for (damaged, words) in [
        (bytes[..bytes.len() / 2].to_vec(), "ends too soon"),
        ([&bytes[..500_000], &[bytes[500_000] ^ 1], &bytes[500_001..]].concat(), "is damaged"),
    ] {
        fs::write(&file, damaged).expect("the directory takes files");
        let said = other(&VALUES);
        assert!(said.contains(words) && said.contains(path), "{said}");
    }
    fs::remove_file(&file).expect("it is there");
}

#[test]
fn what_is_loaded_before_a_trace_is_kept_without_it() {
    let file = file("before-a-trace");
    let path = file.to_str().expect("the path is text");
    let _ = fs::remove_file(&file);
    let trace = traces::file("keeps-a-drive.csv", traces::TWITTER);
    let trace = ["--trace", trace.to_str().expect("the path is text"), "--json"];
    let loads = ["bench", "--device", "pink-zcu102-1gib", "--records", "2000"];
    let kept = result(&[&loads[..], &trace, &["--save-drive", path]].concat());
    assert_eq!(kept["operations"]["get"]["count"], 4, "{kept}");
    let on_it = |more: &[&str]| result(&[&["bench", "--drive", path][..], more].concat());
    assert_eq!(on_it(&trace), kept);
    let reads = on_it(&["--workload", "c", "--operations", "1000", "--json"]);
    assert_eq!(reads["load"], kept["load"]);
    assert_eq!(reads["verification"]["mismatches"], 0);
    fs::remove_file(&file).expect("it is there");
}

#[test]
fn what_cannot_be_kept_is_told_before_the_load() {
    let file = file("never");
    let path = file.to_str().expect("the path is text");
    let small = ["bench", "--records", "2000", "--operations", "1000", "--save-drive", path];
    for (more, words) in [
        (&["--design", "pink-log"][..], "its log goes on by itself"),
        (&["--design", "rocksdb", "--device", "vigil-15gb"], "a host's store on a block drive"),
        (&["--queue-depth", "1,2"], "give each flag one value"),
    ] {
        let said = refusal(&[&small[..], more].concat());
        assert!(said.contains(words) && !said.contains("load:"), "{said}");
    }
    assert!(!file.exists() && !file.with_extension("drive.part").exists());
    let said = refusal(&["bench", "--drive", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert!(said.contains("no file of a saved drive"), "{said}");
    let said = refusal(&["bench", "--drive", "/nowhere/at/all"]);
    assert!(said.contains("cannot read /nowhere/at/all"), "{said}");
}
