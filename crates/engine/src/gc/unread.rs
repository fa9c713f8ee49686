//! Extents that a collection could not read. A path may fail for a moment and recover, so such
//! extents are tried again after increasing waits. After `MOST_FAILURES` they are only tried after
//! the next open of the store.

use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::Nanos;

use crate::medium::{ExtentId, Medium};
use crate::space::PageStore;
use crate::space::extent::State;

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
fn wait_after(failures: u32) -> Option<Nanos> {
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
    /// Counts a failure of an extent and returns the number of its failures.
    fn note(&mut self, id: ExtentId, generation: u64) -> u32 {
        let failures = self.0.entry(id).or_insert(Failures { generation, count: 0 });
        if failures.generation != generation {
            *failures = Failures { generation, count: 0 };
        }
        failures.count += 1;
        failures.count
    }
}

impl<M: Medium> PageStore<M> {
    /// Quarantines an extent that was to be collected and has an unreadable page. It is kept
    /// unchanged and closed again after a while. Returns whether this is its first failure.
    pub(crate) fn keep_unread(self: &Rc<Self>, id: ExtentId) -> bool {
        self.extents.borrow_mut().set_state(id, State::Quarantined);
        let generation = self.extents.borrow().get(id).generation;
        let failures = self.unread.borrow_mut().note(id, generation);
        if let Some(wait) = wait_after(failures) {
            let store = Rc::clone(self);
            self.handle.spawn("wait before an extent is read again", async move {
                store.handle.sleep(wait).await;
                store.extents.borrow_mut().set_state(id, State::Closed);
                store.work.notify_all();
            });
        } else {
            // Wakes tasks that waited for the extent, so that they see that it frees nothing.
            self.work.notify_all();
        }
        failures == 1
    }

    /// Forgets the failures of an extent that was read completely.
    pub(crate) fn forget_unread(&self, id: ExtentId) {
        self.unread.borrow_mut().0.remove(&id);
    }

    /// Whether an extent that could not be read is tried again soon.
    pub(crate) fn reads_again_soon(&self) -> bool {
        let extents = self.extents.borrow();
        let is_one = |(id, failures): (&ExtentId, &Failures)| {
            let extent = extents.get(*id);
            extent.state == State::Quarantined
                && extent.generation == failures.generation
                && failures.count <= FEW_FAILURES
        };
        self.unread.borrow().0.iter().any(is_one)
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
