//! Memory by use, looked at again and again while a run goes on.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::{Handle, JoinHandle, Nanos};

use crate::target::{Subject, Windowing};

/// Memory at one instant, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySample {
    /// When, from the begin of the run.
    pub at: Nanos,
    /// Memtables.
    pub memtables: u64,
    /// What waits for the slots of its sets (`plm_cache`); 0 without windows.
    pub plm_cache: u64,
}

/// Looks at memory until it is told to stop.
pub(crate) struct Sampler {
    samples: Rc<RefCell<Vec<MemorySample>>>,
    task: JoinHandle<()>,
}

impl Sampler {
    /// Begins to look, every `every`.
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

    /// What was seen.
    pub(crate) fn stop(self) -> Vec<MemorySample> {
        self.task.abort();
        self.samples.take()
    }
}
