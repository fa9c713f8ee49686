//! Sweep position in a space of notes, so that walks need not step over the tombstones before it.
//!
//! A tombstone stays in the store until a compaction drops it in the last level, and every walk
//! across it pays for it. Notes are swept in order, so walks can start at the sweeper's position. A
//! note that is written before the position moves it back.
//!
//! The position is kept in memory only: after a restart the first walk starts at the beginning of
//! the space.

use std::sync::{Mutex, MutexGuard};

use super::keys::{self, Space};

/// See the module's documentation.
pub(crate) struct Frontier {
    end: Vec<u8>,
    inner: Mutex<Inner>,
}

struct Inner {
    /// All notes are at or after this key, except notes for which [`Frontier::note`] is about to be
    /// called.
    swept: Vec<u8>,
    /// The first note written since the current sweep began, which may have missed it.
    written: Option<Vec<u8>>,
}

impl Frontier {
    /// Returns a frontier at the beginning of a space.
    pub(crate) fn new(space: Space) -> Self {
        let (swept, end) = keys::all(space);
        Self { end, inner: Mutex::new(Inner { swept, written: None }) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nothing panics with it locked")
    }

    /// Returns the key at which notes begin.
    pub(crate) fn first(&self) -> Vec<u8> {
        self.inner().swept.clone()
    }

    /// Whether no notes exist.
    pub(crate) fn is_at_end(&self) -> bool {
        self.inner().swept >= self.end
    }

    /// Starts a sweep and returns its start key. Requires: there is one sweeper, and it reads the
    /// store only after this call.
    pub(crate) fn begin(&self) -> Vec<u8> {
        let mut inner = self.inner();
        inner.written = None;
        inner.swept.clone()
    }

    /// Records that the sweep has removed all notes before `to` that existed when it began.
    pub(crate) fn advance(&self, to: &[u8]) {
        let mut inner = self.inner();
        let to = inner.written.as_deref().map_or(to, |written| written.min(to));
        if *to > inner.swept[..] {
            inner.swept = to.to_vec();
        }
    }

    /// Records a note that was written. Requires: readers of the store already see the note.
    pub(crate) fn note(&self, at: &[u8]) {
        let mut inner = self.inner();
        if inner.written.as_deref().is_none_or(|written| at < written) {
            inner.written = Some(at.to_vec());
        }
        if *at < inner.swept[..] {
            inner.swept = at.to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Vec<u8> {
        keys::expiry(ms, b"key")
    }

    #[test]
    fn what_is_written_before_it_takes_it_back() {
        let frontier = Frontier::new(Space::Expiry);
        assert_eq!(frontier.begin(), keys::all(Space::Expiry).0);
        frontier.advance(&at(100));
        frontier.note(&at(200));
        assert_eq!(frontier.first(), at(100));
        frontier.note(&at(50));
        assert_eq!(frontier.begin(), at(50));
        frontier.advance(&at(100));
        assert_eq!(frontier.first(), at(100));
        // A clock that was set back sweeps nothing.
        frontier.begin();
        frontier.advance(&at(80));
        assert_eq!(frontier.first(), at(100));
    }

    /// The sweeper read the store before the note was written.
    #[test]
    fn what_is_written_behind_the_back_of_the_sweeper_is_not_passed() {
        let frontier = Frontier::new(Space::Expiry);
        frontier.begin();
        frontier.note(&at(70));
        frontier.advance(&at(100));
        assert_eq!(frontier.begin(), at(70));
        frontier.advance(&keys::all(Space::Expiry).1);
        assert!(frontier.is_at_end());
        frontier.note(&at(90));
        assert!(!frontier.is_at_end());
    }
}
