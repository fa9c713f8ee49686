//! Clients of a store whose members fail: writers, readers, snapshot readers, and one that
//! compacts, settles and copies.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

use levelhead::{Batch, Durability, Error, Range, Store};
use runtime::Rng;

use super::line::{Bounds, Found, KEYS, Line, key, number_of, stamp_of, value};
use super::plan::Harm;
use super::watch::{Watch, lock};
use crate::scratch::by_threads;

pub(crate) const WRITERS: u32 = 3;
/// The maximum number of writes of one writer in a run.
const WRITES: usize = 2_500;
/// A key of no writer, which tests whether a store takes writes.
pub(crate) const PROBE: &[u8] = b"~";
/// A client stops after this many errors, since more would show nothing new.
const REFUSALS: u32 = 20;

/// The shared state of all clients, and their complaints.
pub(crate) struct Clients<'a> {
    pub store: &'a Store,
    pub lines: &'a [Mutex<Line>],
    pub harm: &'a Mutex<Harm>,
    pub watch: &'a Watch,
    /// The directory for copies.
    pub copies: &'a Path,
    pub members: usize,
    pub is_over: AtomicBool,
    pub complaints: Mutex<Vec<String>>,
    /// Operations that succeeded.
    pub done: AtomicU64,
}

#[expect(clippy::disallowed_methods, reason = "histories in real time")]
pub(crate) fn pause(time: Duration) {
    thread::sleep(time);
}

/// Returns the state of each writer's keys, from pairs in key order.
pub(crate) fn states(range: Range) -> Result<Result<Vec<Found>, String>, Error> {
    let mut all = vec![Found::new(); WRITERS as usize];
    let mut last: Option<Box<[u8]>> = None;
    for pair in range {
        let (name, value) = pair?;
        if last.as_ref().is_some_and(|last| *last >= name) {
            return Ok(Err(format!("keys do not rise: {last:?}, {name:?}")));
        }
        if *name == *PROBE {
            continue;
        }
        let Some((writer, number)) = number_of(&name) else {
            return Ok(Err(format!("nobody wrote key {}", name.escape_ascii())));
        };
        match stamp_of(writer, number, &value) {
            Ok(stamp) => all[writer as usize].insert(number, stamp),
            Err(wrong) => return Ok(Err(wrong)),
        };
        last = Some(name);
    }
    Ok(Ok(all))
}

impl Clients<'_> {
    pub(crate) fn complain(&self, what: String) {
        lock(&self.complaints).push(what);
    }

    /// Returns the value, or `None` for an error. Complains about an error that no fault explains,
    /// or that redundancy should have hidden.
    pub(crate) fn good<T>(&self, what: &str, outcome: Result<T, Error>) -> Option<T> {
        let error = match outcome {
            Ok(value) => {
                self.done.fetch_add(1, Ordering::Relaxed);
                return Some(value);
            }
            Err(error) => error,
        };
        let harm = lock(self.harm).clone();
        let is_allowed = match &error {
            Error::TooOld { .. } | Error::System { kind: ErrorKind::OutOfMemory, .. } => true,
            Error::Invalid(_) => false,
            Error::Damaged { .. } => harm.may_show(self.members) && harm.unreadable,
            _ => harm.may_show(self.members),
        };
        if !is_allowed {
            self.complain(format!("{what}: {error:?}, and this is all that happened: {harm:?}"));
        }
        None
    }

    pub(crate) fn bounds(&self) -> Vec<Bounds> {
        self.lines.iter().map(|line| lock(line).live()).collect()
    }

    /// Checks that the state found of each writer is one that its writes explain, between the
    /// moments `before` and `after`.
    pub(crate) fn check(&self, what: &str, found: &[Found], before: &[Bounds], after: &[Bounds]) {
        for (n, found) in found.iter().enumerate() {
            let bounds = (before[n].0, after[n].1);
            if let Err(wrong) = lock(&self.lines[n]).explains(found, bounds) {
                self.complain(format!("{what}: {wrong}"));
            }
        }
    }

    pub(crate) fn start<'s>(&'s self, scope: &'s Scope<'s, '_>, rng: &mut Rng) {
        for number in 0..WRITERS + 4 {
            let mut client = Client { clients: self, rng: Rng::new(rng.next_u64()), number };
            scope.spawn(move || client.run());
        }
    }
}

struct Client<'s, 'a> {
    clients: &'s Clients<'a>,
    rng: Rng,
    number: u32,
}

impl Client<'_, '_> {
    fn run(&mut self) {
        let pace = [0, 0, 100, 2_000][self.rng.below(4) as usize];
        let durable = [0.01, 0.2, 1.0][self.rng.below(3) as usize];
        let mut refused = 0;
        while !self.clients.is_over.load(Ordering::Relaxed) && refused < REFUSALS {
            if pace > 0 {
                pause(Duration::from_micros(self.rng.below(pace)));
            }
            let succeeded = match self.number {
                0..WRITERS => self.write(durable),
                3 | 4 => self.read(),
                5 => self.read_snapshot(),
                _ => self.tend(),
            };
            if !succeeded {
                refused += 1;
                pause(Duration::from_millis(1));
            }
        }
    }

