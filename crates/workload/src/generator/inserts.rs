//! Key numbers for inserts, and their acknowledgements.
//!
//! Invariant: every number up to [`InsertCounter::newest`] is acknowledged; numbers acknowledged
//! out of order wait for those before them. Cost: constant per insert on average; memory is one
//! byte per number between the oldest insert in flight and the newest.

use std::collections::VecDeque;

/// A counter of inserts that knows the newest number below which no insert is in flight.
pub(crate) struct InsertCounter {
    next: u64,
    /// Whether acknowledged, for the numbers after `newest`.
    pending: VecDeque<bool>,
}

impl InsertCounter {
    /// Counts from `first`, which must not be 0; all numbers before it count as acknowledged.
    pub(crate) fn new(first: u64) -> Self {
        assert!(first > 0, "at least one record comes before the inserts");
        Self { next: first, pending: VecDeque::new() }
    }

    /// Returns the number of the next record to insert.
    pub(crate) fn issue(&mut self) -> u64 {
        self.pending.push_back(false);
        self.next += 1;
        self.next - 1
    }

    /// Returns the number that [`Self::issue`] will return next.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// Notes that the insert of `number` is done.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        let index = (number - self.newest() - 1) as usize;
        let was = std::mem::replace(&mut self.pending[index], true);
        assert!(!was, "insert {number} was acknowledged twice");
        while self.pending.front() == Some(&true) {
            self.pending.pop_front();
        }
    }

    /// Returns the greatest number such that it and all before it are acknowledged.
    pub(crate) fn newest(&self) -> u64 {
        self.next - 1 - self.pending.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_waits_for_the_numbers_before() {
        let mut counter = InsertCounter::new(10);
        assert_eq!(counter.newest(), 9);
        assert_eq!([counter.issue(), counter.issue(), counter.issue()], [10, 11, 12]);
        counter.acknowledge(11);
        assert_eq!(counter.newest(), 9);
        counter.acknowledge(10);
        assert_eq!(counter.newest(), 11);
        assert_eq!(counter.issue(), 13);
        counter.acknowledge(13);
        counter.acknowledge(12);
        assert_eq!(counter.newest(), 13);
    }

    #[test]
    #[should_panic(expected = "acknowledged twice")]
    fn nothing_is_acknowledged_twice() {
        let mut counter = InsertCounter::new(10);
        counter.issue();
        counter.issue();
        counter.acknowledge(11);
        counter.acknowledge(11);
    }
}
