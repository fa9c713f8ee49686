//! One trial: clients write and read at random, power fails at random instants, and after each
//! recovery and at every read the drive must agree with a model.
//!
//! The model keeps for each key the history of values that were asked for. A read may return any
//! value from the newest one acknowledged when it began to the newest one asked for when it ended;
//! after a power cut any value from the newest acknowledged one on is right, and settles it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use engine::{Fault, Granularity, IteratorOptions, MergeBy, Options, Planted, Value};
use kvssd::{DeviceProfile, DriveOptions, IndexOptions, KvDrive, Status, StoreMode};
use runtime::{Handle, Nanos, Rng};

use crate::harness::{Machine, for_hash, small, small_device, small_hash, small_tlc_device};
use crate::scanner::Scanner;

/// What varies from trial to trial besides the random choices.
pub(crate) struct Shape {
    pub device: DeviceProfile,
    pub engine: IndexOptions,
    pub keys: usize,
    /// Every key is stored once before anything else: the drive is full from the start.
    pub is_filled: bool,
    pub clients: usize,
    pub scanners: usize,
    pub sessions: usize,
    /// Longest a session runs.
    pub session: Nanos,
}

impl Shape {
    pub(crate) fn of_seed(seed: u64) -> Self {
        let is_tlc = seed % 4 == 3;
        let is_filled = seed % 7 == 5;
        let mut device = if is_tlc { small_tlc_device() } else { small_device() };
        if seed % 5 == 1 {
            // Slow firmware and fast flash: what a read has looked up is old when it is used.
            device.controller.costs.key_compare_ns = 40_000.0;
            device.controller.cores = 16;
            device.flash.timing.erase_us = 100.0;
        }
        let compaction = if seed % 3 == 2 { Granularity::Whole } else { Granularity::Partial };
        Self {
            device,
            engine: Options {
                compaction,
                memtable_bytes: 4 << 10,
                iterators: iterators_of(seed),
                ..design_of_seed(seed)
            }
            .into(),
            keys: if is_filled { 6_000 } else { 1_400 },
            is_filled,
            clients: 8,
            scanners: 2,
            sessions: 4,
            session: session_of(seed),
        }
    }

    /// The same with a hash table.
    pub(crate) fn of_hash_seed(seed: u64) -> Self {
        let shape = Self::of_seed(seed);
        // It has no iterators.
        Self { device: for_hash(shape.device), engine: small_hash().into(), scanners: 0, ..shape }
    }
}

/// The designs take turns, at a pace of their own, so that each meets every kind of drive.
fn design_of_seed(seed: u64) -> Options {
    match seed % 11 {
        3 | 8 => Options::lightstore(),
        5 | 10 => Options::pink_hw(),
        _ => Options::pink(),
    }
}

/// Long enough for every kind of compaction. With nothing in memory all takes longer, and more so
/// behind slow firmware.
fn session_of(seed: u64) -> Nanos {
    let is_slow = seed % 5 == 1;
    let has_nothing_pinned = design_of_seed(seed).pinned_levels == Some(0);
    Nanos::from_millis(match (has_nothing_pinned, is_slow) {
        (false, _) => 900,
        (true, false) => 1_800,
        (true, true) => 3_600,
    })
}

fn iterators_of(seed: u64) -> IteratorOptions {
    let (index_prefetch, value_prefetch) =
        [(false, 0), (true, 0), (true, 8), (false, 3)][(seed / 2 % 4) as usize];
    let skip_budget = if seed.is_multiple_of(3) { 8 } else { 1024 };
    IteratorOptions { index_prefetch, value_prefetch, skip_budget, buffer_bytes: 16 << 10 }
}

