//! Telling tasks that something they wait for may have changed.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A signal without a value. Check the condition, then wait, in a loop:
/// nothing can slip in between, because tasks only switch at an await.
#[derive(Default)]
pub struct Notify {
    generation: Cell<u64>,
    waiters: RefCell<Vec<Waker>>,
}

impl Notify {
    /// Wakes every task that waits now.
    pub fn notify_all(&self) {
        self.generation.set(self.generation.get() + 1);
        for waker in self.waiters.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    /// Waits for the next [`Self::notify_all`].
    pub fn notified(&self) -> Notified<'_> {
        Notified { notify: self, since: self.generation.get() }
    }

    /// Waits until `is_true` holds; checked now and after every notification.
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
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.notify.generation.get() != self.since {
            return Poll::Ready(());
        }
        let mut waiters = self.notify.waiters.borrow_mut();
        if !waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiters.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
