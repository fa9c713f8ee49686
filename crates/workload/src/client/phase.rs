//! One load or run: its clients, and their shared state.
//!
//! Every client is a task. A client of a closed loop takes an operation, executes it and takes the
//! next. A client of an open loop takes an arrival, waits for its time if that is in the future,
//! and executes the next operation of the stream: the clients, as many as operations may be
//! outstanding, form a queue, first come, first served, for late arrivals.
//!
//! Invariant: no shared state stays borrowed across an await.

use std::cell::RefCell;
use std::fmt::Display;
use std::pin::pin;
use std::rc::Rc;

use runtime::{Handle, Nanos, Rng};

use super::ledger::Ledger;
use super::notes::{Failed, Notes};
use super::pace::Schedule;
use super::{ClientOptions, Pace, Stop};
use crate::operation::{Action, Operation, OperationStream};
use crate::{KeyBuffer, KeyFormat, KvTarget, OpKind, RunReport, Scans};

/// The work of a phase.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) keys: KeyFormat,
    pub(super) scans: Scans,
    pub(super) update_reads: bool,
    pub(super) stream: OperationStream,
    pub(super) stop: Stop,
}

/// Shared state of a phase's clients.
pub(super) struct Phase {
    pub(super) notes: Notes,
    pub(super) keys: KeyFormat,
    pub(super) scans: Scans,
    /// Whether updates read their pair first.
    update_reads: bool,
    stream: RefCell<OperationStream>,
    /// Arrivals of an open loop; `None` for a closed loop.
    schedule: Option<RefCell<Schedule>>,
}

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
            Pace::Closed { .. } | Pace::Recorded { .. } => None,
            Pace::Open { rate, arrivals, .. } => {
                Some(RefCell::new(Schedule::new(now, arrivals, rate, planned, rng)))
            }
        };
        Self {
            notes: Notes::new(handle, ledger, (seed, planned), options, stop, progress),
            keys,
            scans,
            update_reads,
            stream: RefCell::new(stream),
            schedule,
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
            phase.notes.handle.spawn("workload client", client.work())
        };
        let planned = phase.notes.planned();
        let clients: Vec<_> = (0..planned.min(clients as u64)).map(start).collect();
        for client in clients {
            client.await;
        }
        let Ok(phase) = Rc::try_unwrap(phase) else { unreachable!("every client has ended") };
        phase.notes.into_report()
    }

    /// Returns the start time of the next operation; now, in a closed loop. `None` if no operation
    /// is left.
    fn next_start(&self) -> Option<Nanos> {
        match &self.schedule {
            None => Some(self.notes.handle.now()),
            Some(schedule) => schedule.borrow_mut().next(),
        }
    }

    fn next_operation(&self) -> Option<Operation> {
        if self.notes.is_over() {
            return None;
        }
        self.stream.borrow_mut().next(&mut self.notes.ledger.borrow_mut().inserts)
    }

    pub(super) fn fail(&self, kind: OpKind, key: u64, error: &impl Display) -> Failed {
        self.notes.fail(kind, &self.keys.display(key), error)
    }
}

/// A client: at most one operation outstanding.
pub(super) struct Client<T> {
    pub(super) phase: Rc<Phase>,
    pub(super) target: T,
    pub(super) key: KeyBuffer,
    /// Buffer for the upper bounds of scans.
    pub(super) bound: KeyBuffer,
}

impl<T: KvTarget> Client<T> {
    async fn work(mut self) {
        while let Some(start) = self.phase.next_start() {
            if start > self.phase.notes.handle.now() {
                self.phase.notes.handle.sleep_until(start).await;
            }
            let Some(operation) = self.phase.next_operation() else {
                break;
            };
            self.phase.notes.begun(start);
            // Gets and puts are pinned in place. Awaited by value, each would first copy 2 KB.
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
            self.phase.notes.operation_done();
        }
    }

    async fn insert(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        pin!(self.put(operation, since)).await?;
        self.phase.notes.ledger.borrow_mut().inserts.acknowledge(operation.key);
        Ok(())
    }

    /// A Put after a Get of the same key, as in YCSB's binding for `RocksDB`, which reads a record
    /// to change it.
    async fn update(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        pin!(self.get(operation, since)).await?;
        let read = self.phase.notes.handle.now();
        pin!(self.put(operation, read)).await
    }

    async fn read_modify_write(
        &mut self,
        operation: Operation,
        since: Nanos,
    ) -> Result<(), Failed> {
        pin!(self.get(operation, since)).await?;
        let read = self.phase.notes.handle.now();
        if self.phase.update_reads {
            self.update(operation, read).await?;
        } else {
            pin!(self.put(operation, read)).await?;
        }
        self.phase.notes.record(OpKind::ReadModifyWrite, since);
        Ok(())
    }

    async fn get(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let notes = &phase.notes;
        let ticket = notes.ledger.borrow().oracle.begin_get(key);
        match target.get(phase.keys.write(key, buffer)).await {
            Ok(value) => {
                notes.record(OpKind::Get, since);
                let numbers = (operation.number, key);
                notes.check(numbers, &ticket, value.as_ref(), || phase.keys.display(key));
                Ok(())
            }
            Err(error) => Err(phase.fail(OpKind::Get, key, &error)),
        }
    }

    async fn put(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let notes = &phase.notes;
        let (ticket, value) = notes.ledger.borrow_mut().oracle.begin_put(key);
        let result = target.put(phase.keys.write(key, buffer), value).await;
        notes.written(OpKind::Put, ticket, since, result.err(), || phase.keys.display(key))
    }

    async fn delete(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let notes = &phase.notes;
        let ticket = notes.ledger.borrow_mut().oracle.begin_delete(key);
        let result = target.delete(phase.keys.write(key, buffer)).await;
        notes.written(OpKind::Delete, ticket, since, result.err(), || phase.keys.display(key))
    }
}
