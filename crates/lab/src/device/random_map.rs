//! Which places random operations have still to go to, as fio's random map has it: each once a
//! pass.
//!
//! The order of a pass is a permutation that is computed, so that a map takes no memory however
//! many places there are. Each pass has an order of its own. fio draws a place and takes the next free
//! one where that was taken already: towards the end of a pass its orders have short runs, and ours
//! have none.

use runtime::{Permutation, Rng};

/// See the module.
pub(super) struct RandomMap {
    count: u64,
    order: Option<Permutation>,
    /// Places gone to in this pass.
    done: u64,
}

impl RandomMap {
    /// Of so many places, at least one.
    pub(super) fn new(count: u64) -> Self {
        Self { count, order: None, done: 0 }
    }

    /// The next place. A pass begins with a number of the stream's.
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
