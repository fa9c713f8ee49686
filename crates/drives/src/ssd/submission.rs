//! Submission queues, and the slots of a set in which commands are executed.
//!
//! While no slot is free, commands wait in their submission queue. The queues get slots in turns,
//! one command per turn: NVMe's round robin arbitration with an arbitration burst of one. A client
//! with its own queue therefore does not wait for all outstanding commands of others.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

use runtime::{OneshotSender, oneshot};

/// The command slots of a set.
pub(crate) struct Slots {
    shared: Rc<Shared>,
}

struct Shared {
    free: Cell<u32>,
    /// Commands without a slot, by queue. Only queues with waiting commands have an entry.
    waiting: RefCell<BTreeMap<u16, VecDeque<OneshotSender<Slot>>>>,
    /// The queue that had the last turn.
    last: Cell<u16>,
}

/// The slot of a command, until it is dropped.
#[must_use = "dropping it ends the command's turn"]
pub(crate) struct Slot {
    shared: Rc<Shared>,
}

impl Slots {
    pub(crate) fn new(count: u32) -> Self {
        // After the last queue number the turn returns to the first.
        let (free, last) = (Cell::new(count), Cell::new(u16::MAX));
        Self { shared: Rc::new(Shared { free, waiting: RefCell::default(), last }) }
    }

    /// Waits for a slot for a command of `queue`.
    pub(crate) async fn acquire(&self, queue: u16) -> Slot {
        let free = self.shared.free.get();
        if free > 0 {
            debug_assert!(
                self.shared.nobody_waits(),
                "a slot is free, and a command waits for one"
            );
            self.shared.free.set(free - 1);
            return Slot { shared: Rc::clone(&self.shared) };
        }
        let (sender, slot) = oneshot();
        self.shared.wait(queue, sender);
        slot.await.expect("who waits is given a slot in the end")
    }
}

impl Shared {
    fn wait(&self, queue: u16, sender: OneshotSender<Slot>) {
        self.waiting.borrow_mut().entry(queue).or_default().push_back(sender);
    }

    fn nobody_waits(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Returns the first command that is still awaited, of the queue that has the turn.
    fn next(&self) -> Option<OneshotSender<Slot>> {
        loop {
            let command = self.next_of_turn()?;
            if command.is_awaited() {
                return Some(command);
            }
        }
    }

    /// Returns the first command of the queue that has the turn, among the queues with waiting
    /// commands.
    fn next_of_turn(&self) -> Option<OneshotSender<Slot>> {
        let mut waiting = self.waiting.borrow_mut();
        let behind = (Bound::Excluded(self.last.get()), Bound::Unbounded);
        let queue = *waiting.range(behind).chain(waiting.iter()).next()?.0;
        self.last.set(queue);
        let commands = waiting.get_mut(&queue)?;
        let command = commands.pop_front();
        debug_assert!(command.is_some(), "a queue is kept in which nothing waits");
        if commands.is_empty() {
            waiting.remove(&queue);
        }
        command
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        match self.shared.next() {
            // If the command is dropped before it uses the slot, the slot returns here.
            Some(command) => command.send(Self { shared: Rc::clone(&self.shared) }),
            None => self.shared.free.set(self.shared.free.get() + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use runtime::{Nanos, Runtime};

    use super::*;

    /// Returns the order in which commands of these queues are executed, one at a time. All are
    /// submitted at once, in the given order.
    fn order(queues: &[u16]) -> Vec<u16> {
        let rt = Runtime::new(1);
        let handle = rt.handle();
        let (slots, done) = (Rc::new(Slots::new(1)), Rc::new(RefCell::new(Vec::new())));
        for queue in queues.iter().copied() {
            let (slots, done, clock) = (Rc::clone(&slots), Rc::clone(&done), handle.clone());
            handle.spawn("command", async move {
                let _slot = slots.acquire(queue).await;
                clock.sleep(Nanos::from_micros(1)).await;
                done.borrow_mut().push(queue);
            });
        }
        rt.block_on(async move { handle.sleep(Nanos::from_micros(100)).await });
        done.take()
    }

    #[test]
    fn queues_get_slots_in_turns() {
        // The first command finds a free slot; turns begin after its queue.
        assert_eq!(order(&[0, 0, 0, 0, 1, 2, 2]), [0, 0, 1, 2, 0, 2, 0]);
        assert_eq!(order(&[3, 3, 3]), [3, 3, 3]);
    }

    #[test]
    fn a_command_that_is_given_up_leaves_its_turn_to_others() {
        let rt = Runtime::new(1);
        let slots = Slots::new(1);
        rt.block_on(async move {
            let first = slots.acquire(0).await;
            let mut gone = Box::pin(slots.acquire(1));
            assert!(is_pending(&mut gone));
            drop(gone);
            drop(first);
            let again = slots.acquire(0).await;
            let mut granted = Box::pin(slots.acquire(1));
            assert!(is_pending(&mut granted));
            drop(again);
            // The command had a slot, and was dropped before it noticed.
            drop(granted);
            let _last = slots.acquire(2).await;
        });
    }

    #[test]
    fn all_that_is_given_up_at_once_is_passed_over_without_recursion() {
        let rt = Runtime::new(1);
        let slots = Slots::new(1);
        rt.block_on(async move {
            let first = slots.acquire(0).await;
            let mut given_up: Vec<_> =
                (0..100_000_u32).map(|n| Box::pin(slots.acquire((n % 3) as u16))).collect();
            assert!(given_up.iter_mut().all(is_pending));
            given_up.clear();
            drop(first);
            let _next = slots.acquire(1).await;
        });
    }

    fn is_pending<F: Future>(future: &mut std::pin::Pin<Box<F>>) -> bool {
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        future.as_mut().poll(context).is_pending()
    }
}
