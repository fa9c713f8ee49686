//! A watchdog: registers each call, and names the calls that hang.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Seconds after which a call hangs, on a machine that is busy with other work.
const PATIENCE: u32 = 90;

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calls in progress, and the events so far.
#[derive(Default)]
pub(crate) struct Watch {
    /// Each with the seconds that it has waited.
    waits: Mutex<BTreeMap<u64, (&'static str, u32)>>,
    calls: AtomicU64,
    story: Mutex<Vec<String>>,
}

impl Watch {
    pub(crate) fn say(&self, what: String) {
        lock(&self.story).push(what);
    }

    pub(crate) fn story(&self) -> String {
        lock(&self.story).join("; ")
    }

    /// Runs an operation and registers it meanwhile.
    pub(crate) fn call<T>(&self, what: &'static str, operation: impl FnOnce() -> T) -> T {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        lock(&self.waits).insert(number, (what, 0));
        let outcome = operation();
        lock(&self.waits).remove(&number);
        outcome
    }

    /// Adds a second to all calls in progress. Returns those that hang.
    fn tick(&self) -> Vec<&'static str> {
        let mut waits = lock(&self.waits);
        waits.values_mut().for_each(|(_, seconds)| *seconds += 1);
        let late = waits.values().filter(|(_, seconds)| *seconds > PATIENCE);
        late.map(|(what, _)| *what).collect()
    }
}

/// Runs `run`, and aborts the process if one of its calls hangs.
pub(crate) fn watched<T>(watch: &Arc<Watch>, replay: &str, run: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    let (watch, replay) = (Arc::clone(watch), replay.to_owned());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while is_done.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let late = watch.tick();
                if !late.is_empty() {
                    // Writes directly to stderr, because a test's output is captured.
                    let text =
                        format!("{}: these wait for ever: {late:?}\n{replay}\n", watch.story());
                    let _ = std::io::stderr().write_all(text.as_bytes());
                    std::process::abort();
                }
            }
        });
        let outcome = run();
        drop(done);
        outcome
    })
}
