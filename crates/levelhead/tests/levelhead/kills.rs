//! Processes that are killed while they write: all writes reported as durable survive, even if a
//! directory is then lost or damaged.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use levelhead::{Durability, Options, Store, Windows};
use runtime::Rng;

use crate::scratch::{Scratch, killed_while, small, timed, wanted};

/// Rounds of each test; `LEVELHEAD_ROUNDS` sets another number.
const ROUNDS: usize = 6;
/// The name of the file that lists the directories for the process that will be killed.
const WANTED: &str = "killed-store-directories";

fn key(n: u32) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 200 + n as usize % 700]
}

fn wanted_path(parent: u32) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{WANTED}-{parent}"))
}

fn open(directories: &[PathBuf], options: &Options) -> Store {
    // A copy is not at the paths that its directories record.
    let options = Options { degraded: true, ..options.clone() };
    Store::open_over(directories, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the number of consecutive keys from the first on that have a value. Checks the values.
fn there(store: &Store) -> u32 {
    let is_there = |n: &u32| match store.get(&key(*n)).expect("it can be read") {
        Some(found) => {
            assert!(found == value(*n), "key {n} has a value that it was not given");
            true
        }
        None => false,
    };
    (0..u32::MAX).take_while(is_there).count() as u32
}

/// Puts until it is killed, and prints the acknowledged puts.
#[test]
#[ignore = "another test runs it, in a process of its own"]
fn puts_until_it_is_killed() {
    let Ok(text) = fs::read_to_string(wanted_path(std::os::unix::process::parent_id())) else {
        return;
    };
    let mut lines = text.lines();
    let windows = match lines.next() {
        Some("windows") => Windows::Rails,
        _ => Windows::Off,
    };
    let directories: Vec<PathBuf> = lines.map(PathBuf::from).collect();
    let options = Options { durability: Durability::Group, windows, ..small() };
    let store = open(&directories, &options);
    for n in there(&store).. {
        store.put(&key(n), &value(n)).expect("there is room");
        println!("acknowledged {n}");
    }
}

/// Lets a process write to the store and kills it at a random time. Returns the last acknowledged
/// put.
fn killed(directories: &[PathBuf], windows: Windows, rng: &mut Rng) -> Option<u32> {
    let mut lines = vec![if windows == Windows::Off { "off" } else { "windows" }];
    lines.extend(directories.iter().map(|path| path.to_str().expect("a name")));
    fs::write(wanted_path(std::process::id()), lines.join("\n")).expect("it can be written");
    killed_while("kills::puts_until_it_is_killed", 1 + rng.below(1_200))
}

/// Opens the store and checks that all keys up to `last` exist. Returns the time that opening took.
fn check(directories: &[PathBuf], last: Option<u32>, what: &str) -> Duration {
    let (store, took) = timed(|| open(directories, &small()));
    let found = there(&store);
    assert!(
        last.is_none_or(|last| found > last),
        "{what}: {found} keys, {last:?} was acknowledged"
    );
    took
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let Some(longest) = times.last() else { return };
    let median = times[times.len() / 2];
    println!(
        "{what}: {} rounds, opened in {median:.1?} (median), {longest:.1?} (longest)",
        times.len()
    );
}

/// Runs one test at a time: both have a child that reads its task from the same file.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let _turn = TURN.lock();
    let (scratch, rng) = (Scratch::new(), &mut Rng::derive(1, "kills"));
    let mut directories = scratch.directories(1);
    let mut times = Vec::new();
    for round in 0..wanted("LEVELHEAD_ROUNDS").unwrap_or(ROUNDS) {
        // Starts a new store before this one is full.
        if round % 12 == 11 {
            let _ = fs::remove_dir_all(&directories[0]);
            directories = vec![scratch.path().join(format!("store-{round}"))];
        }
        let last = killed(&directories, Windows::Off, rng);
        assert!(last.is_some(), "some were acknowledged");
        times.push(check(&directories, last, &format!("round {round}")));
    }
    report("one directory", times);
    let _ = fs::remove_file(wanted_path(std::process::id()));
}

/// The damage to one of three directories.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Removed,
    /// Its pages read as zeros, as on a replaced drive.
    Blank,
    /// Some bytes of its pages are changed.
    Damaged,
}

fn copy(from: &[PathBuf], to: &[PathBuf]) {
    for (from, to) in from.iter().zip(to) {
        let _ = fs::remove_dir_all(to);
        fs::create_dir_all(to).expect("it can be made");
        for name in ["data", "LEVELHEAD"] {
            fs::copy(from.join(name), to.join(name)).expect("it can be copied");
        }
    }
}

fn lose(directory: &Path, loss: Loss, rng: &mut Rng) {
    let data = directory.join("data");
    match loss {
        Loss::Removed => fs::remove_dir_all(directory).expect("it is ours"),
        Loss::Blank => {
            let file = OpenOptions::new().write(true).open(data).expect("it is there");
            let bytes = file.metadata().expect("it is there").len();
            file.set_len(0).and_then(|()| file.set_len(bytes)).expect("it can be cut");
        }
        Loss::Damaged => {
            let file = OpenOptions::new().write(true).open(data).expect("it is there");
            let blocks = file.metadata().expect("it is there").len() / 4096;
            for _ in 0..1_000 {
                let at = rng.below(blocks) * 4096 + rng.below(4096 - 8);
                file.write_all_at(&rng.next_u64().to_le_bytes(), at).expect("it can be written");
            }
        }
    }
}

#[test]
fn one_of_three_directories_may_be_lost_besides() {
    kill_and_lose(2, Windows::Off, ROUNDS);
}

/// The kill may come in any part of a slot.
#[test]
fn one_of_three_directories_may_be_lost_besides_with_windows() {
    // Each kind of loss once, because the rounds are long.
    kill_and_lose(3, Windows::Rails, ROUNDS / 2);
}

fn kill_and_lose(seed: u64, windows: Windows, rounds: usize) {
    let _turn = TURN.lock();
    let (scratch, rng) = (Scratch::new(), &mut Rng::derive(seed, "kills"));
    let mut directories = scratch.directories(3);
    let copies: Vec<_> = (0..3).map(|n| scratch.path().join(format!("copy{n}"))).collect();
    let losses = [Loss::Removed, Loss::Blank, Loss::Damaged];
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..wanted("LEVELHEAD_ROUNDS").unwrap_or(rounds) {
        if round % 12 == 11 {
            for directory in &directories {
                let _ = fs::remove_dir_all(directory);
            }
            directories = (0..3).map(|n| scratch.path().join(format!("d{n}-{round}"))).collect();
        }
        let (member, loss) = (rng.below(3) as usize, losses[round % 3]);
        let what = format!("round {round}, directory {member} {loss:?}");
        let last = killed(&directories, windows, rng);
        copy(&directories, &copies);
        lose(&copies[member], loss, rng);
        times[round % 3].push(check(&copies, last, &what));
        // The store continues with the remaining directories, and is killed once more.
        let last = killed(&copies, windows, rng);
        check(&copies, last, &format!("{what}, written to and killed"));
        times[3].push(check(&directories, None, &format!("round {round}")));
    }
    let [removed, blank, damaged, whole] = times;
    report("three directories, one removed", removed);
    report("three directories, one blank", blank);
    report("three directories, one damaged", damaged);
    report("three directories, all there", whole);
    let _ = fs::remove_file(wanted_path(std::process::id()));
}
