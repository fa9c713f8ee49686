//! Ending a phase early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop: clones are the same request. It may be made from any thread, such as the one
/// that hears of signals; whoever works looks at it between two operations.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    /// Asks for the end.
    pub fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked for the end.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }
}
