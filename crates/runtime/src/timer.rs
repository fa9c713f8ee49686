//! Timers: what happens when, in order of (time, order of arming), kept in a [`Wheel`].

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::wheel::{Ticket, Wheel};
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
    /// A task of the runtime that the timer belongs to: the common case, and no waker is needed.
    Task(u32),
    Wake(Waker),
    Fire(Rc<dyn Event>, u64),
}

/// All timers of a runtime.
pub(crate) type Timers = Wheel<Target>;

/// Waits until an instant. Made by [`Handle::sleep`] and [`Handle::sleep_until`].
///
/// Once polled it belongs to the task that polled it. Dropping it takes its timer back.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    handle: Handle,
    at: Nanos,
    armed: Option<Ticket>,
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
            self.armed = Some(self.handle.arm_for(self.at, cx.waker()));
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        // A timer whose instant has passed has fired.
        if let Some(armed) = self.armed.take()
            && self.handle.now() < self.at
        {
            self.handle.disarm(armed);
        }
    }
}
