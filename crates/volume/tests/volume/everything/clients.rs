//! Clients of a store with failing members: writers, readers, snapshots, iterators, and a
//! compaction.
//!
//! Each client registers the operation it waits for, so that an operation that hangs can be named.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use engine::{BatchOptions, Engine, EngineError, EngineIterator, Step, Value, WriteOptions};
use runtime::{Handle, Nanos, Rng};

use crate::faults::Memory;
use crate::store::Asked;

pub(crate) const WRITERS: u64 = 3;
/// Number of keys of a writer that are written individually.
const SINGLE: u64 = 50;
/// Keys from here on are twins: a batch writes such a key together with the key `TWINS` above it.
const TWINS: u64 = 10_000;

/// The expected state, and the complaints.
pub(crate) struct Clients {
    pub handle: Handle,
    pub asked: Asked,
    /// Whether a command has failed; then errors of operations are no complaints.
    pub has_failed: Rc<Cell<bool>>,
    /// Whether clients end before their next operation.
    pub is_over: Cell<bool>,
    pub complaints: RefCell<Vec<String>>,
    /// Number of operations that succeeded.
    pub done: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, &'static str>>,
    calls: Cell<u64>,
}

impl Clients {
    pub(crate) fn new(handle: &Handle, asked: &Asked, has_failed: &Rc<Cell<bool>>) -> Rc<Self> {
        Rc::new(Self {
            handle: handle.clone(),
            asked: Rc::clone(asked),
            has_failed: Rc::clone(has_failed),
            is_over: Cell::new(false),
            complaints: RefCell::default(),
            done: Cell::new(0),
            waiting: RefCell::default(),
            calls: Cell::new(0),
        })
    }

    /// Returns the operations in progress.
    pub(crate) fn waiting(&self) -> Vec<&'static str> {
        self.waiting.borrow().values().copied().collect()
    }

    /// Runs an operation, registered as in progress meanwhile.
    pub(crate) async fn call<T>(
        &self,
        what: &'static str,
        operation: impl Future<Output = T>,
    ) -> T {
        let number = self.calls.replace(self.calls.get() + 1);
        self.waiting.borrow_mut().insert(number, what);
        let outcome = operation.await;
        self.waiting.borrow_mut().remove(&number);
        outcome
    }

    fn complain(&self, what: String) {
        self.complaints.borrow_mut().push(what);
    }

    /// Returns the value of an outcome. An error without a failure that explains it is a complaint.
    fn good<T>(&self, what: &str, outcome: Result<T, EngineError>) -> Option<T> {
        let is_allowed = |error: &EngineError| {
            let expires =
                matches!(error, EngineError::SnapshotTooOld(_) | EngineError::IteratorMemory);
            expires || self.has_failed.get()
        };
        match outcome {
            Ok(value) => {
                self.done.set(self.done.get() + 1);
                Some(value)
            }
            Err(error) => {
                if !is_allowed(&error) {
                    self.complain(format!("{what}: {error}, and nothing has failed"));
                }
                None
            }
        }
    }

    fn acknowledged(&self, key: u64) -> u64 {
        self.asked.borrow().get(&key).map_or(0, |rounds| rounds.0)
    }

    fn newest(&self, key: u64) -> u64 {
        self.asked.borrow().get(&key).map_or(0, |rounds| rounds.1)
    }

    /// Starts the next round of a key, and returns its number.
    fn begin_round(&self, key: u64) -> u64 {
        let mut asked = self.asked.borrow_mut();
        let newest = &mut asked.entry(key).or_default().1;
        *newest += 1;
        *newest
    }

    fn acknowledge(&self, key: u64, round: u64) {
        self.asked.borrow_mut().entry(key).or_default().0 = round;
    }

    /// Returns all keys in order with the rounds that wrote them; `None` on an error.
    pub(crate) async fn pairs_of(&self, engine: &Engine<Memory>) -> Option<BTreeMap<u64, u64>> {
        let mut iterator = self.good("iterator", engine.create_iterator(None))?;
        let (mut found, mut is_first) = (BTreeMap::new(), true);
        loop {
            let step = self.call("step of an iterator", step(&mut iterator, is_first)).await;
            is_first = false;
            match self.good("step of an iterator", step)? {
                Step::End => return Some(found),
                Step::Again => {}
                Step::Pair(name, value) => {
                    let key = u64::from_be_bytes((*name).try_into().expect("all are so long"));
                    if found.last_key_value().is_some_and(|(last, _)| *last >= key) {
                        self.complain(format!("an iterator: key {key} is out of order"));
                    }
                    found.insert(key, round_of(Some(value)).expect("it has one"));
                }
            }
        }
    }

    /// Writes some keys in sequence, until a write fails.
    pub(crate) async fn write_some(&self, engine: &Engine<Memory>) {
        for key in 0..60 {
            let (round, name) = (self.begin_round(key), key.to_be_bytes());
            let options = WriteOptions::default();
            let done = match value_of(key, round) {
                Some(value) => engine.put(&name, value, options, Nanos::ZERO).await,
                None => engine.delete(&name, options, Nanos::ZERO).await,
            };
            if done.is_err() {
                return;
            }
            self.acknowledge(key, round);
        }
    }

    pub(crate) fn start(self: &Rc<Self>, engine: &Engine<Memory>, rng: &mut Rng) {
        let spawn = |client: Client| {
            self.handle.spawn("client", client.run());
        };
        let rngs: Vec<Rng> = (0..WRITERS + 5).map(|_| Rng::new(rng.next_u64())).collect();
        for (number, rng) in (0..).zip(rngs) {
            let (clients, engine) = (Rc::clone(self), engine.clone());
            spawn(Client { clients, engine, rng, number });
        }
    }
}

