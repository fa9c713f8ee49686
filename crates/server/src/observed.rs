//! Recent counters of the store.
//!
//! Reading the store's counters needs its lock, whose holder may be preempted by the system. One
//! thread therefore reads them periodically and all others use its last result: INFO and the
//! dashboard answer even while the store does not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use levelhead::{Inside, Statistics, Store};

/// Maximum age of the counters while the store responds.
pub(crate) const AGE: Duration = Duration::from_millis(100);

/// Errors that the store's files reported since the server began.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Complaints {
    /// Number of errors; a write that is retried may count several times.
    pub count: u64,
    /// The last error: file, offset, and the system's message.
    pub last: Option<String>,
    /// Time at which the last error was observed, in milliseconds of the database's clock.
    pub at_ms: u64,
}

impl Complaints {
    /// Adds the errors that were just reported.
    fn and(mut self, troubles: &mut Vec<String>, now_ms: u64) -> Self {
        self.count += troubles.len() as u64;
        if let Some(last) = troubles.pop() {
            (self.last, self.at_ms) = (Some(last), now_ms);
        }
        self
    }
}

/// Counters of the store at one moment.
pub(crate) struct Observed {
    pub statistics: Statistics,
    pub inside: Inside,
    pub complaints: Complaints,
}

impl Observed {
    /// Reads the counters. The store reports each file error only once, so errors are accumulated
    /// from `before`.
    fn of(store: &Store, before: Complaints, now_ms: u64) -> Self {
        let (mut statistics, inside) = (store.statistics(), store.inside());
        let complaints = before.and(&mut statistics.troubles, now_ms);
        Self { statistics, inside, complaints }
    }
}

/// See the module's documentation.
pub(crate) struct Observer(Mutex<Arc<Observed>>);

impl Observer {
    pub(crate) fn new(store: &Store, now_ms: u64) -> Self {
        Self(Mutex::new(Arc::new(Observed::of(store, Complaints::default(), now_ms))))
    }

    /// Returns the last counters that were read.
    pub(crate) fn last(&self) -> Arc<Observed> {
        Arc::clone(&self.0.lock().expect("nothing panics with it locked"))
    }

    /// Reads the counters from the store; may block for its lock.
    pub(crate) fn ask(&self, store: &Store, now_ms: u64) {
        let observed = Arc::new(Observed::of(store, self.last().complaints.clone(), now_ms));
        *self.0.lock().expect("nothing panics with it locked") = observed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_complaint_is_kept() {
        let heard = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let complaints = Complaints::default().and(&mut heard(&["a", "b"]), 7);
        let last = Some("b".to_owned());
        assert_eq!(complaints, Complaints { count: 2, last, at_ms: 7 });
        assert_eq!(complaints.clone().and(&mut Vec::new(), 9), complaints);
    }
}
