//! fio's `thinktime`: after so many operations a job begins no other until those under way have
//! ended and it has rested.

use std::cell::Cell;

use runtime::{Handle, Nanos, Notify};

/// The rests of one of a stream's jobs.
#[derive(Default)]
pub(super) struct Thinking {
    pause: Nanos,
    /// So many operations come between two rests.
    every: u64,
    ended: Cell<u64>,
    under_way: Cell<u64>,
    rests: Cell<bool>,
    rested: Notify,
}

impl Thinking {
    pub(super) fn new(pause: Nanos, every: u64) -> Self {
        Self { pause, every, ..Self::default() }
    }

    /// Waits until the job does not rest.
    pub(super) async fn is_over(&self) {
        self.rested.wait_until(|| !self.rests.get()).await;
    }

    /// An operation begins.
    pub(super) fn begun(&self) {
        self.under_way.set(self.under_way.get() + 1);
    }

    /// It has ended. The last of those under way rests for all, not longer than `until`.
    pub(super) async fn ended(&self, handle: &Handle, until: Nanos) {
        self.under_way.set(self.under_way.get() - 1);
        self.ended.set(self.ended.get() + 1);
        if self.ended.get().is_multiple_of(self.every) {
            self.rests.set(true);
        }
        if self.rests.get() && self.under_way.get() == 0 {
            handle.sleep_until((handle.now() + self.pause).min(until)).await;
            self.rests.set(false);
            self.rested.notify_all();
        }
    }
}
