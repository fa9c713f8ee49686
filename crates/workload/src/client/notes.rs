//! Records of a phase's clients: latencies, results of checks, failures.
//!
//! Invariant: no shared state stays borrowed across an await.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::rc::Rc;

use engine::Value;
use runtime::{Handle, Nanos};

use super::Stop;
use super::ledger::Ledger;
use crate::oracle::{GetTicket, ScanSurprise, WriteTicket};
use crate::record::Recorder;
use crate::{ClientOptions, Mismatch, OpKind, RunReport};

/// Operations between two progress reports.
const PROGRESS_STEP: u64 = 4096;

/// An operation failed. The failure is recorded, and the phase ends.
pub(super) struct Failed;

/// Records shared by the clients of a phase.
pub(super) struct Notes {
    pub(super) handle: Handle,
    seed: u64,
    pub(super) ledger: Rc<RefCell<Ledger>>,
    recorder: RefCell<Recorder>,
    progress: RefCell<Box<dyn FnMut(u64, u64)>>,
    has_failed: Cell<bool>,
    stop: Stop,
}

impl Notes {
    /// Creates the records of a phase of `planned` operations that begins now.
    pub(super) fn new(
        handle: Handle,
        ledger: Rc<RefCell<Ledger>>,
        (seed, planned): (u64, u64),
        options: &ClientOptions,
        stop: Stop,
        progress: Box<dyn FnMut(u64, u64)>,
    ) -> Self {
        let recorder = Recorder::new(handle.now(), planned, options.window, options.max_windows);
        Self {
            handle,
            seed,
            ledger,
            recorder: RefCell::new(recorder),
            progress: RefCell::new(progress),
            has_failed: Cell::new(false),
            stop,
        }
    }

    pub(super) fn planned(&self) -> u64 {
        self.recorder.borrow().planned()
    }

    /// Returns whether no further operation may begin.
    pub(super) fn is_over(&self) -> bool {
        self.has_failed.get() || self.stop.is_asked()
    }

    pub(super) fn into_report(self) -> RunReport {
        let recorder = self.recorder.into_inner();
        (self.progress.into_inner())(recorder.done(), recorder.planned());
        recorder.into_report()
    }

    /// Notes that an operation scheduled for `at` begins now.
    pub(super) fn begun(&self, at: Nanos) {
        self.recorder.borrow_mut().begun(at, self.handle.now());
    }

    pub(super) fn operation_done(&self) {
        let mut recorder = self.recorder.borrow_mut();
        let done = recorder.operation_done(self.handle.now());
        let planned = recorder.planned();
        drop(recorder);
        // The end is reported once all clients have ended.
        if done.is_multiple_of(PROGRESS_STEP) && done < planned {
            (self.progress.borrow_mut())(done, planned);
        }
    }

    pub(super) fn record(&self, kind: OpKind, since: Nanos) {
        self.recorder.borrow_mut().latency(kind, since, self.handle.now());
    }

    /// Checks the `value` that a Get of operation number `operation` returned; `name` is that of
    /// the key.
    pub(super) fn check(
        &self,
        (operation, key): (u64, u64),
        ticket: &GetTicket,
        value: Option<&Value>,
        name: impl Fn() -> String,
    ) {
        let oracle = &mut self.ledger.borrow_mut().oracle;
        let recorder = &mut self.recorder.borrow_mut();
        match oracle.finish_get(ticket, value) {
            Ok(()) if value.is_none() => recorder.not_found(),
            Ok(()) => {}
            Err(surprise) => recorder.mismatch(|| {
                let (expected, got) = oracle.describe(ticket, &surprise);
                Mismatch {
                    seed: self.seed,
                    operation,
                    at: self.handle.now(),
                    key: name(),
                    key_number: Some(key),
                    kind: surprise.kind,
                    expected,
                    got,
                }
            }),
        }
    }

    /// Notes that a scan returned `pairs` pairs, with the mismatches that the oracle found.
    pub(super) fn scanned(
        &self,
        operation: u64,
        pairs: u64,
        surprises: impl IntoIterator<Item = ScanSurprise>,
    ) {
        let at = self.handle.now();
        self.recorder.borrow_mut().scanned(self.seed, operation, at, pairs, surprises);
    }

    /// Notes that a write has ended.
    pub(super) fn written(
        &self,
        kind: OpKind,
        ticket: WriteTicket,
        since: Nanos,
        error: Option<impl Display>,
        name: impl Fn() -> String,
    ) -> Result<(), Failed> {
        if let Some(error) = error {
            return Err(self.fail(kind, &name(), &error));
        }
        self.ledger.borrow_mut().oracle.acknowledge(ticket);
        self.record(kind, since);
        Ok(())
    }

    /// Notes that an operation on the key `name` failed.
    pub(super) fn fail(&self, kind: OpKind, name: &str, error: &impl Display) -> Failed {
        self.fail_with(|at| format!("at {at}: {} of {name}: {error}", kind.name()))
    }

    /// Notes a failure, described by `words`.
    pub(super) fn fail_with(&self, words: impl FnOnce(Nanos) -> String) -> Failed {
        self.has_failed.set(true);
        self.recorder.borrow_mut().error(|| words(self.handle.now()));
        Failed
    }
}
