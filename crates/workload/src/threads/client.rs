//! The work of a client thread, and the shared state of a phase's clients.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use engine::Value;
use runtime::{ExactSleep, Nanos, Rng, WallClock};

use super::SharedTarget;
use crate::client::{Ledger, Schedule};
use crate::operation::{Action, Operation, OperationStream};
use crate::oracle::{ScanSurprise, ScanTicket};
use crate::record::Recorder;
use crate::{
    ClientOptions, KeyBuffer, KeyFormat, Mismatch, OpKind, Pace, Pair, RunReport, ScanEnd, Scans,
    Stop,
};

/// The work of a phase.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) keys: KeyFormat,
    pub(super) scans: Scans,
    pub(super) update_reads: bool,
    pub(super) stream: OperationStream,
    pub(super) arrivals: Rng,
}

/// Shared state of a phase's clients.
pub(super) struct Phase<'a> {
    ledger: &'a Mutex<Ledger>,
    clock: &'a WallClock,
    stop: &'a Stop,
    is_over: AtomicBool,
    seed: u64,
    keys: KeyFormat,
    scans: Scans,
    update_reads: bool,
    outstanding: usize,
    floor: Mutex<Floor>,
}

/// State that the clients use in turns. Lock order: the ledger before the floor.
struct Floor {
    stream: OperationStream,
    /// Arrivals of an open loop; `None` for a closed loop.
    schedule: Option<Schedule>,
    recorder: Recorder,
}

/// Arrival of an operation in an open loop; `None` in a closed loop.
struct Arrival(Option<Nanos>);

/// An operation failed. The failure is recorded, and the phase ends.
struct Failed;

impl<'a> Phase<'a> {
    pub(super) fn new(
        ledger: &'a Mutex<Ledger>,
        clock: &'a WallClock,
        stop: &'a Stop,
        plan: Plan,
        options: &ClientOptions,
    ) -> Self {
        let Plan { seed, keys, scans, update_reads, stream, arrivals: rng } = plan;
        let (now, planned) = (clock.now(), stream.remaining());
        let schedule = match options.pace {
            Pace::Closed { .. } | Pace::Recorded { .. } => None,
            Pace::Open { rate, arrivals, .. } => {
                Some(Schedule::new(now, arrivals, rate, planned, rng))
            }
        };
        let recorder = Recorder::new(now, planned, options.window, options.max_windows);
        let outstanding = options.pace.outstanding();
        let floor = Mutex::new(Floor { stream, schedule, recorder });
        let is_over = AtomicBool::new(false);
        Self { ledger, clock, stop, is_over, seed, keys, scans, update_reads, outstanding, floor }
    }

    /// Returns the number of clients.
    pub(super) fn clients(&self) -> usize {
        self.outstanding
    }

    /// Returns the operations done and planned.
    pub(super) fn progress(&self) -> (u64, u64) {
        let floor = self.floor();
        (floor.recorder.done(), floor.recorder.planned())
    }

    /// Ends the phase: no further operation begins.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns whether a client has panicked.
    pub(super) fn is_poisoned(&self) -> bool {
        self.floor.is_poisoned() || self.ledger.is_poisoned()
    }

    pub(super) fn into_report(self) -> RunReport {
        self.floor.into_inner().expect("no client panicked").recorder.into_report()
    }

    fn floor(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().expect("no client panicked")
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no client panicked")
    }

    /// Runs one client to the end of the phase.
    pub(super) fn work<T: SharedTarget>(&self, target: &T) {
        let _exact = ExactSleep::begin();
        let mut client =
            Client { phase: self, target, key: self.keys.buffer(), bound: self.keys.buffer() };
        while let Some(Arrival(arrival)) = self.next_arrival() {
            let Some(operation) = self.next_operation() else { break };
            if let Some(arrival) = arrival {
                self.floor().recorder.begun(arrival, self.clock.now());
            }
            if client.do_one(operation, arrival).is_err() {
                self.end();
                break;
            }
            self.floor().recorder.operation_done(self.clock.now());
        }
    }

