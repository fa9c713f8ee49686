//! The commands on a store, as scripts use them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::{scratch, stderr};

/// A store in its own directory, which is removed at the end.
struct Stand {
    directory: PathBuf,
}

impl Stand {
    fn new(name: &str) -> Self {
        Self { directory: scratch(&format!("store-{name}")) }
    }

    fn store(&self) -> PathBuf {
        self.directory.join("store")
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.directory.join(name);
        fs::create_dir_all(&self.directory).expect("the target directory takes files");
        fs::write(&path, contents).expect("the target directory takes files");
        path.to_str().expect("the path is text").to_owned()
    }

    /// Runs a command on the store. Returns its output.
    fn run(&self, command: &str, arguments: &[impl AsRef<OsStr>]) -> Output {
        self.fed(command, arguments, b"")
    }

    fn fed(&self, command: &str, arguments: &[impl AsRef<OsStr>], input: &[u8]) -> Output {
        run(&self.store(), command, arguments, input)
    }

    /// Runs a command that has to succeed. Returns its stdout.
    fn well(&self, command: &str, arguments: &[impl AsRef<OsStr>]) -> Vec<u8> {
        let output = self.run(command, arguments);
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        output.stdout
    }

    fn text(&self, command: &str, arguments: &[&str]) -> String {
        String::from_utf8(self.well(command, arguments)).expect("it prints text")
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn run(store: &Path, command: &str, arguments: &[impl AsRef<OsStr>], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_levelhead"))
        .arg(command)
        .arg("--store")
        .arg(store)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    // A command that is refused does not read its input.
    let _ = child.stdin.take().expect("it is a pipe").write_all(input);
    child.wait_with_output().expect("our own process")
}

const NONE: [&str; 0] = [];

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().concat()
}

#[test]
fn what_is_put_is_got_until_it_is_deleted() {
    let stand = Stand::new("point");
    let made = stand.run("put", &["apple", "red"]);
    assert!(made.status.success() && made.stdout.is_empty(), "{}", stderr(&made));
    assert!(stderr(&made).starts_with("levelhead: made a new store in "), "{}", stderr(&made));
    let again = stand.run("put", &["pear", "green"]);
    assert_eq!(stderr(&again), "", "it is there already");
    assert_eq!(stand.text("get", &["apple"]), "red\n");
    assert_eq!(stand.text("get", &["-n", "pear"]), "green");
    stand.well("delete", &["apple", "never there"]);
    let gone = stand.run("get", &["apple"]);
    assert_eq!((gone.status.code(), gone.stdout.len(), stderr(&gone)), (Some(1), 0, String::new()));
    stand.well("put", &["empty", ""]);
    assert_eq!(stand.text("get", &["empty"]), "\n", "an empty value is one");
}

#[test]
fn a_key_that_no_store_takes_makes_none() {
    let stand = Stand::new("keys");
    for key in ["", &"k".repeat(256)] {
        let refused = stand.run("put", &[key, "1"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("keys have 1 to 255 bytes"), "{}", stderr(&refused));
        assert!(!stand.store().exists());
    }
    stand.well("put", &["--page", "8KiB", "--inline-up-to", "1KiB", &"k".repeat(255), "1"]);
    let dumped =
        stand.run("dump", &["--out", stand.directory.join("d.tsv").to_str().expect("text")]);
    assert_eq!(stderr(&dumped), "levelhead: dumped 1 pair\n");
}

#[test]
fn binary_keys_and_values_have_ways_in_and_out() {
    let stand = Stand::new("binary");
    stand.well("put", &["--hex", "0x00ff", "DEADbeef"]);
    assert_eq!(stand.text("get", &["--hex", "00FF"]), "deadbeef\n");
    assert_eq!(stand.text("get", &["--base64", "AP8="]), "3q2+7w==\n");
    let raw = stand.fed("put", &["--value-file", "-", "raw"], b"\0\n\xff");
    assert!(raw.status.success(), "{}", stderr(&raw));
    assert_eq!(stand.well("get", &["-n", "raw"]), b"\0\n\xff");
    let file = stand.file("value", "of a file\n");
    stand.well(
        "put",
        &[OsStr::from_bytes(b"not \xff text"), "--value-file".as_ref(), file.as_ref()],
    );
    assert_eq!(stand.well("get", &[OsStr::from_bytes(b"not \xff text")]), b"of a file\n\n");
    let shown = stand.text("scan", &[]);
    // The first two bytes of 0xdeadbeef are a letter of Thaana.
    assert_eq!(
        shown,
        "\\x00\\xff\t\u{7ad}\\xbe\\xef\nnot \\xff text\tof a file\\n\nraw\t\\x00\\n\\xff\n"
    );
    let odd = stand.run("get", &["--hex", "xyz"]);
    assert_eq!(odd.status.code(), Some(2));
    assert!(stderr(&odd).starts_with("levelhead: `xyz` is no hexadecimal"), "{}", stderr(&odd));
}

#[test]
fn a_scan_goes_from_a_key_to_before_a_key() {
    let stand = Stand::new("scan");
    let pairs: String = lines((0..500).map(|n| format!("k{n:03}\t{n}\n")));
    let file = stand.file("pairs.tsv", &pairs);
    let loaded = stand.run("load", &[&file]);
    assert!(loaded.status.success(), "{}", stderr(&loaded));
    assert!(stderr(&loaded).contains("levelhead: loaded 500 pairs in "), "{}", stderr(&loaded));
    assert_eq!(stand.text("scan", &[]), pairs);
    for (arguments, expected) in [
        (&["--from", "k498"][..], "k498\t498\nk499\t499\n"),
        (&["--to", "k001"], "k000\t0\n"),
        (&["--from", "k010", "--to", "k012", "--keys-only"], "k010\nk011\n"),
        (&["--prefix", "k12", "--limit", "2"], "k120\t120\nk121\t121\n"),
        (&["--prefix", "k49", "--from", "k499"], "k499\t499\n"),
        (&["--reverse", "--limit", "2"], "k499\t499\nk498\t498\n"),
        (&["--reverse", "--to", "k012", "--from", "k010", "--keys-only"], "k011\nk010\n"),
        (&["--reverse", "--prefix", "k12", "--limit", "1"], "k129\t129\n"),
        (&["--prefix", "nothing"], ""),
        (&["--from", "k5", "--to", "k1"], ""),
        (&["--limit", "0"], ""),
        (&["--limit", "1", "--format", "csv"], "key,value\nk000,0\n"),
        (&["--limit", "1", "--format", "csv", "--keys-only"], "key\nk000\n"),
        (&["--limit", "1", "--format", "jsonl"], "{\"key\":\"k000\",\"value\":\"0\"}\n"),
        (
            &["--limit", "1", "--format", "jsonl", "--hex"],
            "{\"key_hex\":\"6b303030\",\"value_hex\":\"30\"}\n",
        ),
    ] {
        assert_eq!(stand.text("scan", arguments), expected, "{arguments:?}");
    }
}

#[test]
fn a_dump_is_in_the_format_that_its_name_says() {
    let stand = Stand::new("dump-names");
    stand.well("put", &["a", "1"]);
    for (name, text) in [
        ("pairs.tsv", "a\t1\n"),
        ("pairs.csv", "key,value\na,1\n"),
        ("pairs.jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n"),
        ("pairs", "{\"key\":\"a\",\"value\":\"1\"}\n"),
    ] {
        let file = stand.directory.join(name);
        stand.well("dump", &["--out", file.to_str().expect("the path is text")]);
        assert_eq!(fs::read_to_string(&file).expect("it was written"), text, "{name}");
    }
    // An existing file is kept, except with --force.
    let there = stand.file("pairs.tsv", "mine");
    let refused = stand.run("dump", &["--out", &there]);
    assert!(stderr(&refused).contains("is there already"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(&there).expect("it is there"), "mine");
    stand.well("dump", &["--out", &there, "--force"]);
    assert_eq!(fs::read_to_string(&there).expect("it is there"), "a\t1\n");
    // A device is not replaced by a file.
    let link = stand.directory.join("null");
    std::os::unix::fs::symlink("/dev/null", &link).expect("Linux has it");
    stand.well("dump", &["--out", link.to_str().expect("the path is text")]);
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    let refused = stand.run("dump", &["--out", stand.directory.to_str().expect("it is text")]);
    let said = stderr(&refused);
    assert!(said.matches("cannot write").count() == 1 && said.contains("directory"), "{said}");
}

#[test]
fn what_is_no_place_for_a_store_is_told() {
    let stand = Stand::new("places");
    let file = stand.file("file", "x");
    for command in ["get", "put", "delete"] {
        let refused = run(
            Path::new(&file),
            command,
            &["key", "value"][..=usize::from(command == "put")],
            b"",
        );
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("is no directory"), "{}", stderr(&refused));
    }
    stand.well("put", &["a", "1"]);
    let inner = stand.store().join("copy");
    for (to, says) in
        [(file.as_str(), "is no directory"), (inner.to_str().expect("text"), "is within the store")]
    {
        let refused = stand.run("backup", &["--to", to]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
    assert!(!inner.exists());
    fs::remove_file(stand.store().join("LEVELHEAD")).expect("it is there");
    let lost = stand.run("get", &["a"]);
    assert!(stderr(&lost).contains("`levelhead repair` saves"), "{}", stderr(&lost));
    let none = stand.directory.join("none");
    let out = stand.directory.join("saved");
    let repaired = run(&none, "repair", &["--out", out.to_str().expect("text")], b"");
    let said = stderr(&repaired);
    assert!(said.contains("has no store, and nothing that is left of one"), "{said}");
    let compacted = run(&none, "compact", &NONE, b"");
    assert_eq!(compacted.status.code(), Some(2), "{}", stderr(&compacted));
}

#[test]
fn lines_of_json_and_files_without_any_are_told_by_their_place() {
    let stand = Stand::new("places-of-json");
    let file = stand.file("a.jsonl", "{\"key\":\"a\",\"value\":1}\n{\"key\":\n");
    let said = stderr(&stand.run("load", &[&file]));
    assert!(
        said.contains("a.jsonl, line 2: it is no JSON object: EOF") && said.contains(", column 7"),
        "{said}"
    );
    assert!(!said.contains("at line 1"), "{said}");
    let said = stderr(&stand.run("load", &[&stand.file("empty.csv", "")]));
    assert!(said.contains("empty.csv: it is empty"), "{said}");
}

#[test]
fn a_dump_is_taken_back_byte_for_byte() {
    let stand = Stand::new("dump");
    let all: Vec<u8> = (0..=255).collect();
    for (key, value) in
        [(&b"plain"[..], &b"text"[..]), (b"\xff\xfe", b""), (b"quote\",\n", &all), (b"\\", b"\\x")]
    {
        let put = stand.fed(
            "put",
            &["--value-file".as_ref(), "-".as_ref(), OsStr::from_bytes(key)],
            value,
        );
        assert!(put.status.success(), "{}", stderr(&put));
    }
    let expected = stand.well("scan", &["--hex"]);
    for (number, arguments) in [
        &["--format", "jsonl"][..],
        &["--format", "csv"],
        &["--format", "tsv"],
        &["--format", "csv", "--hex"],
        &["--format", "jsonl", "--base64"],
    ]
    .into_iter()
    .enumerate()
    {
        let dump = stand.well("dump", arguments);
        let copy = stand.directory.join(format!("copy-{number}"));
        let loaded = run(&copy, "load", &[arguments, &["-"]].concat(), &dump);
        assert!(loaded.status.success(), "{}", stderr(&loaded));
        assert!(run(&copy, "scan", &["--hex"], b"").stdout == expected, "{arguments:?}");
    }
    let file = stand.directory.join("dump.jsonl");
    let dumped = stand.run("dump", &["--out", file.to_str().expect("the path is text")]);
    assert_eq!((dumped.stdout.len(), stderr(&dumped).as_str()), (0, "levelhead: dumped 4 pairs\n"));
    assert_eq!(fs::read(&file).expect("it is there"), stand.well("dump", &NONE));
    assert!(!stand.directory.join("dump.jsonl.part").exists());
}

#[test]
fn a_load_names_the_line_that_is_wrong() {
    let stand = Stand::new("load");
    let long = "k".repeat(300);
    let file = stand.file("bad.tsv", format!("a\t1\nno value\n{long}\t3\n\\q\t4\nb\t2\n"));
    let refused = stand.run("load", &[&file]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("bad.tsv, line 2: there is no column 2: the line has 1"), "{said}");
    assert!(said.contains("loaded 1 pair, up to line 1, in"), "what came before is there: {said}");
    let skipped = stand.run("load", &["--skip-bad", &file]);
    let said = stderr(&skipped);
    assert_eq!(skipped.status.code(), Some(1), "{said}");
    assert!(
        said.contains("line 3: keys have 1 to 255 bytes") || said.contains("line 3: "),
        "{said}"
    );
    assert!(said.contains("line 4: `\\q` is no escape"), "{said}");
    assert!(said.contains("loaded 2 pairs") && said.contains(", 3 bad lines skipped"), "{said}");
    assert_eq!(stand.text("scan", &[]), "a\t1\nb\t2\n");
}

#[test]
fn columns_are_chosen_by_name_or_number() {
    let stand = Stand::new("columns");
    let csv = stand.file("people.csv", "id,name,age\n7,Ada,36\n9,\"Alan, M.\",41\n");
    stand.well("load", &[&csv, "--key-column", "id", "--value-column", "2"]);
    assert_eq!(stand.text("scan", &[]), "7\tAda\n9\tAlan, M.\n");
    let json = "{\"id\": 7, \"address\": {\"city\": \"London\"}}\n";
    let arguments = ["--format", "jsonl", "--key-column", "id", "--value-column", "address", "-"];
    let loaded = stand.fed("load", &arguments, json.as_bytes());
    assert!(loaded.status.success(), "{}", stderr(&loaded));
    assert_eq!(stand.text("get", &["7"]), "{\"city\": \"London\"}\n");
}

#[test]
fn nothing_but_put_and_load_makes_a_store() {
    let stand = Stand::new("missing");
    let fine = stand.file("fine.tsv", "a\t1\n");
    for (command, arguments, code) in [
        ("get", &["key"][..], 2),
        ("delete", &["key"], 2),
        ("scan", &[], 2),
        ("dump", &[], 2),
        ("stats", &[], 2),
    ] {
        let output = stand.run(command, arguments);
        let said = stderr(&output);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(code), 0),
            "{command}: {said}"
        );
        assert!(
            said.contains("has no store: `levelhead put` and `levelhead load` make one"),
            "{said}"
        );
        assert!(!stand.store().exists(), "{command} made something");
    }
    for (file, says) in [
        ("none.csv", "levelhead: cannot read none.csv: No such file"),
        ("-", "levelhead: standard input does not say what it is: give --format"),
        (fine.as_str(), ""),
    ] {
        let output = stand.run("load", &[file]);
        assert!(stderr(&output).starts_with(says), "{}", stderr(&output));
        assert_eq!(stand.store().exists(), says.is_empty(), "{file}");
    }
}

#[test]
fn a_store_that_is_in_use_or_damaged_is_told_with_its_file() {
    let stand = Stand::new("damage");
    stand.well("put", &["a", "1"]);
    let mut load = Command::new(env!("CARGO_BIN_EXE_levelhead"))
        .args(["load", "--format", "tsv", "-", "--store"])
        .arg(stand.store())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut heard = std::io::BufReader::new(load.stderr.take().expect("it is a pipe"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut heard, &mut line).expect("it says that it has begun");
    let second = stand.run("get", &["a"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("is in use by another process"), "{}", stderr(&second));
    assert!(stderr(&second).contains("`levelhead serve`, perhaps"), "{}", stderr(&second));
    drop(load.stdin.take());
    assert!(load.wait().expect("our own process").success());
    fs::write(stand.store().join("LEVELHEAD"), "format = 9\n").expect("it is ours");
    let damaged = stand.run("get", &["a"]);
    assert!(stderr(&damaged).contains("LEVELHEAD: "), "{}", stderr(&damaged));
    let put = stand.run("put", &["a", "2"]);
    assert!(!put.status.success() && stderr(&put).contains("LEVELHEAD: "), "{}", stderr(&put));
}

#[test]
fn a_store_over_three_directories_bears_the_loss_of_one() {
    let stand = Stand::new("three");
    let places = ["one", "two", "three"].map(|name| stand.directory.join(name));
    let over = |command: &str, arguments: &[&str]| {
        let rest =
            ["--store".as_ref(), places[1].as_os_str(), "--store".as_ref(), places[2].as_os_str()];
        let arguments: Vec<&OsStr> =
            rest.into_iter().chain(arguments.iter().map(OsStr::new)).collect();
        run(&places[0], command, &arguments, b"")
    };
    let put = over("put", &["--capacity", "512MiB", "a", "1"]);
    assert!(put.status.success(), "{}", stderr(&put));
    let rails = over("stats", &["--windows", "rails", "--memtable", "8MiB", "--json"]);
    let json: Value = serde_json::from_slice(&rails.stdout).expect("it is JSON");
    assert_eq!(json["windows"]["members"].as_array().map(Vec::len), Some(3), "{json}");
    let rails = over("stats", &["--windows", "rails", "--memtable", "8MiB"]);
    let table = String::from_utf8_lossy(&rails.stdout).into_owned();
    assert!(table.contains("windows      now ") && table.contains("of the journal"), "{table}");
    // The drives of these tests have no such windows: the store works without.
    let plm = over("put", &["--windows", "plm", "--memtable", "8MiB", "b", "2"]);
    assert!(plm.status.success() && stderr(&plm).contains("has no windows: "), "{}", stderr(&plm));
    let one = stand.run("put", &["--windows", "rails", "a", "1"]);
    assert!(stderr(&one).contains("three directories and more"), "{}", stderr(&one));
    fs::remove_dir_all(&places[1]).expect("it is ours");
    let got = over("get", &["--windows", "rails", "--memtable", "8MiB", "a"]);
    assert_eq!(got.stdout, b"1\n", "{}", stderr(&got));
    // Every command reports it.
    for (command, arguments) in
        [("put", &["a", "1"][..]), ("get", &["a"]), ("scan", &[]), ("stats", &[])]
    {
        let output = over(command, arguments);
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        assert!(stderr(&output).contains("two is lost: "), "{command}: {}", stderr(&output));
    }
    // A mistyped path does not count as a loss, neither for reads nor for writes.
    let mistyped = stand.directory.join("tow");
    let mistyped = mistyped.to_str().expect("the path is text");
    let three = places[2].to_str().expect("the path is text");
    for (command, arguments) in [("put", &["a", "1"][..]), ("get", &["a"])] {
        let stores = ["--store", mistyped, "--store", three];
        let refused = run(&places[0], command, &[&stores[..], arguments].concat(), b"");
        assert_eq!(refused.status.code(), Some(2), "{command}");
        assert!(stderr(&refused).contains("tow does not exist: is the"), "{}", stderr(&refused));
        let told = [&stores[..], &["--degraded"], arguments].concat();
        let told = run(&places[0], command, &told, b"");
        assert!(told.status.success(), "{}", stderr(&told));
    }
    let stats = over("stats", &[]);
    assert!(String::from_utf8_lossy(&stats.stdout).contains("two: lost"), "{}", stderr(&stats));
    fs::remove_dir_all(&places[0]).expect("it is ours");
    let lost = over("put", &["b", "2"]);
    assert!(stderr(&lost).contains("2 of 3 directories are lost or empty"), "{}", stderr(&lost));
    assert!(stderr(&lost).contains("one and "), "{}", stderr(&lost));
}

#[test]
fn directories_that_make_no_store_are_told() {
    let stand = Stand::new("directories");
    stand.well("put", &["a", "1"]);
    let (own, other) = (stand.store(), stand.directory.join("other"));
    let (own, other) = (own.to_str().expect("text"), other.to_str().expect("text"));
    let again = format!("{own}/.");
    for command in ["put", "get", "delete"] {
        let key: &[&str] = if command == "put" { &["a", "2"] } else { &["a"] };
        let two = stand.run(command, &[&["--store", other], key].concat());
        assert_eq!(two.status.code(), Some(2), "{}", stderr(&two));
        assert!(stderr(&two).contains("one directory, or three and more"), "{}", stderr(&two));
        for twice in [&["--store", &again][..], &["--store", other, "--store", own]] {
            let twice = stand.run(command, &[twice, key].concat());
            assert_eq!(twice.status.code(), Some(2), "{}", stderr(&twice));
            assert!(stderr(&twice).contains(" is named twice"), "{}", stderr(&twice));
        }
    }
    assert_eq!(stand.text("get", &["a"]), "1\n");
}

#[test]
fn stats_count_for_eyes_and_for_programs() {
    let stand = Stand::new("stats");
    let file = stand.file("pairs.tsv", lines((0..300).map(|n| format!("k{n}\t{n}\n"))));
    stand.well("load", &[&file]);
    stand.well("delete", &["k0"]);
    let table = stand.text("stats", &["--count"]);
    assert!(table.contains("pairs        299\n"), "{table}");
    let json: Value =
        serde_json::from_slice(&stand.well("stats", &["--json", "--count"])).expect("it is JSON");
    assert_eq!(json["pairs"], 299);
    assert!(json["directories"][0]["taken_bytes"].as_u64() > Some(0), "{json}");
    assert!(json["capacity_bytes"].as_u64() >= Some(15 << 30), "{json}");
    assert!(json["levels"].as_array().is_some_and(|levels| !levels.is_empty()), "{json}");
}

#[test]
fn a_small_store_over_three_directories_takes_a_small_memtable() {
    let stand = Stand::new("small");
    let places = ["two", "three"].map(|name| stand.directory.join(name));
    let [two, three] = places.each_ref().map(|path| path.to_str().expect("the path is text"));
    let over = ["--store", two, "--store", three, "--capacity", "64MiB", "a", "1"];
    let refused = stand.run("put", &[&["--memtable", "32MiB"], &over[..]].concat());
    assert!(stderr(&refused).contains("memtable"), "{}", stderr(&refused));
    let put = stand.run("put", &over);
    assert!(put.status.success(), "{}", stderr(&put));
}

#[test]
fn a_store_is_verified_backed_up_and_repaired() {
    let stand = Stand::new("care");
    let pairs: String = lines((0..8_000).map(|n| format!("k{n:04}\t{n:0500}\n")));
    stand.well("load", &[&stand.file("pairs.tsv", &pairs)]);
    let verified = stand.run("verify", &["--json"]);
    let said: Value = serde_json::from_slice(&verified.stdout).expect("it is JSON");
    assert_eq!((verified.status.code(), &said["pairs"]), (Some(0), &Value::from(8_000)));
    assert_eq!(said["findings"], Value::Array(Vec::new()));
    let copy = stand.directory.join("copy");
    let to = copy.to_str().expect("the path is text");
    let small = ["--capacity", "64MiB", "--memtable", "1MiB"];
    let backed = stand.run("backup", &[&["--to", to], &small[..]].concat());
    assert_eq!(backed.status.code(), Some(0), "{}", stderr(&backed));
    let restored = run(&copy, "scan", &NONE, b"");
    assert!(restored.stdout == pairs.as_bytes(), "the copy has other pairs");
    let again = stand.run("backup", &["--to", to]);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    assert!(stderr(&again).contains("holds a store"), "{}", stderr(&again));
    assert_eq!(run(&stand.directory.join("none"), "verify", &NONE, b"").status.code(), Some(2));

    damage(&copy);
    let damaged = run(&copy, "verify", &NONE, b"");
    let table = String::from_utf8_lossy(&damaged.stdout).into_owned();
    assert_eq!(damaged.status.code(), Some(1), "{table}{}", stderr(&damaged));
    assert!(table.contains("data, at byte ") && table.contains("between k"), "{table}");
    // The same for `dump` and reads: no pair is left out silently, and an incomplete file is
    // removed.
    let file = stand.directory.join("dumped");
    let dumped = run(&copy, "dump", &["--out", file.to_str().expect("the path is text")], b"");
    assert_eq!(dumped.status.code(), Some(2), "{}", stderr(&dumped));
    assert!(
        stderr(&dumped).contains("checksum does not match") && !file.exists(),
        "{}",
        stderr(&dumped)
    );
    let scanned = run(&copy, "scan", &NONE, b"");
    assert_eq!(scanned.status.code(), Some(2), "{}", stderr(&scanned));
    let refused = run(&copy, "backup", &["--to", &format!("{to}-2")], b"");
    assert_eq!(refused.status.code(), Some(1), "a backup has all pairs: {}", stderr(&refused));
    // It is not reported as a store that lost a file, either.
    let unfinished = run(Path::new(&format!("{to}-2")), "get", &["k0000"], b"");
    assert!(stderr(&unfinished).contains("that was not finished"), "{}", stderr(&unfinished));
    let saved = stand.directory.join("saved");
    let out = saved.to_str().expect("the path is text");
    let repaired = run(&copy, "repair", &["--out", out, "--json"], b"");
    assert_eq!(repaired.status.code(), Some(1), "{}", stderr(&repaired));
    let said: Value = serde_json::from_slice(&repaired.stdout).expect("it is JSON");
    let left = run(&saved, "scan", &["--keys-only"], b"");
    let left = String::from_utf8(left.stdout).expect("keys are text");
    assert_eq!(said["pairs"], Value::from(left.lines().count()), "{said}");
    assert!((7_900..8_000).contains(&left.lines().count()), "{said}");
    assert_eq!(run(&saved, "verify", &NONE, b"").status.code(), Some(0));

    fs::write(copy.join("LEVELHEAD"), "nonsense").expect("it is ours");
    for (command, arguments) in [
        ("get", &["k0000"][..]),
        ("put", &["a", "1"]),
        ("verify", &[]),
        ("stats", &[]),
        ("dump", &[]),
    ] {
        let refused = run(&copy, command, arguments, b"");
        assert!(stderr(&refused).contains("`levelhead repair` saves"), "{}", stderr(&refused));
    }
    let out = stand.directory.join("saved-2");
    let paths = [&["--out", out.to_str().expect("the path is text")], &small[..]].concat();
    let by_page = run(&copy, "repair", &paths, b"");
    let table = String::from_utf8_lossy(&by_page.stdout).into_owned();
    assert_eq!(by_page.status.code(), Some(1), "{table}{}", stderr(&by_page));
    assert!(table.contains("does not open") && table.contains("LEVELHEAD"), "{table}");
    let found = run(&out, "scan", &["--keys-only"], b"");
    let found = String::from_utf8(found.stdout).expect("keys are text");
    // At least the same keys: pages of the log that are not erased yet may contain data that is
    // damaged elsewhere.
    let found: BTreeSet<&str> = found.lines().collect();
    assert!(left.lines().all(|key| found.contains(key)), "{} pairs were found", found.len());
    let none = stand.directory.join("none");
    assert_eq!(run(&none, "repair", &paths, b"").status.code(), Some(2));
}

/// Flips a byte of a value that was written long before the last flush, in all places where it is
/// stored.
fn damage(store: &Path) {
    let path = store.join("data");
    let mut bytes = fs::read(&path).expect("it is there");
    let value = format!("{:0500}", 1_000);
    let places: Vec<usize> = bytes
        .windows(value.len())
        .enumerate()
        .filter_map(|(at, part)| (part == value.as_bytes()).then_some(at))
        .collect();
    assert!(!places.is_empty(), "the value is there as it was put");
    for at in places {
        bytes[at] ^= 1;
    }
    fs::write(&path, bytes).expect("it is ours");
}

#[test]
fn a_compaction_that_is_asked_for_leaves_each_pair_once() {
    let stand = Stand::new("compact");
    for round in 0..3 {
        let lines: Vec<String> =
            (0..2_000).map(|n| format!("key {n:05}\tvalue {round}\n")).collect();
        let file = stand.file("pairs.tsv", lines.concat());
        stand.well("load", &[&file]);
    }
    let json = stand.text("compact", &["--json"]);
    let said: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(said["after"]["entries"], 2_000);
    assert_eq!(said["after"]["entries_above_last"], 0);
    let again: Value = serde_json::from_str(&stand.text("compact", &["--json"])).expect("JSON");
    assert_eq!(again["before"]["entries"], 2_000, "what was done is there when it is opened again");
    assert_eq!(again["before"]["entries_above_last"], 0);
    let table = stand.text("compact", &[]);
    assert!(table.contains("above last") && table.contains("took"), "{table}");
    assert_eq!(stand.text("get", &["key 01999"]).trim_end(), "value 2");
}
