//! Servers of known service time: processor cores and data links.
//!
//! Both serve first come, first served, and are never preempted. So the end of a job is known as
//! soon as it is submitted, and booking it ahead is exact.

use std::cell::{Cell, RefCell};

use crate::{Carrier, Handle, Nanos, Sleep};

/// A processor with a number of equal cores. Virtual time does not pass while code runs, so work is
/// charged here explicitly.
///
/// In real time, work takes its real time: nothing is charged, and background work only yields once
/// where it would have been charged.
pub struct Cores {
    handle: Handle,
    /// The instant at which each core is free again.
    free_at: RefCell<Vec<Nanos>>,
    busy: Cell<Nanos>,
    quantum: Nanos,
    /// Whether nothing is charged, as in real time.
    is_free: bool,
}

impl Cores {
    /// Creates `count` cores. `quantum` is the longest time for which background work holds a core
    /// before it lets other work run.
    pub fn new(handle: Handle, count: usize, quantum: Nanos) -> Self {
        assert!(count > 0, "a processor needs a core");
        assert!(quantum > Nanos::ZERO, "background work needs a time slice");
        let free_at = RefCell::new(vec![Nanos::ZERO; count]);
        let is_free = handle.is_real();
        Self { handle, free_at, busy: Cell::default(), quantum, is_free }
    }

    /// Books `work` on the core that is free first, and returns the instant at which it will be
    /// done.
    #[inline]
    pub fn book(&self, work: Nanos) -> Nanos {
        let now = self.handle.now();
        if work == Nanos::ZERO || self.is_free {
            return now;
        }
        let mut free_at = self.free_at.borrow_mut();
        let core = free_at.iter_mut().min().expect("there is at least one core");
        *core = now.max(*core) + work;
        self.busy.set(self.busy.get() + work);
        *core
    }

    /// Waits for a core, and does `work` on it.
    pub fn spend(&self, work: Nanos) -> Sleep {
        self.handle.sleep_until(self.book(work))
    }

    /// Does `work` in slices, so that other work waits for at most one slice.
    pub async fn spend_in_background(&self, work: Nanos) {
        if self.is_free && work > Nanos::ZERO {
            return self.handle.yield_now().await;
        }
        let mut left = work;
        while left > Nanos::ZERO {
            let slice = left.min(self.quantum);
            self.spend(slice).await;
            left = left - slice;
        }
    }

    /// Carries the bookings. The number of cores must be the same on the way back.
    pub fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        let mut free_at = self.free_at.borrow_mut();
        free_at.iter_mut().try_for_each(|free_at| by.nanos(free_at))?;
        by.cell(&self.busy, Carrier::nanos)
    }

    /// Returns the total time used so far by all cores.
    pub fn busy(&self) -> Nanos {
        self.busy.get()
    }
}

/// A link that carries one transfer at a time.
pub struct Pipe {
    handle: Handle,
    picos_per_byte: u64,
    free_at: Cell<Nanos>,
}

impl Pipe {
    /// Creates a link of `megabytes_per_second` (decimal) in one direction.
    pub fn new(handle: Handle, megabytes_per_second: f64) -> Self {
        assert!(megabytes_per_second > 0.0, "a link needs a speed");
        let picos_per_byte = (1e6 / megabytes_per_second).round() as u64;
        Self { handle, picos_per_byte, free_at: Cell::default() }
    }

    /// Carries the bookings.
    pub fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        by.cell(&self.free_at, Carrier::nanos)
    }

    /// Books a transfer of `bytes` and returns the instant at which its last byte has passed.
    pub fn book(&self, bytes: u64) -> Nanos {
        self.book_from(self.handle.now(), bytes)
    }

    /// Books a transfer whose bytes are available from `earliest` on. Transfers pass in booking
    /// order; this is exact if they arrive from the previous stage in that order.
    pub fn book_from(&self, earliest: Nanos, bytes: u64) -> Nanos {
        let span = Nanos((bytes * self.picos_per_byte).div_ceil(1_000));
        let done = earliest.max(self.free_at.get()) + span;
        self.free_at.set(done);
        done
    }
}
