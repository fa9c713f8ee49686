//! The state that requests and the test share.

use std::sync::{Mutex, MutexGuard};

use runtime::Rng;

use crate::disk::Disk;
use crate::faults::Faults;

/// The state that requests and the test share.
pub(crate) struct State {
    pub disk: Disk,
    /// The state that the last cut left; present while power is off.
    pub left: Option<Disk>,
    /// The state that the last completed cut left.
    pub was_left: Disk,
    pub faults: Faults,
    /// The number of changing requests so far.
    pub changes: u64,
    /// Power fails at the request with this number, which is not executed.
    pub cut_at: Option<u64>,
    pub rng: Rng,
}

impl State {
    /// Cuts power. All later requests fail.
    pub(crate) fn cut(&mut self) {
        if self.left.is_none() {
            self.left = Some(self.disk.after_cut(&mut self.rng));
        }
    }

    /// Whether power is off.
    pub(crate) fn is_off(&self) -> bool {
        self.left.is_some()
    }

    /// Counts a changing request. Returns false if power is off or fails now.
    pub(crate) fn count(&mut self) -> bool {
        self.changes += 1;
        if self.cut_at.is_some_and(|at| self.changes >= at) {
            self.cut();
        }
        !self.is_off()
    }
}

/// Locks the state.
pub(crate) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no request panics")
}