/// What happened in a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub commands: u64,
    pub power_cuts: u64,
    pub torn: u64,
    pub flushes: u64,
    pub compactions: Vec<u64>,
    pub data_extents: u64,
    pub meta_extents: u64,
    pub empty_extents: u64,
    pub objects_moved: u64,
    /// Dirty bucket pages that were written to make room in memory.
    pub evictions: u64,
    /// Merges by the accelerator.
    pub accelerated: u64,
    pub most_reads: usize,
    /// Stores that were refused for want of room.
    pub refused: u64,
    /// Pairs that iterators returned, snapshots they were made on and those that expired.
    pub scanned: u64,
    pub snapshots: u64,
    pub expired: u64,
    pub trace: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.commands += other.commands;
        self.power_cuts += other.power_cuts;
        self.torn += other.torn;
        self.flushes += other.flushes;
        self.compactions.resize(self.compactions.len().max(other.compactions.len()), 0);
        for (sum, more) in self.compactions.iter_mut().zip(&other.compactions) {
            *sum += more;
        }
        self.data_extents += other.data_extents;
        self.meta_extents += other.meta_extents;
        self.empty_extents += other.empty_extents;
        self.objects_moved += other.objects_moved;
        self.evictions += other.evictions;
        self.accelerated += other.accelerated;
        self.most_reads = self.most_reads.max(other.most_reads);
        self.refused += other.refused;
        self.scanned += other.scanned;
        self.snapshots += other.snapshots;
        self.expired += other.expired;
        self.trace ^= other.trace;
    }

    fn count(&mut self, drive: &KvDrive, trace: u64) {
        let stats = drive.engine_stats();
        self.add(&Self {
            flushes: stats.flushes,
            compactions: stats.compactions,
            data_extents: stats.gc_data_extents,
            meta_extents: stats.gc_meta_extents,
            empty_extents: stats.gc_empty_extents,
            objects_moved: stats.gc_objects_moved,
            evictions: drive.engine().hash_stats().map_or(0, |stats| stats.dirty_evictions),
            accelerated: stats.accelerator.merges,
            most_reads: stats.reads_per_get.max(),
            scanned: stats.iterators.seeks + stats.iterators.nexts,
            snapshots: stats.iterators.created,
            trace,
            ..Self::default()
        });
    }

    /// A trial in which something never happened tests less than it says.
    pub(crate) fn assert_everything_happened(&self, seed: u64, shape: &Shape) {
        assert!(!shape.is_filled || self.refused > 0, "seed {seed}: never full in {self}");
        assert!(self.flushes > 0, "seed {seed}: no flush in {self}");
        if let Some((_, levels)) = self.compactions.split_last() {
            assert!(levels.iter().all(|count| *count > 0), "seed {seed}: no compaction in {self}");
        } else {
            assert!(self.evictions > 0, "seed {seed}: no dirty page was evicted in {self}");
            assert!(self.meta_extents > 0, "seed {seed}: no bucket page was moved in {self}");
        }
        assert!(self.data_extents > 0, "seed {seed}: no data was collected in {self}");
        assert!(self.objects_moved > 0, "seed {seed}: nothing was moved in {self}");
        let has_accelerator = match &shape.engine {
            IndexOptions::Lsm(options) => options.merge == MergeBy::Accelerator,
            IndexOptions::Hash(_) => false,
        };
        assert_eq!(self.accelerated > 0, has_accelerator, "seed {seed}: {self}");
        assert!(self.power_cuts > 0, "seed {seed}: no power cut in {self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} commands, {} power cuts ({} torn), {} flushes, compactions {:?} ({} accelerated), \
             collected {} data and {} meta extents ({} objects moved), {} released empty, {} dirty \
             pages evicted, at most {} reads a Get, {} stores refused on full drives, {} pairs \
             scanned in {} snapshots ({} expired)",
            self.commands,
            self.power_cuts,
            self.torn,
            self.flushes,
            self.compactions,
            self.accelerated,
            self.data_extents,
            self.meta_extents,
            self.objects_moved,
            self.empty_extents,
            self.evictions,
            self.most_reads,
            self.refused,
            self.scanned,
            self.snapshots,
            self.expired
        )
    }
}

/// The values a key was given, oldest first.
#[derive(Default)]
struct History {
    values: Vec<Option<Value>>,
    /// Index of the newest value that was acknowledged, plus one; 0 if none was.
    acknowledged: usize,
}

impl History {
    fn at(&self, index: usize) -> Option<&Value> {
        index.checked_sub(1).and_then(|i| self.values[i].as_ref())
    }