    /// Waits for the next arrival of an open loop, from which latency counts. A closed loop has no
    /// arrivals and does not wait. Returns `None` at the end.
    fn next_arrival(&self) -> Option<Arrival> {
        let mut floor = self.floor();
        let Some(schedule) = &mut floor.schedule else { return Some(Arrival(None)) };
        let arrival = schedule.next()?;
        drop(floor);
        self.clock.sleep_until(arrival);
        Some(Arrival(Some(arrival)))
    }

    fn next_operation(&self) -> Option<Operation> {
        if self.is_over.load(Ordering::Relaxed) || self.stop.is_asked() {
            return None;
        }
        let mut ledger = self.ledger();
        self.floor().stream.next(&mut ledger.inserts)
    }

    fn record(&self, kind: OpKind, since: Nanos, now: Nanos) {
        self.floor().recorder.latency(kind, since, now);
    }

    fn fail(&self, kind: OpKind, key: u64, error: &impl Display) -> Failed {
        let (at, name) = (self.clock.now(), self.keys.display(key));
        self.floor().recorder.error(|| format!("at {at}: {} of {name}: {error}", kind.name()));
        Failed
    }

    /// Notes that a scan returned `pairs` pairs, with the mismatches that the oracle found.
    fn scanned(&self, operation: Operation, pairs: u64, surprises: Vec<ScanSurprise>) {
        let at = self.clock.now();
        self.floor().recorder.scanned(self.seed, operation.number, at, pairs, surprises);
    }
}

/// A client: at most one operation outstanding.
struct Client<'p, 'a, T> {
    phase: &'p Phase<'a>,
    target: &'p T,
    key: KeyBuffer,
    /// Buffer for the upper bounds of scans.
    bound: KeyBuffer,
}

impl<T: SharedTarget> Client<'_, '_, T> {
    fn do_one(&mut self, operation: Operation, arrival: Option<Nanos>) -> Result<(), Failed> {
        let reads_first = self.phase.update_reads;
        match operation.action {
            Action::Read => self.get(operation, arrival).map(drop),
            Action::Update if reads_first => self.update(operation, arrival),
            Action::Load | Action::Update => self.put(operation, arrival),
            Action::Insert => {
                self.put(operation, arrival)?;
                self.phase.ledger().inserts.acknowledge(operation.key);
                Ok(())
            }
            Action::ReadModifyWrite => {
                let since = self.get(operation, arrival)?;
                if reads_first {
                    self.update(operation, None)?;
                } else {
                    self.put(operation, None)?;
                }
                self.phase.record(OpKind::ReadModifyWrite, since, self.phase.clock.now());
                Ok(())
            }
            Action::Delete => self.delete(operation, arrival),
            Action::Scan => self.scan(operation, arrival),
        }
    }

    /// Reads and then writes a key.
    fn update(&mut self, operation: Operation, arrival: Option<Nanos>) -> Result<(), Failed> {
        self.get(operation, arrival)?;
        self.put(operation, None)
    }

