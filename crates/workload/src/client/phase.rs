//! One load or run: the clients, and what they share.
//!
//! Every client is a task. A closed loop's client takes an operation, does it and takes the next.
//! An open loop's client takes an arrival, waits for it if it is still to come, and does the
//! operation that is next by then: as many clients as may be outstanding make a queue, first come
//! first served, for the arrivals that are late.
//!
//! Invariant: nothing that is shared stays borrowed across an await.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::pin::pin;
use std::rc::Rc;

use pages::Value;
use runtime::{Handle, Nanos, Rng};

use super::pace::Schedule;
use super::{ClientOptions, Pace, Stop};
use crate::generator::InsertCounter;
use crate::operation::{Action, Operation, OperationStream};
use crate::oracle::{GetTicket, Oracle, ScanSurprise, WriteTicket};
use crate::record::Recorder;
use crate::{KeyBuffer, KeyFormat, KvTarget, Mismatch, OpKind, RunReport, Scans};

/// Progress is told every so many operations.
const PROGRESS_STEP: u64 = 4096;

/// What outlives a phase: what was written.
pub(crate) struct Ledger {
    pub(crate) oracle: Oracle,
    pub(crate) inserts: InsertCounter,
}

/// What there is to do in a phase.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) keys: KeyFormat,
    pub(super) scans: Scans,
    pub(super) update_reads: bool,
    pub(super) stream: OperationStream,
    pub(super) stop: Stop,
}

/// What the clients of one phase share.
pub(super) struct Phase {
    pub(super) handle: Handle,
    seed: u64,
    pub(super) keys: KeyFormat,
    pub(super) scans: Scans,
    /// Updates get their pair first.
    update_reads: bool,
    pub(super) ledger: Rc<RefCell<Ledger>>,
    stream: RefCell<OperationStream>,
    /// Arrivals of an open loop; a closed one has none.
    schedule: Option<RefCell<Schedule>>,
    recorder: RefCell<Recorder>,
    progress: RefCell<Box<dyn FnMut(u64, u64)>>,
    has_failed: Cell<bool>,
    stop: Stop,
}

/// An operation has failed; it is noted, and the phase ends.
pub(super) struct Failed;

impl Phase {
    pub(super) fn new(
        handle: Handle,
        ledger: Rc<RefCell<Ledger>>,
        plan: Plan,
        options: &ClientOptions,
        rng: Rng,
        progress: Box<dyn FnMut(u64, u64)>,
    ) -> Self {
        let Plan { seed, keys, scans, update_reads, stream, stop } = plan;
        let (now, planned) = (handle.now(), stream.remaining());
        let schedule = match options.pace {
            Pace::Closed { .. } => None,
            Pace::Open { rate, arrivals, .. } => {
                Some(RefCell::new(Schedule::new(now, arrivals, rate, planned, rng)))
            }
        };
        let recorder = Recorder::new(now, planned, options.window, options.max_windows);
        Self {
            handle,
            seed,
            keys,
            scans,
            update_reads,
            ledger,
            stream: RefCell::new(stream),
            schedule,
            recorder: RefCell::new(recorder),
            progress: RefCell::new(progress),
            has_failed: Cell::new(false),
            stop,
        }
    }

    /// Runs the clients to their end.
    pub(super) async fn drive<T: KvTarget>(self, target: &T, clients: usize) -> RunReport {
        let phase = Rc::new(self);
        let start = |_| {
            let client = Client {
                phase: Rc::clone(&phase),
                target: target.clone(),
                key: phase.keys.buffer(),
                bound: phase.keys.buffer(),
            };
            phase.handle.spawn("workload client", client.work())
        };
        let planned = phase.recorder.borrow().planned();
        let clients: Vec<_> = (0..planned.min(clients as u64)).map(start).collect();
        for client in clients {
            client.await;
        }
        let Ok(phase) = Rc::try_unwrap(phase) else { unreachable!("every client has ended") };
        let recorder = phase.recorder.into_inner();
        (phase.progress.into_inner())(recorder.done(), recorder.planned());
        recorder.into_report()
    }

    /// When the next operation is to start: now, in a closed loop. `None` if there is none.
    fn next_start(&self) -> Option<Nanos> {
        match &self.schedule {
            None => Some(self.handle.now()),
            Some(schedule) => schedule.borrow_mut().next(),
        }
    }

    fn next_operation(&self) -> Option<Operation> {
        if self.has_failed.get() || self.stop.is_asked() {
            return None;
        }
        self.stream.borrow_mut().next(&mut self.ledger.borrow_mut().inserts)
    }

    fn operation_done(&self) {
        let mut recorder = self.recorder.borrow_mut();
        let done = recorder.operation_done(self.handle.now());
        let planned = recorder.planned();
        drop(recorder);
        // The end is told once all clients have ended.
        if done.is_multiple_of(PROGRESS_STEP) && done < planned {
            (self.progress.borrow_mut())(done, planned);
        }
    }

