//! The store's counters, as they were a moment ago.
//!
//! To ask the store is to wait for its lock, which whoever has it may keep while the system runs something else. So one thread asks, again and
//! again, and those who serve take what it was told last: INFO and the page are answered also when the store is not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use levelhead::{Inside, Statistics, Store};

/// How old counters may be, if the store answers.
pub(crate) const AGE: Duration = Duration::from_millis(100);

/// What the store says of itself at one moment.
pub(crate) struct Observed {
    pub statistics: Statistics,
    pub inside: Inside,
}

impl Observed {
    fn of(store: &Store) -> Self {
        Self { statistics: store.statistics(), inside: store.inside() }
    }
}

/// See the module's documentation.
pub(crate) struct Observer(Mutex<Arc<Observed>>);

impl Observer {
    pub(crate) fn new(store: &Store) -> Self {
        Self(Mutex::new(Arc::new(Observed::of(store))))
    }

    /// What was told last.
    pub(crate) fn last(&self) -> Arc<Observed> {
        Arc::clone(&self.0.lock().expect("nothing panics with it locked"))
    }

    /// Asks the store, which may take a while.
    pub(crate) fn ask(&self, store: &Store) {
        let observed = Arc::new(Observed::of(store));
        *self.0.lock().expect("nothing panics with it locked") = observed;
    }
}
