//! Timers, in the order of due time and then of arming, in a [`Wheel`].

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::wheel::{Ticket, Wheel};
use crate::{Handle, Nanos};

/// A state machine that timers drive directly, without a task of its own.
///
/// Device models use it: a flash read has several steps of known length, and only its end must wake
/// a task.
pub trait Event {
    /// Called when the timer that was armed with `token` is due.
    fn fire(&self, token: u64);
}

pub(crate) enum Target {
    /// A task of the runtime that owns the timer: the common case, which needs no waker.
    Task(u32),
    Wake(Waker),
    Fire(Rc<dyn Event>, u64),
}

/// All timers of a runtime.
pub(crate) type Timers = Wheel<Target>;

/// A wait until an instant, created by [`Handle::sleep`] and [`Handle::sleep_until`].
///
/// Once polled, it belongs to the task that polled it. Dropping it cancels its timer.
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
        // A timer whose instant has passed has already fired.
        if let Some(armed) = self.armed.take()
            && self.handle.now() < self.at
        {
            self.handle.disarm(armed);
        }
    }
}
