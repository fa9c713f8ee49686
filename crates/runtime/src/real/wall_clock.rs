//! The system's clock, for threads that use a store from outside and have no runtime of their own.

use std::marker::PhantomData;

use super::{Clock, ExactTimers};
use crate::Nanos;

/// The time since its creation, by the system's monotonic clock, for any thread.
pub struct WallClock(Clock);

impl WallClock {
    /// Creates a clock that is zero now.
    pub fn start() -> Self {
        Self(Clock::start())
    }

    /// Returns the time; each call reads the clock.
    pub fn now(&self) -> Nanos {
        self.0.now()
    }

    /// Sleeps until `until`. Exact to some microseconds if the thread holds an [`ExactSleep`].
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

/// As long as it exists, sleeps of the thread that created it are as exact as the system permits.
/// Else they may be 50 us late, because the system combines wake-ups.
pub struct ExactSleep {
    _timers: ExactTimers,
    /// It must stay on its thread.
    _stays: PhantomData<*const ()>,
}

impl ExactSleep {
    /// Makes sleeps of this thread exact.
    pub fn begin() -> Self {
        Self { _timers: ExactTimers::begin(), _stays: PhantomData }
    }
}
