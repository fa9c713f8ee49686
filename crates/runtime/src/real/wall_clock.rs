//! The system's clock, for threads that drive a store from outside and have no runtime of their own.

use std::marker::PhantomData;

use super::{Clock, ExactTimers};
use crate::Nanos;

/// Time since it was made, by the system's monotonic clock; for any thread.
pub struct WallClock(Clock);

impl WallClock {
    /// A clock that stands at zero now.
    pub fn start() -> Self {
        Self(Clock::start())
    }

    /// The time, read anew by every call.
    pub fn now(&self) -> Nanos {
        self.0.now()
    }

    /// Sleeps until then; exact to some microseconds if the thread [has asked for it](ExactSleep).
    #[expect(
        clippy::disallowed_methods,
        reason = "it is the thread of somebody outside, which drives nothing"
    )]
    pub fn sleep_until(&self, until: Nanos) {
        let left = until.saturating_since(self.now());
        if left > Nanos::ZERO {
            std::thread::sleep(std::time::Duration::from_nanos(left.0));
        }
    }
}

/// As long as it is there, sleeps of the thread that made it are as exact as the system has them: else it may be 50 us late, to
/// wake several threads at once.
pub struct ExactSleep {
    _timers: ExactTimers,
    /// It is the thread's own.
    _stays: PhantomData<*const ()>,
}

impl ExactSleep {
    /// Begins it.
    pub fn begin() -> Self {
        Self { _timers: ExactTimers::begin(), _stays: PhantomData }
    }
}
