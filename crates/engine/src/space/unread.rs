//! Extents that a collection could not read. A path may fail for a moment and recover, so such
//! extents are tried again after increasing waits. After `MOST_FAILURES` they are only tried after
//! the next open of the store.

use std::collections::BTreeMap;

use runtime::Nanos;

use crate::medium::ExtentId;

/// The pause before the collector tries another extent: while no extent can be read, it does not
/// try all of them.
pub(crate) const PAUSE: Nanos = Nanos::from_millis(50);

/// The wait after an extent's first failure, multiplied by `LONGER` after each further one.
/// Assumption: most paths recover within seconds.
const FIRST_WAIT: Nanos = Nanos::from_millis(50);
const LONGER: u64 = 4;

/// An extent with this many failures, over one and a half hours, is not tried again.
const MOST_FAILURES: u32 = 10;

/// An extent with at most this many failures, over four seconds, may be readable soon.
const FEW_FAILURES: u32 = 4;

/// Returns the wait after so many failures; `None` if the extent is not tried again.
pub(super) fn wait_after(failures: u32) -> Option<Nanos> {
    (failures < MOST_FAILURES).then(|| FIRST_WAIT * LONGER.pow(failures - 1))
}

/// The failures of an extent in one generation.
struct Failures {
    generation: u64,
    count: u32,
}

/// The extents that could not be read in their last collection.
#[derive(Default)]
pub(crate) struct Unread(BTreeMap<ExtentId, Failures>);

impl Unread {
    /// Removes an extent that was read completely.
    pub(super) fn forget(&mut self, id: ExtentId) {
        self.0.remove(&id);
    }

    /// Returns the extents that may be readable soon, with the generation in which they failed.
    pub(super) fn soon(&self) -> impl Iterator<Item = (ExtentId, u64)> {
        let is_soon = |failures: &Failures| failures.count <= FEW_FAILURES;
        self.0
            .iter()
            .filter(move |(_, failures)| is_soon(failures))
            .map(|(id, failures)| (*id, failures.generation))
    }

    /// Counts a failure of an extent and returns the number of its failures.
    pub(super) fn note(&mut self, id: ExtentId, generation: u64) -> u32 {
        let failures = self.0.entry(id).or_insert(Failures { generation, count: 0 });
        if failures.generation != generation {
            *failures = Failures { generation, count: 0 };
        }
        failures.count += 1;
        failures.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_tried_again_after_longer_and_longer_waits_and_so_often() {
        let waits: Vec<Nanos> = (1..).map_while(wait_after).collect();
        assert_eq!(waits.len() as u32, MOST_FAILURES - 1);
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
        let hours = waits.iter().map(|wait| wait.0).sum::<u64>() as f64 / 3.6e12;
        assert!((1.0..2.0).contains(&hours), "{hours} hours");
    }

    #[test]
    fn failures_are_counted_anew_in_another_life_of_an_extent() {
        let mut unread = Unread::default();
        let id = ExtentId(3);
        assert_eq!([5, 5, 6, 6, 6].map(|generation| unread.note(id, generation)), [1, 2, 1, 2, 3]);
    }
}
