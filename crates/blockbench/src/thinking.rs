//! fio's `thinktime`: after a number of operations a job begins no further operation until those in
//! flight have ended and the pause is over.

use std::cell::Cell;

use runtime::{Handle, Nanos, Notify};

/// The pauses of one job of a stream.
#[derive(Default)]
pub(super) struct Thinking {
    pause: Nanos,
    /// Operations between two pauses.
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

    /// Waits for the end of the current pause, if any.
    pub(super) async fn is_over(&self) {
        self.rested.wait_until(|| !self.rests.get()).await;
    }

    /// Notes the start of an operation.
    pub(super) fn begun(&self) {
        self.under_way.set(self.under_way.get() + 1);
    }

    /// Notes the end of an operation. The last operation in flight waits out the pause for all, at
    /// most until `until`.
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
