//! Sweeps that are interrupted, resumed, split into shards, or have combinations that are refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::run::{levelhead, start};
use crate::{interrupt, scratch, sigint_is_ignored, text};

const TINY: [&str; 5] = ["bench", "--records", "300", "--operations", "300"];
const LONGEST: Duration = Duration::from_mins(5);

/// Returns all files of a directory except those with wall times, by name, with the directory's
/// name replaced by `it`.
fn files(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut places = vec![directory.to_owned()];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(&place).expect("it was made") {
            let path = entry.expect("a name").path();
            if path.is_dir() {
                places.push(path);
                continue;
            }
            let mut contents = fs::read_to_string(&path).expect("it is text");
            if path.ends_with("result.json") {
                let mut result: Value = serde_json::from_str(&contents).expect("it is JSON");
                result.as_object_mut().expect("an object").remove("host");
                contents = result.to_string();
            }
            if path.ends_with("result.txt") {
                let lines = contents.lines().filter(|line| !line.starts_with("this machine: "));
                contents = lines.collect::<Vec<_>>().join("\n");
            }
            if path.ends_with("sweep.json") {
                let mut sweep: Value = serde_json::from_str(&contents).expect("it is JSON");
                sweep.as_object_mut().expect("an object").remove("command");
                contents = sweep.to_string();
            }
            let name = path.strip_prefix(directory).expect("it is in it").to_owned();
            files.insert(name, contents.replace(text(directory), "it"));
        }
    }
    files
}

fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    let names = |files: &BTreeMap<PathBuf, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for (name, contents) in &one {
        assert!(*contents == other[name], "{} differs", name.display());
    }
}

/// Counts the runs of a sweep that have a result.
fn results(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).expect("it was made");
    entries.filter(|e| e.as_ref().expect("a name").path().join("result.json").is_file()).count()
}

#[test]
fn a_sweep_that_was_killed_goes_on_and_gives_the_same_page() {
    let [whole, killed] = ["resumed-whole", "resumed-killed"].map(scratch);
    let depths = (1..=10).map(|depth| depth.to_string()).collect::<Vec<_>>().join(",");
    let flags = ["--design", "pink,hash", "--queue-depth", &depths, "--seed", "1,2,3"];
    let sweep = |out: &Path, more: &[&str]| {
        let flags = [&TINY[..], &flags, &["--threads", "2", "--out", text(out)], more].concat();
        start(&flags, None)
    };
    let ended = sweep(&whole, &[]).end_within(LONGEST);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut running = sweep(&killed, &[]);
    running.wait_for("[20/60]");
    running.child.kill().expect("our own process");
    running.end();
    let there = results(&killed);
    assert!((10..60).contains(&there), "{there} runs had ended");
    assert!(!killed.join("index.html").exists(), "the page comes last");
    let again = sweep(&killed, &[]).end();
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("has results already (sweep.json)"), "{}", again.stderr);
    assert!(again.stderr.contains("--resume goes on"), "{}", again.stderr);
    let ended = sweep(&killed, &["--resume"]).end_within(LONGEST);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let taken = format!("{there} of 60 runs are taken from an earlier sweep");
    assert!(ended.stderr.contains(&taken), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("[1/{}]", 60 - there)), "{}", ended.stderr);
    assert_same(&whole, &killed);
    // An interrupted sweep has a page of the finished runs, which is replaced.
    if !sigint_is_ignored() {
        let cut = scratch("resumed-interrupted");
        let running = sweep(&cut, &[]);
        running.wait_for("[20/60]");
        interrupt(running.child.id());
        let ended = running.end();
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        assert!(ended.stderr.contains("runs were not run to their end"), "{}", ended.stderr);
        let page = fs::read_to_string(cut.join("index.html")).expect("it was written");
        assert!(page.contains("60 runs: ") && page.contains(" not run"));
        let ended = sweep(&cut, &["--resume"]).end_within(LONGEST);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_same(&whole, &cut);
    }
    // A second resume has nothing left to do, and the page is the same.
    let ended = sweep(&killed, &["--resume"]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("60 of 60 runs are taken") && !ended.stderr.contains("[1/"));
    assert_same(&whole, &killed);
}

