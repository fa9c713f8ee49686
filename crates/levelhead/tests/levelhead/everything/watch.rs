//! Whoever waits says so, and one that waits for ever is named.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Seconds after which who still waits waits for ever, on a machine that is busy with other things.
const PATIENCE: u32 = 90;

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is waited for, and what has happened so far.
#[derive(Default)]
pub(crate) struct Watch {
    /// With the seconds that each has waited.
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

    /// Carries something out, and says meanwhile that it is waited for.
    pub(crate) fn call<T>(&self, what: &'static str, operation: impl FnOnce() -> T) -> T {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        lock(&self.waits).insert(number, (what, 0));
        let outcome = operation();
        lock(&self.waits).remove(&number);
        outcome
    }

    /// A second has passed. Those that wait for ever.
    fn tick(&self) -> Vec<&'static str> {
        let mut waits = lock(&self.waits);
        waits.values_mut().for_each(|(_, seconds)| *seconds += 1);
        let late = waits.values().filter(|(_, seconds)| *seconds > PATIENCE);
        late.map(|(what, _)| *what).collect()
    }
}

/// Carries out what is watched, and ends the process when something of it waits for ever.
pub(crate) fn watched<T>(watch: &Arc<Watch>, replay: &str, run: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    let (watch, replay) = (Arc::clone(watch), replay.to_owned());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while is_done.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let late = watch.tick();
                if !late.is_empty() {
                    // Past what a test's output is kept in.
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
