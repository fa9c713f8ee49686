//! The program as one runs it from a script: stderr is no terminal.

use std::path::Path;
use std::process::{Command, Output};

fn levelhead(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_levelhead"));
    command.args(arguments).output().expect("the program was built")
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
    let said = stderr(&levelhead(&["bench", "--records", "2000", "--operations", "0"]));
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
    assert!(table.contains("| reads  |   1 | randread 4 KiB |"), "{table}");
    assert!(table.contains("verified: all "), "{table}");
    let json = levelhead(&["device", "--job", "randread-qd1", "--json", "-"]);
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
        &["device", "--json", out],
        &["reproduce", "pink", "--out", out],
    ];
    for command in commands {
        let output = levelhead(command);
        let said = stderr(&output);
        assert!(!output.status.success() && said.starts_with("levelhead: cannot "), "{said}");
    }
}
