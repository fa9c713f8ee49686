//! Overwriting a loaded drive until it is in its steady state, before anything counts.
//!
//! A drive that was only loaded has free room that lasts for a while: whoever measures on it sees writes that nobody has to pay
//! for. So pairs are overwritten at random, each alike, until all of that room was used and write amplification has come to
//! rest. What rest is, is decided here, from numbers alone; [`crate::bench`] does the writing.

use serde::{Deserialize, Serialize};

/// Stretches that have to agree, one after the other.
const STRETCHES: usize = 4;
/// How far each may be from their mean.
const TOLERANCE: f64 = 0.02;
/// Stretches that the pairs are overwritten in once.
const STRETCHES_A_ROUND: u64 = 4;
/// Most rounds of overwriting beyond the free room: what is not at rest by then is not going to be.
const MOST_ROUNDS: u64 = 8;

/// What was done to a drive before the run, and whether it came to rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgeingResult {
    /// Share of the pairs that the drive has room for, about, that were loaded.
    pub fill: f64,
    /// Pairs overwritten.
    pub overwritten: u64,
    /// Flash bytes programmed per byte of keys and values, of each stretch of a quarter of the pairs.
    pub write_amplification: Vec<f64>,
    /// Whether the last four of these are within 2 % of their mean.
    pub is_steady: bool,
    /// Virtual time of it, in seconds.
    pub virtual_seconds: f64,
}

/// Overwriting, stretch by stretch.
pub(crate) struct Ageing {
    /// Pairs that are there.
    records: u64,
    /// Pairs that there is room for besides.
    room: u64,
    stretches: Vec<f64>,
}

impl Ageing {
    /// Of a drive with `records` pairs that has room for `held` in all.
    pub(crate) fn new(records: u64, held: u64) -> Self {
        Self { records, room: held.saturating_sub(records), stretches: Vec::new() }
    }

    /// Overwrites of a stretch.
    pub(crate) fn stretch(&self) -> u64 {
        (self.records / STRETCHES_A_ROUND).max(1)
    }

    /// Most overwrites that there can be.
    pub(crate) fn most(&self) -> u64 {
        (self.least_stretches() + STRETCHES_A_ROUND * MOST_ROUNDS) * self.stretch()
    }

    /// Stretches that use the free room up.
    fn least_stretches(&self) -> u64 {
        self.room.div_ceil(self.stretch())
    }

    /// A stretch is over that had this write amplification.
    pub(crate) fn add(&mut self, write_amplification: f64) {
        self.stretches.push(write_amplification);
    }

    /// Whether the drive is in its steady state: the room was used up before the stretches that agree.
    pub(crate) fn is_steady(&self) -> bool {
        let used_up = self.stretches.len() as u64 >= self.least_stretches() + STRETCHES as u64;
        used_up && is_flat(&self.stretches)
    }

    /// Whether it goes on.
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

/// Whether the last of them are within the tolerance of their mean.
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
        // A quarter of 800 pairs a stretch; two stretches use up the room for 1000.
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
