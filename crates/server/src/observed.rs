//! The store's counters, as they were a moment ago.
//!
//! To ask the store is to wait for its lock, which whoever has it may keep while the system runs something else. So one thread asks, again and
//! again, and those who serve take what it was told last: INFO and the page are answered also when the store is not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use levelhead::{Inside, Statistics, Store};

/// How old counters may be, if the store answers.
pub(crate) const AGE: Duration = Duration::from_millis(100);

/// What files had to complain of since the server began.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Complaints {
    /// How many; a write that is tried again may count each time.
    pub count: u64,
    /// The last one: file, place, and what the system said.
    pub last: Option<String>,
    /// When it was heard, by the clock of the database.
    pub at_ms: u64,
}

impl Complaints {
    /// With those that were heard now.
    fn and(mut self, troubles: &mut Vec<String>, now_ms: u64) -> Self {
        self.count += troubles.len() as u64;
        if let Some(last) = troubles.pop() {
            (self.last, self.at_ms) = (Some(last), now_ms);
        }
        self
    }
}

/// What the store says of itself at one moment.
pub(crate) struct Observed {
    pub statistics: Statistics,
    pub inside: Inside,
    pub complaints: Complaints,
}

impl Observed {
    /// The store says only once what files complain of; it is kept.
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

    /// What was told last.
    pub(crate) fn last(&self) -> Arc<Observed> {
        Arc::clone(&self.0.lock().expect("nothing panics with it locked"))
    }

    /// Asks the store, which may take a while.
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
