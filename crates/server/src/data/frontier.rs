//! How far notes were swept: nobody steps again over what was deleted before that.
//!
//! A deletion stays in the store until it is compacted into the last level, and whoever walks past pays for it. Notes are swept in
//! their order, so that a walk may begin where the sweeper has come to. A note that is written before that place takes it back there.
//!
//! It is in memory alone: after a restart the first walk begins at the first note that there could be.

use std::sync::{Mutex, MutexGuard};

use super::keys::{self, Space};

/// See the module's documentation.
pub(crate) struct Frontier {
    end: Vec<u8>,
    inner: Mutex<Inner>,
}

struct Inner {
    /// No note stands before it, but for those of which [`Frontier::note`] is about to hear.
    swept: Vec<u8>,
    /// The first of those that were written since the sweep under way began, which may not have met them.
    written: Option<Vec<u8>>,
}

impl Frontier {
    /// Of a space of notes of which nothing is known.
    pub(crate) fn new(space: Space) -> Self {
        let (swept, end) = keys::all(space);
        Self { end, inner: Mutex::new(Inner { swept, written: None }) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nothing panics with it locked")
    }

    /// Where notes begin.
    pub(crate) fn first(&self) -> Vec<u8> {
        self.inner().swept.clone()
    }

    /// Whether there is no note.
    pub(crate) fn is_at_end(&self) -> bool {
        self.inner().swept >= self.end
    }

    /// Where the sweeper, of whom there is one, begins. It looks at the store after this.
    pub(crate) fn begin(&self) -> Vec<u8> {
        let mut inner = self.inner();
        inner.written = None;
        inner.swept.clone()
    }

    /// The sweeper has left none of the notes before `to` that were there when it began.
    pub(crate) fn advance(&self, to: &[u8]) {
        let mut inner = self.inner();
        let to = inner.written.as_deref().map_or(to, |written| written.min(to));
        if *to > inner.swept[..] {
            inner.swept = to.to_vec();
        }
    }

    /// Hears of a note that was written: readers of the store see it by now.
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

    /// The sweeper has looked at the store before the note was in it.
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
