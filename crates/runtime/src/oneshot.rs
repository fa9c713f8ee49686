//! A channel for a single value between two tasks.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

struct Shared<T> {
    value: Option<T>,
    waiter: Option<Waker>,
    has_sender: bool,
}

/// The sending half.
pub struct OneshotSender<T> {
    shared: Rc<RefCell<Shared<T>>>,
}

/// The receiving half: a future of the value, or of `None` if the sender is dropped without
/// sending.
#[must_use = "it does nothing unless it is awaited"]
pub struct OneshotReceiver<T> {
    shared: Rc<RefCell<Shared<T>>>,
}

/// Creates a channel for one value.
pub fn oneshot<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let shared = Rc::new(RefCell::new(Shared { value: None, waiter: None, has_sender: true }));
    (OneshotSender { shared: Rc::clone(&shared) }, OneshotReceiver { shared })
}

impl<T> OneshotSender<T> {
    /// Whether the receiver still exists.
    pub fn is_awaited(&self) -> bool {
        Rc::strong_count(&self.shared) > 1
    }

    /// Sends the value. It is dropped if the receiver is gone.
    pub fn send(self, value: T) {
        self.shared.borrow_mut().value = Some(value);
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let waiter = {
            let mut shared = self.shared.borrow_mut();
            shared.has_sender = false;
            shared.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut shared = self.shared.borrow_mut();
        if let Some(value) = shared.value.take() {
            return Poll::Ready(Some(value));
        }
        if !shared.has_sender {
            return Poll::Ready(None);
        }
        shared.waiter = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nanos, Runtime};

    #[test]
    fn a_value_arrives_whoever_comes_first() {
        let rt = Runtime::new(1);
        let handle = rt.handle();
        let arrived = rt.block_on(async move {
            let ((early, first), (late, second)) = (oneshot(), oneshot());
            early.send(1);
            let clock = handle.clone();
            handle.spawn("late sender", async move {
                clock.sleep(Nanos(5)).await;
                late.send(2);
            });
            (first.await, second.await, handle.now())
        });
        assert_eq!(arrived, (Some(1), Some(2), Nanos(5)));
    }

    #[test]
    fn a_receiver_that_is_gone_is_noticed() {
        let (sender, receiver) = oneshot::<u8>();
        assert!(sender.is_awaited());
        drop(receiver);
        assert!(!sender.is_awaited());
    }

    #[test]
    fn a_sender_that_is_gone_is_noticed() {
        let rt = Runtime::new(1);
        let handle = rt.handle();
        let arrived = rt.block_on(async move {
            let (sender, receiver) = oneshot::<u8>();
            let clock = handle.clone();
            handle.spawn("no sender", async move {
                clock.sleep(Nanos(5)).await;
                drop(sender);
            });
            receiver.await
        });
        assert_eq!(arrived, None);
    }
}
