//! A session: one workload on one target, with its load and its runs.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use runtime::{Carrier, Handle, Nanos, Rng};

use super::ledger::Ledger;
use super::notes::Notes;
use super::phase::{Phase, Plan};
use super::replay::{KeysOfTrace, Replay};
use super::{ClientOptions, Pace, RATES, Stop};
use crate::generator::InsertCounter;
use crate::operation::OperationStream;
use crate::oracle::Oracle;
use crate::trace::TraceError;
use crate::trace::kv::{KvFormat, KvRecord};
use crate::value::KEY_LIMIT;
use crate::{CoreWorkload, KvTarget, RunReport};

/// A workload on a target. Remembers all writes, so that every later read can be checked.
///
/// Memory: four bytes per record; twelve for workloads with scans of hashed keys.
pub struct Session<T: KvTarget> {
    handle: Handle,
    target: T,
    workload: CoreWorkload,
    seed: u64,
    ledger: Rc<RefCell<Ledger>>,
    /// Runs so far: each has its own random stream.
    runs: u64,
    stop: Stop,
    /// Bytes before a trace's keys that identify the column family.
    family_bytes: usize,
    /// Keys of the replayed trace, once a replay has begun.
    of_trace: Option<KeysOfTrace>,
}

/// Why a phase was not started.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StartError {
    /// The workload has scans, and the target has no iterators.
    Scans {
        /// The target's explanation.
        why: &'static str,
    },
    /// The run has no operations: `operationcount` is 0 or not set.
    NoOperations,
    /// The new workload has other keys, values or records than the session.
    OtherRecords,
    /// The run may insert more records than there are keys of the set length.
    KeysUsedUp {
        /// Number of possible keys.
        capacity: u64,
        /// Records inserted so far.
        used: u64,
    },
    /// An option of the clients is invalid. The text has the option and its allowed values.
    Options(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scans { why } => write!(
                f,
                "the workload has scans (scanproportion is above 0), which need iterators: {why}; \
                 of the built-in workloads all but e, seekrandom and mixgraph do without"
            ),
            Self::NoOperations => {
                f.write_str("nothing to run: set operationcount to a whole number above 0")
            }
            Self::OtherRecords => f.write_str(
                "a session goes on with the keys, values and records it began with: recordcount, \
                 insertstart, key and value settings have to be the same",
            ),
            Self::KeysUsedUp { capacity, used } => write!(
                f,
                "the run may need more keys than there are: {used} of {capacity} are in use; set \
                 fewer operations, or longer keys (levelhead.keybytes) from the load on"
            ),
            Self::Options(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for StartError {}

impl<T: KvTarget> Session<T> {
    /// Creates a session on an empty target; `seed` determines all random choices.
    ///
    /// # Errors
    /// Returns [`StartError::Scans`] if the workload has scans and the target has no iterators.
    pub fn new(
        handle: Handle,
        target: T,
        workload: CoreWorkload,
        seed: u64,
    ) -> Result<Self, StartError> {
        if workload.mix.scan > 0.0
            && let Some(why) = target.why_no_iterators()
        {
            return Err(StartError::Scans { why });
        }
        // Room for the expected inserts; more inserts, and those of further runs, make it grow.
        let inserts = workload.operation_count as f64 * workload.mix.insert_share() * 1.01;
        let keys = workload.record_count + (inserts as u64).min(workload.record_count);
        let ledger = Ledger {
            oracle: Oracle::new(workload.values.clone(), keys),
            inserts: InsertCounter::new(workload.record_count),
        };
        let ledger = Rc::new(RefCell::new(ledger));
        Ok(Self {
            handle,
            target,
            workload,
            seed,
            ledger,
            runs: 0,
            stop: Stop::default(),
            family_bytes: 0,
            of_trace: None,
        })
    }

    /// Makes phases end early when `stop` is requested: operations in flight end, no other begins,
    /// and the report has fewer operations than planned.
    pub fn stop_on(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Sets the number of bytes before a trace's keys that identify the column family; 0 unless
    /// there are several families.
    pub fn tell_families_apart(&mut self, family_bytes: usize) {
        self.family_bytes = family_bytes;
    }

    /// Returns the workload's settings.
    pub fn workload(&self) -> &CoreWorkload {
        &self.workload
    }

    /// Continues with another workload on the same records: the next run executes its operations.
    ///
    /// # Errors
    /// Returns [`StartError::Scans`] as [`Self::new`] does, or [`StartError::OtherRecords`] if the
    /// keys, values or records differ.
    pub fn switch(&mut self, workload: CoreWorkload) -> Result<(), StartError> {
        if workload.mix.scan > 0.0
            && let Some(why) = self.target.why_no_iterators()
        {
            return Err(StartError::Scans { why });
        }
        let now = &self.workload;
        let is_same = (&now.keys, &now.values) == (&workload.keys, &workload.values)
            && now.record_count == workload.record_count
            && now.insert_start == workload.insert_start;
        if !is_same {
            return Err(StartError::OtherRecords);
        }
        self.workload = workload;
        Ok(())
    }

    /// Assumes that the target holds the result of [`Self::load`], for example because an earlier
    /// session with the same workload has loaded it. Cost: about ten nanoseconds per record.
    pub fn assume_loaded(&mut self) {
        let first = self.workload.insert_start;
        let oracle = &mut self.ledger.borrow_mut().oracle;
        for key in first..first + self.workload.insert_count {
            oracle.assume_put(key);
        }
    }

    /// Saves or restores the session's knowledge of writes and its number of runs, so that a
    /// session with the same workload and seed continues on a saved target. Only between runs, and
    /// before any run with scans.
    pub fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.u64(&mut self.runs)?;
        let ledger = &mut *self.ledger.borrow_mut();
        let mut next = ledger.inserts.next_number();
        by.u64(&mut next)?;
        ledger.inserts = InsertCounter::new(Some(next).filter(|next| *next > 0)?);
        ledger.oracle.carry(by)
    }

    /// Inserts the records, each once, in the order of their numbers.
    ///
    /// `progress` is called with operations done and planned, every few thousand operations and at
    /// the end. An error of the target does not return an `Err`: it ends the phase, and the report
    /// has it.
    ///
    /// # Errors
    /// Returns [`StartError::Options`] if an option of the clients is invalid.
    pub async fn load(
        &mut self,
        options: &ClientOptions,
        progress: impl FnMut(u64, u64) + 'static,
    ) -> Result<RunReport, StartError> {
        let stream = OperationStream::load(&self.workload);
        self.drive(stream, options, "load arrivals", Box::new(progress)).await
    }

    /// Executes the operations of the workload. May be called again: inserts continue after the
    /// previous ones, and the random numbers differ.
    ///
    /// `progress` and errors of the target are as with [`Self::load`].
    ///
    /// # Errors
    /// Returns [`StartError::Options`], [`StartError::NoOperations`] or [`StartError::KeysUsedUp`].
    pub async fn run(
        &mut self,
        options: &ClientOptions,
        progress: impl FnMut(u64, u64) + 'static,
    ) -> Result<RunReport, StartError> {
        if self.workload.operation_count == 0 {
            return Err(StartError::NoOperations);
        }
        self.check_key_space()?;
        self.prepare_scans();
        let run = self.runs;
        let rng = Rng::derive(self.seed, &format!("operations of run {run}"));
        let stream = OperationStream::run(&self.workload, rng);
        let label = format!("arrivals of run {run}");
        let report = self.drive(stream, options, &label, Box::new(progress)).await?;
        self.runs += 1;
        Ok(report)
    }

    /// Loads the keys that a trace reads before it writes them: they existed before the trace.
    /// `count` of them are expected. If `format` does not record the length of a read value, it
    /// gets `otherwise` bytes.
    ///
    /// `progress` and errors are as with [`Self::load`]; a trace that cannot be read further is
    /// such an error.
    ///
    /// # Errors
    /// Returns [`StartError::Options`] if an option of the clients is invalid.
    pub async fn load_met_first(
        &mut self,
        trace: impl Iterator<Item = Result<KvRecord, TraceError>> + 'static,
        (format, otherwise): (KvFormat, u32),
        count: u64,
        options: &ClientOptions,
        progress: impl FnMut(u64, u64) + 'static,
    ) -> Result<RunReport, StartError> {
        let keys = self.keys_of_trace();
        let before = keys.met_first(trace, format, otherwise);
        self.replay_records(before, keys, count, options, Box::new(progress)).await
    }

    /// Replays a trace, up to `count` operations.
    ///
    /// `progress` and errors are as with [`Self::load_met_first`].
    ///
    /// # Errors
    /// Returns [`StartError::Options`] if an option of the clients is invalid.
    pub async fn replay(
        &mut self,
        trace: impl Iterator<Item = Result<KvRecord, TraceError>> + 'static,
        count: u64,
        options: &ClientOptions,
        progress: impl FnMut(u64, u64) + 'static,
    ) -> Result<RunReport, StartError> {
        let keys = self.keys_of_trace();
        self.replay_records(trace, keys, count, options, Box::new(progress)).await
    }

    async fn replay_records(
        &self,
        trace: impl Iterator<Item = Result<KvRecord, TraceError>> + 'static,
        keys: KeysOfTrace,
        count: u64,
        options: &ClientOptions,
        progress: Box<dyn FnMut(u64, u64)>,
    ) -> Result<RunReport, StartError> {
        check_size(options)?;
        let (ledger, stop) = (Rc::clone(&self.ledger), self.stop.clone());
        let numbers = (self.seed, count);
        let notes = Notes::new(self.handle.clone(), ledger, numbers, options, stop, progress);
        Ok(Replay::new(notes, trace, keys, options.pace).drive(&self.target).await)
    }

    /// Returns the keys of the trace, whose numbers follow those of the workload.
    fn keys_of_trace(&mut self) -> KeysOfTrace {
        let ledger = &mut *self.ledger.borrow_mut();
        let keys = self.of_trace.get_or_insert_with(|| {
            let first = ledger.inserts.next_number();
            ledger.oracle.record_lengths_from(first);
            KeysOfTrace::new(first, self.family_bytes)
        });
        keys.clone()
    }

    /// Checks that enough keys are left: the settings guarantee room for one run only.
    fn check_key_space(&self) -> Result<(), StartError> {
        key_space(&self.workload, self.ledger.borrow().inserts.next_number())
    }

    /// Prepares the oracle for scans. Cost: sorts the keys before the first run with scans, if they
    /// are hashed.
    fn prepare_scans(&self) {
        if self.workload.mix.scan > 0.0 {
            let ledger = &mut *self.ledger.borrow_mut();
            ledger.oracle.prepare_scans(&self.workload.keys, ledger.inserts.next_number());
        }
    }

    async fn drive(
        &self,
        stream: OperationStream,
        options: &ClientOptions,
        arrivals: &str,
        progress: Box<dyn FnMut(u64, u64)>,
    ) -> Result<RunReport, StartError> {
        check_options(options)?;
        let rng = Rng::derive(self.seed, arrivals);
        let ledger = Rc::clone(&self.ledger);
        let CoreWorkload { keys, scans, update_reads, .. } = &self.workload;
        let update_reads = *update_reads;
        let (keys, stop) = (keys.clone(), self.stop.clone());
        let plan = Plan { seed: self.seed, keys, scans: *scans, update_reads, stream, stop };
        let phase = Phase::new(self.handle.clone(), ledger, plan, options, rng, progress);
        Ok(phase.drive(&self.target, options.pace.outstanding()).await)
    }
}

/// Checks that there are keys for all inserts of a run; `used` keys are already used.
pub(crate) fn key_space(workload: &CoreWorkload, used: u64) -> Result<(), StartError> {
    let capacity = workload.keys.capacity().min(KEY_LIMIT);
    let has_inserts = workload.mix.insert > 0.0;
    if has_inserts && capacity - used < workload.operation_count {
        return Err(StartError::KeysUsedUp { capacity, used });
    }
    Ok(())
}

/// Checks the client options for a workload.
pub(crate) fn check_options(options: &ClientOptions) -> Result<(), StartError> {
    check_size(options)?;
    match options.pace {
        Pace::Open { rate, .. } if !RATES.contains(&rate) => Err(StartError::Options(format!(
            "{rate} operations per second: allowed is 0.000001 to 1e12"
        ))),
        Pace::Recorded { .. } => Err(StartError::Options(
            "a workload has no recorded times: those are a trace's".to_owned(),
        )),
        _ => Ok(()),
    }
}

fn check_size(options: &ClientOptions) -> Result<(), StartError> {
    let refuse = |problem: String| Err(StartError::Options(problem));
    if options.pace.outstanding() == 0 {
        return refuse("0 operations outstanding do nothing: allowed is 1 or more".to_owned());
    }
    if options.window == Nanos::ZERO || options.max_windows == 0 {
        return refuse("a timeline needs a window above 0 ns, and at least 1 of them".to_owned());
    }
    Ok(())
}
