//! How far a command walks on the thread that serves other connections as well.
//!
//! Nobody knows how long a walk is before it ends. So a command that goes too far stops, having changed nothing, and is run once more from its
//! beginning, where it may go as far as it likes. What it walked in vain is bounded.
//!
//! There it gives up the processor now and then, with the store unlocked. Else the system takes it away when its slice is over, which mostly is with
//! the store locked, and everybody else waits until it has its next one.
//!
//! And there it looks whether the server stops: nobody waits then until it has come to its end.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::fault::Fault;

/// Keys, fields, members, deletions between them, and arguments that a command comes to before others are to go on beside it: less than a
/// millisecond, where no value is read.
const NEAR: usize = 1_024;

/// Steps behind which one that goes far gives up the processor: some tenths of a millisecond, a part of the system's slice.
const SLICE: usize = 512;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Steps<'a> {
    /// Whether the server stops, and those that go far are to end.
    stops: &'a AtomicBool,
    /// Those that are left; any number, if there is none.
    left: Cell<Option<usize>>,
    /// Steps since the processor was given up last, by one that goes far.
    in_slice: Cell<usize>,
    is_cut_short: Cell<bool>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(stops: &'a AtomicBool) -> Self {
        let (left, in_slice, is_cut_short) = (Cell::new(None), Cell::new(0), Cell::new(false));
        Self { stops, left, in_slice, is_cut_short }
    }

    /// A command begins, which may go far or not.
    pub(crate) fn begin(&self, may_go_far: bool) {
        self.left.set((!may_go_far).then_some(NEAR));
        self.is_cut_short.set(false);
    }

    /// It is about to go so many steps. An error if those are too many; it must not have changed anything then. Or if the server stops.
    pub(crate) fn take(&self, steps: usize) -> Result<(), Fault> {
        self.go_on()?;
        self.pass(steps)
    }

    /// An error for one that goes far, if the server stops.
    pub(crate) fn go_on(&self) -> Result<(), Fault> {
        if self.left.get().is_none() && self.stops.load(Ordering::Relaxed) {
            return Err(Fault::error(
                "the server stops, and the command was not carried out to its end",
            ));
        }
        Ok(())
    }

    /// It has gone so many steps among deletions. An error as above if those are too many.
    pub(crate) fn pass(&self, steps: usize) -> Result<(), Fault> {
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
        let stops = AtomicBool::new(false);
        let steps = Steps::new(&stops);
        assert!(steps.take_all().is_ok());
        steps.begin(false);
        assert!((0..NEAR).all(|_| steps.take(1).is_ok()) && !steps.are_cut_short());
        assert!(steps.take(1).is_err() && steps.are_cut_short());
        steps.begin(true);
        assert!(steps.take(2 * NEAR).is_ok() && !steps.are_cut_short());
        // A command that is near has come to its end before the server has.
        stops.store(true, Ordering::Relaxed);
        assert!(steps.take(1).is_err() && steps.go_on().is_err() && !steps.are_cut_short());
        steps.begin(false);
        assert!(steps.take(NEAR).is_ok() && steps.go_on().is_ok());
    }
}
