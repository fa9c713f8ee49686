//! Clients that replay a trace.
//!
//! Each client takes the next operation of the trace, waits for its time, if it has one, executes
//! it, and takes the next. The clients, as many as operations may be outstanding, form a queue,
//! first come, first served, for late operations.
//!
//! Invariant: no shared state stays borrowed across an await.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::{Nanos, mix64};

use super::Pace;
use super::notes::{Failed, Notes};
use crate::trace::TraceError;
use crate::trace::kv::{KeyNumbers, KvFormat, KvOp, KvRecord, Met};
use crate::{KvTarget, OpKind, RunReport};

/// Bytes that make a key unique if it is shorter than its recorded text.
const TELLING_BYTES: usize = 8;

/// The keys of a trace: their numbers, which follow those of the workload, and their bytes.
#[derive(Clone)]
pub(super) struct KeysOfTrace {
    numbers: Rc<RefCell<KeyNumbers>>,
    first: u64,
    family_bytes: usize,
}

/// A key of a trace.
struct Key {
    number: u64,
    bytes: Vec<u8>,
}

impl Key {
    fn name(&self) -> String {
        self.bytes.escape_ascii().to_string()
    }
}

impl KeysOfTrace {
    pub(super) fn new(first: u64, family_bytes: usize) -> Self {
        Self { numbers: Rc::default(), first, family_bytes }
    }

    fn of(&self, record: &KvRecord) -> Result<Key, String> {
        let met = self.numbers.borrow_mut().meet(record);
        let bytes = key_bytes(record, met, self.family_bytes)?;
        Ok(Key { number: self.first + met.number, bytes })
    }

    /// Returns puts of the keys that existed before a trace, in the order of their first use in it.
    pub(super) fn met_first<I: Iterator<Item = Result<KvRecord, TraceError>>>(
        &self,
        trace: I,
        format: KvFormat,
        otherwise: u32,
    ) -> impl Iterator<Item = Result<KvRecord, TraceError>> + use<I> {
        let numbers = Rc::clone(&self.numbers);
        trace.filter_map(move |record| {
            let record = match record {
                Ok(record) => record,
                Err(error) => return Some(Err(error)),
            };
            if numbers.borrow_mut().meet(&record).is_known {
                return None;
            }
            let value_bytes = record.value_before(format, otherwise)?;
            Some(Ok(KvRecord { op: KvOp::Put, value_bytes, ..record }))
        })
    }
}

/// Returns the bytes of a key: the recorded text, with the recorded length. A shorter text is
/// padded with zeros. A longer text is cut, and its end is replaced by a permutation of the key's
/// number, which is unique.
fn key_bytes(record: &KvRecord, met: Met, family_bytes: usize) -> Result<Vec<u8>, String> {
    let family = record.family.to_be_bytes();
    let mut bytes = family[family.len() - family_bytes..].to_vec();
    let (text, length) = (&record.key, met.bytes as usize);
    if text.len() <= length {
        bytes.extend_from_slice(text);
        bytes.resize(family_bytes + length, 0);
        return Ok(bytes);
    }
    let telling = length.min(TELLING_BYTES);
    let number = if telling < TELLING_BYTES { met.number } else { mix64(met.number) };
    if telling < TELLING_BYTES && number >> (8 * telling) > 0 {
        return Err(format!(
            "there are more keys of {length} bytes than so many bytes can tell apart"
        ));
    }
    bytes.extend_from_slice(&text[..length - telling]);
    bytes.extend_from_slice(&number.to_be_bytes()[TELLING_BYTES - telling..]);
    Ok(bytes)
}

/// The replay of a trace, shared by its clients.
pub(super) struct Replay<I> {
    notes: Notes,
    begun: Nanos,
    /// Factor on recorded times; `None` in a closed loop.
    stretch: Option<f64>,
    outstanding: usize,
    trace: RefCell<I>,
    /// Operations taken so far.
    taken: RefCell<u64>,
    keys: KeysOfTrace,
}

/// An operation taken by a client.
struct Taken {
    number: u64,
    at: Nanos,
    op: KvOp,
    key: Key,
    value_bytes: u32,
}

