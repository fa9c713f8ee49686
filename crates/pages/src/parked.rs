//! The state of an idle store that its dump omits, so that a simulation can save a store and
//! restore it exactly.
//!
//! A dump (`dump`) contains the state that must survive a power cut. A recovery starts with new
//! state for the rest: counters at zero, empty caches, and extents that are examined before they
//! are filled further. A simulation that continues from a loaded drive must behave exactly as it
//! would have right after the load, so the rest is saved too. It is small as long as no work is
//! under way: [`Front::unrest`] and [`PageStore::unrest`] return work that is.

use std::fmt;

use runtime::Carrier;

use crate::front::Front;
use crate::medium::Medium;
use crate::operations::Fullness;
use crate::store::PageStore;
use crate::store::extent::State;

/// The error for a store that cannot be saved; the string names the work under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAtRest(pub &'static str);

impl fmt::Display for NotAtRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is not at rest: {}", self.0)
    }
}

impl std::error::Error for NotAtRest {}

/// Checks that no condition of `all` holds.
///
/// # Errors
/// Returns [`NotAtRest`] with the message of the first condition that holds.
pub fn first_unrest(all: &[(bool, &'static str)]) -> Result<(), NotAtRest> {
    let first = all.iter().find(|(is_so, _)| *is_so);
    first.map_or(Ok(()), |(_, what)| Err(NotAtRest(what)))
}

impl<M: Medium> PageStore<M> {
    /// Checks that no work is under way that [`Self::carry`] would lose.
    ///
    /// # Errors
    /// Returns [`NotAtRest`] if any is.
    pub fn unrest(&self) -> Result<(), NotAtRest> {
        first_unrest(&[
            (!self.is_healthy(), "background work has stopped for good"),
            (!self.epochs.is_quiet(), "somebody is reading"),
            (self.promised_pages().iter().any(|pages| *pages > 0), "space is promised"),
            (!self.unpublished.borrow().is_empty(), "pages are being written"),
            (!self.moved.borrow().is_empty(), "what was moved is not flushed"),
            (self.releasing() > 0 || self.held() > 0, "extents are about to be released"),
            (self.pins.is_any(), "snapshots are open"),
            (self.extents.borrow().is_any(State::Quarantined), "an extent cannot be read"),
        ])
    }

    /// Saves or restores the state of an idle store that is not in its dump.
    pub fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        by.cell(&self.shared_reads.shared, Carrier::u64)?;
        by.cell(&self.rebuilt_reads, Carrier::u64)?;
        by.cell(&self.step_extents, Carrier::usize)?;
        self.extents.borrow_mut().carry(by)?;
        self.set_aside.iter().try_for_each(|extents| by.cell(extents, Carrier::usize))
    }
}

impl<M: Medium> Front<M> {
    /// Checks that no work is under way that [`Self::carry`] would lose.
    ///
    /// # Errors
    /// Returns [`NotAtRest`] if any is.
    pub fn unrest(&self) -> Result<(), NotAtRest> {
        first_unrest(&[
            (self.log.borrow().is_some(), "it has a log, which goes on by itself"),
            (!self.memtables.borrow().frozen.is_empty(), "a memtable waits for its flush"),
            (self.collects_index.get(), "garbage of the index is being collected"),
            (self.stalled_now.get() > 0, "clients wait for room"),
        ])
    }

    /// Saves or restores the state of an idle front that is not in the dump of its store.
    pub fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        for count in [&self.writes, &self.user_bytes, &self.stalls] {
            by.cell(count, Carrier::u64)?;
        }
        by.cell(&self.stalled, Carrier::nanos)?;
        by.cell(&self.fullness, |by, fullness| Fullness::carry(fullness, by))?;
        self.sweep.carry(by)?;
        by.cell(&self.was_refused, Carrier::bool)?;
        by.cell(&self.refused_after, |by, writes| by.option(writes, Carrier::u64))?;
        by.cell(&self.wakes_from, Carrier::nanos)?;
        self.memtables.borrow().active.borrow_mut().carry_fill(by)
    }
}

/// Saves or restores the names of the tasks that wait for work, in the order in which they will be
/// woken. Requires: exactly the tasks in `tasks` wait. After a restore, start the tasks in that
/// order, each one when the task before it waits.
pub fn carry_tasks<M: Medium>(
    store: &PageStore<M>,
    tasks: &[&'static str],
    by: &mut Carrier<'_>,
) -> Option<Vec<&'static str>> {
    let mut waiting = if by.is_back() { tasks.to_vec() } else { store.work.waiting(&store.handle) };
    (waiting.len() == tasks.len()).then_some(())?;
    let mut left = tasks.to_vec();
    for waiting in &mut waiting {
        let name = by.string(waiting.as_bytes())?;
        let place = left.iter().position(|task| task.as_bytes() == name)?;
        *waiting = left.remove(place);
    }
    Some(waiting)
}
