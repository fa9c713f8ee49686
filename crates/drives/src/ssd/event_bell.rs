//! Notifies the task that reports sets with window events to the host.

use std::cell::Cell;

use runtime::Notify;

/// Notified when a set joins those with events.
#[derive(Default)]
pub(crate) struct EventBell {
    pub changed: Notify,
    /// Whether a set was added since the host last read the list.
    pub is_due: Cell<bool>,
    /// Whether the host was notified and has not read the list yet.
    pub is_announced: Cell<bool>,
}

impl EventBell {
    pub(crate) fn ring(&self) {
        self.is_due.set(true);
        self.changed.notify_all();
    }
}
