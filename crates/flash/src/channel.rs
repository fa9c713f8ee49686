//! A channel: the bus that the dies behind it share. It carries one page (or one program unit) or one
//! command at a time; who goes next is decided when it falls free. Commands go before data: they are
//! short, and a die that waits for one does nothing.

use std::collections::VecDeque;

use runtime::{Carrier, Nanos, Priority};

use crate::DieIndex;
use crate::operation::OperationId;
use crate::queue::PriorityQueue;

/// What the channel carries for an operation of a die, and how long.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    pub die: DieIndex,
    pub id: OperationId,
    pub span: Nanos,
}

pub(crate) struct Channel {
    carrying: Option<Transfer>,
    commands: VecDeque<Transfer>,
    waiting: PriorityQueue<Transfer>,
    /// Transfers that may go ahead of waiting background ones in a row. A die that waits for the
    /// bus is occupied, so whoever wants it waits as well, however urgent: nobody may wait here
    /// for ever.
    most_passes: u32,
    passes: u32,
}

impl Channel {
    /// A channel with `dies` behind it: each of them may go ahead once.
    pub(crate) fn new(dies: u32) -> Self {
        Self {
            carrying: None,
            commands: VecDeque::new(),
            waiting: PriorityQueue::default(),
            most_passes: dies,
            passes: 0,
        }
    }

    /// Asks for the bus for a command. True if it starts now.
    pub(crate) fn request_command(&mut self, transfer: Transfer) -> bool {
        if self.carrying.is_some() {
            self.commands.push_back(transfer);
            return false;
        }
        self.carrying = Some(transfer);
        true
    }

    /// Asks for the bus for data. True if the transfer starts now.
    pub(crate) fn request(&mut self, transfer: Transfer, priority: Priority) -> bool {
        if self.carrying.is_some() {
            self.waiting.push(priority, transfer);
            return false;
        }
        self.carrying = Some(transfer);
        true
    }

    /// Somebody on demand waits for `die`: none of what it has read is passed over.
    pub(crate) fn promote_die(&mut self, die: DieIndex) {
        while self.waiting.promote(|transfer| transfer.die == die).is_some() {}
    }

    /// Somebody on demand waits for what the operation reads.
    pub(crate) fn promote(&mut self, id: OperationId) {
        self.waiting.promote(|transfer| transfer.id == id);
    }

    /// Whether nothing is on the bus or waits for it.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.carrying.is_none() && self.commands.is_empty() && self.waiting.is_empty()
    }

    /// Carries what a channel at rest remembers.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.u32(&mut self.passes)
    }

    /// What has come to its end. The bus stays taken until [`Self::go_on`].
    pub(crate) fn ended(&self) -> Transfer {
        self.carrying.expect("a transfer ends once")
    }

    /// The next transfer, which starts now: how long it takes, if there is one.
    pub(crate) fn go_on(&mut self) -> Option<Nanos> {
        self.carrying = self.choose_next();
        self.carrying.map(|transfer| transfer.span)
    }

    fn choose_next(&mut self) -> Option<Transfer> {
        // Each sensor has one at most: data wait for as many as there are.
        if let Some(command) = self.commands.pop_front() {
            return Some(command);
        }
        let has_background = self.waiting.peek_of(Priority::Background).is_some();
        if has_background && self.passes < self.most_passes {
            let urgent = self
                .waiting
                .pop_of(Priority::Demand)
                .or_else(|| self.waiting.pop_of(Priority::Prefetch));
            if urgent.is_some() {
                self.passes += 1;
                return urgent;
            }
        }
        self.passes = 0;
        if has_background {
            return self.waiting.pop_of(Priority::Background);
        }
        self.waiting.pop()
    }
}
