//! One or several workloads on a store shared by threads, with load and runs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use runtime::{Nanos, Rng, WallClock};

use super::SharedTarget;
use super::client::{Phase, Plan};
use crate::client::{Ledger, check_options, key_space};
use crate::generator::InsertCounter;
use crate::operation::OperationStream;
use crate::oracle::Oracle;
use crate::{ClientOptions, CoreWorkload, RunReport, StartError, Stop};

/// Interval of progress reports, and of checks for the end of the span.
const TICK: Duration = Duration::from_millis(50);

/// A workload on a store shared by threads. Like [`Session`](crate::Session), it remembers all
/// writes.
pub struct SharedSession {
    workload: CoreWorkload,
    seed: u64,
    ledger: Mutex<Ledger>,
    runs: u64,
    stop: Stop,
    clock: WallClock,
}

/// Clients of one kind in a run; several kinds may run concurrently.
pub struct Part<'a> {
    /// Their operations, on the records of the session's workload.
    pub workload: &'a CoreWorkload,
    /// Their number, and the start times of their operations.
    pub clients: ClientOptions,
}

impl SharedSession {
    /// Creates a session on an empty store; `seed` determines the operations.
    pub fn new(workload: CoreWorkload, seed: u64) -> Self {
        let ledger = Ledger {
            oracle: Oracle::new(workload.values.clone(), workload.record_count),
            inserts: InsertCounter::new(workload.record_count),
        };
        let (ledger, clock) = (Mutex::new(ledger), WallClock::start());
        Self { workload, seed, ledger, runs: 0, stop: Stop::default(), clock }
    }

    /// Makes phases end early when `stop` is requested.
    pub fn stop_on(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Inserts the records, each once, in the order of their numbers. `progress` is called on this
    /// thread with operations done and planned.
    ///
    /// # Errors
    /// Returns [`StartError::Options`] if an option of the clients is invalid.
    pub fn load<T: SharedTarget>(
        &mut self,
        target: &T,
        clients: &ClientOptions,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<RunReport, StartError> {
        check_options(clients)?;
        let phase =
            self.phase(&self.workload, clients, OperationStream::load(&self.workload), "load");
        let mut reports = self.drive(target, vec![phase], None, &mut progress);
        Ok(reports.pop().expect("there was one"))
    }

    /// Executes the operations of the workload.
    ///
    /// # Errors
    /// Same as [`Session::run`](crate::Session::run).
    pub fn run<T: SharedTarget>(
        &mut self,
        target: &T,
        clients: &ClientOptions,
        progress: impl FnMut(u64, u64),
    ) -> Result<RunReport, StartError> {
        let workload = self.workload.clone();
        let part = Part { workload: &workload, clients: clients.clone() };
        let mut reports = self.run_parts(target, &[part], None, progress)?;
        Ok(reports.pop().expect("there was one"))
    }

    /// Executes the operations of several kinds of clients concurrently, until the first kind has
    /// done its own or `span` is over. `progress` is that of the first kind. Returns a report for
    /// each kind.
    ///
    /// # Errors
    /// Same as [`Session::run`](crate::Session::run); also [`StartError::OtherRecords`] if a
    /// workload has other keys, values or records.
    pub fn run_parts<T: SharedTarget>(
        &mut self,
        target: &T,
        parts: &[Part<'_>],
        span: Option<Nanos>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Vec<RunReport>, StartError> {
        for Part { workload, clients } in parts {
            check_options(clients)?;
            self.check_part(workload)?;
            if workload.mix.scan > 0.0 {
                let ledger = &mut *self.lock();
                ledger.oracle.prepare_scans(&workload.keys, ledger.inserts.next_number());
            }
        }
        self.runs += 1;
        let mut phases = Vec::new();
        for (number, Part { workload, clients }) in parts.iter().enumerate() {
            let name = match number {
                0 => format!("run {}", self.runs),
                _ => format!("run {}, part {number}", self.runs),
            };
            let rng = Rng::derive(self.seed, &format!("operations of {name}"));
            let stream = OperationStream::run(workload, rng);
            phases.push(self.phase(workload, clients, stream, &name));
        }
        Ok(self.drive(target, phases, span, &mut progress))
    }

    fn check_part(&self, workload: &CoreWorkload) -> Result<(), StartError> {
        let own = &self.workload;
        let is_same = (&own.keys, &own.values) == (&workload.keys, &workload.values)
            && own.record_count == workload.record_count
            && own.insert_start == workload.insert_start;
        if !is_same {
            return Err(StartError::OtherRecords);
        }
        if workload.operation_count == 0 {
            return Err(StartError::NoOperations);
        }
        key_space(workload, self.lock().inserts.next_number())
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no client panicked")
    }

    fn phase(
        &self,
        workload: &CoreWorkload,
        options: &ClientOptions,
        stream: OperationStream,
        name: &str,
    ) -> Phase<'_> {
        let plan = Plan {
            seed: self.seed,
            keys: workload.keys.clone(),
            scans: workload.scans,
            update_reads: workload.update_reads,
            stream,
            arrivals: Rng::derive(self.seed, &format!("arrivals of {name}")),
        };
        Phase::new(&self.ledger, &self.clock, &self.stop, plan, options)
    }

    /// Runs the clients of all phases on threads, to the end of the first phase.
    fn drive<T: SharedTarget>(
        &self,
        target: &T,
        phases: Vec<Phase<'_>>,
        span: Option<Nanos>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Vec<RunReport> {
        let until = span.map_or(Nanos::MAX, |span| self.clock.now() + span);
        let (ended, ends) = mpsc::channel();
        let mut left = phases[0].clients();
        thread::scope(|scope| {
            for (number, phase) in phases.iter().enumerate() {
                for _ in 0..phase.clients() {
                    let ended = ended.clone();
                    scope.spawn(move || {
                        phase.work(target);
                        // The receiver is gone once the first phase is over.
                        let _ = ended.send(number);
                    });
                }
            }
            while left > 0 {
                match ends.recv_timeout(TICK) {
                    Ok(number) => left -= usize::from(number == 0),
                    Err(RecvTimeoutError::Timeout) => {
                        let (done, planned) = phases[0].progress();
                        progress(done, planned);
                        if self.clock.now() >= until {
                            phases.iter().for_each(Phase::end);
                        }
                        // A client that panicked sends nothing; the scope propagates the panic.
                        if phases.iter().any(Phase::is_poisoned) {
                            break;
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            phases.iter().for_each(Phase::end);
        });
        let (done, planned) = phases[0].progress();
        progress(done, planned);
        phases.into_iter().map(Phase::into_report).collect()
    }
}
