//! The oracle: knows all correct results of every Get and scan, and checks the actual results.
//!
//! Every write of a key is a version, including deletes. A Get may return
//!
//! - a write that was issued before the Get ended, unless
//! - another write began after that write was acknowledged, and was itself acknowledged before the
//!   Get began.
//!
//! So overlapping writes may take effect in any order, and any of them may be found until a later
//! write or a later Get settles the order. A failed write may or may not have taken effect, at any
//! later time. These are the rules of a linearizable register as far as a single Get can show them.
//!
//! A scan sees a snapshot, taken at some instant during the creation of its iterator. For each key
//! it must return a value that a Get with the same begin and end as the creation may return; it may
//! omit only keys for which such a Get may return nothing. A single instant must explain the whole
//! scan.
//!
//! Cost: four bytes per key, and about a hundred per key with writes in flight or unsettled. A Get
//! checks the four bytes; a Put also needs two look-ups in a small ordered map. Scans need eight
//! more bytes per key if keys are hashed, and while one is in flight writes are noted.

mod journal;
mod lengths;
mod mismatch;
mod order;
mod scan;
mod snapshot;
mod ticket;
mod versions;

#[cfg(test)]
mod scan_tests;
#[cfg(test)]
mod tests;

pub use mismatch::{Mismatch, MismatchKind};
pub(crate) use scan::{ScanSurprise, ScanTicket};

use engine::Value;
use lengths::Lengths;
use mismatch::{Finding, Surprise};
use order::KeyOrder;
use runtime::Carrier;
use ticket::ReadTicket;
use versions::{Seen, Versions};

use crate::ValueRecipe;
use crate::value::{Stamp, stamp};

/// The writes of every key number, and the values that may be read.
pub(crate) struct Oracle {
    recipe: ValueRecipe,
    versions: Versions,
    /// The order of keys; `None` until scans are prepared.
    order: Option<KeyOrder>,
    /// Lengths of values that do not follow the recipe.
    lengths: Option<Lengths>,
}

/// A write in flight.
#[must_use = "a write that is not acknowledged counts as under way for ever"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WriteTicket(Stamp);

/// A Get in flight.
#[must_use = "a Get that is not finished is not checked"]
#[derive(Debug)]
pub(crate) struct GetTicket(ReadTicket);

impl Oracle {
    /// Creates the oracle of an empty store, with initial room for `keys` keys.
    pub(crate) fn new(recipe: ValueRecipe, keys: u64) -> Self {
        Self { recipe, versions: Versions::new(keys), order: None, lengths: None }
    }

    /// Notes that a Put begins. Returns the value to write.
    pub(crate) fn begin_put(&mut self, key: u64) -> (WriteTicket, Value) {
        if let Some(order) = &mut self.order
            && self.versions.newest(key) == 0
        {
            order.insert(key);
        }
        let stamp = Stamp { key, version: self.versions.issue_put(key) };
        (WriteTicket(stamp), self.recipe.value(stamp))
    }

    /// Makes keys from number `first` on have the lengths passed to [`Self::begin_put_of`].
    pub(crate) fn record_lengths_from(&mut self, first: u64) {
        self.lengths = Some(Lengths::from(first));
    }

    /// Returns whether a key has no version numbers left for further writes.
    pub(crate) fn is_used_up(&self, key: u64) -> bool {
        self.versions.is_used_up(key)
    }

    /// Notes that a Put of a value of `bytes` bytes begins, for a key with recorded lengths.
    pub(crate) fn begin_put_of(&mut self, key: u64, bytes: u32) -> (WriteTicket, Value) {
        let is_settled = self.versions.is_settled(key);
        let stamp = Stamp { key, version: self.versions.issue_put(key) };
        let lengths = self.lengths.as_mut().expect("lengths are recorded");
        lengths.put(stamp, bytes, is_settled);
        (WriteTicket(stamp), self.recipe.value_of(stamp, bytes))
    }

    /// Notes a Put that was done before this oracle was created.
    pub(crate) fn assume_put(&mut self, key: u64) {
        let version = self.versions.issue_put(key);
        self.versions.acknowledge(key, version);
    }