impl<I: Iterator<Item = Result<KvRecord, TraceError>> + 'static> Replay<I> {
    pub(super) fn new(notes: Notes, trace: I, keys: KeysOfTrace, pace: Pace) -> Self {
        let stretch = match pace {
            Pace::Recorded { stretch, .. } => Some(stretch),
            Pace::Closed { .. } | Pace::Open { .. } => None,
        };
        let (begun, outstanding) = (notes.handle.now(), pace.outstanding());
        let (trace, taken) = (RefCell::new(trace), RefCell::default());
        Self { notes, begun, stretch, outstanding, trace, taken, keys }
    }

    /// Runs the clients to their end.
    pub(super) async fn drive<T: KvTarget>(self, target: &T) -> RunReport {
        let replay = Rc::new(self);
        let clients = (replay.outstanding as u64).min(replay.notes.planned());
        let client = |_| {
            let client = Rc::clone(&replay).client(target.clone());
            replay.notes.handle.spawn("trace client", client)
        };
        let clients: Vec<_> = (0..clients).map(client).collect();
        for client in clients {
            client.await;
        }
        let Ok(replay) = Rc::try_unwrap(replay) else { unreachable!("every client has ended") };
        replay.notes.into_report()
    }

    /// Returns the next operation; `None` at the end, or after a failure.
    fn next(&self) -> Option<Taken> {
        let mut taken = self.taken.borrow_mut();
        if self.notes.is_over() || *taken == self.notes.planned() {
            return None;
        }
        let record = match self.trace.borrow_mut().next()? {
            Ok(record) => record,
            Err(error) => {
                self.notes.fail_with(|at| format!("at {at}: {error}"));
                return None;
            }
        };
        *taken += 1;
        let now = self.notes.handle.now();
        let since = |stretch: f64| self.begun + Nanos((record.at.0 as f64 * stretch) as u64);
        let at = self.stretch.map_or(now, since);
        match self.keys.of(&record) {
            Ok(key) => {
                let KvRecord { op, value_bytes, .. } = record;
                Some(Taken { number: *taken, at, op, key, value_bytes })
            }
            Err(error) => {
                self.notes.fail_with(|at| format!("at {at}: {error}"));
                None
            }
        }
    }

    async fn client<T: KvTarget>(self: Rc<Self>, target: T) {
        while let Some(taken) = self.next() {
            if taken.at > self.notes.handle.now() {
                self.notes.handle.sleep_until(taken.at).await;
            }
            if self.notes.is_over() {
                break;
            }
            self.notes.begun(taken.at);
            if self.done(&target, &taken).await.is_err() {
                break;
            }
            self.notes.operation_done();
        }
    }

    async fn done<T: KvTarget>(&self, target: &T, taken: &Taken) -> Result<(), Failed> {
        let puts: fn(bool) -> bool = match taken.op {
            KvOp::Put => return self.put(target, taken, taken.at).await,
            KvOp::Delete => return self.delete(target, taken).await,
            KvOp::Get => |_| false,
            KvOp::Merge => |_| true,
            KvOp::PutIfAbsent => |was_there| !was_there,
            KvOp::PutIfPresent => |was_there| was_there,
        };
        let was_there = self.get(target, taken).await?;
        if puts(was_there) {
            let read = self.notes.handle.now();
            self.put(target, taken, read).await?;
            self.notes.record(OpKind::ReadModifyWrite, taken.at);
        }
        Ok(())
    }

    /// Reads a key. Returns whether it had a value.
    async fn get<T: KvTarget>(&self, target: &T, taken: &Taken) -> Result<bool, Failed> {
        let (notes, key) = (&self.notes, &taken.key);
        let ticket = notes.ledger.borrow().oracle.begin_get(key.number);
        match target.get(&key.bytes).await {
            Ok(value) => {
                notes.record(OpKind::Get, taken.at);
                notes.check((taken.number, key.number), &ticket, value.as_ref(), || key.name());
                Ok(value.is_some())
            }
            Err(error) => Err(notes.fail(OpKind::Get, &key.name(), &error)),
        }
    }

    async fn put<T: KvTarget>(
        &self,
        target: &T,
        taken: &Taken,
        since: Nanos,
    ) -> Result<(), Failed> {
        let (notes, key) = (&self.notes, &taken.key);
        self.check_writes(OpKind::Put, key)?;
        let begun = notes.ledger.borrow_mut().oracle.begin_put_of(key.number, taken.value_bytes);
        let (ticket, value) = begun;
        let result = target.put(&key.bytes, value).await;
        notes.written(OpKind::Put, ticket, since, result.err(), || key.name())
    }

    async fn delete<T: KvTarget>(&self, target: &T, taken: &Taken) -> Result<(), Failed> {
        let (notes, key) = (&self.notes, &taken.key);
        self.check_writes(OpKind::Delete, key)?;
        let ticket = notes.ledger.borrow_mut().oracle.begin_delete(key.number);
        let result = target.delete(&key.bytes).await;
        notes.written(OpKind::Delete, ticket, taken.at, result.err(), || key.name())
    }

    /// Checks that a further write of a key can be distinguished from the earlier ones.
    fn check_writes(&self, kind: OpKind, key: &Key) -> Result<(), Failed> {
        if self.notes.ledger.borrow().oracle.is_used_up(key.number) {
            let error = "it was written more than 134 million times, which cannot be told apart";
            return Err(self.notes.fail(kind, &key.name(), &error));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str, length: u32, number: u64, family_bytes: usize) -> Result<Vec<u8>, String> {
        let (at, op, key) = (Nanos::ZERO, KvOp::Get, text.as_bytes().into());
        let record = KvRecord { at, op, key, family: 3, key_bytes: length, value_bytes: 0 };
        key_bytes(&record, Met { number, bytes: length, is_known: false }, family_bytes)
    }

    #[test]
    fn keys_are_as_long_as_they_were() {
        assert_eq!(bytes("abc", 3, 7, 0), Ok(b"abc".to_vec()));
        assert_eq!(bytes("abc", 5, 7, 0), Ok(b"abc\0\0".to_vec()));
        assert_eq!(bytes("abc", 3, 7, 1), Ok(b"\x03abc".to_vec()));
        assert_eq!(bytes("abcdef", 2, 258, 0), Ok(vec![1, 2]));
        let long = bytes("abcdefghijklmnopqrstuvwxyz", 12, 7, 0).unwrap();
        assert_eq!((&long[..4], long.len()), (&b"abcd"[..], 12));
        assert_ne!(long, bytes("abcdefghijklmnopqrstuvwxyz", 12, 8, 0).unwrap());
        assert!(bytes("abcdef", 1, 256, 0).is_err_and(|words| words.contains("keys of 1 bytes")));
    }
}
