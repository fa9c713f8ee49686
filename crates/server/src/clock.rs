//! The only source of time: the date, by which keys expire, and a stopwatch for durations.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the one place where the date and durations come in"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the date in milliseconds since 1970, by which keys expire. The date may jump.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// Returns the system's clock.
    pub fn system() -> Self {
        Self(Arc::new(system_ms))
    }

    /// Returns a clock for tests, and the [`Hand`] that sets it.
    pub fn by_hand(start_ms: u64) -> (Self, Hand) {
        let hand = Hand(Arc::new(AtomicU64::new(start_ms)));
        let shown = hand.clone();
        (Self(Arc::new(move || shown.0.load(Ordering::SeqCst))), hand)
    }

    /// Returns the date in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

/// Sets a [`Clock`] in tests.
#[derive(Clone)]
pub struct Hand(Arc<AtomicU64>);

impl Hand {
    /// Advances the clock by `by` milliseconds.
    pub fn advance_ms(&self, by: u64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    /// Sets the clock to `now`, in milliseconds since 1970.
    pub fn set_ms(&self, now: u64) {
        self.0.store(now, Ordering::SeqCst);
    }
}

fn system_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Measures a duration with a monotonic clock.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn micros(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
