//! The state of a store at rest that a dump leaves out. With it, a store can be saved and restored
//! as if it had never stopped.
//!
//! A dump (`dump`) holds the state that must survive a power cut. A recovery starts with counters
//! at zero and empty caches, and checks extents before it fills them further. A simulation that
//! continues from a loaded drive must behave exactly as it would have without the interruption, so
//! the remaining state is carried too. It is small while nothing is in progress: [`Front::unrest`]
//! and [`PageStore::unrest`] report activities that prevent this.

use std::fmt;

use runtime::Carrier;

use crate::medium::Medium;
use crate::operations::Fullness;
use crate::space::PageStore;
use crate::space::extent::State;
use crate::write::Front;

/// The activity because of which a store cannot be saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAtRest(pub &'static str);

impl fmt::Display for NotAtRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is not at rest: {}", self.0)
    }
}

impl std::error::Error for NotAtRest {}

/// Checks that no condition in `all` is true.
///
/// # Errors
/// Returns [`NotAtRest`] with the first condition that is true.
pub(crate) fn first_unrest(all: &[(bool, &'static str)]) -> Result<(), NotAtRest> {
    let first = all.iter().find(|(is_so, _)| *is_so);
    first.map_or(Ok(()), |(_, what)| Err(NotAtRest(what)))
}

impl<M: Medium> PageStore<M> {
    /// Checks that nothing is in progress that [`Self::carry`] would lose.
    ///
    /// # Errors
    /// Returns [`NotAtRest`] if an activity is in progress.
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

    /// Carries the state of a store at rest that is not in its dump.
    pub fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        by.cell(&self.shared_reads.shared, Carrier::u64)?;
        by.cell(&self.rebuilt_reads, Carrier::u64)?;
        by.cell(&self.step_extents, Carrier::usize)?;
        self.extents.borrow_mut().carry(by)?;
        self.set_aside.iter().try_for_each(|extents| by.cell(extents, Carrier::usize))
    }
}

impl<M: Medium> Front<M> {
    /// Checks that nothing is in progress that [`Self::carry`] would lose.
    ///
    /// # Errors
    /// Returns [`NotAtRest`] if an activity is in progress.
    pub(crate) fn unrest(&self) -> Result<(), NotAtRest> {
        first_unrest(&[
            (self.log.borrow().is_some(), "it has a log, which goes on by itself"),
            (!self.memtables.borrow().frozen.is_empty(), "a memtable waits for its flush"),
            (self.collects_index.get(), "garbage of the index is being collected"),
            (self.stalled_now.get() > 0, "clients wait for room"),
        ])
    }

    /// Carries the state of a front at rest that is not in its store's dump.
    pub(crate) fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
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

/// Carries the names of the tasks that wait for work, in the order in which they will be woken.
/// Requires: exactly `tasks` wait. The caller must start them in the returned order, each after the
/// previous one waits.
pub(crate) fn carry_tasks<M: Medium>(
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
