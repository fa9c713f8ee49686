//! Power failures at random moments, on a file system that keeps no more than it must: all writes
//! acknowledged as durable survive, and the other writes survive up to some point in write order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use faultfs::{Fails, FaultFs, Faults, Ignored, Kind};
use levelhead::{Batch, Durability, Error, Options, Store, Windows, repair};
use runtime::Rng;
use volume::header;

use crate::scratch::{by_threads, faulty, seeds, wanted};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Rounds of each trial; `LEVELHEAD_ROUNDS` sets another number. A round is some work, a power cut,
/// and a check of the surviving data.
const ROUNDS: u64 = 24;
/// Rounds per seed, on one file system.
const ROUNDS_OF_A_SEED: u64 = 8;
/// A trial that takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(5);

/// An atomic write: keys and their new values; `None` for a delete.
type Write = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The writes of one client since the store was opened.
#[derive(Default)]
struct History {
    base: Map,
    writes: Vec<Write>,
    /// The number of writes that are durable for certain.
    durable: usize,
}

impl History {
    /// Checks that `found` is the result of a prefix of the writes that includes at least the
    /// durable ones. Returns the differences if it is not.
    fn explains(&self, found: &Map) -> Result<(), String> {
        let mut state = self.base.clone();
        let mut wrong = None;
        for n in 0..=self.writes.len() {
            if n >= self.durable {
                if state == *found {
                    return Ok(());
                }
                wrong.get_or_insert_with(|| differences(&state, found));
            }
            for (key, value) in self.writes.get(n).into_iter().flatten() {
                match value {
                    Some(value) => drop(state.insert(key.clone(), value.clone())),
                    None => drop(state.remove(key)),
                }
            }
        }
        let (durable, all) = (self.durable, self.writes.len());
        let wrong = wrong.unwrap_or_default();
        Err(format!(
            "no prefix of {all} writes, of which {durable} are durable, explains what is there; beside the durable ones: {wrong}"
        ))
    }
}

fn differences(expected: &Map, found: &Map) -> String {
    let text = |value: Option<&Vec<u8>>| match value {
        Some(value) => {
            format!(
                "{} bytes {}",
                value.len(),
                String::from_utf8_lossy(&value[..value.len().min(12)])
            )
        }
        None => "nothing".to_owned(),
    };
    let keys = expected.keys().chain(found.keys().filter(|key| !expected.contains_key(*key)));
    let differ = keys.filter(|key| expected.get(*key) != found.get(*key));
    let lines = differ.map(|key| {
        let (expected, found) = (text(expected.get(key)), text(found.get(key)));
        format!("{}: {expected} expected, {found} found", String::from_utf8_lossy(key))
    });
    lines.take(5).collect::<Vec<_>>().join("; ")
}

/// Returns a value that no other write has.
fn value(rng: &mut Rng, client: usize, number: usize) -> Vec<u8> {
    let mut value = format!("{client}:{number}:").into_bytes();
    let bytes = match rng.below(80) {
        0 => 30_000,
        1 => 100_000,
        2 | 3 => 0,
        _ => rng.below(1_500) as usize,
    };
    value.resize(value.len() + bytes, rng.next_u64() as u8);
    value
}

/// Returns a key of a client; some keys have the maximum length.
fn key(rng: &mut Rng, client: usize) -> Vec<u8> {
    let number = rng.below(700);
    let key = format!("{client}-{number:04}").into_bytes();
    if number.is_multiple_of(50) { [key, vec![number as u8; 249]].concat() } else { key }
}

/// Returns a single write, or a batch.
fn write(rng: &mut Rng, client: usize, number: usize) -> Write {
    let writes = if rng.below(40) == 0 { 2 + rng.below(30) } else { 1 };
    let one = |_| (key(rng, client), (rng.below(5) > 0).then(|| value(rng, client, number)));
    (0..writes).map(one).collect()
}

fn put(store: &Store, write: &Write, durability: Durability) -> Result<(), Error> {
    match &write[..] {
        [(key, Some(value))] => store.put_with(key, value, durability),
        [(key, None)] => store.delete_with(key, durability),
        several => {
            let mut batch = Batch::new();
            for (key, value) in several {
                match value {
                    Some(value) => batch.put(key, value),
                    None => batch.delete(key),
                }
            }
            store.write_with(&batch, durability)
        }
    }
}

