//! Runs the program as scripts do: stderr is not a terminal.

mod bad_inputs;
mod bench_on_files;
mod fio;
mod kept_drives;
mod killed;
mod reference;
mod reruns;
mod resumes;
mod run;
mod serves;
mod shells;
mod stores;
mod sweeps;
mod traces;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use run::start;
use serde_json::Value;

fn levelhead(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_levelhead"));
    command.args(arguments).output().expect("the program was built")
}

/// Runs a command with --json that succeeds. Returns its result without machine-dependent fields.
fn result(arguments: &[&str]) -> Value {
    let output = levelhead(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    let mut result: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    result.as_object_mut().expect("it is an object").remove("host");
    result
}

/// Runs a command that is refused. Returns its error message.
fn refusal(arguments: &[&str]) -> String {
    let output = levelhead(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
    stderr(&output)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("it writes text")
}

#[test]
fn a_bench_says_when_its_phases_begin_and_end() {
    let output = levelhead(&["bench", "--records", "2000", "--operations", "1000", "--json"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout.first(), Some(&b'{'), "stdout has the result and nothing else");
    let lines: Vec<&str> = said.lines().collect();
    let [load, loaded, run, ran] = lines[..] else { panic!("four lines, not {said}") };
    assert_eq!((load, run), ("load: 2 000 operations ...", "run: 1 000 operations ..."));
    assert!(loaded.starts_with(&format!("{load} done after ")), "{loaded}");
    assert!(ran.starts_with(&format!("{run} done after ")), "{ran}");
}

#[test]
fn a_bench_without_operations_is_refused_before_the_load() {
    let refused = ["bench", "--records", "2000", "-p", "operationcount=0"];
    let said = stderr(&levelhead(&refused));
    assert!(said.starts_with("levelhead: nothing to run"), "{said}");
}

#[test]
fn a_job_on_a_block_drive_prints_a_table_or_json() {
    let table = levelhead(&["device", "--job", "randread-qd1"]);
    let lines = stderr(&table);
    assert!(table.status.success(), "{lines}");
    assert!(lines.starts_with("randread-qd1 on vigil-15gb ...\n"), "{lines}");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let table = String::from_utf8(table.stdout).expect("it writes text");
    let row = "| reads  | 1 of 4 | randread 4 KiB, norandommap |";
    assert!(table.contains(row), "{table}");
    assert!(table.contains("verified: all "), "{table}");
    let json = levelhead(&["device", "--job", "randread-qd1", "--json"]);
    assert_eq!(json.stdout.first(), Some(&b'{'), "stdout has the result and nothing else");
}

#[test]
fn a_directory_that_cannot_be_made_is_refused_before_the_work() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let inside = file.join("report");
    let out = inside.to_str().expect("the path is text");
    let commands = [
        &["bench", "--out", out][..],
        &["device", "--out", out],
        &["reproduce", "pink", "--out", out],
    ];
    for command in commands {
        let output = levelhead(command);
        let said = stderr(&output);
        assert!(!output.status.success() && said.starts_with("levelhead: cannot "), "{said}");
    }
}

const SMALL: [&str; 5] = ["bench", "--records", "2000", "--operations", "2000"];

/// Stores of a host on block drives, plain and as volumes.
const ON_HOSTS: [&[&str]; 6] = [
    &["--design", "rocksdb", "--device", "baseline-15gb", "--workload", "a"],
    &["--design", "rocksdb", "--device", "vigil-15gb", "--layout", "parity", "--workload", "e"],
    &["--design", "pink-log", "--device", "vigil-15gb", "--layout", "mirrored"],
    &["--design", "silk", "--device", "vigil-15gb", "--journal", "own-set"],
    &["--configuration", "base-parity"],
    &["--configuration", "o-vigil", "--windows", "constant"],
];

#[test]
fn a_configuration_stands_for_its_flags_and_they_win_over_it() {
    let bench = |arguments: &[&str]| {
        let ended = levelhead(&[&SMALL[..], arguments, &["--json"]].concat());
        assert!(ended.status.success(), "{arguments:?}: {}", stderr(&ended));
        serde_json::from_slice::<Value>(&ended.stdout).expect("it is JSON")
    };
    let named = bench(&["--configuration", "o-vigil"]);
    assert_eq!(named["configuration"], "o-vigil");
    let places = |result: &Value| {
        let (drive, windows) = (&result["block_drive"], &result["windows"]);
        let words = [&result["device"], &drive["layout"], &drive["journal"], &windows["policy"]];
        words.map(|word| word.as_str().unwrap_or("none").to_owned())
    };
    assert_eq!(places(&named), ["vigil-15gb", "parity", "own-set", "dynamic"]);
    let other = bench(&["--configuration", "o-vigil", "--windows", "rails", "--design", "silk"]);
    assert_eq!((&other["design"], &places(&other)[3]), (&"silk".into(), &"rails".to_owned()));
    let base = bench(&["--configuration", "base"]);
    assert_eq!(places(&base), ["baseline-15gb", "striped", "none", "none"]);
    assert_eq!(base["block_drive"]["partitions"], 3);
}

#[test]
fn stores_of_hosts_give_the_same_bytes_every_time() {
    for arguments in ON_HOSTS {
        let run = || {
            let ended = levelhead(&[&SMALL[..], arguments, &["--json"]].concat());
            assert!(ended.status.success(), "{arguments:?}: {}", stderr(&ended));
            let mut result: Value = serde_json::from_slice(&ended.stdout).expect("it is JSON");
            assert_eq!(result["verification"]["mismatches"], 0, "{arguments:?}");
            assert_eq!(result["block_drive"]["host"], "desktop-12-core", "{arguments:?}");
            result.as_object_mut().expect("it is an object").remove("host");
            result
        };
        assert_eq!(run(), run(), "{arguments:?}");
    }
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("Linux has it").into()
}

#[test]
fn a_reader_who_has_gone_is_no_error() {
    let commands = [&SMALL[..], &["device", "--job", "randread-qd1", "--json"], &["list"]];
    for command in commands {
        let mut running = start(command, Some(Stdio::piped()));
        drop(running.child.stdout.take());
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{command:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}

#[test]
fn a_plan_is_of_a_device_unless_flags_say_otherwise() {
    let plan = |more: &[&str]| {
        let ended = start(&[&["plan"], more].concat(), None).end();
        assert_eq!(ended.code, Some(0), "{more:?}: {}", ended.stderr);
        ended.stdout
    };
    let small = plan(&["--device", "pink-zcu102-1gib"]);
    assert!(small.starts_with("1.00 GiB of flash, 1.00 MiB of memory,"), "{small}");
    assert_ne!(plan(&[]), small);
    let flags = ["--capacity", "1GiB", "--dram", "1MiB", "--page", "8KiB"];
    assert_eq!(plan(&flags), small);
    assert_eq!(
        plan(&["--device", "pink-zcu102-1gib", "--set", "index_bytes=67108864"]),
        plan(&flags[..2])
    );
}

#[test]
fn a_slice_without_puts_has_no_latency_of_puts() {
    let out = scratch("timeline-of-gets");
    let path = out.to_str().expect("the path is text");
    let small = ["bench", "--records", "2000", "--operations", "100", "--workload", "c", "--force"];
    let ended = start(&[&small[..], &["--out", path]].concat(), None).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let timeline = fs::read_to_string(out.join("timeline.csv")).expect("it was written");
    for line in timeline.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert!(cells[2].parse::<f64>().is_ok_and(|mean| mean > 0.0), "{line}");
        assert_eq!(cells[8..], [""; 6], "{line}");
    }
    assert!(timeline.lines().count() > 1, "{timeline}");
    fs::remove_dir_all(&out).expect("it is there");
}

#[test]
fn a_full_disk_is_an_error_in_a_line() {
    let plan = ["plan"];
    for command in [&SMALL[..], &plan, &["list"]] {
        let ended = start(command, Some(full())).end();
        assert_eq!(ended.code, Some(1), "{command:?}: {}", ended.stderr);
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("levelhead: cannot write the result to"), "{}", ended.stderr);
    }
}

#[test]
fn a_directory_that_takes_nothing_does_not_cost_the_result() {
    let out = scratch("full-disk");
    fs::create_dir_all(&out).expect("the target directory takes files");
    // The temporary name under which the file is written.
    let part = out.join("result.txt.part");
    let (json, earlier) = (out.join("result.json"), "{\"earlier\": true}");
    fs::write(&json, earlier).expect("the directory takes files");
    let out = out.to_str().expect("the path is text");
    let device = ["device", "--job", "randread-qd1", "--force", "--out", out];
    for command in [&[&SMALL[..], &["--force", "--out", out]].concat()[..], &device] {
        std::os::unix::fs::symlink("/dev/full", &part).expect("Linux has it");
        let ended = start(command, None).end();
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stdout.contains("verified: all "), "{}", ended.stdout);
        assert!(ended.stderr.contains("cannot write ") && ended.stderr.contains("result.txt"));
        assert_eq!(
            fs::read_to_string(&json).expect("it is there"),
            earlier,
            "what was there stays"
        );
        assert_eq!(fs::read_dir(out).expect("it is there").count(), 1, "halves are left");
    }
}

/// Returns a path in the target directory, after removing any file or directory there.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

/// Whether the tests were started with SIGINT ignored, as by `&` in a script. The program then
/// leaves it ignored, and interruption cannot be tested.
fn sigint_is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_ignored = mask & (1 << (2 - 1)) != 0;
    if is_ignored {
        let _ = std::io::stderr().write_all(b"SKIPPED: SIGINT is ignored here\n");
    }
    is_ignored
}

