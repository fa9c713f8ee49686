//! The writes of each key, and the states that a power cut may leave.

use std::collections::BTreeMap;

use engine::{Engine, Value};
use runtime::{Nanos, Runtime};

use super::medium::Wild;
use super::{Case, Complaint};

#[derive(Clone, Copy, PartialEq)]
struct Write {
    number: u64,
    is_put: bool,
}

#[derive(Default)]
struct History {
    writes: Vec<Write>,
    /// The newest write acknowledged as durable; 0 if none was.
    durable: u64,
}

impl History {
    fn allows(&self, found: Option<u64>) -> bool {
        let mut writes = self.writes.iter().filter(|write| write.number >= self.durable);
        match found {
            Some(number) => writes.any(|write| write.is_put && write.number == number),
            None => self.durable == 0 || writes.any(|write| !write.is_put),
        }
    }

    /// Makes the found write the only one.
    fn settle(&mut self, found: Option<u64>) {
        self.writes.retain(|write| found == Some(write.number));
        self.durable = found.unwrap_or(0);
    }
}

/// All keys. Writes are numbered, and values contain their write's number.
#[derive(Default)]
pub(super) struct Model {
    keys: BTreeMap<u64, History>,
    last: u64,
    complaint: Option<Complaint>,
}

/// Returns the value of write `number`.
pub(super) fn value(number: u64, filling: u64) -> Value {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(8 + filling as usize, number as u8);
    Value::from_bytes(&bytes)
}

/// Returns the number of the write whose value was found.
pub(super) fn number_of(found: Option<Value>) -> Option<u64> {
    let bytes = found?.to_bytes();
    let (number, filling) = bytes.split_first_chunk().expect("values say their number");
    let number = u64::from_le_bytes(*number);
    assert!(filling.iter().all(|byte| *byte == number as u8), "a value of two writes");
    Some(number)
}

impl Model {
    /// Returns the number of a write that may take effect from now on.
    pub(super) fn ask(&mut self, key: u64, is_put: bool) -> u64 {
        self.last += 1;
        self.keys.entry(key).or_default().writes.push(Write { number: self.last, is_put });
        self.last
    }

    pub(super) fn is_durable(&mut self, key: u64, number: u64) {
        self.keys.entry(key).or_default().durable = number;
    }

    /// Checks a value that the key's only client has read.
    pub(super) fn check_newest(&mut self, key: u64, found: Option<u64>) {
        let newest = self.keys.get(&key).and_then(|history| history.writes.last());
        let expected = newest.filter(|write| write.is_put).map(|write| write.number);
        if found != expected {
            self.complain(format!("key {key} has {found:?}, not {expected:?}"));
        }
    }

    pub(super) fn complain(&mut self, what: Complaint) {
        self.complaint.get_or_insert(what);
    }

    pub(super) fn result(&mut self) -> Result<(), Complaint> {
        self.complaint.take().map_or(Ok(()), Err)
    }

    /// Reads all keys after a power cut.
    pub(super) fn settle(
        &mut self,
        rt: &Runtime,
        engine: &Engine<Wild>,
        case: &Case,
    ) -> Result<(), Complaint> {
        for key in 0..case.keys + case.clients {
            let (engine, name) = (engine.clone(), case.name(key));
            let found = rt.block_on(async move { engine.get(&name, Nanos::ZERO).await });
            let found = number_of(found.map_err(|error| format!("key {key}: {error}"))?.value);
            let history = self.keys.entry(key).or_default();
            if !history.allows(found) {
                let durable = history.durable;
                return Err(format!("key {key} has {found:?}, durable was {durable}"));
            }
            history.settle(found);
        }
        Ok(())
    }
}