/// Writes until the power fails or enough was written.
fn work(store: &Store, client: usize, history: &mut History, rng: &mut Rng) {
    let durable_ones = [0.0, 0.02, 0.3, 1.0][rng.below(4) as usize];
    for number in 0..[300, 3_000][rng.below(2) as usize] {
        let write = write(rng, client, number);
        let durability = match rng.below(2) {
            _ if !rng.chance(durable_ones) => [Durability::None, Durability::Interval][number % 2],
            0 => Durability::Group,
            _ => Durability::Each,
        };
        history.writes.push(write);
        match put(store, &history.writes[history.writes.len() - 1], durability) {
            Ok(()) => {}
            Err(Error::Full(_) | Error::Invalid(_)) => {
                history.writes.pop();
                continue;
            }
            Err(_) => return,
        }
        if matches!(durability, Durability::Group | Durability::Each) {
            history.durable = history.writes.len();
        }
        if rng.below(200) == 0 {
            match store.sync() {
                Ok(()) => history.durable = history.writes.len(),
                Err(_) => return,
            }
        }
        if rng.below(30) == 0 {
            let _ = store.get(&key(rng, client));
        }
    }
}

fn pairs(store: &Store, client: usize) -> Result<Map, Error> {
    let (from, to) = (format!("{client}-"), format!("{client}."));
    let pairs = store.range(from.as_bytes()..to.as_bytes());
    pairs.map(|pair| pair.map(|(key, value)| (key.into(), value))).collect()
}

/// Clients of a trial.
const CLIENTS: usize = 3;

struct Trial {
    fs: FaultFs,
    directories: Vec<PathBuf>,
    options: Options,
    may_have_windows: bool,
    histories: Vec<History>,
    rng: Rng,
}

impl Trial {
    fn new(seed: u64, fs: FaultFs) -> Self {
        let mut rng = Rng::derive(seed, "power");
        let store = fs.path().join("a").join("store");
        let directories = if rng.below(4) == 0 {
            (0..3).map(|n| store.join(format!("d{n}"))).collect()
        } else {
            vec![store]
        };
        let inline_up_to = [0, 0, 100, 1_000][rng.below(4) as usize];
        let histories = (0..CLIENTS).map(|_| History::default()).collect();
        let page_bytes = 4096 << rng.below(4);
        let options = Options { page_bytes, inline_up_to, ..by_threads() };
        Self { fs, directories, options, may_have_windows: false, histories, rng }
    }

    /// A store over three directories that is sometimes opened with windows.
    fn with_windows(seed: u64, fs: FaultFs) -> Self {
        let mut trial = Self::new(seed, fs);
        let store = trial.fs.path().join("a").join("windows");
        trial.directories = (0..3).map(|n| store.join(format!("d{n}"))).collect();
        trial.may_have_windows = true;
        trial
    }

    fn open(&self) -> Result<Store, Error> {
        Store::open_over(&self.directories, &self.options)
    }

    /// Opens the store and works on it until the power fails.
    fn live(&mut self) {
        if self.may_have_windows {
            let windows = [Windows::Rails, Windows::Rails, Windows::Off];
            self.options.windows = windows[self.rng.below(3) as usize];
            self.options.plm_cache_bytes = [1, 300_000, 4 << 20][self.rng.below(3) as usize];
        }
        self.options.memtable_bytes = [0, 1, 1, 2][self.rng.below(4) as usize] << 20;
        self.options.memory_bytes = [4, 16, 64][self.rng.below(3) as usize] << 20;
        let most = [3, 40, 400, 3_000][self.rng.below(4) as usize];
        self.fs.cut_after(1 + self.rng.below(most));
        if let Ok(store) = self.open() {
            let clients = 1 + self.rng.below(CLIENTS as u64) as usize;
            let seed = self.rng.next_u64();
            std::thread::scope(|scope| {
                for (client, history) in self.histories.iter_mut().enumerate().take(clients) {
                    let (store, rng) = (store.clone(), Rng::derive(seed + client as u64, "client"));
                    scope.spawn(move || work(&store, client, history, &mut { rng }));
                }
                if self.rng.below(4) == 0 {
                    scope.spawn(|| store.compact());
                }
            });
            if self.rng.below(4) == 0 {
                store.settle();
            }
            self.fs.cut();
        } else {
            assert!(self.fs.is_off(), "it opens, unless power fails");
        }
    }

