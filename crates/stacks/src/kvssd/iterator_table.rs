//! The open iterators of a drive, and their replies.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{EngineError, EngineIterator, Step, Value};
use runtime::{Nanos, Semaphore};

use super::handles::{IteratorHandle, Numbering};
use super::raw_flash::RawFlash;
use super::status::Status;

/// Bytes before the key and value of each pair in a reply.
const PAIR_HEADER_BYTES: u64 = 8;

/// A pair returned by an iterator.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// The key.
    pub key: Box<[u8]>,
    /// The whole value; the host sees the first bytes, up to the size of its buffer.
    pub value: Value,
}

impl Pair {
    /// Returns the bytes of the pair in a reply.
    pub fn reply_bytes(&self) -> u64 {
        PAIR_HEADER_BYTES + self.key.len() as u64 + u64::from(self.value.len())
    }
}

/// Result of a Next-many.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Batch {
    /// The pairs, in key order.
    pub pairs: Vec<Pair>,
    /// Whether no pair follows.
    pub is_last: bool,
}

/// The open iterators of a drive.
pub(crate) struct IteratorTable {
    numbering: Numbering,
    slots: RefCell<Vec<Slot>>,
}

struct Slot {
    /// Generation of the open iterator, or of the next one.
    generation: u32,
    iterator: Option<Rc<Open>>,
}

/// An open iterator.
pub(crate) struct Open {
    /// Serializes commands on the iterator.
    pub turn: Semaphore,
    state: RefCell<Option<State>>,
}

/// State of an iterator that commands work on.
pub(crate) struct State {
    pub iterator: EngineIterator<RawFlash>,
    /// Left over from the last reply: a pair that did not fit, or an error after some pairs.
    pub left_over: Option<Result<Pair, Status>>,
}

impl IteratorTable {
    pub(crate) fn new(limit: u32, power_cycle: u64) -> Self {
        let numbering = Numbering::new(limit);
        let generation = numbering.first(power_cycle);
        let slots = (0..limit).map(|_| Slot { generation, iterator: None }).collect();
        Self { numbering, slots: RefCell::new(slots) }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.slots.borrow().iter().any(|slot| slot.iterator.is_none())
    }

    pub(crate) fn add(&self, iterator: EngineIterator<RawFlash>) -> Option<IteratorHandle> {
        let mut slots = self.slots.borrow_mut();
        let index = slots.iter().position(|slot| slot.iterator.is_none())?;
        let slot = &mut slots[index];
        let state = RefCell::new(Some(State { iterator, left_over: None }));
        slot.iterator = Some(Rc::new(Open { turn: Semaphore::new(1), state }));
        Some(self.numbering.handle(index, slot.generation))
    }

    pub(crate) fn get(&self, handle: IteratorHandle) -> Result<Rc<Open>, Status> {
        let (index, generation) = self.numbering.parts(handle);
        let slots = self.slots.borrow();
        let slot = slots.get(index).filter(|slot| slot.generation == generation);
        slot.and_then(|slot| slot.iterator.clone()).ok_or(Status::InvalidIterator)
    }

    /// Returns the state that a command took; drops it if the iterator was destroyed meanwhile.
    pub(crate) fn give_back(&self, handle: IteratorHandle, open: &Rc<Open>, state: State) {
        if self.get(handle).is_ok_and(|current| Rc::ptr_eq(&current, open)) {
            let other = open.state.replace(Some(state));
            assert!(other.is_none(), "two commands had one iterator at a time");
        }
    }

    pub(crate) fn remove(&self, handle: IteratorHandle) -> Result<(), Status> {
        self.get(handle)?;
        self.close(self.numbering.parts(handle).0);
        Ok(())
    }

    pub(crate) fn clear(&self) {
        let count = self.slots.borrow().len();
        (0..count).for_each(|index| self.close(index));
    }

    /// Closes the iterator in a slot, if one is open. Commands that wait for their turn find no
    /// state and fail. A command in progress has the state, which is dropped when that command
    /// ends.
    fn close(&self, index: usize) {
        let open = {
            let slot = &mut self.slots.borrow_mut()[index];
            let open = slot.iterator.take();
            if open.is_some() {
                slot.generation = self.numbering.next(slot.generation);
            }
            open
        };
        drop(open.and_then(|open| open.state.borrow_mut().take()));
    }
}

/// Returns the pair of a step, or the status that explains why there is no pair.
pub(crate) fn pair_of(step: Result<Step, EngineError>) -> Result<Pair, Status> {
    match step? {
        Step::Pair(key, value) => Ok(Pair { key, value }),
        Step::End => Err(Status::EndOfRange),
        Step::Again => Err(Status::AskAgain),
    }
}

impl Open {
    /// Takes the state for one command. Requires: the caller has the turn.
    pub(crate) fn take(&self) -> Result<State, Status> {
        self.state.borrow_mut().take().ok_or(Status::InvalidIterator)
    }
}

impl State {
    pub(crate) async fn read_many(
        &mut self,
        count: u32,
        buffer_bytes: u64,
    ) -> Result<Batch, Status> {
        let mut batch = Batch::default();
        let mut room = buffer_bytes;
        while (batch.pairs.len() as u32) < count {
            let ahead = count - batch.pairs.len() as u32 - 1;
            let outcome = match self.left_over.take() {
                Some(left_over) => left_over,
                None => pair_of(self.iterator.next(ahead, Nanos::ZERO).await),
            };
            match outcome {
                Ok(pair) if batch.pairs.is_empty() || pair.reply_bytes() <= room => {
                    let before = batch.pairs.last();
                    let is_next = before.is_none_or(|before| before.key < pair.key);
                    assert!(is_next, "an iterator went back");
                    room = room.saturating_sub(pair.reply_bytes());
                    batch.pairs.push(pair);
                }
                Err(status) if batch.pairs.is_empty() => return Err(status),
                Err(Status::EndOfRange) => {
                    batch.is_last = true;
                    break;
                }
                Err(Status::AskAgain) => break,
                // The host gets the pairs read so far; the next command returns the pair or the
                // error.
                Ok(_) | Err(_) => {
                    self.left_over = Some(outcome);
                    break;
                }
            }
        }
        Ok(batch)
    }
}
