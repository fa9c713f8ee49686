//! Pins: the extents that a snapshot may still read.
//!
//! A snapshot reads the index as it was when the snapshot was made. It needs exactly the extents
//! that were in use then: opened by then and not retired by then. A pinned extent is not collected,
//! because that would free nothing, and it is not released before its pins are dropped. Extents
//! opened later can still be collected. A long-lived snapshot therefore holds back at most the data
//! that was stored when it was made.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::Notify;

/// The pins of a store. Clones share the same state.
#[derive(Clone, Default)]
pub struct Pins {
    shared: Rc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Background work waits here, because a dropped pin leaves garbage.
    work: Rc<Notify>,
    next: Cell<u64>,
    /// For each live pin, by number: the extents opened when it was made.
    live: RefCell<BTreeMap<u64, u64>>,
    changed: Notify,
}

/// Keeps the extents that were in use when it was made, until it is dropped.
pub struct Pin {
    shared: Rc<Shared>,
    number: u64,
    /// The number of extents opened when it was made.
    opened: u64,
}

impl Pin {
    /// Whether it needs an extent of age `age` that was in use until `until`.
    pub(crate) fn holds(&self, age: u64, until: Moment) -> bool {
        self.number < until.0 && self.opened >= age
    }
}

/// A point in time between two pins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment(u64);

impl Pins {
    /// Creates a set without pins. Notifies `work` when a pin is dropped.
    pub(crate) fn new(work: Rc<Notify>) -> Self {
        Self { shared: Rc::new(Shared { work, ..Shared::default() }) }
    }

    /// Pins every extent in use. `opened` is the number of extents opened so far.
    pub fn pin(&self, opened: u64) -> Pin {
        let number = self.shared.next.replace(self.shared.next.get() + 1);
        let mut live = self.shared.live.borrow_mut();
        let before = live.last_key_value().map_or(0, |(_, opened)| *opened);
        assert!(before <= opened, "{before} extents had been opened, now {opened}");
        live.insert(number, opened);
        drop(live);
        Pin { shared: Rc::clone(&self.shared), number, opened }
    }

    /// Whether any pin exists.
    pub(crate) fn is_any(&self) -> bool {
        !self.shared.live.borrow().is_empty()
    }

    /// Returns the present moment.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.shared.next.get())
    }

    /// Whether any pin needs an extent of age `age` that was in use until `until`.
    pub(crate) fn holds(&self, age: u64, until: Moment) -> bool {
        let live = self.shared.live.borrow();
        live.range(..until.0).any(|(_, opened)| *opened >= age)
    }

    /// Waits until [`Self::holds`] is false.
    pub(crate) async fn let_go(&self, age: u64, until: Moment) {
        self.shared.changed.wait_until(|| !self.holds(age, until)).await;
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let opened = self.shared.live.borrow_mut().remove(&self.number);
        assert_eq!(opened, Some(self.opened), "pin {} was let go twice", self.number);
        self.shared.changed.notify_all();
        self.shared.work.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_holds_what_was_in_use_when_it_was_made() {
        let pins = Pins::default();
        let before = pins.now();
        let pin = pins.pin(10);
        let now = pins.now();
        assert!(pins.holds(10, now) && pins.holds(3, now));
        assert!(!pins.holds(11, now), "opened later");
        assert!(!pins.holds(3, before), "retired before");
        let later = pins.pin(20);
        assert!(pins.holds(15, pins.now()) && !pins.holds(15, now));
        assert!(pin.holds(10, now) && !pin.holds(11, now) && !pin.holds(3, before));
        assert!(later.holds(15, pins.now()) && !later.holds(3, now));
        drop(pin);
        assert!(!pins.holds(3, now), "the later pin was made after it was retired");
        drop(later);
        assert!(!pins.holds(3, pins.now()));
    }
}