    fn allows(&self, from: usize, found: Option<&Value>) -> bool {
        (from..=self.values.len()).any(|index| is_same(self.at(index), found))
    }
}

/// A synthetic value and its bytes are the same value.
pub(crate) fn is_same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a == b || a.to_bytes() == b.to_bytes(),
        _ => false,
    }
}

pub(crate) struct World {
    histories: RefCell<Vec<History>>,
    complaint: RefCell<Option<String>>,
    commands: Cell<u64>,
    refused: Cell<u64>,
    expired: Cell<u64>,
    /// Commands by client in this session.
    by_client: RefCell<Vec<u64>>,
}

impl World {
    pub(crate) fn new(keys: usize) -> Rc<Self> {
        let histories = RefCell::new((0..keys).map(|_| History::default()).collect());
        Rc::new(Self {
            histories,
            complaint: RefCell::default(),
            commands: Cell::new(0),
            refused: Cell::new(0),
            expired: Cell::new(0),
            by_client: RefCell::default(),
        })
    }

    pub(crate) fn complain(&self, what: String) {
        self.complaint.borrow_mut().get_or_insert(what);
    }

    pub(crate) fn count_command(&self, client: usize) {
        self.commands.set(self.commands.get() + 1);
        self.by_client.borrow_mut()[client] += 1;
    }

    pub(crate) fn count_expired(&self) {
        self.expired.set(self.expired.get() + 1);
    }

    /// By key, the newest value that is acknowledged.
    pub(crate) fn acknowledged_all(&self) -> Vec<usize> {
        self.histories.borrow().iter().map(|history| history.acknowledged).collect()
    }

    /// The values that a key may have from index `from` on.
    pub(crate) fn values_since(&self, key: usize, from: usize) -> Vec<Option<Value>> {
        let history = &self.histories.borrow()[key];
        (from..=history.values.len()).map(|index| history.at(index).cloned()).collect()
    }

