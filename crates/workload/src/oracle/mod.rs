//! The oracle: knows what every Get and every scan may return, and checks what they did return.
//!
//! Every write of a key is a version, deletes included. A Get may return
//!
//! - a write that was issued before the Get ended, unless
//! - another write began after that one was acknowledged, and was itself acknowledged before the
//!   Get began.
//!
//! So writes that overlap may take effect in any order, and until a later write or a later Get has
//! settled the matter any of them may be found. A write that failed may or may not have taken
//! effect for ever. These are the rules of a linearizable register as far as one Get can show
//! them.
//!
//! A scan sees a snapshot, taken at some instant while its iterator was made. Of each key it must
//! give what a Get that began and ended when the making did may return, where that is a value, and
//! it may leave out only keys of which such a Get may return nothing; and one instant must explain
//! all of it.
//!
//! Cost: four bytes per key, and some hundred per key with writes under way or unsettled; a Get
//! costs a look at the four bytes, a Put two look-ups in a small ordered map besides. Scans cost
//! eight more bytes per key if keys are hashed, and as long as one is under way writes are noted.

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

use pages::Value;
use runtime::Carrier;

use crate::ValueRecipe;
use crate::value::{Stamp, stamp};
use lengths::Lengths;
use mismatch::{Finding, Surprise};
use order::KeyOrder;
use ticket::ReadTicket;
use versions::{Seen, Versions};

/// What was written under which key number, and what may be read.
pub(crate) struct Oracle {
    recipe: ValueRecipe,
    versions: Versions,
    /// Once scans are prepared.
    order: Option<KeyOrder>,
    /// Of values whose length the recipe does not say.
    lengths: Option<Lengths>,
}

/// A write under way.
#[must_use = "a write that is not acknowledged counts as under way for ever"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WriteTicket(Stamp);

/// A Get under way.
#[must_use = "a Get that is not finished is not checked"]
#[derive(Debug)]
pub(crate) struct GetTicket(ReadTicket);

impl Oracle {
    /// An empty store, with room for `keys` keys to begin with.
    pub(crate) fn new(recipe: ValueRecipe, keys: u64) -> Self {
        Self { recipe, versions: Versions::new(keys), order: None, lengths: None }
    }

    /// A Put begins: the value it is to write.
    pub(crate) fn begin_put(&mut self, key: u64) -> (WriteTicket, Value) {
        if let Some(order) = &mut self.order
            && self.versions.newest(key) == 0
        {
            order.insert(key);
        }
        let stamp = Stamp { key, version: self.versions.issue_put(key) };
        (WriteTicket(stamp), self.recipe.value(stamp))
    }

    /// From key number `first` on lengths of values are what [`Self::begin_put_of`] is told.
    pub(crate) fn record_lengths_from(&mut self, first: u64) {
        self.lengths = Some(Lengths::from(first));
    }

    /// Whether so many writes of a key have been told apart that no other can be.
    pub(crate) fn is_used_up(&self, key: u64) -> bool {
        self.versions.is_used_up(key)
    }

    /// A Put of a value of so many bytes begins, of a key whose lengths are recorded.
    pub(crate) fn begin_put_of(&mut self, key: u64, bytes: u32) -> (WriteTicket, Value) {
        let is_settled = self.versions.is_settled(key);
        let stamp = Stamp { key, version: self.versions.issue_put(key) };
        let lengths = self.lengths.as_mut().expect("lengths are recorded");
        lengths.put(stamp, bytes, is_settled);
        (WriteTicket(stamp), self.recipe.value_of(stamp, bytes))
    }

    /// A Put has been done before this oracle came about.
    pub(crate) fn assume_put(&mut self, key: u64) {
        let version = self.versions.issue_put(key);
        self.versions.acknowledge(key, version);
    }

    /// Carries what is known of all keys, before scans are prepared.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        if self.order.is_some() { None } else { self.versions.carry(by) }
    }

    /// A delete begins.
    pub(crate) fn begin_delete(&mut self, key: u64) -> WriteTicket {
        WriteTicket(Stamp { key, version: self.versions.issue_delete(key) })
    }

    /// A Put or delete has succeeded. One that failed is not acknowledged.
    pub(crate) fn acknowledge(&mut self, ticket: WriteTicket) {
        self.versions.acknowledge(ticket.0.key, ticket.0.version);
        if let Some(lengths) = &mut self.lengths
            && self.versions.is_settled(ticket.0.key)
        {
            lengths.forget_older(ticket.0.key);
        }
    }

    /// A Get begins.
    pub(crate) fn begin_get(&self, key: u64) -> GetTicket {
        GetTicket(self.versions.begin_read(key))
    }

    /// A Get has returned `value`: whether it may have.
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

    /// Which write of `key` produced `value`, compared byte by byte if it has bytes.
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

    /// Values of less than eight bytes tell no origin: see whether any allowed write made them.
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

    /// How `value` differs from what the write `stamp` wrote.
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

    /// What the write `stamp` wrote, of which `value` claims to be. A length that nobody remembers, because later writes have
    /// replaced it, is taken to be right.
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

    /// What was expected of a Get that surprised, and what came, in words.
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
