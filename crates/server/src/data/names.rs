//! Keys of users in order: alone, or with what they hold.
//!
//! Strings and heads of collections are two ranges, and whether a key has expired may have to be read besides. All of it is read at one instant: one
//! after the other, a key that is renamed meanwhile would be there twice or not at all, and of a transaction a half.
//!
//! Whether a key has expired stands with its value. Keys alone are compared with the notes of times that have passed instead, which are few, because a
//! sweeper takes them away all the time; where they are many, values are read.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::atomic::Ordering;

use levelhead::Snapshot;

use super::database::{Access, Entry};
use super::keys::{self, Space};
use super::overlay::{Gives, Pair, Pairs};
use super::records::{self, Head, Kind};
use crate::fault::Fault;

/// Notes of times that have passed of which as many are looked at for keys alone.
const MOST_NOTES: usize = 1_000;

/// Keys that are drawn before all are walked over, because those had expired.
const MOST_DRAWS: u32 = 16;

/// A key, and what it holds.
pub(crate) struct Found {
    at: Box<[u8]>,
    pub entry: Entry,
}

impl Found {
    pub(crate) fn key(&self) -> &[u8] {
        &self.at[1..]
    }
}

/// A key alone.
pub(crate) struct Name {
    at: Box<[u8]>,
    /// Whether it holds a string; else it is a collection's.
    is_string: bool,
}

impl Name {
    pub(crate) fn key(&self) -> &[u8] {
        &self.at[1..]
    }
}

/// Keys alone, of one instant.
pub(crate) struct Names<'a> {
    access: &'a Access<'a>,
    instant: Snapshot,
    /// Those of which a time has passed; none, if these are many and what keys hold is read.
    passed: Option<BTreeSet<Vec<u8>>>,
    places: Places<'a>,
}

/// Bounds of keys.
pub(crate) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// What the store has under a key of a user.
pub(super) struct Place {
    at: Box<[u8]>,
    is_string: bool,
    record: Vec<u8>,
}

/// Strings and heads of collections, in the order of their keys.
pub(super) struct Places<'a> {
    strings: Peekable<Pairs<'a>>,
    heads: Option<Peekable<Pairs<'a>>>,
}

impl Access<'_> {
    /// Keys in order, within bounds, which have not expired, and what they hold.
    pub(crate) fn keys(
        &self,
        bounds: Bounds<'_>,
    ) -> Result<impl Iterator<Item = Result<Found, Fault>>, Fault> {
        let instant = self.database.store.snapshot()?;
        let step = |place| self.steps.take(1).and(place);
        let found = self.places(&instant, bounds, Gives::Pairs).map(step);
        Ok(found.filter_map(|place| match place.and_then(found_at) {
            Ok(found) if self.has_expired(found.entry.expiry()) => None,
            found => Some(found),
        }))
    }

    /// The same keys alone: what they hold is not read.
    pub(crate) fn names(&self, bounds: Bounds<'_>) -> Result<Names<'_>, Fault> {
        // Before the instant: those that are swept behind it are not passed.
        let first_note = match &self.overlay {
            None => self.database.expiring.first(),
            // What a transaction has written the sweeper does not know yet.
            Some(_) => keys::all(Space::Expiry).0,
        };
        let instant = self.database.store.snapshot()?;
        let passed = self.names_of_passed_times(&instant, &first_note)?;
        let gives = if passed.is_some() { Gives::Keys } else { Gives::Pairs };
        let places = self.places(&instant, bounds, gives);
        Ok(Names { access: self, instant, passed, places })
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
                chosen = Some(name.key().to_vec());
            }
        }
        Ok(chosen)
    }

    /// Keys that may have expired and were not swept yet; none if they are many.
    fn names_of_passed_times(
        &self,
        instant: &Snapshot,
        from: &[u8],
    ) -> Result<Option<BTreeSet<Vec<u8>>>, Fault> {
        let to = keys::expiry(self.now.saturating_add(1), b"");
        let mut passed = BTreeSet::new();
        let bounds = (Bound::Included(from), Bound::Excluded(&to[..]));
        for note in self.range_at(instant, bounds, Gives::Keys) {
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

    pub(super) fn places(
        &self,
        instant: &Snapshot,
        (lower, upper): Bounds<'_>,
        gives: Gives,
    ) -> Places<'_> {
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
            self.range_at(instant, bounds, gives).peekable()
        };
        // Asked behind the instant: whoever has put one there has said so before.
        let has_heads = self.database.has_heads.load(Ordering::SeqCst);
        Places { strings: of(Space::String), heads: has_heads.then(|| of(Space::Head)) }
    }
}

impl Names<'_> {
    /// The kind of a key of these; nothing, if it has expired.
    pub(crate) fn kind(&self, name: &Name) -> Result<Option<Kind>, Fault> {
        if name.is_string {
            return Ok(Some(Kind::String));
        }
        let entry = self.access.look_at(&self.instant, name.key())?;
        Ok(entry.map(|entry| entry.kind()))
    }

    /// The key at a place, unless it has expired.
    fn name(&self, place: Place) -> Result<Option<Name>, Fault> {
        let is_there = match &self.passed {
            None => !self.access.has_expired(expiry(&place)?),
            // The note may be an old one.
            Some(passed) if passed.contains(&place.at[1..]) => {
                self.access.look_at(&self.instant, &place.at[1..])?.is_some()
            }
            Some(_) => true,
        };
        Ok(is_there.then_some(Name { at: place.at, is_string: place.is_string }))
    }
}

impl Iterator for Names<'_> {
    type Item = Result<Name, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let place = self.places.next()?;
            let place = self.access.steps.take(1).and(place);
            if let Some(name) = place.and_then(|place| self.name(place)).transpose() {
                return Some(name);
            }
        }
    }
}

impl Iterator for Places<'_> {
    type Item = Result<Place, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        // An error comes first: it is no absence.
        fn key(pair: &Pair) -> &[u8] {
            pair.as_ref().map_or(&[], |(at, _)| &at[1..])
        }
        let string = self.strings.peek();
        let head = self.heads.as_mut().and_then(Peekable::peek);
        let is_string = match (string, head) {
            (None, None) => return None,
            (Some(string), Some(head)) => key(string) <= key(head),
            (string, _) => string.is_some(),
        };
        let pair = if is_string {
            self.strings.next()
        } else {
            self.heads.as_mut().and_then(Iterator::next)
        };
        let place = |(at, record)| Place { at, is_string, record };
        Some(pair?.map(place).map_err(Fault::from))
    }
}

fn found_at(place: Place) -> Result<Found, Fault> {
    let Place { at, is_string, mut record } = place;
    let entry = if is_string {
        let (expiry, from) = records::decode_string(&record)?;
        record.drain(..from);
        Entry::String { value: record, expiry }
    } else {
        Entry::Head(Head::decode(&record)?)
    };
    Ok(Found { at, entry })
}

/// The time at which what stands at a place expires.
fn expiry(place: &Place) -> Result<records::Expiry, Fault> {
    if place.is_string {
        Ok(records::decode_string(&place.record)?.0)
    } else {
        Ok(Head::decode(&place.record)?.expiry)
    }
}
