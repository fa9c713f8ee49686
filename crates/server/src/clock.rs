//! Where time comes in: the date, by which keys expire, and a watch for how long things take.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the one place where the date and durations come in"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Says the date, in milliseconds since 1970. It may jump: keys expire by what it says.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The system's.
    pub fn system() -> Self {
        Self(Arc::new(system_ms))
    }

    /// One that shows what a test sets.
    pub fn by_hand(start_ms: u64) -> (Self, Hand) {
        let hand = Hand(Arc::new(AtomicU64::new(start_ms)));
        let shown = hand.clone();
        (Self(Arc::new(move || shown.0.load(Ordering::SeqCst))), hand)
    }

    /// The date, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

/// Sets a [`Clock`].
#[derive(Clone)]
pub struct Hand(Arc<AtomicU64>);

impl Hand {
    /// It is later by so many milliseconds.
    pub fn advance_ms(&self, by: u64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    /// It is this late.
    pub fn set_ms(&self, now: u64) {
        self.0.store(now, Ordering::SeqCst);
    }
}

fn system_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// How long something takes, by a clock that does not jump.
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
