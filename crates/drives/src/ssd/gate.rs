//! A gate for one kind of work: while it is closed no work begins; work in progress continues to
//! its end.

use std::cell::Cell;
use std::rc::Rc;

use runtime::Notify;

/// A gate for one kind of work.
pub(crate) struct Gate {
    is_open: Cell<bool>,
    inside: Cell<u32>,
    changed: Notify,
}

impl Gate {
    pub(crate) fn new(is_open: bool) -> Rc<Self> {
        Rc::new(Self {
            is_open: Cell::new(is_open),
            inside: Cell::new(0),
            changed: Notify::default(),
        })
    }

    /// Waits until the gate is open, and enters.
    pub(crate) async fn enter(self: &Rc<Self>) -> Inside {
        self.changed.wait_until(|| self.is_open.get()).await;
        self.inside.set(self.inside.get() + 1);
        Inside { gate: Rc::clone(self) }
    }

    pub(crate) fn set_open(&self, is_open: bool) {
        self.is_open.set(is_open);
        self.changed.notify_all();
    }

    /// Returns the number of entrants in progress.
    pub(crate) fn inside(&self) -> u32 {
        self.inside.get()
    }

    /// Waits until no work is in progress.
    pub(crate) async fn until_empty(&self) {
        self.changed.wait_until(|| self.inside.get() == 0).await;
    }
}

/// Work in progress, until it is dropped.
#[must_use = "work is under way as long as this lives"]
pub(crate) struct Inside {
    gate: Rc<Gate>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.gate.inside.set(self.gate.inside.get() - 1);
        if self.gate.inside.get() == 0 {
            self.gate.changed.notify_all();
        }
    }
}