async fn step(iterator: &mut EngineIterator<Memory>, is_first: bool) -> Result<Step, EngineError> {
    if is_first {
        iterator.seek(&0_u64.to_be_bytes(), Nanos::ZERO).await
    } else {
        iterator.next(0, Nanos::ZERO).await
    }
}

/// Whether this round of a key deletes it.
fn is_delete(round: u64) -> bool {
    round.is_multiple_of(5)
}

fn value_of(key: u64, round: u64) -> Option<Value> {
    let len = 40 + (round * 397 + key * 31) % 900;
    (!is_delete(round)).then_some(Value::Synthetic { seed: round, len: len as u32 })
}

/// Returns the round that wrote a value.
pub(crate) fn round_of(value: Option<Value>) -> Option<u64> {
    value.map(|value| match value {
        Value::Synthetic { seed, .. } => seed,
        Value::Bytes(_) => unreachable!("none was written"),
    })
}

/// Returns the first round from `low` to `high` that matches the value found.
pub(crate) fn check(key: u64, found: Option<u64>, low: u64, high: u64) -> Result<u64, String> {
    let is_it = |round: &u64| match found {
        Some(found) => *round == found && !is_delete(found),
        None => is_delete(*round),
    };
    let wrong = || format!("key {key} has {found:?}, and not a round of {low} to {high}");
    (low..=high).find(is_it).ok_or_else(wrong)
}

/// Returns the key that is written in the same batch.
pub(crate) fn twin_of(key: u64) -> Option<u64> {
    (TWINS..2 * TWINS).contains(&key).then_some(key + TWINS)
}

struct Client {
    clients: Rc<Clients>,
    engine: Engine<Memory>,
    rng: Rng,
    number: u64,
}

impl Client {
    async fn run(mut self) {
        let mut refused = 0;
        while !self.clients.is_over.get() && refused < 20 {
            // Operations served from memory take no virtual time.
            self.clients.handle.sleep(Nanos(1 + self.rng.below(100_000))).await;
            let succeeded = match self.number {
                0..WRITERS => self.write().await,
                3 | 4 => self.read().await,
                5 => self.scan().await,
                6 => self.read_snapshot().await,
                _ => self.compact().await,
            };
            if !succeeded {
                refused += 1;
                self.clients.handle.sleep(Nanos::from_millis(1)).await;
            }
        }
    }

    async fn write(&mut self) -> bool {
        if self.rng.chance(0.2) {
            return self.write_twins().await;
        }
        let key = self.rng.below(SINGLE) * WRITERS + self.number;
        let clients = &self.clients;
        let (round, name) = (clients.begin_round(key), key.to_be_bytes());
        let options = WriteOptions::default();
        let done = if let Some(value) = value_of(key, round) {
            let put = self.engine.put(&name, value, options, Nanos::ZERO);
            clients.good("put", clients.call("put", put).await)
        } else {
            let delete = self.engine.delete(&name, options, Nanos::ZERO);
            clients.good("delete", clients.call("delete", delete).await)
        };
        if done.is_some() {
            clients.acknowledge(key, round);
        }
        done.is_some()
    }