    pub(super) fn record(&self, kind: OpKind, since: Nanos) {
        self.recorder.borrow_mut().latency(kind, since, self.handle.now());
    }

    fn check(&self, operation: Operation, ticket: &GetTicket, value: Option<&Value>) {
        let oracle = &mut self.ledger.borrow_mut().oracle;
        let recorder = &mut self.recorder.borrow_mut();
        match oracle.finish_get(ticket, value) {
            Ok(()) if value.is_none() => recorder.not_found(),
            Ok(()) => {}
            Err(surprise) => recorder.mismatch(|| {
                let (expected, got) = oracle.describe(ticket, &surprise);
                Mismatch {
                    seed: self.seed,
                    operation: operation.number,
                    at: self.handle.now(),
                    key: self.keys.display(operation.key),
                    key_number: Some(operation.key),
                    kind: surprise.kind,
                    expected,
                    got,
                }
            }),
        }
    }

    /// A scan has given `pairs`, about which the oracle wonders.
    pub(super) fn scanned(
        &self,
        operation: Operation,
        pairs: u64,
        surprises: impl IntoIterator<Item = ScanSurprise>,
    ) {
        let (operation, at) = (operation.number, self.handle.now());
        self.recorder.borrow_mut().scanned(self.seed, operation, at, pairs, surprises);
    }

    fn written(
        &self,
        kind: OpKind,
        key: u64,
        ticket: WriteTicket,
        since: Nanos,
        error: Option<impl Display>,
    ) -> Result<(), Failed> {
        if let Some(error) = error {
            return Err(self.fail(kind, key, &error));
        }
        self.ledger.borrow_mut().oracle.acknowledge(ticket);
        self.record(kind, since);
        Ok(())
    }

    pub(super) fn fail(&self, kind: OpKind, key: u64, error: &impl Display) -> Failed {
        self.has_failed.set(true);
        self.recorder.borrow_mut().error(|| {
            let (at, name) = (self.handle.now(), self.keys.display(key));
            format!("at {at}: {} of {name}: {error}", kind.name())
        });
        Failed
    }
}

/// One client: at most one operation outstanding.
pub(super) struct Client<T> {
    pub(super) phase: Rc<Phase>,
    pub(super) target: T,
    pub(super) key: KeyBuffer,
    /// Where the upper bounds of scans are written.
    pub(super) bound: KeyBuffer,
}

impl<T: KvTarget> Client<T> {
    async fn work(mut self) {
        while let Some(start) = self.phase.next_start() {
            if start > self.phase.handle.now() {
                self.phase.handle.sleep_until(start).await;
            }
            let Some(operation) = self.phase.next_operation() else {
                break;
            };
            // Gets and puts are pinned where they are made. Awaited by value they would be copied first, 2 KB each.
            let result = match operation.action {
                Action::Read => pin!(self.get(operation, start)).await,
                Action::Update if self.phase.update_reads => self.update(operation, start).await,
                Action::Load | Action::Update => pin!(self.put(operation, start)).await,
                Action::Insert => self.insert(operation, start).await,
                Action::ReadModifyWrite => self.read_modify_write(operation, start).await,
                Action::Delete => self.delete(operation, start).await,
                Action::Scan => self.scan(operation, start).await,
            };
            if result.is_err() {
                break;
            }
            self.phase.operation_done();
        }
    }

    async fn insert(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        pin!(self.put(operation, since)).await?;
        self.phase.ledger.borrow_mut().inserts.acknowledge(operation.key);
        Ok(())
    }

    /// A Put behind a Get of the same key, as YCSB's binding for `RocksDB` has it: a record is read to be changed.
    async fn update(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        pin!(self.get(operation, since)).await?;
        let read = self.phase.handle.now();
        pin!(self.put(operation, read)).await
    }

    async fn read_modify_write(
        &mut self,
        operation: Operation,
        since: Nanos,
    ) -> Result<(), Failed> {
        pin!(self.get(operation, since)).await?;
        let read = self.phase.handle.now();
        if self.phase.update_reads {
            self.update(operation, read).await?;
        } else {
            pin!(self.put(operation, read)).await?;
        }
        self.phase.record(OpKind::ReadModifyWrite, since);
        Ok(())
    }

    async fn get(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let ticket = phase.ledger.borrow().oracle.begin_get(key);
        match target.get(phase.keys.write(key, buffer)).await {
            Ok(value) => {
                phase.record(OpKind::Get, since);
                phase.check(operation, &ticket, value.as_ref());
                Ok(())
            }
            Err(error) => Err(phase.fail(OpKind::Get, key, &error)),
        }
    }

    async fn put(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let (ticket, value) = phase.ledger.borrow_mut().oracle.begin_put(key);
        let result = target.put(phase.keys.write(key, buffer), value).await;
        phase.written(OpKind::Put, key, ticket, since, result.err())
    }

    async fn delete(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let ticket = phase.ledger.borrow_mut().oracle.begin_delete(key);
        let result = target.delete(phase.keys.write(key, buffer)).await;
        phase.written(OpKind::Delete, key, ticket, since, result.err())
    }
}