    pub(crate) fn result(&self) -> Result<(), String> {
        self.complaint.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// What the next write of `key` puts there; it may take effect from now on.
    fn ask(&self, key: usize, value: Option<Value>) -> usize {
        let history = &mut self.histories.borrow_mut()[key];
        history.values.push(value);
        history.values.len()
    }

    fn acknowledge(&self, key: usize, index: usize) {
        self.histories.borrow_mut()[key].acknowledged = index;
    }

    /// A write was refused: it never takes effect.
    fn refuse(&self, key: usize) {
        self.histories.borrow_mut()[key].values.pop();
    }

    fn acknowledged(&self, key: usize) -> usize {
        self.histories.borrow()[key].acknowledged
    }

    fn check(&self, key: usize, from: usize, found: Option<&Value>, when: &str) {
        let history = &self.histories.borrow()[key];
        if !history.allows(from, found) {
            self.complain(format!(
                "{when}: key {key} has {found:?}, expected one of {:?}",
                (from..=history.values.len()).map(|i| history.at(i)).collect::<Vec<_>>()
            ));
        }
    }

    /// After a power cut: what was found is what was there all along.
    fn settle(&self, key: usize, found: Option<Value>) {
        let from = self.acknowledged(key);
        self.check(key, from, found.as_ref(), "after recovery");
        self.histories.borrow_mut()[key] = History { values: vec![found], acknowledged: 1 };
    }
}

pub(crate) fn key_name(key: usize) -> Vec<u8> {
    // Lengths differ, and so do places in the order from numbers.
    let scrambled = runtime::mix64(key as u64) % 1_000_000;
    format!("user{scrambled:06}.{key}{}", "x".repeat(key % 23)).into_bytes()
}

fn random_value(rng: &mut Rng) -> Value {
    let len = match rng.below(40) {
        0 => 0,
        1 => 900 + rng.below(300) as u32,
        2 => rng.below(4_000) as u32,
        _ => rng.below(240) as u32,
    };
    let synthetic = Value::Synthetic { seed: rng.next_u64(), len };
    if rng.chance(0.5) { synthetic } else { Value::Bytes(synthetic.to_bytes()) }
}

/// Runs a trial. `Err` says what the drive got wrong.
pub(crate) fn run_trial(seed: u64, shape: &Shape, fault: Option<Fault>) -> Result<Tally, String> {
    let mut rng = Rng::derive(seed, "trial");
    let planted = fault.map_or_else(Planted::default, Planted::new);
    let options = DriveOptions { planted, ..small(shape.engine.clone()) };
    let world = World::new(shape.keys);
    let mut tally = Tally::default();
    let mut machine = Machine::format(seed, &shape.device, options.clone());
    for session in 0..shape.sessions {
        start_clients(&machine, &world, shape, &mut rng);
        let span = Nanos(shape.session.0 / 2 + rng.below(shape.session.0 / 2));
        let start = machine.rt.handle().now();
        machine.rt.run_until(start + Nanos(span.0 / 2));
        let half_way = world.by_client.borrow().clone();
        machine.rt.run_until(start + span);
        // On a full drive a write may wait for long, but not for ever.
        let has_hung = |world: &World| {
            let now = world.by_client.borrow();
            half_way.iter().zip(&*now).position(|(before, now)| before == now)
        };
        let grace = start + span + Nanos::from_millis(3_000);
        machine
            .rt
            .run_until_true(|| has_hung(&world).is_none() || machine.rt.handle().now() > grace);
        world.result()?;
        if let Some(client) = has_hung(&world) {
            let state = machine.drive.engine().background();
            return Err(format!("client {client} hung in session {session}: {state}"));
        }
        tally.count(&machine.drive, machine.rt.handle().trace_hash());
        tally.power_cuts += 1;
        let off = machine.power_cut(&mut rng);
        tally.torn += u64::from(off.cut.torn);
        let next_seed = seed ^ ((session as u64 + 1) << 32);
        machine = recover(next_seed, &shape.device, options.clone(), off.array);
        check_all(&machine, &world, shape.keys)?;
    }
    tally.commands = world.commands.get();
    tally.refused = world.refused.get();
    tally.expired = world.expired.get();
    Ok(tally)
}

fn recover(
    seed: u64,
    device: &DeviceProfile,
    options: DriveOptions,
    array: flash::NandArray,
) -> Machine {
    Machine::recover(seed, device, options, array)
}

/// Reads every key after a recovery and settles what it has.
pub(crate) fn check_all(machine: &Machine, world: &Rc<World>, keys: usize) -> Result<(), String> {
    let (drive, reader) = (machine.drive.clone(), Rc::clone(world));
    machine.rt.block_on(async move {
        for key in 0..keys {
            match drive.retrieve(&key_name(key), u32::MAX).await {
                Ok(found) => reader.settle(key, Some(found.value)),
                Err(Status::KeyDoesNotExist) => reader.settle(key, None),
                Err(status) => reader.complain(format!("after recovery: key {key}: {status}")),
            }
        }
        let slots = drive.engine().hash_stats().map_or(0, |stats| stats.keys);
        if slots > keys as u64 {
            reader.complain(format!("after recovery: {slots} slots for {keys} keys"));
        }
    });
    world.result()
}

pub(crate) fn start_clients(machine: &Machine, world: &Rc<World>, shape: &Shape, rng: &mut Rng) {
    let is_first = world.commands.get() == 0;
    *world.by_client.borrow_mut() = vec![0; shape.clients + shape.scanners];
    for client in 0..shape.clients {
        let context = Client {
            drive: machine.drive.clone(),
            handle: machine.rt.handle(),
            world: Rc::clone(world),
            rng: RefCell::new(Rng::new(rng.next_u64())),
            number: client,
            clients: shape.clients,
            keys: shape.keys,
            is_filling: shape.is_filled && is_first,
        };
        machine.rt.handle().spawn("client", async move { context.run().await });
    }
    for scanner in 0..shape.scanners {
        let scanner = Scanner {
            drive: machine.drive.clone(),
            handle: machine.rt.handle(),
            world: Rc::clone(world),
            rng: RefCell::new(Rng::new(rng.next_u64())),
            number: shape.clients + scanner,
            keys: shape.keys,
        };
        machine.rt.handle().spawn("scanner", async move { scanner.run().await });
    }
}

/// Writes keys of its own, so that their histories are in order; reads any key.
struct Client {
    drive: KvDrive,
    handle: Handle,
    world: Rc<World>,
    rng: RefCell<Rng>,
    number: usize,
    clients: usize,
    keys: usize,
    is_filling: bool,
}

impl Client {
    async fn run(self) {
        if self.is_filling {
            for key in (self.number..self.keys).step_by(self.clients) {
                self.world.count_command(self.number);
                self.store(key, StoreMode::Upsert).await;
            }
        }
        loop {
            self.world.count_command(self.number);
            let (dice, key) = {
                let mut rng = self.rng.borrow_mut();
                (rng.below(100), self.random_key(&mut rng))
            };
            let own = key - key % self.clients + self.number;
            let own = if own < self.keys { own } else { self.number };
            match dice {
                0..60 => self.store(own, StoreMode::Upsert).await,
                60..64 => self.store(own, StoreMode::MustExist).await,
                64..68 => self.store(own, StoreMode::MustNotExist).await,
                68..75 => self.delete(own).await,
                75..97 => self.retrieve(key).await,
                97..99 => self.exist(key).await,
                _ => {
                    let pause = self.rng.borrow_mut().below(3_000_000);
                    self.handle.sleep(Nanos(pause)).await;
                }
            }
        }
    }

