//! Replayed traces: for each format a realistic one, on a drive or a store.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::{levelhead, scratch, stderr};

const IOLOG: &str = "fio version 3 iolog
0 /dev/nvme0n1 add
1 /dev/nvme0n1 open
100 /dev/nvme0n1 write 0 131072
350 /dev/nvme0n1 write 131072 4096
900 /dev/nvme0n1 sync 0 0
1000 /dev/nvme0n1 read 0 4096
2500 /dev/nvme0n1 trim 65536 65536
4000 /dev/nvme0n1 read 131072 4096
4100 /dev/nvme0n1 close
";
pub(crate) const BLKPARSE: &str =
    "259,0    2        1     0.000000000  4011  Q  WS 223490 + 8 [kworker/2:1]
259,0    2        2     0.000001829  4011  G  WS 223490 + 8 [kworker/2:1]
259,0    2        3     0.000002197  4011  D  WS 223490 + 8 [kworker/2:1]
259,0    2        4     0.000081096     0  C  WS 223490 + 8 [0]
259,0    0        1     0.010000000  4020  Q   R 223490 + 8 [postgres]
259,0    0        2     0.020000000  4020  Q FWFS 400000 + 16 [jbd2/nvme0n1]
CPU0 (259,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           2,       12KiB
";
const MSR: &str = "128166372003061629,hm,1,Read,383496192,32768,413
128166372003161629,hm,1,Write,310378496,4096,1123
128166372013061629,hm,1,Read,310378496,4096,331
128166372013061729,hm,1,Write,900000000000,4608,902
";
pub(crate) const TWITTER: &str = "0,q:q:1:8WTfjZU14ee,17,213,4,get,0
0,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,5,set,604800
0,counter:7,9,4,5,incr,0
1,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,6,get,0
1,q:q:1:8WTfjZU14ee,17,213,4,gets,0
2,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,0,6,delete,0
";
const ROCKSDB: &str = "0x00000000000000016B65795F 1 0 100 1591000000000000
0x00000000000000026B65795F 0 0 0 1591000000000250
0x00000000000000016B65795F 0 0 0 1591000000100500
0x00000000000000036B65795F 6 0 0 1591000000200600
0x00000000000000016B65795F 2 0 0 1591000000300700
";

/// Writes a trace to a file. Returns its path.
pub(crate) fn file(name: &str, text: &str) -> PathBuf {
    let directory = scratch(&format!("trace-{name}"));
    fs::create_dir_all(&directory).expect("the target directory takes files");
    let path = directory.join(name);
    fs::write(&path, text).expect("the same");
    path
}

/// Replays a trace. Returns the result as JSON without machine-dependent fields, and stderr.
fn run(command: &str, path: &std::path::Path) -> (Value, String) {
    let path = path.to_str().expect("the path is text");
    let words = command.replace("TRACE", path);
    let arguments: Vec<&str> = words.split_whitespace().chain(["--json"]).collect();
    let output = levelhead(&arguments);
    assert!(output.status.success(), "{words}: {}", stderr(&output));
    let mut json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    json.as_object_mut().expect("an object").remove("host");
    (json, stderr(&output))
}

#[test]
fn each_format_is_found_out_and_replayed_with_the_same_bytes_every_time() {
    for (name, text, reads, writes, seconds) in [
        ("a.iolog", IOLOG, 2, 2, 0.003..0.005),
        ("a.blkparse", BLKPARSE, 1, 2, 0.019..0.021),
        ("a.csv", MSR, 2, 2, 0.9..1.1),
    ] {
        let path = file(name, text);
        let (json, _) = run("device --replay TRACE --precondition empty", &path);
        let stream = &json["streams"][0];
        assert_eq!(stream["directions"]["read"]["operations"], reads, "{name}: {json}");
        assert_eq!(stream["directions"]["write"]["operations"], writes, "{name}");
        assert_eq!(json["verification"]["mismatches"], 0, "{name}");
        assert!(json["verification"]["first_error"].is_null(), "{name}");
        let took = json["virtual_seconds"].as_f64().expect("a number");
        assert!(seconds.contains(&took), "{name}: {took}");
        let input = &json["inputs"]["traces"][0];
        assert_eq!(input["lines"], text.lines().count(), "{name}");
        assert_eq!(input["bytes"], text.len(), "{name}");
        assert_eq!(input["format"], stream["trace"]["format"], "{name}");
        assert_eq!(run("device --replay TRACE --precondition empty", &path).0, json, "{name}");
        let (fast, _) = run(
            "device --read_iolog TRACE --precondition empty --replay_no_stall --iodepth 4",
            &path,
        );
        let took = fast["virtual_seconds"].as_f64().expect("a number");
        assert!(took < seconds.start / 2.0, "{name}: {took}");
        assert!(fast["streams"][0]["trace"]["speed_percent"].is_null(), "{name}");
    }
}

#[test]
fn what_does_not_fit_the_drive_is_fitted_and_said() {
    let path = file("beyond.csv", MSR);
    let (json, said) =
        run("device --replay TRACE --precondition empty --replay_time_scale 200", &path);
    assert!(said.contains("those beyond it begin again at its beginning"), "{said}");
    let trace = &json["streams"][0]["trace"];
    assert_eq!((&trace["wrapped"], &trace["widened"]), (&1.into(), &1.into()), "{trace}");
    let took = json["virtual_seconds"].as_f64().expect("a number");
    assert!((0.45..0.55).contains(&took), "twice as fast: {took}");
    let (json, said) = run("device --replay TRACE --precondition empty --replay_scale 1000", &path);
    assert!(!said.contains("begin again"), "{said}");
    assert_eq!(json["streams"][0]["trace"]["wrapped"], 0);
    let (json, _) =
        run("device --replay TRACE --precondition empty --nvm-set all --operations 3", &path);
    assert_eq!(json["streams"][0]["directions"]["read"]["operations"], 2);
    assert_eq!(json["streams"][0]["set"], "all");
}

#[test]
fn an_action_of_blktrace_may_be_chosen() {
    let path = file("dispatched.blkparse", BLKPARSE);
    let replay = "device --replay TRACE --precondition empty";
    let (json, _) = run(&format!("{replay} --replay-action D"), &path);
    let operations = &json["streams"][0]["directions"]["write"]["operations"];
    assert_eq!(operations, 1, "one was dispatched, and three queued: {json}");
}

#[test]
fn replays_that_fall_behind_their_times_say_by_how_much() {
    let path = file("hurried.csv", MSR);
    let (json, said) = run(
        "device --replay TRACE --precondition empty --replay_time_scale 1000000 --iodepth 1",
        &path,
    );
    assert!(json["streams"][0]["late_s"].as_f64() > Some(0.0), "{json} {said}");
    let line = |at: u64| format!("0x00000000000000016B65795F 1 0 100 {}", 10 * at);
    let text = (1..400).map(line).collect::<Vec<_>>().join("\n");
    let path = file("hurried.txt", &text);
    let (json, _) = run("bench --trace TRACE --queue-depth 1 --replay-time-scale 100000", &path);
    assert!(json["late_s"].as_f64() > Some(0.0), "{json}");
}

#[test]
fn traces_of_stores_are_found_out_and_replayed_with_the_same_bytes_every_time() {
    for (name, text, gets, keys, not_found, seconds) in
        [("cluster.csv", TWITTER, 4, 3, 3, 2.0..2.1), ("trace.txt", ROCKSDB, 2, 2, 1, 0.3..0.31)]
    {
        let path = file(name, text);
        let (json, _) = run("bench --trace TRACE", &path);
        assert_eq!(json["operations"]["get"]["count"], gets, "{name}: {json}");
        assert_eq!((&json["trace"]["keys"], &json["records"]), (&keys.into(), &0.into()), "{name}");
        assert_eq!(json["trace"]["not_found"], not_found, "{name}");
        assert_eq!(json["verification"]["mismatches"], 0, "{name}");
        assert_eq!(json["inputs"]["traces"][0]["lines"], text.lines().count(), "{name}");
        let took = json["virtual_seconds"].as_f64().expect("a number");
        assert!(seconds.contains(&took), "{name}: {took}");
        assert_eq!(run("bench --trace TRACE", &path).0, json, "{name}");
        let (loaded, _) =
            run("bench --trace TRACE --trace-load --replay-no-stall --queue-depth 1", &path);
        assert!(loaded["records"].as_u64() > Some(0), "{name}");
        assert_eq!(loaded["trace"]["not_found"], 0, "{name}: {loaded}");
        assert!(loaded["virtual_seconds"].as_f64() < Some(0.01), "{name}");
    }
    let path = file("left-out.txt", ROCKSDB);
    let path = path.to_str().expect("the path is text");
    let output = levelhead(&["bench", "--trace", path, "--design", "hash"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("trace left-out.txt (rocksdb): 4 operations on 2 keys"), "{text}");
    assert!(text.contains("left out, as nothing is done for them: 1 of kind seek"), "{text}");
    assert!(text.contains("verified: all 2 gets returned what they must"), "{text}");
}

#[test]
fn a_trace_runs_on_pairs_that_were_loaded_before_and_on_hosts() {
    let path = file("loaded.csv", TWITTER);
    let (json, _) = run("bench --trace TRACE --records 2000", &path);
    assert_eq!((&json["records"], &json["trace"]["operations"]), (&2000.into(), &6.into()));
    assert_eq!(json["inputs"]["options"]["before_trace"], "workload");
    let (json, _) = run("bench --trace TRACE --design rocksdb --device baseline-15gb", &path);
    assert_eq!(json["verification"]["mismatches"], 0);
}
