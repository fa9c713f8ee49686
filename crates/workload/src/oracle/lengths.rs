//! Lengths of values that do not follow the recipe, because they come from a trace.
//!
//! Cost: eight bytes per key, and about fifty for a key with writes in flight.

use std::collections::BTreeMap;

use crate::value::Stamp;

/// Lengths of values put under keys from `first` on.
pub(super) struct Lengths {
    first: u64,
    /// The newest version of each key, and its length.
    newest: Vec<(u32, u32)>,
    /// Lengths of older versions that may still be current.
    older: BTreeMap<(u64, u32), u32>,
}

impl Lengths {
    pub(super) fn from(first: u64) -> Self {
        Self { first, newest: Vec::new(), older: BTreeMap::new() }
    }

    pub(super) fn has(&self, key: u64) -> bool {
        key >= self.first
    }

    /// Notes that a put of `bytes` bytes begins. `is_settled`: whether no other write of the key
    /// was in flight or unresolved.
    pub(super) fn put(&mut self, stamp: Stamp, bytes: u32, is_settled: bool) {
        if is_settled {
            self.forget_older(stamp.key);
        }
        let index = (stamp.key - self.first) as usize;
        if index >= self.newest.len() {
            self.newest.resize(index + 1, (0, 0));
        }
        let before = std::mem::replace(&mut self.newest[index], (stamp.version, bytes));
        if before.0 > 0 {
            self.older.insert((stamp.key, before.0), before.1);
        }
    }

    /// Drops the older versions of a key: only the newest one can be current.
    pub(super) fn forget_older(&mut self, key: u64) {
        while let Some((old, _)) = self.older.range((key, 0)..=(key, u32::MAX)).next() {
            let old = *old;
            self.older.remove(&old);
        }
    }

    /// Returns the length of a write, if it may still be current.
    pub(super) fn of(&self, stamp: Stamp) -> Option<u32> {
        let index = stamp.key.checked_sub(self.first)? as usize;
        match self.newest.get(index) {
            Some((version, bytes)) if *version == stamp.version => Some(*bytes),
            _ => self.older.get(&(stamp.key, stamp.version)).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_known_as_long_as_their_write_may_be_current() {
        let mut lengths = Lengths::from(10);
        let stamp = |version| Stamp { key: 12, version };
        assert!(lengths.has(12) && !lengths.has(9));
        lengths.put(stamp(3), 100, true);
        lengths.put(stamp(5), 200, true);
        assert_eq!(
            [3, 5, 7].map(|version| lengths.of(stamp(version))),
            [Some(100), Some(200), None]
        );
        lengths.put(stamp(7), 300, false);
        assert_eq!(
            [3, 5, 7].map(|version| lengths.of(stamp(version))),
            [Some(100), Some(200), Some(300)]
        );
        lengths.forget_older(12);
        assert_eq!([3, 5, 7].map(|version| lengths.of(stamp(version))), [None, None, Some(300)]);
        assert_eq!(lengths.of(Stamp { key: 2, version: 3 }), None);
    }
}
