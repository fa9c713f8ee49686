//! Cursors of SCAN, HSCAN and ZSCAN.
//!
//! Clients expect a cursor to be a 64-bit number, which cannot contain a key. The server therefore
//! keeps the position of each cursor under its number and evicts the oldest cursors. An evicted
//! cursor is refused and never mistaken for another one. A cursor of an earlier run of the server
//! starts from the beginning, so that a scan that continues after a restart misses no key.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

/// Maximum number of cursors kept.
const KEPT: u64 = 16_384;
/// No server issues a cursor of this value or above.
const END: u64 = 1 << 53;

pub(crate) struct Cursors(Mutex<Inner>);

/// A cursor and its position.
#[derive(Clone)]
struct Kept {
    number: u64,
    /// The kind of names that the cursor runs over; a cursor is valid only for its kind.
    space: u8,
    name: Box<[u8]>,
}

/// The position at which a scan continues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum From {
    Behind(Box<[u8]>),
    Beginning,
    /// No names are left: no server ever issued such a cursor.
    End,
}

struct Inner {
    /// One less than the first number issued.
    begin: u64,
    /// The number issued last.
    last: u64,
    /// Cursors, each at its number modulo `KEPT`.
    kept: Vec<Option<Kept>>,
}

impl Cursors {
    pub(crate) fn new() -> Self {
        // A random start, so that cursors of an earlier server are unknown here. It is below 2^52
        // and so fits in the numbers that clients use.
        let last = RandomState::new().hash_one(0) >> 12;
        Self(Mutex::new(Inner { begin: last, last, kept: Vec::new() }))
    }

    /// Issues a cursor that continues after `name`.
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

    /// Returns the position of a cursor, or `None` if it was evicted or is of another kind.
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
        // Cursors of an earlier server, and numbers that no server issues.
        assert_eq!(cursors.find(0, first - 1), Some(From::Beginning));
        assert_eq!(cursors.find(0, first + KEPT + 1), Some(From::Beginning));
        for none in [1 << 53, 1 << 63, u64::MAX] {
            assert_eq!(cursors.find(0, none), Some(From::End));
        }
    }
}
