//! Runs a workload on a store on files, in real time.
//!
//! The clients are threads, and latencies are wall-clock times. Workload, verification and result
//! are the same as in [`crate`]. Fields that describe simulated flash are empty;
//! [`crate::result::StoreResult`] has the fields of the store.

mod counters;
mod spec;
mod summary;

use std::ops::Bound;

use counters::{Moment, Phases};
use levelhead::{Durability, Error, Store};
use runtime::WallClock;
use workload::{ClientOptions, SharedSession, SharedTarget, StartError, Stop};

use crate::bench::BenchOutcome;
use crate::error::{BenchError, check_load, interrupted};
use crate::observer::Observer;
use crate::phases::outstanding;

pub use counters::{DiskBytes, Machine};
pub use spec::LiveSpec;

/// Checks a specification for errors that would stop the bench.
///
/// # Errors
/// Returns [`BenchError::Start`] if the workload has no operations.
pub fn check(spec: &LiveSpec) -> Result<(), BenchError> {
    let has_operations = spec.workload.operation_count > 0;
    if has_operations { Ok(()) } else { Err(StartError::NoOperations.into()) }
}

/// Loads an empty store, waits until the store settles, runs the workload, and waits again. If
/// `stop` is requested during the run, the operations under way end, and the result covers the run
/// up to then.
///
/// # Errors
/// Returns [`BenchError`] if the load fails, or if `stop` is requested before the first operation
/// of the run has ended. An error during the run is part of the result.
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
    // The store settles after the load, which makes the loaded pairs durable.
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

/// A store as the target of client threads.
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
