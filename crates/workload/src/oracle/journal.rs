//! What keys were like before they changed, as long as a snapshot is open that may ask.
//!
//! Invariant: while a snapshot is open, every change since it was asked for is noted, so that a key
//! without a note is as it was then. Cost: nothing without open snapshots; otherwise some two
//! hundred bytes per change since the oldest of them was asked for, and a few look-ups in small
//! ordered maps.

use std::collections::{BTreeMap, VecDeque};

use super::ticket::ReadTicket;

/// A write has begun or was acknowledged.
pub(super) struct Change {
    /// When, by the clock of the versions.
    pub(super) at: u64,
    /// The key as a Get would have found it just before.
    pub(super) before: ReadTicket,
}

#[derive(Default)]
pub(super) struct Journal {
    /// How many snapshots are open that were asked for at a time.
    open: BTreeMap<u64, u32>,
    /// Changes by key, oldest first.
    changes: BTreeMap<u64, VecDeque<Change>>,
    /// Time and key of each change, oldest first.
    sequence: VecDeque<(u64, u64)>,
}

impl Journal {
    /// A snapshot is asked for.
    pub(super) fn open(&mut self, now: u64) {
        *self.open.entry(now).or_default() += 1;
    }

    /// No more will be asked of a snapshot that was asked for at `asked`.
    pub(super) fn close(&mut self, asked: u64) {
        let count = self.open.get_mut(&asked).expect("a snapshot is closed once");
        *count -= 1;
        if *count == 0 {
            self.open.remove(&asked);
        }
        let oldest = self.open.first_key_value().map_or(u64::MAX, |(asked, _)| *asked);
        while let Some((at, key)) = self.sequence.front().copied()
            && at <= oldest
        {
            self.sequence.pop_front();
            self.forget_first(key);
        }
    }

    fn forget_first(&mut self, key: u64) {
        let changes = self.changes.get_mut(&key).expect("both hold the same changes");
        changes.pop_front();
        if changes.is_empty() {
            self.changes.remove(&key);
        }
    }

    /// Whether changes are to be noted.
    pub(super) fn is_kept(&self) -> bool {
        !self.open.is_empty()
    }

    /// The key of `before` changes at the time `at`.
    pub(super) fn note(&mut self, at: u64, before: ReadTicket) {
        self.sequence.push_back((at, before.key));
        self.changes.entry(before.key).or_default().push_back(Change { at, before });
    }

    /// The changes of `key` later than `asked`, oldest first.
    pub(super) fn since(&self, key: u64, asked: u64) -> impl Iterator<Item = &Change> {
        self.changes.get(&key).into_iter().flat_map(move |changes| {
            let first = changes.partition_point(|change| change.at <= asked);
            changes.range(first..)
        })
    }

    /// How many changes are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.changes.values().map(VecDeque::len).sum::<usize>(), self.sequence.len());
        self.sequence.len()
    }
}
