//! Cursors of SCAN, HSCAN and ZSCAN.
//!
//! Clients take a cursor for a number of 64 bits, and a key does not fit in one. So the server keeps where each cursor
//! stands, and forgets the oldest: one that is forgotten is refused, and never taken for another. One that a server gave which is no more
//! begins anew, so that a scan that goes on over a restart misses nothing.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

/// Cursors that are kept.
const KEPT: u64 = 16_384;
/// No server gives one from here on.
const END: u64 = 1 << 53;

pub(crate) struct Cursors(Mutex<Inner>);

/// Where a cursor stands.
#[derive(Clone)]
struct Kept {
    number: u64,
    /// Among what: names of another kind are others.
    space: u8,
    name: Box<[u8]>,
}

/// From where to go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum From {
    Behind(Box<[u8]>),
    Beginning,
    /// Nothing is to come: there never was such a cursor.
    End,
}

struct Inner {
    /// The number before the one that was given first.
    begin: u64,
    /// The number that was given last.
    last: u64,
    /// Each at its number, modulo how many there are.
    kept: Vec<Option<Kept>>,
}

impl Cursors {
    pub(crate) fn new() -> Self {
        // Not where another server began, whose cursors are not known here; it fits in what clients take for a number.
        let last = RandomState::new().hash_one(0) >> 12;
        Self(Mutex::new(Inner { begin: last, last, kept: Vec::new() }))
    }

    /// A cursor that stands behind this name.
    pub(crate) fn keep(&self, space: u8, name: &[u8]) -> u64 {
        let mut inner = self.0.lock().expect("nothing panics with it locked");
        if inner.kept.is_empty() {
            inner.kept = vec![None; KEPT as usize];
        }
        inner.last += 1;
        let number = inner.last;
        inner.kept[(number % KEPT) as usize] = Some(Kept { number, space, name: name.into() });
        number
    }

    /// Where a cursor stands. None for one that was forgotten, or is of another kind.
    pub(crate) fn find(&self, space: u8, cursor: u64) -> Option<From> {
        let inner = self.0.lock().expect("nothing panics with it locked");
        if cursor >= END {
            return Some(From::End);
        }
        if cursor <= inner.begin || cursor > inner.last {
            return Some(From::Beginning);
        }
        let kept = inner.kept.get((cursor % KEPT) as usize)?.as_ref();
        kept.filter(|kept| kept.number == cursor && kept.space == space)
            .map(|kept| From::Behind(kept.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let cursors = Cursors::new();
        let first = cursors.keep(0, b"a");
        let second = cursors.keep(0, b"b");
        assert_eq!(cursors.find(0, first), Some(From::Behind(b"a"[..].into())));
        assert_eq!(cursors.find(1, first), None, "it is of another kind");
        (0..KEPT - 1).for_each(|_| assert_ne!(cursors.keep(0, b"c"), first));
        assert_eq!(cursors.find(0, first), None);
        assert_eq!(cursors.find(0, second), Some(From::Behind(b"b"[..].into())));
        // Those of a server before this one, and those of none.
        assert_eq!(cursors.find(0, first - 1), Some(From::Beginning));
        assert_eq!(cursors.find(0, first + KEPT + 1), Some(From::Beginning));
        for none in [1 << 53, 1 << 63, u64::MAX] {
            assert_eq!(cursors.find(0, none), Some(From::End));
        }
    }
}