    /// Saves or restores the state of all keys. Requires: scans are not prepared yet.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        if self.order.is_some() { None } else { self.versions.carry(by) }
    }

    /// Notes that a delete begins.
    pub(crate) fn begin_delete(&mut self, key: u64) -> WriteTicket {
        WriteTicket(Stamp { key, version: self.versions.issue_delete(key) })
    }

    /// Notes that a Put or delete has succeeded. A failed write is not acknowledged.
    pub(crate) fn acknowledge(&mut self, ticket: WriteTicket) {
        self.versions.acknowledge(ticket.0.key, ticket.0.version);
        if let Some(lengths) = &mut self.lengths
            && self.versions.is_settled(ticket.0.key)
        {
            lengths.forget_older(ticket.0.key);
        }
    }

    /// Notes that a Get begins.
    pub(crate) fn begin_get(&self, key: u64) -> GetTicket {
        GetTicket(self.versions.begin_read(key))
    }

    /// Checks whether a Get may return `value`.
    pub(crate) fn finish_get(
        &mut self,
        ticket: &GetTicket,
        value: Option<&Value>,
    ) -> Result<(), Surprise> {
        let ticket = &ticket.0;
        let finding = value.map_or(Finding::Nothing, |value| {
            self.find_origin(ticket.key, value, || self.versions.allowed_puts(ticket))
        });
        let seen = match finding {
            Finding::Nothing => Seen::Nothing,
            Finding::Write(version) => Seen::Write(version),
            _ => {
                return Err(Surprise { kind: MismatchKind::Foreign, finding });
            }
        };
        if self.versions.finish_read(ticket, seen) {
            return Ok(());
        }
        Err(Surprise { kind: self.kind_of_surprise(ticket, seen), finding })
    }

    /// Returns the write of `key` that produced `value`, after a comparison of bytes if it has
    /// bytes.
    fn find_origin<I: Iterator<Item = u32>>(
        &self,
        key: u64,
        value: &Value,
        allowed: impl FnOnce() -> I,
    ) -> Finding {
        match stamp(value) {
            None => self.find_short(key, value, allowed()),
            Some(stamp) if !self.versions.was_put(stamp) => Finding::Unknown,
            Some(stamp) => match self.difference(stamp, value) {
                Some(problem) => Finding::Damaged(stamp, problem),
                None if stamp.key == key => Finding::Write(stamp.version),
                None => Finding::OtherKey(stamp),
            },
        }
    }

    /// Identifies a value of less than eight bytes, which has no stamp: compares it with every
    /// allowed write.
    fn find_short(
        &self,
        key: u64,
        value: &Value,
        mut allowed: impl Iterator<Item = u32>,
    ) -> Finding {
        let is_equal =
            |version: &u32| self.difference(Stamp { key, version: *version }, value).is_none();
        allowed.find(is_equal).map_or(Finding::Unknown, Finding::Write)
    }

    /// Returns how `value` differs from the value of the write `stamp`.
    fn difference(&self, stamp: Stamp, value: &Value) -> Option<String> {
        let written = self.written(stamp, value);
        if value.len() != written.len() {
            return Some(format!("{} bytes long instead of {}", value.len(), written.len()));
        }
        let Value::Bytes(bytes) = value else {
            return None;
        };
        let written = written.to_bytes();
        if *bytes == written {
            return None;
        }
        let at = bytes.iter().zip(written.iter()).position(|(one, other)| one != other);
        Some(format!("wrong from byte {} on", at.unwrap_or(0)))
    }

    /// Returns the value of the write `stamp`, which `value` claims as its source. If the length
    /// was dropped, because later writes have replaced it, `value`'s length is assumed to be
    /// correct.
    fn written(&self, stamp: Stamp, value: &Value) -> Value {
        match self.lengths.as_ref().filter(|lengths| lengths.has(stamp.key)) {
            None => self.recipe.synthetic(stamp),
            Some(lengths) => {
                ValueRecipe::synthetic_of(stamp, lengths.of(stamp).unwrap_or(value.len()))
            }
        }
    }

    fn kind_of_surprise(&self, ticket: &ReadTicket, seen: Seen) -> MismatchKind {
        match seen {
            Seen::Nothing => MismatchKind::Lost,
            Seen::Write(_) if self.versions.allowed_puts(ticket).next().is_none() => {
                MismatchKind::Resurrected
            }
            Seen::Write(_) => MismatchKind::Stale,
        }
    }

    /// Returns the expected results of a Get with a wrong result, and the actual one, as text.
    pub(crate) fn describe(&self, ticket: &GetTicket, surprise: &Surprise) -> (String, String) {
        let mut expected: Vec<String> = Vec::new();
        if self.versions.allows(&ticket.0, Seen::Nothing) {
            expected.push("nothing".to_owned());
        }
        let writes = self.versions.allowed_puts(&ticket.0);
        expected.extend(writes.map(mismatch::write_name));
        (expected.join(" or "), surprise.finding.to_string())
    }
}
