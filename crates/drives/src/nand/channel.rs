//! A channel: the bus that its dies share. It carries one page (or one program unit) or one command
//! at a time; the next transfer is chosen when the bus becomes free. Commands go before data: they
//! are short, and a die that waits for one is idle.

use std::collections::VecDeque;

use runtime::{Carrier, Nanos, Priority};

use super::DieIndex;
use super::operation::OperationId;
use super::queue::PriorityQueue;

/// A transfer for an operation of a die, and its duration.
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
    /// Transfers that may overtake waiting background ones in a row. A die that waits for the bus
    /// is occupied, so even urgent operations of that die wait; hence no transfer may wait here
    /// forever.
    most_passes: u32,
    passes: u32,
}

impl Channel {
    /// Creates a channel with `dies` dies: one overtaking transfer for each.
    pub(crate) fn new(dies: u32) -> Self {
        Self {
            carrying: None,
            commands: VecDeque::new(),
            waiting: PriorityQueue::default(),
            most_passes: dies,
            passes: 0,
        }
    }

    /// Requests the bus for a command. Returns true if it starts now.
    pub(crate) fn request_command(&mut self, transfer: Transfer) -> bool {
        if self.carrying.is_some() {
            self.commands.push_back(transfer);
            return false;
        }
        self.carrying = Some(transfer);
        true
    }

    /// Requests the bus for data. Returns true if the transfer starts now.
    pub(crate) fn request(&mut self, transfer: Transfer, priority: Priority) -> bool {
        if self.carrying.is_some() {
            self.waiting.push(priority, transfer);
            return false;
        }
        self.carrying = Some(transfer);
        true
    }

    /// Promotes the transfers of pages that `die` has read, because a demand read waits for the
    /// die.
    pub(crate) fn promote_die(&mut self, die: DieIndex) {
        while self.waiting.promote(|transfer| transfer.die == die).is_some() {}
    }

    /// Promotes the transfer of an operation, because a demand read waits for its page.
    pub(crate) fn promote(&mut self, id: OperationId) {
        self.waiting.promote(|transfer| transfer.id == id);
    }

    /// Returns whether the bus is idle and no transfer waits.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.carrying.is_none() && self.commands.is_empty() && self.waiting.is_empty()
    }

    /// Saves or restores the state of an idle channel.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.u32(&mut self.passes)
    }

    /// Returns the transfer that has ended. The bus stays occupied until [`Self::go_on`].
    pub(crate) fn ended(&self) -> Transfer {
        self.carrying.expect("a transfer ends once")
    }

    /// Starts the next transfer, if one waits, and returns its duration.
    pub(crate) fn go_on(&mut self) -> Option<Nanos> {
        self.carrying = self.choose_next();
        self.carrying.map(|transfer| transfer.span)
    }

    fn choose_next(&mut self) -> Option<Transfer> {
        // Each sensor has at most one command, so data wait for a bounded number of commands.
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
