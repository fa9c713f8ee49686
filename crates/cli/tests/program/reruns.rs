//! `rerun`: a result is sufficient to repeat its run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{SMALL, levelhead, refusal, result, scratch, stderr, text, traces};

/// Writes a file with this name and contents. Returns its path.
fn file(name: &str, contents: &str) -> PathBuf {
    let file = scratch(name);
    fs::write(&file, contents).expect("the target directory takes files");
    file
}

/// Runs a command and saves its result to a file with this name.
fn kept(name: &str, arguments: &[&str]) -> (Value, PathBuf) {
    let result = result(&[arguments, &["--json"]].concat());
    let file = file(name, &result.to_string());
    (result, file)
}

/// Writes a user's file that is a modified copy of a built-in one.
fn own(kind: &str, name: &str, from: &str, to: &str) -> PathBuf {
    let shown = levelhead(&["show", name, "--kind", kind]);
    let shown = String::from_utf8(shown.stdout).expect("it writes text");
    assert!(shown.contains(from), "{shown}");
    file(&format!("rerun-of-{name}.{kind}"), &shown.replace(from, to))
}

/// Checks that a run can be repeated after its input files are deleted.
fn assert_rerun(name: &str, arguments: &[&str], made_of: &[&Path]) {
    let (first, file) = kept(name, arguments);
    for file in made_of {
        fs::remove_file(file).expect("it is there");
    }
    assert_eq!(result(&["rerun", text(&file), "--json"]), first, "{arguments:?}");
}

#[test]
fn a_run_needs_no_file_but_its_result_to_be_had_again() {
    let design = own("design", "pink", "name = \"pink\"", "name = \"mine\"");
    let device = own("device", "vigil-15gb", "name = \"vigil-15gb\"", "name = \"mine\"");
    let lines = "recordcount=500\noperationcount=900\nthreadcount=3\nreadproportion=0.7\n";
    let workload = file("rerun-of.properties", lines);
    let lines = "name = \"two\"\n[[stream]]\nrw = \"randread\"\noperations = 500\nrate_iops = 3e3\n\
                 [[stream]]\nrw = \"write\"\nset = 2\noperations = 50\n";
    let job = file("rerun-of-job.toml", lines);
    let own_bench = ["bench", "--design", text(&design), "--workload", text(&workload)];
    let changed = ["--set", "gc_start=0.07", "--rate", "5k", "-p", "levelhead.valuebytes=300"];
    let own_bench = [&own_bench[..], &changed, &["--seed", "7"]].concat();
    assert_rerun("rerun-1.json", &own_bench, &[&design, &workload]);
    let own_device = ["device", "--device", text(&device), "--job", text(&job), "--seed", "9"];
    assert_rerun("rerun-2.json", &own_device, &[&device, &job]);

    let on_host = ["--design", "rocksdb", "--device", "vigil-15gb", "--layout", "parity"];
    let hedged = ["--hedge-after", "300", "--precondition", "random"];
    let on_host = [&SMALL[..], &on_host, &hedged].concat();
    assert_rerun("rerun-3.json", &on_host, &[]);
    let ideal = [&SMALL[..], &["--configuration", "ideal"]].concat();
    assert_rerun("rerun-4.json", &ideal, &[]);
    let silk = ["--configuration", "silk", "--set", "memtables=3", "--rate", "2k"];
    assert_rerun("rerun-5.json", &[&SMALL[..], &silk].concat(), &[]);
    let aged = ["bench", "--device", "pink-zcu102-1gib", "--fill", "60%", "--age"];
    let aged = [&aged[..], &["-p", "levelhead.valuebytes=16000", "--operations", "2000"]].concat();
    assert_rerun("rerun-6.json", &aged, &[]);

    let trace = traces::file("rerun.csv", traces::TWITTER);
    for (name, more) in [
        ("rerun-7.json", &["--replay-time-scale", "11"][..]),
        ("rerun-8.json", &["--trace-load", "--replay-no-stall", "--queue-depth", "2"]),
        ("rerun-9.json", &["--records", "700", "--operations", "4"]),
    ] {
        assert_rerun(name, &[&["bench", "--trace", text(&trace)][..], more].concat(), &[]);
    }
    let trace = traces::file("rerun.blkparse", traces::BLKPARSE);
    let replay = ["device", "--replay", text(&trace), "--precondition", "empty"];
    assert_rerun("rerun-10.json", &replay, &[]);
}

#[test]
fn what_cannot_be_run_again_is_told_with_the_reason() {
    let said_of = |file: &Path| refusal(&["rerun", text(file)]);
    for (contents, words) in [
        ("{", "is no JSON"),
        ("7", "it is no result"),
        ("{\"runs\": []}", "give the result.json of one of them"),
        ("{\"seed\": 1, \"store\": {}, \"inputs\": {}}", "a store on files, in real time"),
        ("{\"seed\": 1}", "it has no inputs"),
        ("{\"seed\": 1, \"inputs\": {}}", "its inputs have no design"),
        ("{\"seed\": 1, \"inputs\": {\"design\": 3}}", "its inputs: invalid type"),
    ] {
        let said = said_of(&file("rerun-of-others.json", contents));
        assert!(said.contains(words), "{contents}: {said}");
    }
    let said = said_of(Path::new("no-such-result.json"));
    assert!(said.contains("cannot read no-such-result.json"), "{said}");

    let drive = scratch("rerun.drive");
    let _ = fs::remove_file(&drive);
    let keeps = [&SMALL[..], &["--save-drive", text(&drive)]].concat();
    let (_, of_drive) = kept("rerun-of-a-drive.json", &keeps);
    let said = said_of(&of_drive);
    assert!(said.contains("run it with --save-drive or --drive"), "{said}");

    let trace = traces::file("rerun-changed.csv", traces::TWITTER);
    let replay = ["bench", "--trace", text(&trace)];
    let (mut other, of_trace) = kept("rerun-of-a-trace.json", &replay);
    let longer = format!("{}3,q:q:1:8WTfjZU14ee,17,213,4,get,0\n", traces::TWITTER);
    fs::write(&trace, longer).expect("it is there");
    let said = said_of(&of_trace);
    assert!(said.contains("its input `traces` was [") && said.contains(" now"), "{said}");

    other["levelhead"] = "0.0.1".into();
    fs::write(&trace, traces::TWITTER).expect("it is there");
    fs::write(&of_trace, other.to_string()).expect("it is there");
    let said = stderr(&levelhead(&["rerun", text(&of_trace)]));
    assert!(said.contains("is of version 0.0.1: what comes out may differ"), "{said}");
}