    /// Opens the store after a cut and checks its contents.
    fn look(&mut self) -> Result<(), String> {
        self.fs.power_on();
        let store = self.open().map_err(|error| format!("it does not open: {error}"))?;
        for (client, history) in self.histories.iter_mut().enumerate() {
            let found = pairs(&store, client).map_err(|error| error.to_string())?;
            history.explains(&found)?;
            for (key, value) in &found {
                let got = store.get(key).map_err(|error| error.to_string())?;
                if got.as_ref() != Some(value) {
                    return Err("a get and a range differ".to_owned());
                }
            }
            *history = History { base: found, ..History::default() };
        }
        Ok(())
    }

    /// Runs a number of rounds. On an error, returns its description and the location of a copy of
    /// the files.
    fn run(&mut self, seed: u64, test: &str, rounds: u64) -> Result<(), String> {
        for round in 0..rounds {
            self.live();
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{seed}"));
            let looked = catch_unwind(AssertUnwindSafe(|| self.look()));
            let wrong = match looked {
                Ok(Ok(())) => continue,
                Ok(Err(wrong)) => wrong,
                Err(panic) => {
                    eprintln!("{}", replay(seed, test));
                    resume_unwind(panic)
                }
            };
            let _ = std::fs::remove_dir_all(&kept);
            let saved = match self.fs.save_left(&kept) {
                Ok(()) => format!("what the cut left is in {}", kept.display()),
                Err(error) => format!("what the cut left cannot be saved: {error}"),
            };
            return Err(format!(
                "seed {seed}, round {round}: {wrong}\n{saved}\n{}",
                replay(seed, test)
            ));
        }
        Ok(())
    }
}

fn replay(seed: u64, test: &str) -> String {
    format!("LEVELHEAD_SEED={seed} cargo test -p levelhead --test levelhead -- --nocapture {test}")
}

/// Runs a trial, and aborts the process if it hangs.
fn within_patience<T: Send>(seed: u64, test: &str, trial: impl FnOnce() -> T + Send) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("seed {seed} hangs\n{}", replay(seed, test));
                std::process::abort();
            }
        });
        let outcome = trial();
        drop(done);
        outcome
    })
}

#[test]
fn power_may_fail_at_any_moment() {
    run_trials("power_may_fail_at_any_moment", ROUNDS, Trial::new);
}

#[test]
fn power_may_fail_in_any_part_of_a_slot() {
    run_trials("power_may_fail_in_any_part_of_a_slot", 2 * ROUNDS_OF_A_SEED, Trial::with_windows);
}

