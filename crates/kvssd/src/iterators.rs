//! Iterator commands: Create, Seek, Next, Next-many, Destroy.
//!
//! A handle is a slot and the number of times the slot was used, so one that was destroyed is never
//! taken for its successor. Commands on one handle are served one after the other. A reply is, for
//! each pair, eight bytes (key length, flags, value length), the key and the value.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{EngineIterator, Step, Value};
use runtime::Semaphore;

use crate::raw_flash::RawFlash;
use crate::{KvDrive, Status};

/// Bytes before the key and value of each pair in a reply.
const PAIR_HEADER_BYTES: u64 = 8;

/// An open iterator, as the host knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IteratorHandle(u32);

/// A pair that an iterator came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// Its key.
    pub key: Box<[u8]>,
    /// Its value, in full; the host sees the first bytes that its buffer holds.
    pub value: Value,
}

impl Pair {
    /// Bytes it takes in a reply.
    pub fn reply_bytes(&self) -> u64 {
        PAIR_HEADER_BYTES + self.key.len() as u64 + u64::from(self.value.len())
    }
}

/// What a Next-many returned.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Batch {
    /// The pairs, in key order.
    pub pairs: Vec<Pair>,
    /// There is nothing after them.
    pub is_last: bool,
}

/// The open iterators of a drive.
pub(crate) struct IteratorTable {
    slots: RefCell<Vec<Slot>>,
}

#[derive(Default)]
struct Slot {
    uses: u32,
    iterator: Option<Rc<Open>>,
}

struct Open {
    /// Commands on one iterator take turns.
    turn: Semaphore,
    state: RefCell<Option<State>>,
}

struct State {
    iterator: EngineIterator<RawFlash>,
    /// A pair that did not fit in the last reply.
    left_over: Option<Pair>,
}

impl IteratorTable {
    pub(crate) fn new(limit: u32) -> Self {
        Self { slots: RefCell::new((0..limit).map(|_| Slot::default()).collect()) }
    }

    fn has_room(&self) -> bool {
        self.slots.borrow().iter().any(|slot| slot.iterator.is_none())
    }

    fn add(&self, iterator: EngineIterator<RawFlash>) -> Option<IteratorHandle> {
        let mut slots = self.slots.borrow_mut();
        let count = slots.len() as u32;
        let index = slots.iter().position(|slot| slot.iterator.is_none())?;
        let slot = &mut slots[index];
        let state = RefCell::new(Some(State { iterator, left_over: None }));
        slot.iterator = Some(Rc::new(Open { turn: Semaphore::new(1), state }));
        let handle = IteratorHandle(slot.uses.wrapping_mul(count).wrapping_add(index as u32));
        slot.uses = slot.uses.wrapping_add(1);
        Some(handle)
    }

    fn slot_of(&self, handle: IteratorHandle) -> Result<usize, Status> {
        let slots = self.slots.borrow();
        let count = (slots.len() as u32).max(1);
        let index = (handle.0 % count) as usize;
        let slot = slots.get(index).filter(|slot| slot.iterator.is_some());
        let is_current = slot.is_some_and(|slot| slot.uses.wrapping_sub(1) == handle.0 / count);
        if is_current { Ok(index) } else { Err(Status::InvalidIterator) }
    }

    fn get(&self, handle: IteratorHandle) -> Result<Rc<Open>, Status> {
        let index = self.slot_of(handle)?;
        self.slots.borrow()[index].iterator.clone().ok_or(Status::InvalidIterator)
    }

    fn remove(&self, handle: IteratorHandle) -> Result<(), Status> {
        let index = self.slot_of(handle)?;
        let open = self.slots.borrow_mut()[index].iterator.take();
        // A command under way has the state; it is dropped when that command ends.
        drop(open.and_then(|open| open.state.borrow_mut().take()));
        Ok(())
    }

    fn clear(&self) {
        for slot in &mut *self.slots.borrow_mut() {
            drop(slot.iterator.take());
        }
    }
}

impl KvDrive {
    /// Create: takes a snapshot and opens an iterator on it, up to the key `upper_bound`, exclusive.
    ///
    /// # Errors
    /// [`Status::TooManyIterators`], [`Status::IteratorMemory`], [`Status::InvalidKeySize`].
    pub async fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> Result<IteratorHandle, Status> {
        let inner = self.inner();
        upper_bound.map_or(Ok(()), |key| inner.check_key(key))?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(upper_bound.unwrap_or_default());
        inner.spend_command().await;
        if !inner.iterators.has_room() {
            return Err(Status::TooManyIterators);
        }
        let iterator = inner.engine.create_iterator(upper_bound)?;
        let handle = inner.iterators.add(iterator).ok_or(Status::TooManyIterators)?;
        inner.complete(0).await;
        Ok(handle)
    }

