//! A channel: the bus that the dies behind it share. It carries one page (or one program unit) at
//! a time; who goes next is decided when it falls free.

use runtime::{Nanos, Priority};

use crate::DieIndex;
use crate::queue::PriorityQueue;

#[derive(Default)]
pub(crate) struct Channel {
    carrying: Option<DieIndex>,
    waiting: PriorityQueue<(DieIndex, Nanos)>,
}

impl Channel {
    /// Asks for the bus for `span`. True if the transfer starts now.
    pub(crate) fn request(&mut self, die: DieIndex, span: Nanos, priority: Priority) -> bool {
        if self.carrying.is_some() {
            self.waiting.push(priority, (die, span));
            return false;
        }
        self.carrying = Some(die);
        true
    }

    /// Ends the current transfer: whose it was, and the next one that starts now, if any.
    pub(crate) fn finish(&mut self) -> (DieIndex, Option<Nanos>) {
        let done = self.carrying.take().expect("a transfer ends once");
        let next = self.waiting.pop();
        self.carrying = next.map(|(die, _)| die);
        (done, next.map(|(_, span)| span))
    }
}
