//! `levelhead repair`, `compact` and `backup` are killed at random times and run again: no existing
//! data is lost, the rest of a copy is not a store, and the next run completes the copy.
//! of a copy is no store, and the next run makes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use levelhead::{Durability, Options, Store};
use runtime::Rng;

use crate::scratch;

/// Rounds of each test; `LEVELHEAD_ROUNDS` overrides it, `LEVELHEAD_SEED` runs a single one.
const ROUNDS: u64 = 8;
const PAIRS: u64 = 12_000;
/// Upper bounds, in microseconds, of the time from the start of a command to its kill: early, in
/// the middle of most commands, or late. A command that completes before its kill is accepted, too.
const LATEST_US: [u64; 3] = [40_000, 150_000, 700_000];

#[expect(clippy::disallowed_methods, reason = "a test may be told from outside")]
fn wanted(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store with data to compact and garbage to collect. Its directory is removed at the end.
struct Stand {
    scratch: PathBuf,
    directories: Vec<PathBuf>,
    map: Map,
}

fn options() -> Options {
    Options {
        capacity_bytes: 128 << 20,
        memory_bytes: 16 << 20,
        value_cache_bytes: 1 << 20,
        memtable_bytes: 1 << 20,
        durability: Durability::Interval,
        ..Options::default()
    }
}

impl Stand {
    fn new(name: &str, members: usize) -> Self {
        let scratch = scratch(&format!("killed-{name}"));
        let directories = (0..members).map(|n| scratch.join(format!("d{n}"))).collect();
        let mut stand = Self { scratch, directories, map: Map::new() };
        let store = stand.open();
        for round in 0..3 {
            for n in (0..PAIRS).filter(|n| n % 3 >= round) {
                let (key, value) =
                    (format!("key {n:06}").into_bytes(), vec![(n + round) as u8; 300]);
                store.put(&key, &value).expect("there is room");
                stand.map.insert(key, value);
            }
        }
        for n in (0..PAIRS).step_by(5) {
            let key = format!("key {n:06}").into_bytes();
            store.delete(&key).expect("there is room");
            stand.map.remove(&key);
        }
        store.close().expect("it can be made durable");
        stand
    }

    fn open(&self) -> Store {
        let store = Store::open_over(&self.directories, &options());
        store.unwrap_or_else(|error| panic!("{error}"))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_levelhead"));
        command.arg(words[0]);
        for directory in &self.directories {
            command.arg("--store").arg(directory);
        }
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Starts a command and kills it at a random time. Returns whether it was killed before it
    /// completed.
    fn kill(&self, words: &[&str], rng: &mut Rng) -> bool {
        let child = self.command(words).stderr(Stdio::null()).spawn().expect("it was built");
        let mut child = Ended(child);
        let latest = LATEST_US[rng.below(3) as usize];
        thread::park_timeout(Duration::from_micros(rng.below(latest)));
        child.0.kill().expect("our own process");
        let status = child.0.wait().expect("our own process");
        !status.success()
    }

    fn run(&self, words: &[&str]) -> Result<(), String> {
        let ran = self.command(words).output().expect("the program was built");
        if ran.status.success() {
            return Ok(());
        }
        Err(format!("{words:?}: {}, {}", ran.status, String::from_utf8_lossy(&ran.stderr)))
    }

    /// Checks that the store has all pairs and no others.
    fn check(&self, store: &Store, what: &str) -> Result<(), String> {
        let mut wanted = self.map.iter();
        for pair in store.range(..) {
            let (key, value) = pair.map_err(|error| format!("{what}: {error}"))?;
            match wanted.next() {
                Some((k, v)) if k[..] == key[..] && v[..] == value[..] => {}
                other => {
                    let other = other.map(|(key, _)| key.escape_ascii().to_string());
                    return Err(format!("{what}: {} in place of {other:?}", key.escape_ascii()));
                }
            }
        }
        match wanted.next() {
            None => Ok(()),
            Some((key, _)) => Err(format!("{what}: {} is lost", key.escape_ascii())),
        }
    }

    /// Checks that a killed copy is either no store or a complete one.
    fn check_copy(&self, copy: &Path, what: &str) -> Result<(), String> {
        match Store::is_in(&[copy]) {
            Ok(false) => Ok(()),
            Ok(true) => {
                let existing = Options { create_if_missing: false, ..options() };
                let store = Store::open(copy, &existing);
                let store = store.map_err(|error| format!("{what}: {error}"))?;
                self.check(&store, what)?;
                drop(store);
                fs::remove_dir_all(copy).map_err(|error| format!("{what}: {error}"))
            }
            Err(error) => Err(format!("{what}: {error}")),
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// A process that is killed when its test fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the rounds of a test. A failure shows how to repeat its round.
fn rounds(test: &str, mut round: impl FnMut(u64, &mut Rng) -> Result<bool, String>) {
    let all = 0..wanted("LEVELHEAD_ROUNDS").unwrap_or(ROUNDS);
    let (mut killed, mut rounds) = (0, 0);
    for seed in wanted("LEVELHEAD_SEED").map_or(all, |seed| seed..seed + 1) {
        match round(seed, &mut Rng::derive(seed, test)) {
            Ok(was_killed) => (killed, rounds) = (killed + u64::from(was_killed), rounds + 1),
            Err(wrong) => panic!(
                "{wrong}\nLEVELHEAD_SEED={seed} cargo test -p cli --test program -- --nocapture {test}"
            ),
        }
    }
    println!("{test}: {killed} of {rounds} were killed before they were done");
}

#[test]
fn a_killed_compaction_loses_nothing() {
    for members in [1, 3] {
        let stand = Stand::new(&format!("compact-{members}"), members);
        rounds("a_killed_compaction", |seed, rng| {
            let was_killed = stand.kill(&["compact"], rng);
            let store = stand.open();
            stand.check(&store, &format!("round {seed}"))?;
            // Gives the next round something to compact.
            for (key, value) in stand.map.iter().skip(seed as usize % 3).step_by(3) {
                store.put(key, value).map_err(|error| format!("round {seed}: {error}"))?;
            }
            drop(store);
            if seed % 4 == 3 {
                stand.run(&["compact"])?;
                stand.check(&stand.open(), "compacted at last")?;
            }
            Ok(was_killed)
        });
    }
}

/// For stores that open, over one directory and over three.
#[test]
fn a_killed_copy_is_made_by_the_next_one() {
    for (command, to, members) in [("backup", "--to", 1), ("repair", "--out", 3)] {
        let stand = Stand::new(command, members);
        let copy = stand.scratch.join("copy");
        let path = copy.to_str().expect("the path is text").to_owned();
        let words = [command, to, &path, "--capacity", "128MiB"];
        rounds("a_killed_copy", |seed, rng| {
            let was_killed = stand.kill(&words, rng);
            stand.check_copy(&copy, &format!("{command}, the copy of round {seed}"))?;
            stand.check(&stand.open(), &format!("{command}, round {seed}"))?;
            if seed % 4 == 3 {
                stand.run(&words)?;
                stand.check_copy(&copy, "the next one")?;
            }
            Ok(was_killed)
        });
    }
}

/// A damaged store that does not open: repeated repairs write nothing to it.
#[test]
fn a_killed_repair_leaves_the_damaged_store_as_it_was() {
    let stand = Stand::new("salvage", 1);
    fs::remove_file(stand.directories[0].join("LEVELHEAD")).expect("it is there");
    let data = stand.directories[0].join("data");
    let before = fs::read(&data).expect("it is there");
    let copy = stand.scratch.join("copy");
    let path = copy.to_str().expect("the path is text").to_owned();
    let words = ["repair", "--out", &path, "--capacity", "128MiB"];
    rounds("a_killed_repair", |seed, rng| {
        let was_killed = stand.kill(&words, rng);
        stand.check_copy(&copy, &format!("the copy of round {seed}"))?;
        if fs::read(&data).map_err(|error| error.to_string())? != before {
            return Err(format!("round {seed}: the damaged store is another one"));
        }
        Ok(was_killed)
    });
    let ran = stand.command(&words).output().expect("the program was built");
    assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stderr));
    let store = Store::open(&copy, &options()).unwrap_or_else(|error| panic!("{error}"));
    stand.check(&store, "saved at last").unwrap_or_else(|wrong| panic!("{wrong}"));
}
