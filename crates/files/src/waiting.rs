//! Writes that wait for room on the disk.

use std::cell::Cell;
use std::rc::Rc;

use runtime::{IoClass, Nanos, Notify};

/// How long after a write found no room it is tried again.
pub(crate) const AGAIN: Nanos = Nanos::from_millis(200);

/// What waits for room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// Writes of a journal.
    pub journal: bool,
    /// Others.
    pub others: bool,
}

/// How many writes of a device wait, if they may.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) is_on: Cell<bool>,
    /// One was refused for want of room, as it did not wait.
    pub(crate) has_refused: Cell<bool>,
    journal: Cell<u32>,
    others: Cell<u32>,
    pub(crate) changed: Notify,
}

/// A write that waits, as long as this lives.
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