fn run_trials(test: &'static str, usual: u64, of: fn(u64, FaultFs) -> Trial) {
    let rounds: u64 = wanted("LEVELHEAD_ROUNDS").unwrap_or(usual);
    let seeds = seeds(rounds.div_ceil(ROUNDS_OF_A_SEED));
    let (mut failed, mut changes) = (Vec::new(), 0);
    for seed in seeds.clone() {
        let Some(fs) = faulty(seed) else { return };
        let mut trial = of(seed, fs);
        let outcome = within_patience(seed, test, || trial.run(seed, test, ROUNDS_OF_A_SEED));
        changes += trial.fs.changes();
        failed.extend(outcome.err());
    }
    let rounds = (seeds.end - seeds.start) * ROUNDS_OF_A_SEED;
    println!(
        "{rounds} rounds, {changes} writes, syncs and changes of names, {} failed",
        failed.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn a_store_is_made_whole_or_not_at_all() {
    for members in [1, 3] {
        let mut steps = 0;
        // Each step twice, because the surviving writes are random.
        for seed in 0.. {
            let Some(fs) = faulty(seed) else { return };
            let after = 1 + seed / 2;
            fs.cut_after(after);
            let store = fs.path().join("a").join("b");
            let directories: Vec<_> = (0..members).map(|n| store.join(format!("d{n}"))).collect();
            let made = Store::open_over(&directories, &by_threads());
            let was_cut = fs.is_off();
            drop(made);
            fs.cut();
            fs.power_on();
            let open = || {
                let opened = Store::open_over(&directories, &by_threads());
                opened
                    .unwrap_or_else(|error| panic!("{members}, step {after}, seed {seed}: {error}"))
            };
            let store = open();
            assert_eq!(store.range(..).count(), 0);
            store.put_with(b"key", b"value", Durability::Group).expect("there is power");
            fs.cut();
            drop(store);
            fs.power_on();
            assert_eq!(open().get(b"key").expect("it is there").as_deref(), Some(&b"value"[..]));
            steps = after;
            if !was_cut {
                break;
            }
        }
        println!("over {members}: {steps} steps");
    }
}

/// A name that was not synced exists until the power fails, so a process that opens the store must
/// sync it.
#[test]
fn a_store_whose_making_failed_at_a_sync_is_whole_when_it_was_opened() {
    for members in [1, 3] {
        for seed in 0.. {
            let Some(fs) = faulty(seed) else { return };
            // Each sync twice, because the surviving writes are random.
            let fails = Fails { kind: Kind::Sync, after: seed / 2, times: 1, errno: 5 };
            fs.set_faults(Faults { fails: vec![fails], ..Faults::default() });
            let store = fs.path().join("a").join("b");
            let directories: Vec<_> = (0..members).map(|n| store.join(format!("d{n}"))).collect();
            let is_made = Store::open_over(&directories, &by_threads()).map(drop).is_ok();
            fs.set_faults(Faults::default());
            let open = |create_if_missing| {
                let options = Options { create_if_missing, ..by_threads() };
                let opened = Store::open_over(&directories, &options);
                opened.unwrap_or_else(|error| panic!("{members}, {fails:?}: {error}"))
            };
            let store = open(true);
            store.put_with(b"key", b"value", Durability::Group).expect("all is well");
            fs.cut();
            drop(store);
            fs.power_on();
            let found = open(false).get(b"key").expect("it is there");
            assert_eq!(found.as_deref(), Some(&b"value"[..]), "{members}, {fails:?}");
            if is_made {
                break;
            }
        }
    }
}

/// Else, if one directory were lost, the others would not have enough to show that the store was
/// empty.
#[test]
fn a_store_that_was_made_is_on_all_of_its_directories() {
    for seed in 0..8 {
        let Some(fs) = faulty(seed) else { return };
        let directories: Vec<_> = (0..3).map(|n| fs.path().join(format!("d{n}"))).collect();
        let store = Store::open_over(&directories, &by_threads()).expect("there is power");
        fs.cut();
        drop(store);
        fs.power_on();
        for directory in &directories {
            let data = std::fs::read(directory.join("data")).expect("it is there");
            assert!(header::decode(&data).is_some(), "seed {seed}: {}", directory.display());
        }
    }
}

/// Acknowledged copies are complete: those of a checkpoint and those of a repair.
#[test]
fn a_copy_that_was_acknowledged_outlives_a_cut() {
    for seed in 0..8 {
        let Some(fs) = faulty(seed) else { return };
        let (old, new) = (fs.path().join("old"), fs.path().join("a").join("new"));
        let mut store = Store::open(&old, &by_threads()).expect("there is power");
        for n in 0..2_000_u32 {
            let (key, value) = (n.to_be_bytes(), vec![n as u8; 500]);
            store.put_with(&key, &value, Durability::None).expect("there is room");
        }
        if seed % 2 == 0 {
            store.checkpoint(&new, &by_threads(), |_| ()).expect("there is room");
        } else {
            store.close().expect("there is power");
            repair(&[&old], &new, &by_threads(), |_| ()).expect("there is room");
            store = Store::open(&old, &by_threads()).expect("there is power");
        }
        fs.cut();
        drop(store);
        fs.power_on();
        let missing = Options { create_if_missing: false, ..by_threads() };
        let copy = Store::open(&new, &missing).unwrap_or_else(|error| panic!("{seed}: {error}"));
        let pairs = copy.range(..).map(|pair| pair.expect("it is whole"));
        let numbers = pairs.map(|(key, value)| (key, value.len()));
        let wanted = (0..2_000_u32).map(|n| (Box::from(n.to_be_bytes()), 500));
        assert!(numbers.eq(wanted), "seed {seed}");
    }
}

#[test]
fn syncs_that_are_forgotten_are_noticed() {
    let planted = [
        ("of the data", Ignored { file: Some("data"), ..Ignored::default() }),
        (
            "of what says that it is a store",
            Ignored { file: Some(".LEVELHEAD.part"), ..Ignored::default() },
        ),
        ("of directories", Ignored { directories: true, ..Ignored::default() }),
    ];
    for (which, ignored) in planted {
        let caught = (0..40).find_map(|seed| {
            let fs = faulty(seed)?;
            fs.set_faults(Faults { ignored, ..Faults::default() });
            let mut trial = Trial::new(seed, fs);
            let test = "syncs_that_are_forgotten";
            within_patience(seed, test, || trial.run(seed, test, ROUNDS_OF_A_SEED))
                .err()
                .map(|wrong| (seed, wrong))
        });
        match caught {
            Some((seed, wrong)) => println!("syncs {which}: seed {seed}: {wrong}"),
            None if faulty(0).is_none() => return,
            None => panic!("syncs {which} may be left out, and nobody notices"),
        }
    }
}
