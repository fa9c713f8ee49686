//! A bounded queue between tasks: senders wait when it is full, the receiver when it is empty.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::Notify;

struct Shared<T> {
    state: RefCell<State<T>>,
    has_room: Notify,
    has_items: Notify,
}

struct State<T> {
    queue: VecDeque<T>,
    capacity: usize,
    senders: usize,
    has_receiver: bool,
}

/// The sending half. Clones feed the same queue.
pub struct Sender<T> {
    shared: Rc<Shared<T>>,
}

/// The receiving half.
pub struct Receiver<T> {
    shared: Rc<Shared<T>>,
}

/// Creates a queue of at most `capacity` items.
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a queue without room would never pass anything on");
    let state = State { queue: VecDeque::new(), capacity, senders: 1, has_receiver: true };
    let shared = Rc::new(Shared {
        state: RefCell::new(state),
        has_room: Notify::default(),
        has_items: Notify::default(),
    });
    (Sender { shared: Rc::clone(&shared) }, Receiver { shared })
}

impl<T> Sender<T> {
    /// Waits for space and enqueues `item`.
    ///
    /// # Errors
    /// Returns the item if the receiver is gone.
    pub async fn send(&self, item: T) -> Result<(), T> {
        let shared = &self.shared;
        shared
            .has_room
            .wait_until(|| {
                let state = shared.state.borrow();
                !state.has_receiver || state.queue.len() < state.capacity
            })
            .await;
        let mut state = shared.state.borrow_mut();
        if !state.has_receiver {
            return Err(item);
        }
        state.queue.push_back(item);
        drop(state);
        shared.has_items.notify_all();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.state.borrow_mut().senders += 1;
        Self { shared: Rc::clone(&self.shared) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.shared.state.borrow_mut().senders -= 1;
        self.shared.has_items.notify_all();
    }
}

impl<T> Receiver<T> {
    /// Waits for the next item. Returns `None` once every sender is gone and the queue is empty.
    pub async fn recv(&mut self) -> Option<T> {
        let shared = &self.shared;
        shared
            .has_items
            .wait_until(|| {
                let state = shared.state.borrow();
                state.senders == 0 || !state.queue.is_empty()
            })
            .await;
        let item = shared.state.borrow_mut().queue.pop_front();
        shared.has_room.notify_all();
        item
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.state.borrow_mut().has_receiver = false;
        self.shared.has_room.notify_all();
    }
}
