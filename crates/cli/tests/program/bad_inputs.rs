//! Runs the program with common mistakes of users: each case ends soon and without a panic, with
//! the exit code and the message of its line in `tests/cases/bad-inputs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::run::{Ended, levelhead, start};

const CASES: &str = include_str!("../cases/bad-inputs");
/// The number that an issue asked for.
const LEAST_CASES: usize = 250;
/// Maximum time of a case.
const LONGEST: Duration = Duration::from_secs(10);
/// Cases run in parallel: most of them wait for a process to start.
const AT_A_TIME: usize = 4;

#[derive(Debug, PartialEq)]
struct Case<'a> {
    line: usize,
    code: i32,
    arguments: &'a str,
    says: &'a str,
}

fn cases() -> Vec<Case<'static>> {
    let lines =
        CASES.lines().zip(1..).filter(|(text, _)| !text.is_empty() && !text.starts_with('#'));
    let case = |(text, line): (&'static str, usize)| {
        let (code, rest) = text.split_once(' ').expect("a code and arguments");
        let (arguments, says) =
            rest.rsplit_once(" =>").unwrap_or_else(|| panic!("line {line} has no =>"));
        let code = code.parse().unwrap_or_else(|_| panic!("line {line} has no code"));
        Case { line, code, arguments, says: says.trim_start() }
    };
    lines.map(case).collect()
}

/// Splits arguments at blanks, except within braces.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ' ' && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().expect("there is one from the start").push(c);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Creates the file or directory that an argument in braces describes. Returns its path.
fn made(braced: &str, line: usize) -> String {
    let (kind, rest) = braced.split_once(": ").unwrap_or_else(|| panic!("line {line}: {braced}"));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad-inputs");
    let path: PathBuf = directory.join(format!("{line}.txt"));
    // An earlier run may have made a file or a directory of the other kind here.
    let _ = fs::remove_dir_all(&path);
    let _ = fs::remove_file(&path);
    fs::create_dir_all(&directory).expect("the target directory takes files");
    let contents = match kind {
        "text" => rest.replace("\\n", "\n").into_bytes(),
        "bytes" => {
            let byte = |text| u8::from_str_radix(text, 16).expect("two hexadecimal digits");
            rest.split_whitespace().map(byte).collect()
        }
        "directory" => {
            fs::create_dir_all(&path).expect("the target directory takes files");
            fs::write(path.join(rest), "{}").expect("the same");
            return path.to_str().expect("the path is text").to_owned();
        }
        name => changed(name, rest, line).into_bytes(),
    };
    fs::write(&path, contents).expect("the target directory takes files");
    path.to_str().expect("the path is text").to_owned()
}

/// Returns a built-in file with the line of one key replaced or removed. A key that the file lacks
/// is appended.
fn changed(name: &str, change: &str, line: usize) -> String {
    let shown = levelhead(&["show", name]);
    assert_eq!(shown.code, Some(0), "line {line}: {}", shown.stderr);
    let key = change.trim_start_matches('-').split([' ', '=']).next().unwrap_or_default();
    let new = if change.starts_with('-') { "" } else { change };
    let of_key = |text: &&str| text.split([' ', '=']).next() == Some(key);
    let mut lines: Vec<&str> = shown.stdout.lines().collect();
    match lines.iter().position(of_key) {
        Some(at) => lines[at] = new,
        None => lines.push(new),
    }
    lines.join("\n")
}

fn arguments(case: &Case<'_>) -> Vec<String> {
    let arguments = case.arguments.replace("$SMALL", "--records 2000 --operations 100");
    let argument = |part: String| match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
        Some(braced) => made(braced, case.line),
        None => part,
    };
    split(&arguments).into_iter().map(argument).collect()
}

#[test]
fn what_is_typed_wrong_ends_soon_and_says_what_is_right() {
    let cases = cases();
    assert!(cases.len() >= LEAST_CASES, "{}", cases.len());
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let failure = failure(case);
                    wrong.lock().expect("nobody panics with it").extend(failure);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("nobody panicked with it");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Returns the failure of a case, if it fails.
fn failure(case: &Case<'_>) -> Option<String> {
    let arguments = arguments(case);
    let Ended { code, stderr, stdout } = start(&arguments, None).end_within(LONGEST);
    let is_silent = case.code == 0 || arguments[0] == "plan" || stdout.is_empty();
    let is_plain = !stderr.contains(|c: char| c.is_control() && c != '\n');
    let is_calm = !stderr.contains("panicked");
    let is_right = code == Some(case.code) && stderr.contains(case.says);
    let words = || {
        format!(
            "line {}: levelhead {}\n  ended with {code:?}, not {}; said, without \"{}\":\n{stderr}",
            case.line,
            arguments.join(" "),
            case.code,
            case.says
        )
    };
    (!(is_right && is_silent && is_plain && is_calm)).then(words)
}

#[test]
fn cases_are_read_as_they_are_written() {
    assert_eq!(
        split("bench --set a=[1,2] {text: a b\\n{}} -x"),
        ["bench", "--set", "a=[1,2]", "{text: a b\\n{}}", "-x"]
    );
    let numbers: Vec<usize> = cases().iter().map(|case| case.line).collect();
    assert!(numbers.is_sorted());
}
