//! The progress of a bench, and requests to stop it.

use std::cell::RefCell;
use std::rc::Rc;

use workload::Stop;

/// Receives the progress of a bench.
pub trait Observer {
    /// Called when a phase of `total` operations begins.
    fn begin(&mut self, phase: &'static str, total: u64);
    /// Called when `done` operations of the phase are done.
    fn progress(&mut self, done: u64);
    /// Called when the phase ends. `is_done` is whether the phase was completed, not cut short.
    fn end(&mut self, is_done: bool);
}

/// The observer of a bench, and the requests to stop it.
#[derive(Clone)]
pub(crate) struct Watch {
    pub observer: Rc<RefCell<dyn Observer>>,
    pub stop: Stop,
}
