//! Running a workload on a store on files, in real time.
//!
//! The clients are threads, and their latencies the wall's; what they do, how it is checked and what comes out of it is as
//! with [`crate::bench`]. What simulated flash has to tell is left empty, and [`crate::StoreResult`] is there instead.

use std::ops::Bound;

use levelhead::{Durability, Error, Inside, Store};
use runtime::WallClock;
use workload::{
    ClientOptions, CoreWorkload, RunReport, SharedSession, SharedTarget, StartError, Stop,
};

use crate::bench::{BenchError, BenchOutcome, Observer, check_load, interrupted, outstanding};

mod summary;

/// What to run.
#[derive(Clone, Debug)]
pub struct LiveSpec {
    /// The workload's name in results.
    pub workload_name: String,
    /// The workload.
    pub workload: CoreWorkload,
    /// How operations are issued in the run; the load is a closed loop of as many.
    pub clients: ClientOptions,
    /// Seed of what is asked for; when things happen does not follow from it.
    pub seed: u64,
    /// When writes of the run are acknowledged. Those of the load are at once.
    pub durability: Durability,
    /// Where the store is, in words.
    pub place: String,
    /// How many directories it is over.
    pub directories: u64,
    /// What it was given for its index, in bytes.
    pub memory_bytes: u64,
}

/// Bytes that this process has had read from drives and written to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskBytes {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// What the machine has to say.
pub trait Machine {
    /// Bytes read and written by now, where the system counts them.
    fn disk_bytes(&self) -> Option<DiskBytes>;
}

/// Counters at one moment.
struct Moment {
    inside: Inside,
    disk: Option<DiskBytes>,
}

impl Moment {
    fn now(store: &Store, machine: &dyn Machine) -> Self {
        Self { inside: store.inside(), disk: machine.disk_bytes() }
    }
}

/// What the phases of a bench gave.
struct Phases {
    load: RunReport,
    run: RunReport,
    before_load: Option<DiskBytes>,
    before_run: Moment,
    /// When the last operation had ended, and when nothing was left to do in the background.
    after_run: Moment,
    settled: Moment,
    settle_seconds: [f64; 2],
}

/// Finds out what makes it certain that a bench would not come to its end.
///
/// # Errors
/// [`BenchError::Start`].
pub fn check(spec: &LiveSpec) -> Result<(), BenchError> {
    let has_operations = spec.workload.operation_count > 0;
    if has_operations { Ok(()) } else { Err(StartError::NoOperations.into()) }
}

/// Loads a store that is empty, lets background work settle, runs, and lets it settle again. Once `stop` is asked for, operations
/// under way end, and the result is of what there was until then.
///
/// # Errors
/// [`BenchError`]; what goes wrong during the run is part of the result.
pub fn run(
    spec: &LiveSpec,
    store: &Store,
    machine: &dyn Machine,
    observer: &mut dyn Observer,
    stop: &Stop,
) -> Result<BenchOutcome, BenchError> {
    check(spec)?;
    let phases = phases(spec, store, machine, observer, stop)?;
    let result = summary::summarise(spec, &phases);
    Ok(BenchOutcome { result, run: phases.run, samples: Vec::new() })
}

fn phases(
    spec: &LiveSpec,
    store: &Store,
    machine: &dyn Machine,
    observer: &mut dyn Observer,
    stop: &Stop,
) -> Result<Phases, BenchError> {
    let clock = WallClock::start();
    let settle = || {
        let begun = clock.now();
        store.settle();
        (clock.now() - begun).as_secs_f64()
    };
    let (records, operations) = (spec.workload.insert_count, spec.workload.operation_count);
    let mut session = SharedSession::new(spec.workload.clone(), spec.seed);
    session.stop_on(stop.clone());
    let before_load = machine.disk_bytes();
    observer.begin("load", records);
    // What is loaded is made durable by the settling that follows.
    let target = StoreTarget { store, durability: Durability::Interval };
    let clients = ClientOptions::closed(outstanding(&spec.clients));
    let load = session.load(&target, &clients, |done, _| observer.progress(done))?;
    let load_settled = settle();
    observer.end(!load.is_cut_short());
    check_load(&load, records)?;
    let interrupted = || interrupted(&load, records);
    if stop.is_asked() {
        return Err(interrupted());
    }
    let before_run = Moment::now(store, machine);
    observer.begin("run", operations);
    let target = StoreTarget { store, durability: spec.durability };
    let run = session.run(&target, &spec.clients, |done, _| observer.progress(done))?;
    observer.end(!run.is_cut_short());
    if stop.is_asked() && run.operations == 0 {
        return Err(interrupted());
    }
    let after_run = Moment::now(store, machine);
    let settle_seconds = [load_settled, settle()];
    let settled = Moment::now(store, machine);
    Ok(Phases { load, run, before_load, before_run, after_run, settled, settle_seconds })
}

/// A store as client threads see it.
pub struct StoreTarget<'a> {
    /// The store.
    pub store: &'a Store,
    /// When writes are acknowledged.
    pub durability: Durability,
}

impl SharedTarget for StoreTarget<'_> {
    type Error = Error;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.store.get(key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.store.put_with(key, value, self.durability)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Error> {
        self.store.delete_with(key, self.durability)
    }

    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        let until = until.map_or(Bound::Unbounded, Bound::Excluded);
        for pair in self.store.range((Bound::Included(from), until)) {
            let (key, value) = pair?;
            if !take(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}