/// Sends SIGINT, as Ctrl-C does.
fn interrupt(process: u32) {
    let sent = Command::new("kill").args(["-INT", &process.to_string()]).status();
    assert!(sent.expect("every Unix has it").success());
}

#[test]
fn an_interrupted_load_says_how_far_it_was_and_leaves_nothing() {
    if sigint_is_ignored() {
        return;
    }
    let out = scratch("interrupted-load");
    let path = out.to_str().expect("the path is text");
    let running = start(&["bench", "--records", "4M", "--out", path], None);
    running.wait_for("load: 4 000 000 operations ...");
    interrupt(running.child.id());
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("of 4 000 000 pairs of the load: "), "{}", ended.stderr);
    assert!(!out.exists(), "an empty directory is left");
}

#[test]
fn an_interrupted_run_shows_what_there_is() {
    if sigint_is_ignored() {
        return;
    }
    let bench = ["bench", "--records", "2000", "--operations", "1G", "--workload", "c"];
    let running = start(&bench, None);
    running.wait_for("run: 1 000 000 000 operations ...");
    interrupt(running.child.id());
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("INTERRUPTED: the numbers are of the "), "{}", ended.stdout);
    assert!(ended.stdout.contains(", of 1 000 000 000 planned\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("verified: all "), "{}", ended.stdout);
    assert!(ended.stderr.contains("interrupted") && ended.stderr.contains("cut short after"));
}

#[test]
fn an_interrupted_job_shows_what_there_is() {
    if sigint_is_ignored() {
        return;
    }
    let job = scratch("long-job.toml");
    let _ = fs::remove_file(&job);
    let text = "name = \"long\"\n[[stream]]\nrw = \"randread\"\nduration_s = 100000.0\n";
    fs::write(&job, text).expect("the target directory takes files");
    let running = start(&["device", "--job", job.to_str().expect("the path is text")], None);
    running.wait_for("long on vigil-15gb ...");
    interrupt(running.child.id());
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("INTERRUPTED: "), "{}", ended.stdout);
}

