//! A queue from any thread to a task.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

struct State<T> {
    queue: VecDeque<T>,
    waiter: Option<Waker>,
    senders: usize,
    has_receiver: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("nothing panics with a mailbox locked")
    }
}

/// The sending half, for any thread. Clones feed the same queue.
pub struct Outbox<T> {
    shared: Arc<Shared<T>>,
}

/// The receiving half, for one task.
pub struct Mailbox<T> {
    shared: Arc<Shared<T>>,
}

/// Creates an unbounded queue. A sender that needs backpressure waits for replies.
pub fn mailbox<T: Send>() -> (Outbox<T>, Mailbox<T>) {
    let state = State { queue: VecDeque::new(), waiter: None, senders: 1, has_receiver: true };
    let shared = Arc::new(Shared { state: Mutex::new(state) });
    (Outbox { shared: Arc::clone(&shared) }, Mailbox { shared })
}

impl<T> Outbox<T> {
    /// Sends `item`, and wakes the waiting task.
    ///
    /// # Errors
    /// Returns the item if the mailbox is gone.
    pub fn send(&self, item: T) -> Result<(), T> {
        let mut state = self.shared.lock();
        if !state.has_receiver {
            return Err(item);
        }
        state.queue.push_back(item);
        let waiter = state.waiter.take();
        drop(state);
        waiter.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        self.shared.lock().senders += 1;
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for Outbox<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.senders -= 1;
        let waiter = if state.senders == 0 { state.waiter.take() } else { None };
        drop(state);
        waiter.into_iter().for_each(Waker::wake);
    }
}

impl<T> Mailbox<T> {
    /// Waits for the next item. Returns `None` once every sender is gone and the queue is empty.
    pub async fn recv(&mut self) -> Option<T> {
        std::future::poll_fn(|cx| {
            let mut state = self.shared.lock();
            if let Some(item) = state.queue.pop_front() {
                return Poll::Ready(Some(item));
            }
            if state.senders == 0 {
                return Poll::Ready(None);
            }
            state.waiter = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.has_receiver = false;
        let unread = std::mem::take(&mut state.queue);
        drop(state);
        drop(unread);
    }
}

impl<T> fmt::Debug for Outbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outbox")
    }
}
