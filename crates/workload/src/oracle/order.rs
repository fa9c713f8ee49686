//! The order of keys.
//!
//! Keys have positions ([`KeyFormat`]). With ordered keys the next position is the next number, and
//! no state is needed. With hashed keys the positions of all numbers are sorted once, when the
//! first run with scans begins; those of records inserted later are in a small ordered set until
//! the next run begins.
//!
//! Cost: eight bytes per record with hashed keys; sorting 44 million takes a second or two. Each
//! key of a walk costs a step in an array; a Seek, a binary search.

use std::collections::BTreeSet;

use crate::{InsertOrder, KeyFormat};

/// All key numbers ever issued, in key order.
pub(super) struct KeyOrder {
    keys: KeyFormat,
    /// Numbers below this were issued when the run began.
    settled: u64,
    /// Their positions in ascending order; empty if keys are ordered.
    sorted: Vec<u64>,
    /// The positions of numbers issued since.
    recent: BTreeSet<u64>,
}

/// A place between two keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// The lowest position after the cursor.
    pub(super) ahead: u64,
    /// Number of sorted positions before the cursor.
    index: usize,
}

impl KeyOrder {
    /// Creates the order of an empty set of keys.
    pub(super) fn new(keys: KeyFormat) -> Self {
        Self { keys, settled: 0, sorted: Vec::new(), recent: BTreeSet::new() }
    }

    /// Notes that all numbers below `issued` have been issued. Invalidates earlier cursors.
    pub(super) fn settle(&mut self, issued: u64) {
        if self.keys.order() == InsertOrder::Hashed && issued > self.settled {
            self.sorted.reserve_exact((issued - self.settled) as usize);
            let new = self.settled..issued;
            self.sorted.extend(new.map(|number| self.keys.position(number)));
            self.sorted.sort_unstable();
        }
        self.settled = self.settled.max(issued);
        self.recent.clear();
    }

    /// Notes that `number` is issued; it may have been issued before.
    pub(super) fn insert(&mut self, number: u64) {
        if number >= self.settled {
            self.recent.insert(self.keys.position(number));
        }
    }

    pub(super) fn keys(&self) -> &KeyFormat {
        &self.keys
    }

    /// Returns a cursor just before `position`.
    pub(super) fn before(&self, position: u64) -> Cursor {
        let index = self.sorted.partition_point(|sorted| *sorted < position);
        Cursor { ahead: position, index }
    }

    /// Returns the first position after `cursor`.
    pub(super) fn peek(&self, cursor: Cursor) -> Option<u64> {
        let settled = match self.keys.order() {
            InsertOrder::Ordered => Some(cursor.ahead).filter(|number| *number < self.settled),
            InsertOrder::Hashed => self.sorted.get(cursor.index).copied(),
        };
        if self.recent.is_empty() {
            return settled;
        }
        let recent = self.recent.range(cursor.ahead..).next().copied();
        settled.into_iter().chain(recent).min()
    }

    /// Returns `cursor` moved past `position`, which must be after it.
    pub(super) fn past(&self, cursor: Cursor, position: u64) -> Cursor {
        // No issued number has the greatest position, so this never overflows.
        let ahead = position + 1;
        let lies_behind = |index: usize| self.sorted.get(index).is_some_and(|at| *at < ahead);
        let index = cursor.index;
        match (lies_behind(index), lies_behind(index + 1)) {
            (false, _) => Cursor { ahead, index },
            (true, false) => Cursor { ahead, index: index + 1 },
            (true, true) => self.before(ahead),
        }
    }

    /// Returns the number of the key `count` keys after that of `number`, if it exists.
    pub(super) fn number_after(&self, number: u64, count: u64) -> Option<u64> {
        let mut cursor = self.before(self.keys.position(number));
        for _ in 0..count {
            cursor = self.past(cursor, self.peek(cursor)?);
        }
        self.peek(cursor).map(|position| self.keys.number_at(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyDigits;
    use crate::unmix::unmix64;
    use crate::value::KEY_LIMIT;

    fn formats() -> [KeyFormat; 3] {
        let binary = KeyFormat::with_digits("", 4, InsertOrder::Hashed, KeyDigits::Binary);
        let hashed = KeyFormat::new("user", 32, InsertOrder::Hashed);
        let ordered = KeyFormat::new("user", 32, InsertOrder::Ordered);
        [binary, hashed, ordered].map(Option::unwrap)
    }

    fn walk(order: &KeyOrder, from: u64) -> Vec<u64> {
        let mut cursor = order.before(from);
        let next = || {
            let position = order.peek(cursor)?;
            cursor = order.past(cursor, position);
            Some(position)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_walk_meets_every_key_that_was_issued_in_order() {
        for keys in formats() {
            let mut order = KeyOrder::new(keys.clone());
            for (settled, issued) in [(0, 10), (300, 300), (300, 350), (350, 351)] {
                order.settle(settled);
                (settled..issued).for_each(|number| order.insert(number));
                order.insert(0);
                let mut all: Vec<u64> = (0..issued).map(|number| keys.position(number)).collect();
                all.sort_unstable();
                for at in [0, issued as usize / 2, issued as usize - 1] {
                    assert_eq!(walk(&order, all[at]), all[at..]);
                    assert_eq!(walk(&order, all[at] + 1), all[at + 1..]);
                    let number = keys.number_at(all[at]);
                    let after = all.get(at + 5).map(|position| keys.number_at(*position));
                    assert_eq!(order.number_after(number, 5), after);
                }
            }
        }
    }

    #[test]
    fn a_cursor_can_jump() {
        for keys in formats() {
            let mut order = KeyOrder::new(keys.clone());
            order.settle(1000);
            let all = walk(&order, 0);
            for jump in [0, 1, 2, 500] {
                let cursor = order.past(order.before(all[100]), all[100 + jump]);
                assert_eq!(order.peek(cursor), Some(all[101 + jump]));
            }
        }
    }

    #[test]
    fn nothing_that_can_be_issued_has_the_greatest_position() {
        assert!(unmix64(u64::MAX) >= KEY_LIMIT);
    }
}
