//! Ageing: overwriting a loaded drive before the measured run, until it is in its steady state.
//!
//! A drive that was only loaded has free space for some time, and writes into that space cost no
//! garbage collection. So random pairs, all with the same probability, are overwritten until this
//! space is used up and write amplification is stable. This module decides from numbers alone
//! whether it is stable; [`crate`] does the writes.

use serde::{Deserialize, Serialize};

/// Number of consecutive stretches that must agree.
const STRETCHES: usize = 4;
/// Maximum relative deviation of each of these stretches from their mean.
const TOLERANCE: f64 = 0.02;
/// Number of stretches in a round, which overwrites as many pairs as were loaded.
const STRETCHES_A_ROUND: u64 = 4;
/// Maximum number of rounds after the free space is used up. A drive that is not stable by then is
/// not expected to become stable.
const MOST_ROUNDS: u64 = 8;

/// The ageing of a drive before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgeingResult {
    /// Loaded pairs as a share of the approximate number of pairs that the drive holds.
    pub fill: f64,
    /// Number of overwritten pairs.
    pub overwritten: u64,
    /// Flash bytes programmed per byte of keys and values, for each stretch. A stretch overwrites a
    /// quarter as many pairs as were loaded.
    pub write_amplification: Vec<f64>,
    /// Whether the drive reached its steady state: the free space was used up before the last four
    /// stretches, and their write amplification is within 2 % of its mean.
    pub is_steady: bool,
    /// Duration in virtual time, in seconds.
    pub virtual_seconds: f64,
}

/// The progress of ageing.
pub(crate) struct Ageing {
    /// Number of loaded pairs.
    records: u64,
    /// Approximate number of further pairs that the drive has space for.
    room: u64,
    stretches: Vec<f64>,
}

impl Ageing {
    /// Starts on a drive with `records` pairs that has space for `held` pairs in all.
    pub(crate) fn new(records: u64, held: u64) -> Self {
        Self { records, room: held.saturating_sub(records), stretches: Vec::new() }
    }

    /// Returns the number of overwrites in a stretch.
    pub(crate) fn stretch(&self) -> u64 {
        (self.records / STRETCHES_A_ROUND).max(1)
    }

    /// Returns the maximum number of overwrites.
    pub(crate) fn most(&self) -> u64 {
        (self.least_stretches() + STRETCHES_A_ROUND * MOST_ROUNDS) * self.stretch()
    }

    /// Returns the number of stretches that use up the free space.
    fn least_stretches(&self) -> u64 {
        self.room.div_ceil(self.stretch())
    }

    /// Records the write amplification of a stretch that has ended.
    pub(crate) fn add(&mut self, write_amplification: f64) {
        self.stretches.push(write_amplification);
    }

    /// Whether the drive is in its steady state: the free space was used up before the last
    /// stretches, and these agree.
    pub(crate) fn is_steady(&self) -> bool {
        let used_up = self.stretches.len() as u64 >= self.least_stretches() + STRETCHES as u64;
        used_up && is_flat(&self.stretches)
    }

    /// Whether another stretch is needed.
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_steady() && self.overwritten() < self.most()
    }

    pub(crate) fn overwritten(&self) -> u64 {
        self.stretches.len() as u64 * self.stretch()
    }

    pub(crate) fn result(self, virtual_seconds: f64) -> AgeingResult {
        AgeingResult {
            fill: self.records as f64 / (self.records + self.room).max(1) as f64,
            overwritten: self.overwritten(),
            is_steady: self.is_steady(),
            write_amplification: self.stretches,
            virtual_seconds,
        }
    }
}

/// Whether the last `STRETCHES` values are within the tolerance of their mean.
fn is_flat(stretches: &[f64]) -> bool {
    let Some(first) = stretches.len().checked_sub(STRETCHES) else { return false };
    let last = &stretches[first..];
    let mean = last.iter().sum::<f64>() / STRETCHES as f64;
    last.iter().all(|one| (one / mean - 1.0).abs() <= TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_to_rest_within_two_per_cent_is_flat() {
        for (stretches, is_so) in [
            (&[2.0, 2.0, 2.0][..], false),
            (&[2.0, 2.0, 2.0, 2.0], true),
            (&[9.0, 2.0, 2.03, 1.97, 2.0], true),
            (&[2.0, 2.0, 2.0, 2.1], false),
            (&[1.0, 1.1, 1.2, 1.3], false),
        ] {
            assert_eq!(is_flat(stretches), is_so, "{stretches:?}");
        }
    }

    #[test]
    fn room_that_is_free_is_used_up_first_and_there_is_an_end() {
        // A stretch is a quarter of 800 pairs; one stretch uses up the free space of a drive for
        // 1000.
        let mut ageing = Ageing::new(800, 1000);
        assert_eq!((ageing.stretch(), ageing.least_stretches()), (200, 1));
        for _ in 0..4 {
            ageing.add(1.2);
            assert!(ageing.goes_on(), "the first stretch filled the drive");
        }
        ageing.add(1.2);
        assert!(ageing.is_steady() && !ageing.goes_on());
        let result = ageing.result(1.0);
        assert_eq!((result.overwritten, result.is_steady), (1000, true));
        assert!((result.fill - 0.8).abs() < 1e-9);
        let mut restless = Ageing::new(800, 1000);
        while restless.goes_on() {
            let number = restless.stretches.len() as f64;
            restless.add(1.0 + number);
        }
        let result = restless.result(1.0);
        assert_eq!((result.write_amplification.len(), result.is_steady), (33, false));
    }
}
