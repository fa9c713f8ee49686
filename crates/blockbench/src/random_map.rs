//! The places that random operations have not yet visited, like fio's random map: each place once
//! per pass.
//!
//! The order of a pass is a computed permutation, so a map needs no memory per place. Each pass has
//! its own order. fio draws a place, and takes the next free one if the place was visited before:
//! the ends of its passes have short runs of neighbours, which the order here does not have.

use runtime::{Permutation, Rng};

/// The order of the places; see the module.
pub(super) struct RandomMap {
    count: u64,
    order: Option<Permutation>,
    /// Places visited in this pass.
    done: u64,
}

impl RandomMap {
    /// Creates a map of `count` places, at least one.
    pub(super) fn new(count: u64) -> Self {
        Self { count, order: None, done: 0 }
    }

    /// Returns the next place. Each pass draws one number from `rng`.
    pub(super) fn next(&mut self, rng: &mut Rng) -> u64 {
        if self.done == self.count {
            (self.order, self.done) = (None, 0);
        }
        let count = self.count;
        let order = self.order.get_or_insert_with(|| Permutation::new(count, rng.next_u64()));
        self.done += 1;
        order.forward(self.done - 1)
    }
}
