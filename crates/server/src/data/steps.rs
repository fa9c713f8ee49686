//! How far a command walks on the thread that serves other connections as well.
//!
//! Nobody knows how long a walk is before it ends. So a command that goes too far stops, having changed nothing, and is run once more from its
//! beginning, where it may go as far as it likes. What it walked in vain is bounded.
//!
//! There it gives up the processor now and then, with the store unlocked. Else the system takes it away when its slice is over, which mostly is with
//! the store locked, and everybody else waits until it has its next one.

use std::cell::Cell;
use std::thread;

use crate::fault::Fault;

/// Keys, fields, members, deletions between them, and arguments that a command comes to before others are to go on beside it: less than a
/// millisecond, where no value is read.
const NEAR: usize = 1_024;

/// Steps behind which one that goes far gives up the processor: some tenths of a millisecond, a part of the system's slice.
const SLICE: usize = 512;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    /// Those that are left; any number, if there is none.
    left: Cell<Option<usize>>,
    /// Steps since the processor was given up last, by one that goes far.
    in_slice: Cell<usize>,
    is_cut_short: Cell<bool>,
}

impl Steps {
    /// A command begins, which may go far or not.
    pub(crate) fn begin(&self, may_go_far: bool) {
        self.left.set((!may_go_far).then_some(NEAR));
        self.is_cut_short.set(false);
    }

    /// It is about to go so many steps. An error if those are too many; it must not have changed anything then.
    pub(crate) fn take(&self, steps: usize) -> Result<(), Fault> {
        let Some(left) = self.left.get() else {
            self.in_slice.set(self.in_slice.get().saturating_add(steps));
            if self.in_slice.get() >= SLICE {
                self.in_slice.set(0);
                thread::yield_now();
            }
            return Ok(());
        };
        if let Some(left) = left.checked_sub(steps) {
            self.left.set(Some(left));
            return Ok(());
        }
        self.is_cut_short.set(true);
        Err(Fault::error("the command is run again"))
    }

    /// It is about to go nobody knows how far.
    pub(crate) fn take_all(&self) -> Result<(), Fault> {
        self.take(usize::MAX)
    }

    /// How many more it may go.
    pub(crate) fn left(&self) -> u64 {
        self.left.get().map_or(u64::MAX, |left| left as u64)
    }

    /// Whether it has to be run again: what it has said counts for nothing.
    pub(crate) fn are_cut_short(&self) -> bool {
        self.is_cut_short.get()
    }

    /// What those of a part of it have come to counts for all of it.
    pub(crate) fn set(&self, part: &Self) {
        self.left.set(part.left.get());
        self.is_cut_short.set(part.is_cut_short.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_steps_are_free_and_many_are_cut_short() {
        let steps = Steps::default();
        assert!(steps.take_all().is_ok());
        steps.begin(false);
        assert!((0..NEAR).all(|_| steps.take(1).is_ok()) && !steps.are_cut_short());
        assert!(steps.take(1).is_err() && steps.are_cut_short());
        steps.begin(true);
        assert!(steps.take(2 * NEAR).is_ok() && !steps.are_cut_short());
    }
}
