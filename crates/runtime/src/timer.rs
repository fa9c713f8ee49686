//! Timers: a heap of what happens when, in order of (time, order of arming).

use std::cmp::Ordering;
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

struct Timer {
    at: Nanos,
    order: u64,
    target: Target,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Timer {}
impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Ordering {
        // Reversed: `BinaryHeap` gives the greatest, we want the earliest.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// All timers of a runtime.
#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Timer>,
    armed: u64,
}

impl Timers {
    pub(crate) fn arm(&mut self, at: Nanos, target: Target) {
        self.heap.push(Timer { at, order: self.armed, target });
        self.armed += 1;
    }

    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|timer| timer.at)
    }

    /// Takes one timer that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<Target> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|timer| timer.target)
    }

    /// Removes every timer and hands them out, so that the caller drops them unborrowed.
    pub(crate) fn take(&mut self) -> impl Drop + use<> {
        std::mem::take(&mut self.heap).into_vec()
    }
}

/// Waits until an instant. Made by [`Handle::sleep`] and [`Handle::sleep_until`].
///
/// Once polled it belongs to the task that polled it.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    handle: Handle,
    at: Nanos,
    is_armed: bool,
}

impl Sleep {
    pub(crate) fn new(handle: Handle, at: Nanos) -> Self {
        Self { handle, at, is_armed: false }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.handle.now() >= self.at {
            return Poll::Ready(());
        }
        if !self.is_armed {
            self.is_armed = true;
            self.handle.arm(self.at, Target::Wake(cx.waker().clone()));
        }
        Poll::Pending
    }
}
