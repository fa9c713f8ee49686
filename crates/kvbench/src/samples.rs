//! Samples memory by use at regular intervals during a run.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::{Handle, JoinHandle, Nanos};

use crate::target::{Subject, Windowing};

/// Memory at one instant, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySample {
    /// Time since the start of the run.
    pub at: Nanos,
    /// Memtables.
    pub memtables: u64,
    /// Writes that wait for the slots of their sets (`plm_cache`); 0 without windows.
    pub plm_cache: u64,
}

/// Samples memory until it is stopped.
pub(crate) struct Sampler {
    samples: Rc<RefCell<Vec<MemorySample>>>,
    task: JoinHandle<()>,
}

impl Sampler {
    /// Starts to sample at the interval `every`.
    pub(crate) fn start<S: Subject>(handle: &Handle, subject: &S, every: Nanos) -> Self {
        let samples = Rc::new(RefCell::new(Vec::new()));
        let (timer, subject, into) = (handle.clone(), subject.clone(), Rc::clone(&samples));
        let begun = handle.now();
        let task = handle.spawn("memory samples", async move {
            loop {
                let cached = subject.windowing().and_then(Windowing::stats);
                into.borrow_mut().push(MemorySample {
                    at: timer.now() - begun,
                    memtables: subject.index().memory().memtables,
                    plm_cache: cached.map_or(0, |stats| stats.cached),
                });
                timer.sleep(every).await;
            }
        });
        Self { samples, task }
    }

    /// Stops, and returns the samples.
    pub(crate) fn stop(self) -> Vec<MemorySample> {
        self.task.abort();
        self.samples.take()
    }
}
