//! Several runs at once, results side by side, and built-in files as templates.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run::start;
use crate::{SMALL, interrupt, levelhead, scratch, sigint_is_ignored, stderr, text};

/// Runs a command that has to succeed. Returns its stdout.
fn shown(arguments: &[&str]) -> String {
    let output = levelhead(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("it writes text")
}

/// Returns a result without machine-dependent fields.
fn result(json: &str) -> Value {
    let mut result: Value = serde_json::from_str(json).expect("it is JSON");
    result.as_object_mut().expect("it is an object").remove("host");
    result
}

fn file(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn several_values_make_a_run_each_and_threads_change_nothing() {
    let sweep =
        ["--design", "pink,hash", "--queue-depth", "1,8", "--set", "readproportion=0.5,0.9"];
    let directories = ["1", "3"].map(|threads| {
        let out = scratch(&format!("sweep-{threads}"));
        let flags = ["--threads", threads, "--out", text(&out)];
        let table = shown(&[&SMALL[..], &sweep, &flags].concat());
        let rows =
            table.lines().filter(|line| line.starts_with("| pink") || line.starts_with("| hash"));
        assert_eq!(rows.count(), 8, "{table}");
        assert!(table.contains("| hash, 8 deep, readproportion=0.9 |"), "{table}");
        out
    });
    let runs = |directory: &Path| {
        let entries = fs::read_dir(directory).expect("it is there");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("the same").path()).collect();
        names.retain(|path| path.is_dir());
        names.sort();
        names
    };
    let [one, three] = directories.each_ref().map(|directory| runs(directory));
    assert_eq!((one.len(), three.len()), (8, 8));
    for (a, b) in one.iter().zip(&three) {
        assert_eq!(
            result(&file(a, "result.json")),
            result(&file(b, "result.json")),
            "{}",
            a.display()
        );
        assert_eq!(file(a, "latency.csv"), file(b, "latency.csv"));
    }
    assert!(
        file(&directories[0], "index.html").contains("by queue_depth"),
        "the page has no lines"
    );
    let command = file(&directories[0], "report.json");
    assert!(
        command.contains("levelhead bench") && command.contains("--queue-depth 1,8"),
        "{command}"
    );
    // A single run is a sweep of one.
    let alone = shown(
        &[
            &SMALL[..],
            &["--design", "hash", "--queue-depth", "8", "-p", "readproportion=0.9", "--json"],
        ]
        .concat(),
    );
    assert_eq!(result(&alone), result(&file(&one[7], "result.json")));
    // Written results can be compared again.
    let again = shown(&["compare", text(&directories[0])]);
    assert!(again.contains("readproportion") && again.contains("queue_depth"), "{again}");
}

#[test]
fn results_are_set_side_by_side_and_nothing_is_written_over() {
    let places = ["pink", "hash"].map(|design| {
        let out = scratch(&format!("compare-{design}"));
        let bench = [&SMALL[..], &["--design", design, "--out", text(&out)]].concat();
        let said = stderr(&levelhead(&bench));
        assert!(
            said.contains("wrote result.json, result.txt, latency.csv, timeline.csv"),
            "{said}"
        );
        let again = levelhead(&bench);
        assert_eq!(again.status.code(), Some(1));
        assert!(stderr(&again).contains("has results already (result.json)"), "{}", stderr(&again));
        assert!(!stderr(&again).contains("load:"), "it is told before the work");
        assert!(levelhead(&[&bench[..], &["--force"]].concat()).status.success());
        out
    });
    let page = scratch("compare-page");
    let [pink, hash] = places.each_ref().map(|place| text(place));
    let table = shown(&["compare", pink, hash, "--out", text(&page)]);
    assert!(table.contains("| design ") && table.contains(" hash |"), "{table}");
    assert!(table.contains("operations/s") && table.contains(" %)"), "{table}");
    for name in ["index.html", "report.json", "runs.csv", "runs.txt", "latency-get.csv"] {
        assert!(!file(&page, name).is_empty(), "{name}");
    }
    let json: Value =
        serde_json::from_str(&shown(&["compare", pink, hash, "--json"])).expect("JSON");
    assert_eq!(json["runs"][1]["result"]["design"], "hash");
}

#[test]
fn new_results_take_the_place_of_old_ones_and_of_nothing_else() {
    let out = scratch("forced");
    let names = || {
        let entries = fs::read_dir(&out).expect("it was made");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let sweep = |depths: &str| {
        let flags = ["--queue-depth", depths, "--out", text(&out), "--force"];
        shown(&[&SMALL[..], &flags].concat())
    };
    sweep("1,2,4");
    // Files of the user: one among the results, a directory named like one of ours, and one next to
    // them.
    for (directory, file) in
        [("03-4-deep", "notes.txt"), ("07-mine", "result.json"), ("", "notes.txt")]
    {
        fs::create_dir_all(out.join(directory)).expect("the target directory takes files");
        fs::write(out.join(directory).join(file), "{}").expect("the same");
    }
    sweep("3,5");
    let runs = |names: &[String]| {
        names.iter().filter(|name| name.starts_with('0')).cloned().collect::<Vec<_>>()
    };
    assert_eq!(runs(&names()), ["01-3-deep", "02-5-deep", "03-4-deep", "07-mine"]);
    assert_eq!(fs::read_dir(out.join("03-4-deep")).expect("it stays").count(), 1);
    fs::remove_dir_all(out.join("07-mine")).expect("ours");
    let table = shown(&["compare", text(&out), "--out", text(&out), "--force"]);
    assert!(!table.contains("01-1") && runs(&names()).len() == 3, "{table}");
    // A single run replaces several.
    shown(&[&SMALL[..], &["--out", text(&out), "--force"]].concat());
    let left = names();
    assert_eq!(runs(&left), ["03-4-deep"], "{left:?}");
    assert!(
        left.contains(&"notes.txt".to_owned()) && !left.contains(&"index.html".to_owned()),
        "{left:?}"
    );
    assert!(!left.contains(&"sweep.json".to_owned()), "{left:?}");
    assert!(left.iter().all(|name| !name.starts_with("by-")), "{left:?}");
}

#[test]
fn a_sweep_leaves_results_alone_that_stand_beside_its_own() {
    let out = scratch("beside-others");
    let day = out.join("2026-11-27");
    let job = ["device", "--rw", "randread", "--operations", "100"];
    shown(&[&job[..], &["--out", text(&day)]].concat());
    let before = file(&day, "result.json");
    for force in [&[][..], &["--force"]] {
        let sweep = ["--iodepth", "1,4", "--out", text(&out)];
        shown(&[&job[..], &sweep, force].concat());
        assert_eq!(file(&day, "result.json"), before);
    }
    // Nor does a single run that replaces the sweep.
    shown(&[&job[..], &["--force", "--out", text(&out)]].concat());
    assert_eq!(file(&day, "result.json"), before);
}

#[test]
fn copies_that_were_changed_are_not_written_over() {
    let out = scratch("shown");
    let show = ["show", "pink", "--kind", "design", "--out", text(&out)];
    shown(&show);
    shown(&show);
    let copy = out.join("design/pink.toml");
    let built_in = fs::read(&copy).expect("it was written");
    fs::write(&copy, "# mine").expect("it is ours");
    for all in [&show[..], &["show", "--out", text(&out)]] {
        let refused = levelhead(all);
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(1) && said.contains("pink.toml is there"), "{said}");
        assert_eq!(fs::read(&copy).expect("it is there"), b"# mine");
        assert!(!out.join("device").exists(), "all or none");
    }
    shown(&[&show[..], &["--force"]].concat());
    assert_eq!(fs::read(&copy).expect("it is there"), built_in);
}

#[test]
fn jobs_come_from_the_command_line_and_flags_change_those_of_files() {
    let job = [
        "device",
        "--rw",
        "randread",
        "--bs",
        "4k",
        "--iodepth",
        "32",
        "--runtime",
        "0.01",
        "--json",
    ];
    let json = result(&shown(&job));
    let stream = &json["streams"][0];
    assert_eq!((&json["job"], &stream["rw"]), (&"randread".into(), &"randread".into()));
    assert_eq!((&stream["depth"], &stream["block_bytes"]), (&32.into(), &4096.into()));
    assert_eq!(json["inputs"]["job"]["stream"][0]["depth"], 32);
    // The same job as a file.
    let file = scratch("randread.toml");
    let _ = fs::remove_file(&file);
    let toml = "name = \"randread\"\n[[stream]]\nrw = \"randread\"\nbs = \"4KiB\"\niodepth = 16\nruntime = 0.01\n";
    fs::write(&file, toml).expect("the target directory takes files");
    let of_file = result(&shown(&["device", "--job", text(&file), "--iodepth", "32", "--json"]));
    assert_eq!(json["streams"], of_file["streams"]);
    let sweep = ["device", "--rw", "randread,randwrite", "--iodepth", "1,4", "--operations", "500"];
    let table = shown(&sweep);
    assert!(table.contains("| randwrite, iodepth=4 |"), "{table}");
    let json: Value =
        serde_json::from_str(&shown(&[&sweep[..], &["--json"]].concat())).expect("it is JSON");
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_job_in_windows_tells_them_apart() {
    let table = shown(&["device", "--job", "windows"]);
    let of = |name: &str| {
        table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{table}"))
    };
    let longest = |row: &str| {
        let cell = row.trim_end_matches('|').rsplit('|').next().expect("a cell");
        cell.trim().parse::<f64>().expect("a number")
    };
    let (inside, outside) = (longest(of("  in DTWIN, ")), longest(of("  outside it, ")));
    assert!(inside < 200.0 && outside > 2.0 * inside, "{table}");
}

#[test]
fn keys_are_overridden_and_results_say_so() {
    let bench =
        [&SMALL[..], &["--set", "gc_start=0.1", "--set", "quantum_us=20.0", "--json"]].concat();
    let json = result(&shown(&bench));
    assert_eq!(json["inputs"]["design"]["engine"]["gc_start"], 0.1);
    assert_eq!(json["inputs"]["device"]["controller"]["quantum_us"], 20.0);
    assert_eq!(json["inputs"]["options"]["queue_depth"], 64);
    assert_eq!(json["inputs"]["properties"]["recordcount"], "2000");
    assert!(json["operations"].get("delete").is_none(), "what never ran is absent");
}

#[test]
fn built_in_files_are_printed_and_do_the_same_as_their_names() {
    let (design, workload) = (scratch("my-pink.toml"), scratch("my-a"));
    for (path, name) in [(&design, "pink"), (&workload, "a")] {
        let _ = fs::remove_file(path);
        fs::write(path, shown(&["show", name])).expect("the target directory takes files");
    }
    let json = |flags: &[&str]| result(&shown(&[&SMALL[..], flags, &["--json"]].concat()));
    let (named, own) =
        (json(&[]), json(&["--design", text(&design), "--workload", text(&workload)]));
    assert_eq!(named["operations"], own["operations"]);
    assert_eq!(named["inputs"]["design"], own["inputs"]["design"]);
    for line in shown(&["list"]).lines().filter(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().expect("a name");
        let output = levelhead(&["show", name]);
        let is_several = stderr(&output).contains("say which with --kind");
        assert!(output.status.success() || is_several, "{name}: {}", stderr(&output));
    }
}

#[test]
fn interrupted_runs_show_what_there_is() {
    if sigint_is_ignored() {
        return;
    }
    let bench = [
        "bench",
        "--records",
        "2000",
        "--operations",
        "100,1G",
        "--workload",
        "c",
        "--threads",
        "1",
    ];
    let running = start(&bench, None);
    running.wait_for("[2/2]");
    #[expect(clippy::disallowed_methods, reason = "the program runs in real time")]
    std::thread::sleep(std::time::Duration::from_millis(500));
    interrupt(running.child.id());
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("1 000 000 000 operations (interrupted)"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
}