    /// Reads a key. Returns the time from which its latency counts.
    fn get(&mut self, operation: Operation, arrival: Option<Nanos>) -> Result<Nanos, Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let ticket = phase.ledger().oracle.begin_get(key);
        let name = phase.keys.write(key, buffer);
        let since = arrival.unwrap_or_else(|| phase.clock.now());
        let got = target.get(name);
        let now = phase.clock.now();
        let value = got.map_err(|error| phase.fail(OpKind::Get, key, &error))?;
        let value = value.as_deref().map(Value::from_bytes);
        let mut ledger = phase.ledger();
        let finished = ledger.oracle.finish_get(&ticket, value.as_ref());
        let surprise = finished.err().map(|surprise| {
            let (expected, got) = ledger.oracle.describe(&ticket, &surprise);
            (surprise.kind, expected, got)
        });
        drop(ledger);
        let recorder = &mut phase.floor().recorder;
        recorder.latency(OpKind::Get, since, now);
        match surprise {
            None if value.is_none() => recorder.not_found(),
            None => {}
            Some((kind, expected, got)) => recorder.mismatch(|| Mismatch {
                seed: phase.seed,
                operation: operation.number,
                at: now,
                key: phase.keys.display(key),
                key_number: Some(key),
                kind,
                expected,
                got,
            }),
        }
        Ok(since)
    }

    fn put(&mut self, operation: Operation, arrival: Option<Nanos>) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let (ticket, value) = phase.ledger().oracle.begin_put(key);
        let (name, value) = (phase.keys.write(key, buffer), value.to_bytes());
        let since = arrival.unwrap_or_else(|| phase.clock.now());
        let put = target.put(name, &value);
        let now = phase.clock.now();
        put.map_err(|error| phase.fail(OpKind::Put, key, &error))?;
        phase.ledger().oracle.acknowledge(ticket);
        phase.record(OpKind::Put, since, now);
        Ok(())
    }

    fn delete(&mut self, operation: Operation, arrival: Option<Nanos>) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, .. } = self;
        let key = operation.key;
        let ticket = phase.ledger().oracle.begin_delete(key);
        let name = phase.keys.write(key, buffer);
        let since = arrival.unwrap_or_else(|| phase.clock.now());
        let deleted = target.delete(name);
        let now = phase.clock.now();
        deleted.map_err(|error| phase.fail(OpKind::Delete, key, &error))?;
        phase.ledger().oracle.acknowledge(ticket);
        phase.record(OpKind::Delete, since, now);
        Ok(())
    }

    /// Scans a range. Pairs are checked only after all were read, so that latencies exclude the
    /// oracle.
    fn scan(&mut self, operation: Operation, arrival: Option<Nanos>) -> Result<(), Failed> {
        let Self { phase, target, key: buffer, bound: bound_buffer } = self;
        let (mut ticket, bound) = begin_scan(phase, operation);
        let most = match phase.scans.end {
            ScanEnd::Length => operation.records,
            ScanEnd::Bound => u64::MAX,
        };
        let until = bound.map(|number| phase.keys.write(number, bound_buffer));
        let name = phase.keys.write(operation.key, buffer);
        let since = arrival.unwrap_or_else(|| phase.clock.now());
        let (mut pairs, mut steps) = (Vec::new(), Vec::new());
        let mut last = since;
        let read = target.scan(name, until, &mut |key, value| {
            if pairs.is_empty() {
                // The snapshot was taken before this.
                phase.ledger().oracle.scan_created(&mut ticket);
            }
            pairs.push(Pair { key: key.into(), value: Value::from_bytes(value) });
            let now = phase.clock.now();
            steps.push((last, now));
            last = now;
            (pairs.len() as u64) < most
        });
        let now = phase.clock.now();
        if pairs.is_empty() {
            phase.ledger().oracle.scan_created(&mut ticket);
        }
        if read.is_ok() {
            let floor = &mut phase.floor().recorder;
            let kinds = std::iter::once(OpKind::Seek).chain(std::iter::repeat(OpKind::Next));
            for (kind, (since, now)) in kinds.zip(steps) {
                floor.latency(kind, since, now);
            }
            floor.latency(OpKind::Scan, since, now);
        }
        let result = read.map_err(|error| phase.fail(OpKind::Scan, operation.key, &error));
        if result.is_ok() {
            check(phase, operation, &mut ticket, &pairs, most);
        }
        phase.ledger().oracle.end_scan(ticket);
        result
    }
}

/// Returns the ticket, and the number of the key that bounds the scan, if any.
fn begin_scan(phase: &Phase<'_>, operation: Operation) -> (ScanTicket, Option<u64>) {
    let oracle = &mut phase.ledger().oracle;
    let bound = match phase.scans.end {
        ScanEnd::Length => None,
        ScanEnd::Bound => oracle.key_after(operation.key, operation.records),
    };
    (oracle.begin_scan(operation.key, bound), bound)
}

/// Checks the returned pairs, of which `most` were requested.
fn check(
    phase: &Phase<'_>,
    operation: Operation,
    ticket: &mut ScanTicket,
    pairs: &[Pair],
    most: u64,
) {
    let mut surprises = Vec::new();
    for pair in pairs {
        // One pair per lock, so that other clients wait only briefly.
        surprises.extend(phase.ledger().oracle.check_pair(ticket, pair));
        if ticket.is_off_track() {
            break;
        }
    }
    if !ticket.is_off_track() && (pairs.len() as u64) < most {
        surprises.extend(phase.ledger().oracle.check_end(ticket));
    }
    phase.scanned(operation, pairs.len() as u64, surprises);
}
