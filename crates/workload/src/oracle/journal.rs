//! Earlier states of changed keys, for as long as an open snapshot may need them.
//!
//! Invariant: while a snapshot is open, every change since its request is noted, so a key without a
//! note is unchanged since then. Cost: nothing without open snapshots; otherwise about two hundred
//! bytes per change since the request of the oldest one, and a few look-ups in small ordered maps.

use std::collections::{BTreeMap, VecDeque};

use super::ticket::ReadTicket;

/// The beginning or the acknowledgement of a write.
pub(super) struct Change {
    /// Time, by the clock of the versions.
    pub(super) at: u64,
    /// The state of the key just before, as a Get would have seen it.
    pub(super) before: ReadTicket,
}

#[derive(Default)]
pub(super) struct Journal {
    /// Number of open snapshots by the time of their request.
    open: BTreeMap<u64, u32>,
    /// Changes by key, oldest first.
    changes: BTreeMap<u64, VecDeque<Change>>,
    /// Time and key of each change, oldest first.
    sequence: VecDeque<(u64, u64)>,
}

impl Journal {
    /// Notes that a snapshot was requested.
    pub(super) fn open(&mut self, now: u64) {
        *self.open.entry(now).or_default() += 1;
    }

    /// Closes a snapshot that was requested at `asked`.
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

    /// Returns whether changes must be noted.
    pub(super) fn is_kept(&self) -> bool {
        !self.open.is_empty()
    }

    /// Notes that the key of `before` changes at the time `at`.
    pub(super) fn note(&mut self, at: u64, before: ReadTicket) {
        self.sequence.push_back((at, before.key));
        self.changes.entry(before.key).or_default().push_back(Change { at, before });
    }

    /// Returns the changes of `key` later than `asked`, oldest first.
    pub(super) fn since(&self, key: u64, asked: u64) -> impl Iterator<Item = &Change> {
        self.changes.get(&key).into_iter().flat_map(move |changes| {
            let first = changes.partition_point(|change| change.at <= asked);
            changes.range(first..)
        })
    }

    /// Returns the number of changes kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.changes.values().map(VecDeque::len).sum::<usize>(), self.sequence.len());
        self.sequence.len()
    }
}
