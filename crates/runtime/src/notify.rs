//! Notification of tasks that a condition may have changed.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::Handle;

/// A signal without a value. Check the condition and then wait, in a loop: no notification is
/// missed in between, because tasks switch only at an await.
#[derive(Default)]
pub struct Notify {
    generation: Cell<u64>,
    waiters: RefCell<Vec<Waker>>,
}

impl Notify {
    /// Wakes every task that is waiting now.
    pub fn notify_all(&self) {
        self.generation.set(self.generation.get() + 1);
        for waker in self.waiters.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    /// Returns the names of the waiting tasks, in the order in which they will be woken.
    pub fn waiting(&self, handle: &Handle) -> Vec<&'static str> {
        self.waiters.borrow().iter().map(|waker| handle.name_of(waker)).collect()
    }

    /// Waits for the next [`Self::notify_all`].
    pub fn notified(&self) -> Notified<'_> {
        Notified { notify: self, since: self.generation.get(), waiting: None }
    }

    /// Waits until `is_true` holds, which is checked now and after every notification.
    pub async fn wait_until(&self, mut is_true: impl FnMut() -> bool) {
        while !is_true() {
            self.notified().await;
        }
    }
}

/// See [`Notify::notified`].
#[must_use = "it does nothing unless it is awaited"]
pub struct Notified<'a> {
    notify: &'a Notify,
    since: u64,
    /// Its only entry in the list of waiters, as long as it waits.
    waiting: Option<Waker>,
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.notify.generation.get() != self.since {
            return Poll::Ready(());
        }
        let waits = self.waiting.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if !waits {
            self.leave();
            self.notify.waiters.borrow_mut().push(cx.waker().clone());
            self.waiting = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Notified<'_> {
    fn leave(&mut self) {
        let Some(waker) = self.waiting.take() else { return };
        if self.notify.generation.get() == self.since {
            let mut waiters = self.notify.waiters.borrow_mut();
            let own = waiters.iter().rposition(|other| other.will_wake(&waker));
            waiters.remove(own.expect("who waits has an entry"));
        }
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
