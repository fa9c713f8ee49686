//! User keys in order, with or without their values.
//!
//! Strings and heads of collections are two ranges, and the expiry of a key may need a further
//! read. All reads use one snapshot; otherwise a key that is renamed meanwhile could appear twice
//! or not at all, and a transaction could appear half done.
//!
//! The expiry of a key is stored with its value. A walk over keys only compares them with the notes
//! of passed expiries instead; these are few because the sweeper removes them continuously. If
//! there are many, values are read.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::atomic::Ordering;

use levelhead::Snapshot;

use super::access::Access;
use super::keys::{self, Space};
use super::overlay::{Bounds, Gives, Pair, Pairs};
use super::records::{self, Entry, Head, Kind};
use crate::fault::Fault;

/// Maximum number of passed notes to load for a walk over keys only.
const MOST_NOTES: usize = 1_000;

/// Random draws that may hit expired keys before all keys are walked over.
const MOST_DRAWS: u32 = 16;

/// A key with its value.
pub(crate) struct Found {
    at: Box<[u8]>,
    pub entry: Entry,
}

impl Found {
    pub(crate) fn key(&self) -> &[u8] {
        &self.at[1..]
    }
}

/// A key without its value.
pub(crate) struct Name {
    at: Box<[u8]>,
    /// Whether the key holds a string, and not a collection.
    is_string: bool,
}

impl Name {
    pub(crate) fn key(&self) -> &[u8] {
        &self.at[1..]
    }
}

/// Keys of one snapshot.
pub(crate) struct Names<'a> {
    access: &'a Access<'a>,
    instant: Snapshot,
    /// Keys with a passed expiry; `None` if there are too many and values are read instead.
    passed: Option<BTreeSet<Vec<u8>>>,
    places: Places<'a>,
}

/// A user key, with its record.
pub(super) struct Place {
    at: Box<[u8]>,
    is_string: bool,
    record: Vec<u8>,
}

/// Strings and heads of collections, merged in the order of their keys.
pub(super) struct Places<'a> {
    strings: Peekable<Pairs<'a>>,
    heads: Option<Peekable<Pairs<'a>>>,
}

impl Access<'_> {
    /// Returns the keys within bounds that have not expired, in order and with their values.
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

    /// Like [`keys`](Self::keys), without values.
    pub(crate) fn names(&self, bounds: Bounds<'_>) -> Result<Names<'_>, Fault> {
        // Read before the snapshot: a later position could be after notes that the snapshot still
        // has.
        let first_note = match &self.overlay {
            None => self.database.expiring.first(),
            // The sweeper does not know the pending notes of a transaction.
            Some(_) => keys::all(Space::Expiry).0,
        };
        let instant = self.database.store.snapshot()?;
        let passed = self.names_of_passed_times(&instant, &first_note)?;
        let gives = if passed.is_some() { Gives::Keys } else { Gives::Pairs };
        let places = self.places(&instant, bounds, gives);
        Ok(Names { access: self, instant, passed, places })
    }

    /// Returns a random key that has not expired, all keys being about equally likely; `None` if no
    /// key exists.
    pub(crate) fn random_name(&self, random: &dyn Fn() -> u64) -> Result<Option<Vec<u8>>, Fault> {
        let (from, to) = (keys::all(Space::String).0, keys::all(Space::Head).1);
        // The store does not know the pending changes of a transaction.
        let draws = if self.overlay.is_none() { MOST_DRAWS } else { 0 };
        for _ in 0..draws {
            let drawn = self.database.store.random_key(&from[..]..&to[..], random())?;
            let Some(at) = drawn else { break };
            if self.find(&at[1..])?.is_some() {
                return Ok(Some(at[1..].to_vec()));
            }
        }
        // Few keys are alive. Reservoir sampling: the nth key replaces the choice with probability
        // 1/n.
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

    /// Returns the keys with a passed expiry that are not swept yet, or `None` if there are too
    /// many.
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
        // Read after the snapshot: writers set it before they write the first head.
        let has_heads = self.database.has_heads.load(Ordering::SeqCst);
        Places { strings: of(Space::String), heads: has_heads.then(|| of(Space::Head)) }
    }
}

impl Names<'_> {
    /// Returns the kind of a key, or `None` if it has expired.
    pub(crate) fn kind(&self, name: &Name) -> Result<Option<Kind>, Fault> {
        if name.is_string {
            return Ok(Some(Kind::String));
        }
        let entry = self.access.look_at(&self.instant, name.key())?;
        Ok(entry.map(|entry| entry.kind()))
    }

    /// Returns the key of a place, unless it has expired.
    fn name(&self, place: Place) -> Result<Option<Name>, Fault> {
        let is_there = match &self.passed {
            None => !self.access.has_expired(expiry(&place)?),
            // The note may be outdated.
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
        // Errors sort first, so that an unreadable record is not taken for an absent one.
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

/// Returns the expiry of a place.
fn expiry(place: &Place) -> Result<records::Expiry, Fault> {
    if place.is_string {
        Ok(records::decode_string(&place.record)?.0)
    } else {
        Ok(Head::decode(&place.record)?.expiry)
    }
}
