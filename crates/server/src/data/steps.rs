//! Limits how far a command walks on a thread that also serves other connections.
//!
//! The length of a walk is not known in advance. A command that exceeds its budget stops without
//! having changed anything, and is run again from its beginning on a thread of its own, without a
//! limit. The wasted work is bounded by the budget.
//!
//! Such a long command yields the processor now and then, with the store unlocked. Otherwise the
//! system preempts the thread at the end of its time slice, mostly with the store locked, and all
//! other threads wait until it runs again.
//!
//! It also checks whether the server is stopping, so that the stop does not wait for its end.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::fault::Fault;

/// Step budget of a command on a serving thread. Keys, fields, members, tombstones between them,
/// and arguments are steps. Takes less than a millisecond if no value is read.
const NEAR: usize = 1_024;

/// Steps of a long command between two yields: some tenths of a millisecond, a part of the system's
/// time slice.
const SLICE: usize = 512;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Steps<'a> {
    /// Whether the server is stopping and long commands have to end.
    stops: &'a AtomicBool,
    /// Steps left; `None` if unlimited.
    left: Cell<Option<usize>>,
    /// Steps of a long command since the last yield.
    in_slice: Cell<usize>,
    is_cut_short: Cell<bool>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(stops: &'a AtomicBool) -> Self {
        let (left, in_slice, is_cut_short) = (Cell::new(None), Cell::new(0), Cell::new(false));
        Self { stops, left, in_slice, is_cut_short }
    }

    /// Starts a command, with or without a limit.
    pub(crate) fn begin(&self, may_go_far: bool) {
        self.left.set((!may_go_far).then_some(NEAR));
        self.is_cut_short.set(false);
    }

    /// Takes `steps` steps before a walk. Returns an error if the budget is exceeded, or if the
    /// server stops a long command. Requires: the command has not changed anything yet.
    pub(crate) fn take(&self, steps: usize) -> Result<(), Fault> {
        self.go_on()?;
        self.pass(steps)
    }

    /// Returns an error for a long command if the server is stopping.
    pub(crate) fn go_on(&self) -> Result<(), Fault> {
        if self.left.get().is_none() && self.stops.load(Ordering::Relaxed) {
            return Err(Fault::error(
                "the server stops, and the command was not carried out to its end",
            ));
        }
        Ok(())
    }

    /// Takes steps for tombstones that were passed. Returns an error if the budget is exceeded.
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

    /// Takes the whole budget, for a walk of unknown length.
    pub(crate) fn take_all(&self) -> Result<(), Fault> {
        self.take(usize::MAX)
    }

    /// Returns the number of steps left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get().map_or(u64::MAX, |left| left as u64)
    }

    /// Whether the command has to be run again; its reply is void.
    pub(crate) fn are_cut_short(&self) -> bool {
        self.is_cut_short.get()
    }

    /// Adopts the state of the steps of a part of the command.
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
        // A command on a serving thread ends in time by itself, and is not stopped.
        stops.store(true, Ordering::Relaxed);
        assert!(steps.take(1).is_err() && steps.go_on().is_err() && !steps.are_cut_short());
        steps.begin(false);
        assert!(steps.take(NEAR).is_ok() && steps.go_on().is_ok());
    }
}