    fn write(&mut self, durable: f64) -> bool {
        let (clients, rng) = (self.clients, &mut self.rng);
        let line = &clients.lines[self.number as usize];
        if lock(line).len() > WRITES {
            return false;
        }
        if rng.below(100) == 0 {
            let synced = clients.watch.call("sync", || clients.store.sync());
            let synced = clients.good("sync", synced).is_some();
            if synced {
                lock(line).synced();
            }
            return synced;
        }
        let several = if rng.below(8) == 0 { 2 + rng.below(10) } else { 1 };
        let first = rng.below(KEYS);
        let of = |n| (((first + 7 * n) % KEYS) as u32, rng.below(5) > 0);
        let of: Vec<(u32, bool)> = (0..several).map(of).collect();
        let durability = match rng.below(2) {
            n if !rng.chance(durable) => [Durability::None, Durability::Interval][n as usize],
            0 => Durability::Group,
            _ => Durability::Each,
        };
        let stamp = lock(line).begin(of.clone());
        let put = clients.watch.call("write", || self.put(&of, stamp, durability));
        let is_durable = matches!(durability, Durability::Group | Durability::Each);
        let is_sure = clients.good("write", put).is_some();
        lock(line).end(is_sure, is_durable);
        is_sure
    }

    fn put(&self, of: &[(u32, bool)], stamp: u64, durability: Durability) -> Result<(), Error> {
        let (store, writer) = (self.clients.store, self.number);
        let value = |number| value(writer, number, stamp);
        if let [(number, gives)] = of {
            let key = key(writer, *number);
            return if *gives {
                store.put_with(&key, &value(*number), durability)
            } else {
                store.delete_with(&key, durability)
            };
        }
        let mut batch = Batch::new();
        for (number, gives) in of {
            let key = key(writer, *number);
            if *gives { batch.put(&key, &value(*number)) } else { batch.delete(&key) }
        }
        store.write_with(&batch, durability)
    }

    fn read(&mut self) -> bool {
        let clients = self.clients;
        let before = clients.bounds();
        if self.rng.below(20) == 0 {
            let all = clients.watch.call("range", || states(clients.store.range(..)));
            let Some(all) = clients.good("range", all) else { return false };
            match all {
                Ok(all) => clients.check("a range", &all, &before, &clients.bounds()),
                Err(wrong) => clients.complain(format!("a range: {wrong}")),
            }
            return true;
        }
        let (writer, number) = (self.rng.below(WRITERS.into()) as u32, self.rng.below(KEYS) as u32);
        let name = key(writer, number);
        let got = clients.watch.call("get", || clients.store.get(&name));
        let Some(found) = clients.good("get", got) else { return false };
        let stamp = found.map(|found| stamp_of(writer, number, &found)).transpose();
        let line = lock(&clients.lines[writer as usize]);
        let bounds = (before[writer as usize].0, line.len());
        let checked = stamp.and_then(|stamp| line.explains_one(number, stamp, bounds));
        if let Err(wrong) = checked {
            clients.complain(format!("a get: {wrong}"));
        }
        true
    }

    /// Checks that a snapshot shows one instant, now and later.
    fn read_snapshot(&mut self) -> bool {
        let clients = self.clients;
        let before = clients.bounds();
        let taken = clients.watch.call("snapshot", || clients.store.snapshot());
        let Some(snapshot) = clients.good("snapshot", taken) else { return false };
        let after = clients.bounds();
        for _ in 0..2 {
            pause(Duration::from_millis(self.rng.below(15)));
            let all = clients.watch.call("range of a snapshot", || states(snapshot.range(..)));
            let Some(all) = clients.good("range of a snapshot", all) else { return false };
            match all {
                Ok(all) => clients.check("a snapshot", &all, &before, &after),
                Err(wrong) => clients.complain(format!("a snapshot: {wrong}")),
            }
        }
        true
    }

    fn tend(&mut self) -> bool {
        pause(Duration::from_millis(self.rng.below(30)));
        let (clients, store) = (self.clients, self.clients.store);
        match self.rng.below(8) {
            0..4 => {
                let compacted = clients.watch.call("compact", || store.compact());
                clients.good("compact", compacted).is_some()
            }
            4 | 5 => {
                clients.watch.call("settle", || store.settle());
                true
            }
            6 => {
                clients.watch.call("statistics", || store.statistics());
                true
            }
            _ => self.copy(),
        }
    }

    /// Checks that a checkpoint shows one instant, and opens as a store.
    fn copy(&mut self) -> bool {
        let clients = self.clients;
        let to = clients.copies.join(format!("{}", self.rng.next_u64()));
        let before = clients.bounds();
        let copied = clients
            .watch
            .call("checkpoint", || clients.store.checkpoint(&to, &by_threads(), |_| ()));
        let after = clients.bounds();
        let Ok(_) = copied else { return false };
        let opened = clients.watch.call("opening of a copy", || Store::open(&to, &by_threads()));
        // Errors are permitted: the copy is on a disk of the members.
        if let Ok(copy) = opened
            && let Ok(all) = clients.watch.call("range of a copy", || states(copy.range(..)))
        {
            match all {
                Ok(all) => clients.check("a copy", &all, &before, &after),
                Err(wrong) => clients.complain(format!("a copy: {wrong}")),
            }
        }
        let _ = std::fs::remove_dir_all(to);
        true
    }
}