    /// Half of all operations go to a sixteenth of the keys.
    fn random_key(&self, rng: &mut Rng) -> usize {
        let keys = if rng.chance(0.5) { self.keys / 16 } else { self.keys };
        rng.below(keys as u64) as usize
    }

    async fn store(&self, key: usize, mode: StoreMode) {
        let value = random_value(&mut self.rng.borrow_mut());
        let exists = {
            let histories = self.world.histories.borrow();
            histories[key].at(histories[key].acknowledged).is_some()
        };
        let index = self.world.ask(key, Some(value.clone()));
        let outcome = self.drive.store(&key_name(key), value, mode).await;
        let expected = match mode {
            StoreMode::MustExist if !exists => Err(Status::KeyDoesNotExist),
            StoreMode::MustNotExist if exists => Err(Status::KeyExists),
            _ => Ok(()),
        };
        if outcome.is_ok() {
            self.world.acknowledge(key, index);
        } else {
            self.world.refuse(key);
        }
        let is_full = outcome == Err(Status::CapacityExceeded);
        self.world.refused.set(self.world.refused.get() + u64::from(is_full));
        if outcome != expected && !is_full {
            self.world.complain(format!("store {mode:?} of key {key}: {outcome:?}"));
        }
    }

    async fn delete(&self, key: usize) {
        let index = self.world.ask(key, None);
        match self.drive.delete(&key_name(key)).await {
            Ok(()) => self.world.acknowledge(key, index),
            Err(status) => {
                let state = self.drive.engine().background();
                self.world.complain(format!("delete of key {key}: {status}; {state}"));
            }
        }
    }

    async fn retrieve(&self, key: usize) {
        let from = self.world.acknowledged(key);
        match self.drive.retrieve(&key_name(key), u32::MAX).await {
            Ok(found) => self.world.check(key, from, Some(&found.value), "retrieve"),
            Err(Status::KeyDoesNotExist) => self.world.check(key, from, None, "retrieve"),
            Err(status) => self.world.complain(format!("retrieve of key {key}: {status}")),
        }
    }

    async fn exist(&self, key: usize) {
        let from = self.world.acknowledged(key);
        let outcome = self.drive.exist(&key_name(key)).await;
        let histories = self.world.histories.borrow();
        let history = &histories[key];
        let may_be =
            |exists: bool| (from..=history.values.len()).any(|i| history.at(i).is_some() == exists);
        let is_right = match outcome {
            Ok(()) => may_be(true),
            Err(Status::KeyDoesNotExist) => may_be(false),
            Err(_) => false,
        };
        if !is_right {
            self.world.complain(format!("exist of key {key}: {outcome:?}"));
        }
    }
}
