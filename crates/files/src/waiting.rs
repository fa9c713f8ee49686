//! Writes that wait for disk space.

use std::cell::Cell;
use std::rc::Rc;

use runtime::{IoClass, Nanos, Notify};

/// The time until a write that found the disk full is retried.
pub(crate) const AGAIN: Nanos = Nanos::from_millis(200);

/// The kinds of writes that wait for disk space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// Whether writes of a journal wait.
    pub journal: bool,
    /// Whether other writes wait.
    pub others: bool,
}

/// The numbers of a device's waiting writes, and whether waiting is enabled.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) is_on: Cell<bool>,
    /// Whether a write failed for lack of disk space without waiting.
    pub(crate) has_refused: Cell<bool>,
    journal: Cell<u32>,
    others: Cell<u32>,
    pub(crate) changed: Notify,
}

/// Counts a write as waiting for as long as this value lives.
pub(crate) struct OneWaits {
    waiting: Rc<Waiting>,
    class: IoClass,
}

impl Waiting {
    pub(crate) fn begin(self: &Rc<Self>, class: IoClass) -> OneWaits {
        let count = self.count(class);
        count.set(count.get() + 1);
        self.changed.notify_all();
        OneWaits { waiting: Rc::clone(self), class }
    }

    fn count(&self, class: IoClass) -> &Cell<u32> {
        if class == IoClass::Journal { &self.journal } else { &self.others }
    }

    pub(crate) fn waits(&self) -> Waits {
        Waits { journal: self.journal.get() > 0, others: self.others.get() > 0 }
    }
}

impl Drop for OneWaits {
    fn drop(&mut self) {
        let count = self.waiting.count(self.class);
        count.set(count.get() - 1);
        self.waiting.changed.notify_all();
    }
}
