//! Keys of users in order: alone, or with what they hold.
//!
//! Whether a key has expired stands with its value. Keys alone are compared with the notes of times that have passed instead, which are few, because a
//! sweeper takes them away all the time; where they are many, values are read.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::atomic::Ordering;

use super::database::{Access, Entry};
use super::keys::{self, Space};
use super::overlay::{Gives, Pair, Pairs};
use super::records::{self, Head};
use crate::fault::Fault;

/// Notes of times that have passed of which as many are looked at for keys alone.
const MOST_NOTES: usize = 1_000;

/// Keys that are drawn before all are walked over, because those had expired.
const MOST_DRAWS: u32 = 16;

/// A key, and what it holds.
pub(crate) struct Found {
    pub key: Vec<u8>,
    pub entry: Entry,
}

/// A key alone.
pub(crate) struct Name {
    pub key: Vec<u8>,
    /// Whether it holds a string; else it is a collection's.
    pub is_string: bool,
}

/// Bounds of keys.
pub(crate) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// What the store has under a key of a user.
struct Place {
    key: Vec<u8>,
    is_string: bool,
    record: Vec<u8>,
}

/// Strings and heads of collections, in the order of their keys.
struct Places<'a> {
    strings: Peekable<Pairs<'a>>,
    heads: Option<Peekable<Pairs<'a>>>,
}

impl Access<'_> {
    /// Keys in order, within bounds, which have not expired, and what they hold.
    pub(crate) fn keys(&self, bounds: Bounds<'_>) -> impl Iterator<Item = Result<Found, Fault>> {
        let step = |place| self.steps.take(1).and(place);
        self.places(bounds, Gives::Pairs).map(step).filter_map(|place| {
            match place.and_then(found) {
                Ok(found) if self.has_expired(found.entry.expiry()) => None,
                found => Some(found),
            }
        })
    }

    /// The same keys alone: what they hold is not read.
    pub(crate) fn names(
        &self,
        bounds: Bounds<'_>,
    ) -> Result<impl Iterator<Item = Result<Name, Fault>>, Fault> {
        let passed = self.names_of_passed_times()?;
        let gives = if passed.is_some() { Gives::Keys } else { Gives::Pairs };
        Ok(self.places(bounds, gives).filter_map(move |place| {
            let is_there = self.steps.take(1).and(place).and_then(|place| {
                let is_there = match &passed {
                    None => !self.has_expired(expiry(&place)?),
                    // The note may be an old one.
                    Some(passed) if passed.contains(&place.key) => self.find(&place.key)?.is_some(),
                    Some(_) => true,
                };
                Ok(is_there.then_some(Name { key: place.key, is_string: place.is_string }))
            });
            is_there.transpose()
        }))
    }

    /// A key drawn from those that have not expired, all about equally likely; nothing if there is none.
    pub(crate) fn random_name(&self, random: &dyn Fn() -> u64) -> Result<Option<Vec<u8>>, Fault> {
        let (from, to) = (keys::all(Space::String).0, keys::all(Space::Head).1);
        // What a transaction has changed the store does not know.
        let draws = if self.overlay.is_none() { MOST_DRAWS } else { 0 };
        for _ in 0..draws {
            let drawn = self.database.store.random_key(&from[..]..&to[..], random())?;
            let Some(at) = drawn else { break };
            if self.find(&at[1..])?.is_some() {
                return Ok(Some(at[1..].to_vec()));
            }
        }
        // There are few: each takes the place of those before it as often as makes it as likely.
        let (mut chosen, mut seen) = (None, 0);
        for name in self.names((Bound::Unbounded, Bound::Unbounded))? {
            let name = name?;
            seen += 1;
            if random().is_multiple_of(seen) {
                chosen = Some(name.key);
            }
        }
        Ok(chosen)
    }

    /// Keys that may have expired and were not swept yet; none if they are many.
    fn names_of_passed_times(&self) -> Result<Option<BTreeSet<Vec<u8>>>, Fault> {
        // What a transaction has written the sweeper does not know yet.
        let from = match &self.overlay {
            None => self.database.expiring.first(),
            Some(_) => keys::all(Space::Expiry).0,
        };
        let to = keys::expiry(self.now.saturating_add(1), b"");
        let mut passed = BTreeSet::new();
        for note in self.names_between(&from, &to) {
            if passed.len() == MOST_NOTES {
                return Ok(None);
            }
            let (note, _) = note?;
            let (_, key) =
                keys::split_expiry(&note).ok_or_else(|| Fault::error("damaged: a time"))?;
            passed.insert(key.to_vec());
        }
        Ok(Some(passed))
    }

    fn places(&self, (lower, upper): Bounds<'_>, gives: Gives) -> Places<'_> {
        let of = |space: Space| {
            let (first, end) = keys::all(space);
            let prefixed = |key: &[u8]| [&first[..], key].concat();
            let lower = match lower {
                Bound::Unbounded => Bound::Included(first.clone()),
                bound => bound.map(prefixed),
            };
            let upper = match upper {
                Bound::Unbounded => Bound::Excluded(end),
                bound => bound.map(prefixed),
            };
            let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
            self.range(bounds, gives).peekable()
        };
        let has_heads = self.database.has_heads.load(Ordering::SeqCst);
        Places { strings: of(Space::String), heads: has_heads.then(|| of(Space::Head)) }
    }
}

impl Iterator for Places<'_> {
    type Item = Result<Place, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = |next: Option<&Pair>| {
            next.map(|pair| pair.as_ref().map_or(Vec::new(), |(key, _)| key[1..].to_vec()))
        };
        let string = key(self.strings.peek());
        let head = self.heads.as_mut().and_then(|heads| key(heads.peek()));
        let is_string = match (&string, &head) {
            (None, None) => return None,
            (Some(string), Some(head)) => string <= head,
            (string, _) => string.is_some(),
        };
        let pair = if is_string {
            self.strings.next()
        } else {
            self.heads.as_mut().and_then(Iterator::next)
        };
        let place = |(key, record): (Box<[u8]>, Vec<u8>)| Place {
            key: key[1..].to_vec(),
            is_string,
            record,
        };
        Some(pair?.map(place).map_err(Fault::from))
    }
}

fn found(place: Place) -> Result<Found, Fault> {
    let Place { key, is_string, mut record } = place;
    let entry = if is_string {
        let (expiry, from) = records::decode_string(&record)?;
        record.drain(..from);
        Entry::String { value: record, expiry }
    } else {
        Entry::Head(Head::decode(&record)?)
    };
    Ok(Found { key, entry })
}

/// The time at which what stands at a place expires.
fn expiry(place: &Place) -> Result<records::Expiry, Fault> {
    if place.is_string {
        Ok(records::decode_string(&place.record)?.0)
    } else {
        Ok(Head::decode(&place.record)?.expiry)
    }
}