    async fn write_twins(&mut self) -> bool {
        let key = TWINS + self.rng.below(5) * WRITERS + self.number;
        let clients = &self.clients;
        let round = clients.begin_round(key);
        let of = |name: u64| (Box::from(name.to_be_bytes()), value_of(key, round));
        let batch = vec![of(key), of(key + TWINS)];
        let write = self.engine.write_batch(batch, BatchOptions::default(), Nanos::ZERO);
        let done = clients.good("batch", clients.call("batch", write).await);
        if done.is_some() {
            clients.acknowledge(key, round);
        }
        done.is_some()
    }

    async fn read(&mut self) -> bool {
        let known: Vec<u64> = self.clients.asked.borrow().keys().copied().collect();
        let Some(key) = known.get(self.rng.below(known.len().max(1) as u64) as usize) else {
            return false;
        };
        let clients = &self.clients;
        let low = clients.acknowledged(*key);
        let name = key.to_be_bytes();
        let get = self.engine.get(&name, Nanos::ZERO);
        let Some(found) = clients.good("get", clients.call("get", get).await) else {
            return false;
        };
        if let Err(error) = check(*key, round_of(found.value), low, clients.newest(*key)) {
            clients.complain(format!("a get: {error}"));
        }
        true
    }

    /// Keeps a snapshot for a while, and reads it with two gets of twins.
    async fn read_snapshot(&mut self) -> bool {
        let clients = &self.clients;
        let (asked, key) = (clients.asked.borrow().clone(), TWINS + self.rng.below(15));
        let Some(snapshot) = clients.good("snapshot", self.engine.snapshot()) else {
            return false;
        };
        clients.handle.sleep(Nanos(self.rng.below(5_000_000))).await;
        let mut found = Vec::new();
        for name in [key, key + TWINS] {
            let get = clients
                .call("get of a snapshot", async { snapshot.get(&name.to_be_bytes()).await });
            let Some(value) = clients.good("get of a snapshot", get.await) else { return false };
            found.push(round_of(value));
        }
        let (low, high) = asked.get(&key).copied().unwrap_or_default();
        if found[0] != found[1] {
            clients.complain(format!("a snapshot: key {key} has {found:?} in its two halves"));
        } else if let Err(error) = check(key, found[0], low, high) {
            clients.complain(format!("a snapshot: {error}"));
        }
        true
    }

    /// Scans a snapshot in order.
    async fn scan(&mut self) -> bool {
        self.clients.handle.sleep(Nanos(self.rng.below(3_000_000))).await;
        let asked = self.clients.asked.borrow().clone();
        let Some(found) = self.clients.pairs_of(&self.engine).await else { return false };
        if let Err(error) = check_all(&asked.into_iter().collect(), &found) {
            self.clients.complain(format!("an iterator: {error}"));
        }
        true
    }

    async fn compact(&mut self) -> bool {
        self.clients.handle.sleep(Nanos(self.rng.below(40_000_000))).await;
        // The store may be full for a moment, because of snapshots.
        let compact = self.clients.call("compact", self.engine.compact()).await;
        compact.is_ok()
    }
}

/// Checks the rounds found of all keys against the expected state.
pub(crate) fn check_all(
    asked: &BTreeMap<u64, (u64, u64)>,
    found: &BTreeMap<u64, u64>,
) -> Result<(), String> {
    for (key, (low, high)) in asked {
        let value = found.get(key).copied();
        check(*key, value, *low, *high)?;
        if let Some(twin) = twin_of(*key).filter(|twin| found.get(twin).copied() != value) {
            return Err(format!("key {key} has {value:?}, {twin} {:?}", found.get(&twin)));
        }
    }
    let is_known =
        |key: &u64| asked.contains_key(key) || asked.contains_key(&(key - TWINS.min(*key)));
    match found.keys().find(|key| !is_known(key)) {
        Some(key) => Err(format!("key {key} was never written")),
        None => Ok(()),
    }
}
