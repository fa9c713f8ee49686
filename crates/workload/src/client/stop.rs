//! Early end of a phase.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop; clones are the same request. Any thread may make it, such as the signal
/// handler's; clients check it between two operations.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    /// Requests the stop.
    pub fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// Returns whether a stop was requested.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }
}