    /// Seek: goes to the first pair at or after `key`, and reads it.
    ///
    /// # Errors
    /// [`Status::EndOfRange`] if there is none; [`Status::AskAgain`]: go on with [`Self::next`].
    pub async fn seek(&self, handle: IteratorHandle, key: &[u8]) -> Result<Pair, Status> {
        self.inner().check_key(key)?;
        self.read_one(handle, Some(key)).await
    }

    /// Next: goes to the next pair, and reads it.
    ///
    /// # Errors
    /// [`Status::EndOfRange`] at the end; [`Status::AskAgain`] among deleted keys.
    pub async fn next(&self, handle: IteratorHandle) -> Result<Pair, Status> {
        self.read_one(handle, None).await
    }

    /// Next-many: reads the next pairs, up to `count` and as many as a host buffer of `buffer_bytes`
    /// holds, at least one. Their values are read side by side.
    ///
    /// # Errors
    /// [`Status::EndOfRange`] if there is not one; [`Status::AskAgain`] among deleted keys.
    pub async fn next_many(
        &self,
        handle: IteratorHandle,
        count: u32,
        buffer_bytes: u64,
    ) -> Result<Batch, Status> {
        let inner = self.inner();
        let open = inner.iterators.get(handle)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(&[]);
        let _turn = open.turn.acquire(1).await;
        let mut state = open.take()?;
        inner.spend_command().await;
        let outcome = state.read_many(count, buffer_bytes).await;
        inner.iterators.give_back(handle, &open, state);
        let batch = outcome?;
        inner.complete(batch.pairs.iter().map(Pair::reply_bytes).sum()).await;
        Ok(batch)
    }

    /// Destroy: closes an iterator and gives back what it holds.
    ///
    /// # Errors
    /// [`Status::InvalidIterator`].
    pub async fn destroy_iterator(&self, handle: IteratorHandle) -> Result<(), Status> {
        let inner = self.inner();
        let _slot = inner.slots.acquire(1).await;
        inner.receive(&[]);
        inner.spend_command().await;
        let outcome = inner.iterators.remove(handle);
        inner.complete(0).await;
        outcome
    }

    /// Closes every iterator, as a reset of the controller does.
    pub fn reset_iterators(&self) {
        self.inner().iterators.clear();
    }

    async fn read_one(&self, handle: IteratorHandle, seek: Option<&[u8]>) -> Result<Pair, Status> {
        let inner = self.inner();
        let open = inner.iterators.get(handle)?;
        let _slot = inner.slots.acquire(1).await;
        inner.receive(seek.unwrap_or_default());
        let _turn = open.turn.acquire(1).await;
        let mut state = open.take()?;
        let step = match (seek, state.left_over.take()) {
            (Some(key), _) => state.iterator.seek(key, inner.command).await,
            (None, Some(pair)) => {
                inner.spend_command().await;
                Ok(Step::Pair(pair.key, pair.value))
            }
            (None, None) => state.iterator.next(0, inner.command).await,
        };
        inner.iterators.give_back(handle, &open, state);
        match step? {
            Step::Pair(key, value) => {
                let pair = Pair { key, value };
                inner.complete(pair.reply_bytes()).await;
                Ok(pair)
            }
            nothing => {
                inner.complete(0).await;
                Err(status_of(&nothing))
            }
        }
    }
}

/// The status of a command that has no pair to show.
fn status_of(step: &Step) -> Status {
    if *step == Step::End { Status::EndOfRange } else { Status::AskAgain }
}

impl IteratorTable {
    /// Puts the state back that a command took; drops it if the iterator was destroyed meanwhile.
    fn give_back(&self, handle: IteratorHandle, open: &Rc<Open>, state: State) {
        if self.get(handle).is_ok_and(|current| Rc::ptr_eq(&current, open)) {
            *open.state.borrow_mut() = Some(state);
        }
    }
}

impl Open {
    /// The state, for one command; whoever takes it has the turn.
    fn take(&self) -> Result<State, Status> {
        self.state.borrow_mut().take().ok_or(Status::InvalidIterator)
    }
}

impl State {
    async fn read_many(&mut self, count: u32, buffer_bytes: u64) -> Result<Batch, Status> {
        let mut batch = Batch::default();
        let mut room = buffer_bytes;
        while (batch.pairs.len() as u32) < count {
            let ahead = count - batch.pairs.len() as u32 - 1;
            let step = match self.left_over.take() {
                Some(pair) => Step::Pair(pair.key, pair.value),
                None => self.iterator.next(ahead, runtime::Nanos::ZERO).await?,
            };
            let Step::Pair(key, value) = step else {
                if batch.pairs.is_empty() {
                    return Err(status_of(&step));
                }
                batch.is_last = step == Step::End;
                break;
            };
            let pair = Pair { key, value };
            if !batch.pairs.is_empty() && pair.reply_bytes() > room {
                self.left_over = Some(pair);
                break;
            }
            room = room.saturating_sub(pair.reply_bytes());
            batch.pairs.push(pair);
        }
        Ok(batch)
    }
}