#[test]
fn an_interrupted_reproduction_says_how_far_it_was_and_leaves_nothing() {
    if sigint_is_ignored() {
        return;
    }
    let out = scratch("interrupted-report");
    let path = out.to_str().expect("the path is text");
    let running = start(&["reproduce", "device", "--threads", "1", "--out", path], None);
    running.wait_for("[1/");
    interrupt(running.child.id());
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(" simulations: a report needs all"), "{}", ended.stderr);
    assert!(!out.exists(), "an empty directory is left");
}

#[test]
fn threads_and_target_of_ycsb_are_honoured_and_labels_are_true() {
    let shown = |arguments: &[&str]| {
        let output = levelhead(&[&SMALL[..], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("it writes text")
    };
    let closed = shown(&["-p", "threadcount=1"]);
    assert!(closed.contains("closed loop, 1 outstanding"), "{closed}");
    let open = shown(&["-p", "threadcount=1", "-p", "target=1000"]);
    assert!(open.contains("open loop, 1000 operations/s, at most 1 outstanding"), "{open}");
    let flag = shown(&["--queue-depth", "7", "--rate", "2k"]);
    assert!(flag.contains("open loop, 2000 operations/s, at most 7 outstanding"), "{flag}");
    let partial = shown(&["-p", "insertcount=1000"]);
    assert!(partial.contains(": 1 000 pairs of 32 + 1024 bytes"), "{partial}");
    let fields = shown(&["-p", "fieldcount=3", "-p", "fieldlength=300"]);
    assert!(fields.contains(" pairs of 32 + 900 bytes"), "{fields}");
    let zipfian = shown(&["-p", "fieldlength=100", "-p", "fieldlengthdistribution=zipfian"]);
    assert!(zipfian.contains(" pairs of 32 + up to 1000 (mean "), "{zipfian}");
}

#[test]
fn a_flag_wins_over_a_property_file() {
    let file = scratch("flag-or-file.properties");
    let _ = fs::remove_file(&file);
    let text = "recordcount=500\noperationcount=50\nthreadcount=3\nlevelhead.valuebytes=700\n";
    fs::write(&file, text).expect("the target directory takes files");
    let file = file.to_str().expect("the path is text");
    let shown = |arguments: &[&str]| {
        let output = levelhead(&[&["bench", "--workload", file], arguments].concat());
        String::from_utf8(output.stdout).expect("it writes text")
    };
    let own = shown(&[]);
    assert!(own.contains(": 500 pairs of 32 + 700 bytes, closed loop, 3 outstanding"), "{own}");
    let flags = shown(&["--records", "700", "--queue-depth", "4"]);
    assert!(flags.contains(": 700 pairs of 32 + 700 bytes, closed loop, 4 outstanding"), "{flags}");
}
