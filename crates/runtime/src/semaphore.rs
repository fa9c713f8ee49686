//! A counting semaphore, first come, first served, with a limit that can change.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A bound on the number of units in use. Clones share the same count.
#[derive(Clone)]
pub struct Semaphore {
    shared: Rc<Shared>,
}

struct Shared {
    limit: Cell<usize>,
    in_use: Cell<usize>,
    waiters: RefCell<VecDeque<Rc<Waiter>>>,
}

struct Waiter {
    wants: usize,
    is_granted: Cell<bool>,
    waker: RefCell<Waker>,
}

impl Semaphore {
    /// Creates a semaphore with `limit` units.
    pub fn new(limit: usize) -> Self {
        let (limit, in_use) = (Cell::new(limit), Cell::new(0));
        Self { shared: Rc::new(Shared { limit, in_use, waiters: RefCell::default() }) }
    }

    /// Waits for `wants` units. A request above the limit is granted when no unit is in use.
    pub fn acquire(&self, wants: usize) -> Acquire {
        Acquire { shared: Rc::clone(&self.shared), wants, waiter: None }
    }

    /// Changes the limit. Units in use stay in use; a higher limit may wake waiters.
    pub fn set_limit(&self, limit: usize) {
        self.shared.limit.set(limit);
        self.shared.grant();
    }

    /// Returns the number of units in use.
    pub fn in_use(&self) -> usize {
        self.shared.in_use.get()
    }

    /// Returns the current limit.
    pub fn limit(&self) -> usize {
        self.shared.limit.get()
    }

    /// Returns the number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.shared.waiters.borrow().len()
    }
}

impl Shared {
    fn has_room_for(&self, wants: usize) -> bool {
        self.in_use.get() == 0 || self.in_use.get() + wants <= self.limit.get()
    }

    fn grant(&self) {
        loop {
            let mut waiters = self.waiters.borrow_mut();
            let Some(first) = waiters.front() else { return };
            if !self.has_room_for(first.wants) {
                return;
            }
            self.in_use.set(self.in_use.get() + first.wants);
            first.is_granted.set(true);
            first.waker.borrow().wake_by_ref();
            waiters.pop_front();
        }
    }

    fn release(&self, units: usize) {
        self.in_use.set(self.in_use.get() - units);
        self.grant();
    }
}

/// See [`Semaphore::acquire`].
#[must_use = "it does nothing unless it is awaited"]
pub struct Acquire {
    shared: Rc<Shared>,
    wants: usize,
    waiter: Option<Rc<Waiter>>,
}

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        let shared = Rc::clone(&self.shared);
        if let Some(waiter) = &self.waiter {
            if !waiter.is_granted.get() {
                waiter.waker.borrow_mut().clone_from(cx.waker());
                return Poll::Pending;
            }
            self.waiter = None;
            return Poll::Ready(Permit { shared, units: self.wants });
        }
        if shared.waiters.borrow().is_empty() && shared.has_room_for(self.wants) {
            shared.in_use.set(shared.in_use.get() + self.wants);
            return Poll::Ready(Permit { shared, units: self.wants });
        }
        let waker = RefCell::new(cx.waker().clone());
        let waiter = Rc::new(Waiter { wants: self.wants, is_granted: Cell::new(false), waker });
        shared.waiters.borrow_mut().push_back(Rc::clone(&waiter));
        self.waiter = Some(waiter);
        Poll::Pending
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else {
            return;
        };
        if waiter.is_granted.get() {
            self.shared.release(waiter.wants);
        } else {
            self.shared.waiters.borrow_mut().retain(|other| !Rc::ptr_eq(other, &waiter));
            self.shared.grant(); // The next waiter may fit now.
        }
    }
}

/// Units in use, released on drop.
#[must_use = "dropping a permit gives its units back"]
pub struct Permit {
    shared: Rc<Shared>,
    units: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.release(self.units);
    }
}
