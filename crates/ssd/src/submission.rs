//! Submission queues, and the slots of a set in which commands are carried out.
//!
//! While no slot is free, commands wait in the queue they came by, and the queues get slots in turns, one command a
//! turn: NVMe's round robin arbitration, with an arbitration burst of one. So who has a queue of its own
//! is not behind all that others have outstanding.

use std::cell::RefCell;

use runtime::{Permit, Semaphore};

/// The slots of a set.
pub(crate) struct Slots {
    free: Semaphore,
    /// By queue: only its first command waits for a slot.
    heads: RefCell<Vec<Semaphore>>,
}

impl Slots {
    pub(crate) fn new(count: u32) -> Self {
        Self { free: Semaphore::new(count as usize), heads: RefCell::default() }
    }

    /// Waits for a slot, for a command of `queue`.
    pub(crate) async fn acquire(&self, queue: u16) -> Permit {
        let is_first = self.head(queue).acquire(1).await;
        // First come first served among the first of each queue is round robin among the queues.
        let slot = self.free.acquire(1).await;
        drop(is_first);
        slot
    }

    fn head(&self, queue: u16) -> Semaphore {
        let mut heads = self.heads.borrow_mut();
        let wanted = usize::from(queue) + 1;
        if heads.len() < wanted {
            heads.resize_with(wanted, || Semaphore::new(1));
        }
        heads[usize::from(queue)].clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use runtime::{Nanos, Runtime};

    use super::*;

    /// In which order commands of these queues are carried out, one at a time; all come at once, in this order.
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
        assert_eq!(order(&[0, 0, 0, 0, 1, 2, 2]), [0, 0, 1, 2, 0, 2, 0]);
        assert_eq!(order(&[3, 3, 3]), [3, 3, 3]);
    }
}
