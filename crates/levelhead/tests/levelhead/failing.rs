//! Two or three of three directories whose disks fail for a moment: reads while the store is
//! opened, writes and syncs while it is in use. Once the disks work again, the store opens with all
//! acknowledged writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use faultfs::{Fails, FaultFs, Faults, Kind};
use levelhead::{Durability, Error, Options, Store};
use runtime::Rng;

use crate::scratch::{STANDS_STILL, by_threads, faulty, seeds, told_while, wanted};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// The interval of failing reads during an opening; `LEVELHEAD_EVERY` sets another one.
const EVERY: u64 = 13;
/// More reads than an opening makes of a directory.
const READS: u64 = 700;
/// Pairs in the store that is opened.
const PAIRS: u64 = 500;
/// Trials with two drives that fail one after the other; `LEVELHEAD_ROUNDS` sets another number.
const ROUNDS: u64 = 4;
/// The name of the file that lists the directories for the writing process.
const WANTED: &str = "failing-store-directories";

pub(crate) fn key(n: u64) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

/// Returns three file systems with a directory on each; `None` if FUSE is not available.
pub(crate) fn three() -> Option<(Vec<FaultFs>, Vec<PathBuf>)> {
    let drives: Vec<FaultFs> = (0..3).map(faulty).collect::<Option<_>>()?;
    let directories = drives.iter().map(|drive| drive.path().join("d")).collect();
    Some((drives, directories))
}

pub(crate) fn mend(drives: &[FaultFs]) {
    for drive in drives {
        drive.set_faults(Faults::default());
    }
}

fn pairs_of(store: &Store) -> Result<u64, Error> {
    store.range(..).try_fold(0, |pairs, pair| pair.map(|_| pairs + 1))
}

/// Opens the store while reads from the `after`th on fail. Returns the numbers of successful and of
/// refused openings.
fn open_while_reads_fail(
    (drives, directories): &(Vec<FaultFs>, Vec<PathBuf>),
    (after, times): (u64, u64),
    options: &Options,
) -> [u64; 2] {
    let mut counts = [0; 2];
    for failing in [2, 3] {
        let fails = vec![Fails { kind: Kind::Read, after, times, errno: EIO }];
        for drive in &drives[..failing] {
            drive.set_faults(Faults { fails: fails.clone(), ..Faults::default() });
        }
        let opened = Store::open_over(directories, options);
        mend(drives);
        let what = format!("{failing} drives, {times} reads from {after} on, {options:?}");
        counts[usize::from(opened.is_err())] += 1;
        if let Ok(store) = opened {
            assert_eq!(pairs_of(&store).expect(&what), PAIRS, "{what}");
        }
        let store = Store::open_over(directories, &by_threads());
        let store = store.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(pairs_of(&store).expect(&what), PAIRS, "opened again, {what}");
    }
    counts
}

#[test]
fn reads_of_several_directories_may_fail_while_a_store_is_opened() {
    let Some(three) = three() else { return };
    let store = Store::open_over(&three.1, &by_threads()).expect("all is well");
    for n in 0..PAIRS {
        store.put_with(&key(n), &[1; 600], Durability::None).expect("there is room");
    }
    store.sync().expect("all is well");
    store.close().expect("all is well");
    let every = wanted("LEVELHEAD_EVERY").unwrap_or(EVERY);
    let mut counts = [0; 2];
    for after in (0..READS).step_by(every as usize) {
        for times in [1, u64::MAX] {
            // Varies the combinations: each option follows the other.
            let read_only = (after / every + times % 2) % 4 == 0;
            let options = Options { read_only, ..by_threads() };
            let [opened, refused] = open_while_reads_fail(&three, (after, times), &options);
            counts = [counts[0] + opened, counts[1] + refused];
        }
    }
    println!("{} openings went well, {} were refused", counts[0], counts[1]);
    assert!(counts.iter().all(|count| *count > 0));
}

/// Lets the writes of `failing` disks fail, from the `after`th on, while the store is in use, so
/// that the next opening has something to repair.
fn put_until_writes_fail(
    (drives, directories): &(Vec<FaultFs>, Vec<PathBuf>),
    (failing, after): (usize, u64),
) {
    let store = Store::open_over(directories, &by_threads()).expect("all is well");
    let fails = vec![Fails { kind: Kind::Write, after, times: u64::MAX, errno: EIO }];
    for drive in drives.iter().rev().take(failing) {
        drive.set_faults(Faults { fails: fails.clone(), ..Faults::default() });
    }
    let put = |n| store.put(&key(n), &[2; 600]);
    let refused = (0..30).map(put).filter(Result::is_err).count();
    assert!(failing > 1 || refused == 0, "redundancy bears one");
    drop(store);
    mend(drives);
}

