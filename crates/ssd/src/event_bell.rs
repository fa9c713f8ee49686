//! The bell between sets with events and whoever tells the host.

use std::cell::Cell;

use runtime::Notify;

/// Rings when a set comes to be among those with events.
#[derive(Default)]
pub(crate) struct EventBell {
    pub changed: Notify,
    /// A set was added since the host last read which ones have events.
    pub is_due: Cell<bool>,
    /// The host was told, and has not looked yet.
    pub is_announced: Cell<bool>,
}

impl EventBell {
    pub(crate) fn ring(&self) {
        self.is_due.set(true);
        self.changed.notify_all();
    }
}
