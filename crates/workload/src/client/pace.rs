//! Start times of operations.

use std::ops::RangeInclusive;
use std::time::Duration;

use runtime::{Nanos, Rng};

/// Allowed rates of an open loop, in operations per second.
pub const RATES: RangeInclusive<f64> = 1e-6..=1e12;
/// Most outstanding operations that workloads and users may request: the entries of an NVMe queue.
pub const MAX_OUTSTANDING: u64 = 65_536;

/// Options of a phase's clients.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientOptions {
    /// Start times of operations.
    pub pace: Pace,
    /// Initial length of a window of the report's timeline; above zero.
    pub window: Nanos,
    /// Most windows of the timeline: when more are needed, windows grow. Above zero.
    pub max_windows: usize,
}

impl ClientOptions {
    /// Closed loop with `outstanding` operations at any time; timeline windows of 100 ms, at most
    /// 4096 of them.
    pub fn closed(outstanding: usize) -> Self {
        Self::with_pace(Pace::Closed { outstanding })
    }

    /// Open loop with Poisson arrivals at `rate` operations per second of virtual time, at most
    /// `outstanding` of them in flight; timeline windows as with [`Self::closed`].
    pub fn open(rate: f64, outstanding: usize) -> Self {
        Self::with_pace(Pace::Open { rate, arrivals: Arrivals::Poisson, outstanding })
    }

    /// Arrivals at the times of a trace, stretched by a factor, at most `outstanding` in flight;
    /// timeline windows as with [`Self::closed`].
    pub fn recorded(stretch: f64, outstanding: usize) -> Self {
        Self::with_pace(Pace::Recorded { stretch, outstanding })
    }

    /// Sets a timeline with the shortest windows, from 100 us up, of which at most 400 are needed.
    #[must_use]
    pub fn with_fine_timeline(self) -> Self {
        Self { window: Nanos::from_micros(100), max_windows: 400, ..self }
    }

    /// Sets a timeline with windows of this length; beyond 100 000 windows their length doubles.
    #[must_use]
    pub fn with_slices(self, length: Duration) -> Self {
        Self { window: Nanos(length.as_nanos() as u64), max_windows: 100_000, ..self }
    }

    fn with_pace(pace: Pace) -> Self {
        Self { pace, window: Nanos::from_millis(100), max_windows: 4096 }
    }
}

/// Start times of operations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// Closed loop: each client starts its next operation when its last one ends.
    Closed {
        /// Number of clients; each has one operation outstanding.
        outstanding: usize,
    },
    /// Open loop: operations arrive at a rate, independent of the target. Latency counts from the
    /// arrival, so it includes all waiting of an operation.
    Open {
        /// Arrivals per second of virtual time.
        rate: f64,
        /// Spacing of the arrivals.
        arrivals: Arrivals,
        /// Operations in flight at a time; further arrivals wait, first come, first served.
        outstanding: usize,
    },
    /// Operations of a trace arrive as they were recorded; otherwise like an open loop.
    Recorded {
        /// Factor on recorded times: 1 for the recorded speed, 0.5 for twice the speed.
        stretch: f64,
        /// Operations in flight at a time.
        outstanding: usize,
    },
}

impl Pace {
    /// Returns the operations that may be in flight at a time.
    pub fn outstanding(&self) -> usize {
        match self {
            Self::Closed { outstanding }
            | Self::Open { outstanding, .. }
            | Self::Recorded { outstanding, .. } => *outstanding,
        }
    }
}

/// Spacing of the arrivals of an open loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// Independent of each other: exponential spacing, with bursts.
    Poisson,
    /// Even.
    Fixed,
}

/// The arrival times of operations.
pub(crate) struct Schedule {
    start: Nanos,
    arrivals: Arrivals,
    /// Mean spacing in nanoseconds.
    spacing: f64,
    /// Nanoseconds from the start to the last returned arrival. A float, so that spacings below a
    /// nanosecond add up; exact to a nanosecond for a hundred days.
    elapsed: f64,
    left: u64,
    rng: Rng,
}

impl Schedule {
    /// Creates a schedule of `count` arrivals at `rate` per second; the first is one spacing after
    /// `start`.
    pub(crate) fn new(start: Nanos, arrivals: Arrivals, rate: f64, count: u64, rng: Rng) -> Self {
        Self { start, arrivals, spacing: 1e9 / rate, elapsed: 0.0, left: count, rng }
    }

    /// Returns the time of the next arrival; `None` after the last one.
    pub(crate) fn next(&mut self) -> Option<Nanos> {
        self.left = self.left.checked_sub(1)?;
        self.elapsed += match self.arrivals {
            Arrivals::Fixed => self.spacing,
            Arrivals::Poisson => -(1.0 - self.rng.unit_f64()).ln() * self.spacing,
        };
        Some(self.start + Nanos(self.elapsed as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(arrivals: Arrivals, rate: f64, count: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(Nanos(1000), arrivals, rate, count, Rng::new(1));
        std::iter::from_fn(|| schedule.next()).map(|at| at.0 - 1000).collect()
    }

    #[test]
    fn fixed_arrivals_are_even_and_keep_the_rate() {
        assert_eq!(arrivals(Arrivals::Fixed, 1e6, 3), [1000, 2000, 3000]);
        let fast = arrivals(Arrivals::Fixed, 3e9, 3_000_000);
        assert!(fast[2_999_999].abs_diff(1_000_000) <= 1);
    }

    #[test]
    fn poisson_spacings_have_the_mean_and_the_spread_of_theory() {
        let at = arrivals(Arrivals::Poisson, 1e6, 100_000);
        let spacings: Vec<f64> = at.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = spacings.iter().sum::<f64>() / spacings.len() as f64;
        let long = spacings.iter().filter(|spacing| **spacing > 1000.0).count() as f64;
        assert!((mean / 1000.0 - 1.0).abs() < 0.02, "{mean}");
        let theory = (-1.0_f64).exp();
        assert!((long / spacings.len() as f64 - theory).abs() < 0.01);
    }
}
