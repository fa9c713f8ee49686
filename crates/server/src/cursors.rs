//! Cursors of SCAN, HSCAN and ZSCAN.
//!
//! Clients take a cursor for a number of 64 bits, and a key does not fit in one. So the server keeps where each cursor
//! stands, and forgets the oldest: one that is forgotten is refused, and never taken for another.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

/// Cursors that are kept.
const KEPT: u64 = 16_384;

pub(crate) struct Cursors(Mutex<Inner>);

/// Where a cursor stands.
#[derive(Clone)]
struct Kept {
    number: u64,
    /// Among what: names of another kind are others.
    space: u8,
    name: Box<[u8]>,
}

struct Inner {
    /// The number that was given last.
    last: u64,
    /// Each at its number, modulo how many there are.
    kept: Vec<Option<Kept>>,
}

impl Cursors {
    pub(crate) fn new() -> Self {
        // Not where another server began, whose cursors are not known here; it fits in what clients take for a number.
        let last = RandomState::new().hash_one(0) >> 12;
        Self(Mutex::new(Inner { last, kept: Vec::new() }))
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

    /// The name behind which a cursor stands.
    pub(crate) fn find(&self, space: u8, cursor: u64) -> Option<Box<[u8]>> {
        let inner = self.0.lock().expect("nothing panics with it locked");
        let kept = inner.kept.get((cursor % KEPT) as usize)?.as_ref();
        kept.filter(|kept| kept.number == cursor && kept.space == space)
            .map(|kept| kept.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let cursors = Cursors::new();
        assert_eq!(cursors.find(0, 5), None);
        let first = cursors.keep(0, b"a");
        let second = cursors.keep(0, b"b");
        assert_eq!(cursors.find(0, first).as_deref(), Some(&b"a"[..]));
        assert_eq!(cursors.find(1, first), None, "it is of another kind");
        (0..KEPT - 1).for_each(|_| assert_ne!(cursors.keep(0, b"c"), first));
        assert_eq!(cursors.find(0, first), None);
        assert_eq!(cursors.find(0, second).as_deref(), Some(&b"b"[..]));
    }
}
