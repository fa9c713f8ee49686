//! Operations in flight, and their outcomes.

use std::task::Waker;

use runtime::{Handle, IoClass, Nanos, PageImage, Priority};

use super::{BlockAddress, Blocker, PageAddress, ReadError};

/// An operation of a die.
pub(crate) enum Request {
    /// A page, and the user bytes of it that cross the bus.
    Read(PageAddress, u32),
    Program(PageAddress, Vec<PageImage>),
    Erase(BlockAddress),
}

/// Outcome of an operation. Only reads have data or errors.
pub(crate) type Outcome = Result<Option<PageImage>, ReadError>;

/// A submitted operation.
pub(crate) struct Operation {
    pub request: Request,
    pub class: IoClass,
    /// Priority of its class, until it is promoted to a demand read.
    pub priority: Priority,
    pub submitted: Nanos,
    /// State of the die when the operation arrived.
    pub blocked_by: Blocker,
    pub waker: Option<Waker>,
    pub outcome: Option<Outcome>,
    /// Whether the submitter dropped the future; the operation continues.
    pub is_abandoned: bool,
}

impl Operation {
    pub(crate) fn is_read_of(&self, page: PageAddress) -> bool {
        matches!(self.request, Request::Read(read, _) if read == page)
    }
}

/// The number of an operation in its [`OperationTable`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OperationId(pub u32);

/// Operations by number; numbers are reused.
#[derive(Default)]
pub(crate) struct OperationTable {
    slots: Vec<Option<Operation>>,
    free: Vec<u32>,
}

impl OperationTable {
    pub(crate) fn insert(&mut self, operation: Operation) -> OperationId {
        if let Some(free) = self.free.pop() {
            self.slots[free as usize] = Some(operation);
            return OperationId(free);
        }
        self.slots.push(Some(operation));
        OperationId(self.slots.len() as u32 - 1)
    }

    pub(crate) fn get(&mut self, id: OperationId) -> &mut Operation {
        self.slots[id.0 as usize].as_mut().expect("an operation stays until its outcome is taken")
    }

    pub(crate) fn remove(&mut self, id: OperationId) {
        self.free.push(id.0);
        let removed = self.slots[id.0 as usize].take();
        assert!(removed.is_some(), "an operation is removed once");
    }

    /// Records the outcome and wakes the submitter, if it still waits.
    pub(crate) fn finish(&mut self, id: OperationId, outcome: Outcome, handle: &Handle) {
        let operation = self.get(id);
        if operation.is_abandoned {
            self.remove(id);
            return;
        }
        operation.outcome = Some(outcome);
        if let Some(waker) = operation.waker.take() {
            handle.wake(waker);
        }
    }
}