/// The `after`th write of an opening or a later one finds the disk full. A store that opens
/// nevertheless must take writes.
#[test]
fn a_store_opens_that_takes_writes_or_not_at_all_where_a_disk_is_full_for_a_moment() {
    let Some(three) = three() else { return };
    let (drives, directories) = &three;
    let mut counts = [0; 2];
    for round in 0..wanted("LEVELHEAD_ROUNDS").unwrap_or(60) {
        let after = round / 3;
        put_until_writes_fail(&three, (1 + round as usize % 3, 7 * (round % 5)));
        let fails = vec![Fails { kind: Kind::Write, after, times: 1 + round % 4, errno: ENOSPC }];
        drives[1].set_faults(Faults { fails, ..Faults::default() });
        let opened = Store::open_over(directories, &by_threads());
        mend(drives);
        counts[usize::from(opened.is_err())] += 1;
        match opened {
            Ok(store) => store.put(&key(after), b"it takes writes").unwrap_or_else(|error| {
                panic!("round {round}: {error}");
            }),
            Err(error) => assert!(matches!(error, Error::Full(_)), "round {round}: {error:?}"),
        }
    }
    println!("{} openings went well, {} were refused", counts[0], counts[1]);
}

fn wanted_path(parent: u32) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{WANTED}-{parent}"))
}

/// Puts until one is refused, and prints the acknowledged puts.
#[test]
#[ignore = "another test runs it, in a process of its own"]
#[expect(clippy::disallowed_methods, reason = "a watchdog in real time")]
fn puts_until_it_is_refused() {
    let Ok(text) = fs::read_to_string(wanted_path(std::os::unix::process::parent_id())) else {
        return;
    };
    let directories: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
    // Ends the process if the store hangs.
    thread::spawn(|| {
        thread::sleep(Duration::from_mins(5));
        std::process::exit(STANDS_STILL);
    });
    let store = Store::open_over(&directories, &by_threads()).expect("all is well");
    for n in 0..u64::from(u32::MAX) {
        let durability = if n % 8 == 7 { Durability::Group } else { Durability::None };
        if store.put_with(&key(n), &[n as u8; 900], durability).is_err() {
            return;
        }
        if durability == Durability::Group {
            println!("acknowledged {n}");
        }
    }
}

/// Two of three drives fail one after the other, once or permanently, while another process writes.
fn one_trial(seed: u64) -> Option<()> {
    let rng = &mut Rng::derive(seed, "failing");
    let (drives, directories) = three()?;
    let paths: Vec<_> = directories.iter().map(|path| path.to_str().expect("a name")).collect();
    fs::write(wanted_path(std::process::id()), paths.join("\n")).expect("it can be written");
    let first = rng.below(3) as usize;
    let kinds =
        [Kind::Write, Kind::Sync].map(|kind| if rng.chance(0.5) { kind } else { Kind::Sync });
    let times = [1, u64::MAX][rng.below(2) as usize];
    let mut due = [1 + rng.below(300), 1 + rng.below(300)];
    due[1] += due[0];
    let mut heard = 0;
    let last = told_while("failing::puts_until_it_is_refused", |_| {
        heard += 1;
        for (step, kind) in kinds.into_iter().enumerate().filter(|(step, _)| due[*step] == heard) {
            let fails = vec![Fails { kind, after: 0, times, errno: EIO }];
            let drive = &drives[(first + step) % drives.len()];
            drive.set_faults(Faults { fails, ..Faults::default() });
        }
        true
    });
    mend(&drives);
    let what = format!("seed {seed}: {kinds:?} of drive {first} and the next, {times} times");
    let store = Store::open_over(&directories, &by_threads());
    let store = store.unwrap_or_else(|error| panic!("{what}: {error}"));
    for n in 0..=last.map_or(0, u64::from) {
        let found = store.get(&key(n)).unwrap_or_else(|error| panic!("{what}, {n}: {error}"));
        assert_eq!(found.as_deref(), Some(&[n as u8; 900][..]), "{what}, {n} of {last:?}");
    }
    Some(())
}

#[test]
fn two_of_three_drives_may_fail_one_after_the_other() {
    let rounds = wanted("LEVELHEAD_ROUNDS").unwrap_or(ROUNDS);
    for seed in seeds(rounds) {
        println!(
            "replay: LEVELHEAD_SEED={seed} cargo test -p levelhead --test levelhead two_of_three_drives"
        );
        if one_trial(seed).is_none() {
            return;
        }
    }
}
