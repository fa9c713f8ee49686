//! Timers: a heap of what happens when, in order of (time, order of arming).
//!
//! The heap holds numbers only; what is to happen stands beside it, in a slot. A cancelled timer
//! leaves its slot empty and its number in the heap until that is due or most of the heap is such
//! numbers. Cost: of arming and firing `O(log n)` moves of 16 bytes; of cancelling none but now and then
//! a pass over the heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::{Handle, Nanos};

/// A state machine that is driven by timers directly, without a task of its own.
///
/// Device models use it: a flash read has several steps of known length, and only its end is worth
/// waking anybody for.
pub trait Event {
    /// The timer that was armed with `token` is due.
    fn fire(&self, token: u64);
}

pub(crate) enum Target {
    Wake(Waker),
    Fire(Rc<dyn Event>, u64),
}

/// An armed timer, for cancelling it.
pub(crate) struct Armed {
    slot: u32,
    order: u64,
}

/// What is to happen, and the order of its timer, which tells it from others that had its slot.
struct Slot {
    order: u64,
    target: Option<Target>,
}

/// All timers of a runtime.
#[derive(Default)]
pub(crate) struct Timers {
    /// The instant in the upper half, the order of arming and the slot below.
    heap: BinaryHeap<Reverse<u128>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    armed: u64,
    /// Numbers in the heap whose timers were cancelled.
    cancelled: usize,
}

/// Timers that may wait at a time, as a power of two: so many bits of a number are for the slot.
const SLOT_BITS: u32 = 24;

/// So many cancelled timers are left alone, however few others there are.
const TOLERATED: usize = 64;

impl Timers {
    pub(crate) fn arm(&mut self, at: Nanos, target: Target) -> Armed {
        let order = self.armed;
        self.armed += 1;
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        let content = Slot { order, target: Some(target) };
        if let Some(free) = self.slots.get_mut(slot as usize) {
            *free = content;
        } else {
            assert!(slot >> SLOT_BITS == 0, "{slot} timers wait");
            self.slots.push(content);
        }
        assert!(order >> (u64::BITS - SLOT_BITS) == 0, "{order} timers were armed");
        let place = u128::from(order << SLOT_BITS | u64::from(slot));
        self.heap.push(Reverse(u128::from(at.0) << u64::BITS | place));
        Armed { slot, order }
    }

    /// Takes back a timer, unless it has fired. What it would have done is handed out, so that the
    /// caller drops it unborrowed.
    pub(crate) fn cancel(&mut self, armed: &Armed) -> Option<Target> {
        let slot = self.slots.get_mut(armed.slot as usize)?;
        let target = if slot.order == armed.order { slot.target.take() } else { None };
        if target.is_some() {
            self.cancelled += 1;
            self.drop_cancelled();
        }
        target
    }

    /// Keeps the earliest number in the heap that of a timer, and most of the others too.
    fn drop_cancelled(&mut self) {
        if self.cancelled > TOLERATED.max(self.heap.len() / 2) {
            let Self { heap, slots, free, .. } = self;
            heap.retain(|number| {
                let slot = slot_of(*number);
                let is_armed = slots[slot as usize].target.is_some();
                if !is_armed {
                    free.push(slot);
                }
                is_armed
            });
            self.cancelled = 0;
        }
        while self.cancelled > 0
            && let Some(first) = self.heap.peek()
            && self.slots[slot_of(*first) as usize].target.is_none()
        {
            self.free.push(slot_of(*first));
            self.heap.pop();
            self.cancelled -= 1;
        }
    }

    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(number)| Nanos((number >> u64::BITS) as u64))
    }

    /// Takes one timer that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<Target> {
        if self.next_at()? > now {
            return None;
        }
        let slot = slot_of(self.heap.pop()?);
        let target = self.slots[slot as usize].target.take();
        self.free.push(slot);
        if self.cancelled > 0 {
            self.drop_cancelled();
        }
        target
    }

    /// Removes every timer and hands them out, so that the caller drops them unborrowed.
    pub(crate) fn take(&mut self) -> impl Sized + use<> {
        std::mem::take(self).slots
    }
}

fn slot_of(Reverse(number): Reverse<u128>) -> u32 {
    number as u32 & ((1 << SLOT_BITS) - 1)
}

/// Waits until an instant. Made by [`Handle::sleep`] and [`Handle::sleep_until`].
///
/// Once polled it belongs to the task that polled it. Dropping it takes its timer back.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    handle: Handle,
    at: Nanos,
    armed: Option<Armed>,
}

impl Sleep {
    pub(crate) fn new(handle: Handle, at: Nanos) -> Self {
        Self { handle, at, armed: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.handle.now() >= self.at {
            return Poll::Ready(());
        }
        if self.armed.is_none() {
            let armed = self.handle.arm(self.at, Target::Wake(cx.waker().clone()));
            self.armed = Some(armed);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // A timer whose instant has passed has fired.
        if let Some(armed) = self.armed.take()
            && self.handle.now() < self.at
        {
            self.handle.disarm(&armed);
        }
    }
}