#[test]
fn a_sweep_goes_on_with_nothing_else() {
    let out = scratch("resumed-other");
    let sweep = |flags: &[&str]| levelhead(&[&TINY[..], &["--out", text(&out)], flags].concat());
    // In an empty directory --resume starts the sweep.
    let ended = sweep(&["--queue-depth", "1,2", "--resume"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let before = files(&out);
    for other in [
        &["--queue-depth", "1,2,3", "--resume"][..],
        &["--queue-depth", "1,2", "--resume", "--seed", "7"],
        &["--queue-depth", "1,2", "--shard", "1/2", "-p", "readproportion=0.1"],
    ] {
        let ended = sweep(other);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(
            ended.stderr.contains(" has another sweep, 2 runs of `levelhead "),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("--force to write over it"), "{}", ended.stderr);
    }
    assert_eq!(files(&out), before, "what is there stays");
    // A result that is damaged or of other inputs is run again.
    let result = out.join("01-1-deep/result.json");
    let contents = fs::read_to_string(&result).expect("it was written");
    let changed = contents.replace("\"threadcount\": \"1\"", "\"threadcount\": \"9\"");
    assert_ne!(contents, changed);
    for damaged in [&changed, "{"] {
        fs::write(&result, damaged).expect("it is ours");
        let ended = sweep(&["--queue-depth", "1,2", "--resume"]);
        assert!(ended.stderr.contains("1 of 2 runs are taken"), "{}", ended.stderr);
        assert_eq!(files(&out), before);
    }
    // Results of another build are not mixed with those of this one.
    let sweep_file = out.join("sweep.json");
    let own = fs::read_to_string(&sweep_file).expect("it was written");
    let other = own.replace("\"program\": \"levelhead ", "\"program\": \"another ");
    assert_ne!(own, other);
    fs::write(&sweep_file, other).expect("it is ours");
    let ended = sweep(&["--queue-depth", "1,2", "--resume"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("another build of this program"), "{}", ended.stderr);
    // A single run is no sweep.
    let one = scratch("resumed-one");
    for flag in [&["--resume"][..], &["--shard", "1/2"]] {
        let ended = levelhead(&[&TINY[..], &["--out", text(&one)], flag].concat());
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains("are for several runs"), "{}", ended.stderr);
    }
}

#[test]
fn shards_make_the_page_of_the_whole() {
    let [whole, parts] = ["sharded-whole", "sharded-parts"].map(scratch);
    let apart = ["1/2", "2/2"].map(|shard| scratch(&format!("sharded-{}", &shard[..1])));
    let sweep = |out: &Path, more: &[&str]| {
        let flags = ["--queue-depth", "1,2,4,8,16", "--workload", "a,c", "--out", text(out)];
        let ended = levelhead(&[&TINY[..], &flags, more].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended
    };
    sweep(&whole, &[]);
    for (shard, there) in [("2/3", 3), ("1/3", 7)] {
        let ended = sweep(&parts, &["--shard", shard]);
        let words = format!("{there} of 10 runs are there");
        assert!(ended.stderr.contains(&words), "{}", ended.stderr);
        assert!(!parts.join("index.html").exists());
    }
    sweep(&parts, &["--shard", "3/3"]);
    assert_same(&whole, &parts);
    // Shards on separate machines, compared afterwards.
    for (out, shard) in apart.iter().zip(["1/2", "2/2"]) {
        sweep(out, &["--shard", shard]);
        assert_eq!(results(out), 5);
    }
    let [one, two] = apart.each_ref().map(|out| text(out));
    let compared = levelhead(&["compare", one, two]);
    let rows = compared.stdout.lines().filter(|line| line.contains("-deep "));
    assert_eq!(rows.count(), 10, "{}", compared.stdout);
    // Or merged into one directory.
    for entry in fs::read_dir(&apart[1]).expect("it was made") {
        let from = entry.expect("a name").path();
        if from.is_dir() {
            let to = apart[0].join(from.file_name().expect("it has one"));
            fs::rename(from, to).expect("they are in one directory");
        }
    }
    let ended = sweep(&apart[0], &["--resume"]);
    assert!(ended.stderr.contains("10 of 10 runs are taken"), "{}", ended.stderr);
    assert_same(&whole, &apart[0]);
}

#[test]
fn combinations_that_are_refused_are_told_and_keep_no_other_from_its_end() {
    let out = scratch("refused");
    // A hash table has no key order, so the scans of E are refused.
    let flags = ["--design", "pink,hash", "--workload", "a,e", "--out", text(&out)];
    let ended = levelhead(&[&TINY[..], &flags].concat());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("| hash, e (refused) |"), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("levelhead: hash, e: the workload has scans"),
        "{}",
        ended.stderr
    );
    let file = |name: &str| fs::read_to_string(out.join(name)).expect(name);
    let csv = file("runs.csv");
    assert!(csv.starts_with("run,status,reason,design,workload,"), "{csv}");
    let row = csv.lines().find(|line| line.starts_with("\"hash, e\",refused,"));
    assert!(row.is_some_and(|row| row.contains(",hash,e,")), "{csv}");
    assert!(file("index.html").contains("hash, e (refused)"));
    let report: Value = serde_json::from_str(&file("report.json")).expect("it is JSON");
    assert_eq!(report["runs"][3]["status"], "refused");
    assert!(report["runs"][3]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    assert!(out.join("04-hash-e/failure.json").is_file());
    let compared = levelhead(&["compare", text(&out)]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    assert!(compared.stdout.contains("04-hash-e (refused)"), "{}", compared.stdout);
    let json = levelhead(&["compare", text(&out), "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    let status = |n: usize| &json["runs"][n]["status"];
    assert_eq!((status(3), status(0)), (&"refused".into(), &"done".into()));
    // --force replaces the whole sweep.
    let forced =
        ["--queue-depth", "1,2", "--seed", "1,2", "--out", text(&out), "--force", "--json"];
    let forced = levelhead(&[&TINY[..], &forced].concat());
    assert_eq!(forced.code, Some(0), "{}", forced.stderr);
    assert!(!out.join("04-hash-e").exists() && out.join("seeds.csv").is_file());
    let forced: Value = serde_json::from_str(&forced.stdout).expect("it is JSON");
    assert_eq!(
        (&forced["seeds"][0]["seeds"], &forced["runs"][3]["status"]),
        (&2.into(), &"done".into())
    );
}

#[test]
fn what_is_refused_before_the_work_is_told_at_once() {
    let out = scratch("refused-before");
    let bench = ["bench", "--operations", "300", "--out", text(&out), "--records"];
    // More pairs than the drive holds. If all runs are refused, nothing is run, as for a single
    // run.
    let ended = levelhead(&[&bench[..], &["60G", "--seed", "1,2"]].concat());
    assert_eq!((ended.code, out.exists()), (Some(1), false), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("levelhead: seed 1: "), "{}", ended.stderr);
    let ended = levelhead(&[&bench[..], &["300,60G"]].concat());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let refused = ended.stderr.find("60 000 000 000 pairs is refused: ");
    assert!(refused < ended.stderr.find("[1/1]") && refused.is_some(), "{}", ended.stderr);
    let csv = fs::read_to_string(out.join("runs.csv")).expect("it was written");
    assert!(csv.contains("\n60 000 000 000 pairs,refused,"), "{csv}");
    assert!(csv.contains(",60000000000,"), "{csv}");
}

#[test]
fn a_run_that_cannot_be_kept_is_shown_all_the_same() {
    let out = scratch("not-kept");
    fs::create_dir_all(&out).expect("the target directory takes files");
    // A file in the place of the run's directory.
    fs::write(out.join("01-1-deep"), "mine").expect("the same");
    let flags = ["--queue-depth", "1,2", "--out", text(&out)];
    let sweep = |more: &[&str]| levelhead(&[&TINY[..], &flags, more].concat());
    let ended = sweep(&[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("levelhead: 1 deep: cannot make "), "{}", ended.stderr);
    assert!(ended.stderr.contains("; --resume runs it again"), "{}", ended.stderr);
    assert!(ended.stdout.contains("| 1 deep ") || ended.stdout.contains(" 1 deep |"));
    fs::remove_file(out.join("01-1-deep")).expect("it is ours");
    let ended = sweep(&["--resume"]);
    assert_eq!((ended.code, results(&out)), (Some(0), 2), "{}", ended.stderr);
}

#[test]
fn keys_that_differ_within_jobs_have_columns() {
    let out = scratch("keys-within-jobs");
    let flags = ["device", "--rw", "randread,randwrite", "--iodepth", "1,4", "--operations", "500"];
    let more = ["--precondition", "empty", "--seed", "1,2", "--out", text(&out)];
    let ended = levelhead(&[&flags[..], &more].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let csv = fs::read_to_string(out.join("runs.csv")).expect("it was written");
    let header = "run,status,reason,job,seed,stream.depth,";
    assert!(csv.starts_with(header) && csv.contains(",read operations/s,"), "{csv}");
    assert!(csv.contains("\n\"randwrite, iodepth=4, seed 2\",done,,randwrite,2,4,"), "{csv}");
    let seeds = fs::read_to_string(out.join("seeds.csv")).expect("it was written");
    assert_eq!(seeds.lines().count(), 5, "{seeds}");
    assert!(ended.stdout.contains("| randread, stream.depth=4 "), "{}", ended.stdout);
    assert!(ended.stdout.contains(" \u{b1} "), "{}", ended.stdout);
}

#[test]
fn a_directory_of_results_under_other_names_can_be_compared() {
    let out = scratch("bare-results");
    fs::create_dir_all(&out).expect("the target directory takes files");
    for depth in ["2", "10"] {
        let json = levelhead(&[&TINY[..], &["--queue-depth", depth, "--json"]].concat()).stdout;
        fs::write(out.join(format!("depth-{depth}.json")), json).expect("the same");
    }
    fs::write(out.join("notes.json"), "{}").expect("the same");
    let compared = levelhead(&["compare", text(&out)]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    let rows: Vec<&str> =
        compared.stdout.lines().filter(|line| line.starts_with("| depth-")).collect();
    assert!(rows.len() == 2 && rows[0].contains("depth-2.json"), "{}", compared.stdout);
}
