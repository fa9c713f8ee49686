//! Hands groups of pages to the medium: assigns page numbers and limits the appends in flight.

use std::collections::VecDeque;

use super::promise::Promise;
use super::units::{Runs, Unit, Units};
use super::{PageStore, pacing};
use crate::error::EngineError;
use crate::medium::{Medium, MediumError, PageNo, Stream};

/// Unsealed pages that must be consecutive on the medium.
pub(crate) type Group = Vec<Vec<u8>>;

/// Groups that are being handed to the medium.
pub(super) struct HandingOut<'a, M, F, Append> {
    store: &'a PageStore<M>,
    units: Units<'a, M>,
    append: F,
    runs: Runs,
    under_way: VecDeque<Append>,
    /// The number of groups.
    count: usize,
    firsts: Vec<PageNo>,
}

impl<'a, M, F, Append> HandingOut<'a, M, F, Append>
where
    M: Medium,
    F: Fn(Unit) -> Append,
    Append: Future<Output = Result<(), MediumError>>,
{
    pub(super) fn new(
        store: &'a PageStore<M>,
        promise: Promise<'a>,
        count: usize,
        append: F,
    ) -> Self {
        let (units, runs) = (Units::new(store, promise), Runs::of(store));
        let (under_way, firsts) = (VecDeque::new(), Vec::with_capacity(count));
        Self { store, units, append, runs, under_way, count, firsts }
    }

    /// Whether no page waits to be handed out, so that the task may await.
    pub(super) fn is_between(&self) -> bool {
        self.runs.is_empty() && self.units.is_between()
    }

    /// Adds a whole unit to the run, and submits each run that is complete.
    fn extend_run(&mut self, unit: Unit) {
        let Self { runs, under_way, append, .. } = self;
        runs.add(unit, |run| under_way.push_back(append(run)));
    }

    /// Hands out a whole group without an await.
    pub(super) fn hand_out(&mut self, group: Group) -> Result<(), EngineError> {
        self.keep_together(&group);
        for (index, bytes) in group.into_iter().enumerate() {
            self.push(bytes, index == 0)?;
        }
        Ok(())
    }

    pub(super) fn keep_together(&mut self, group: &Group) {
        if let Some(unit) = self.units.keep_together(group.len() as u32) {
            self.extend_run(unit);
        }
    }

    /// Adds the next page. Requires: no await until the page's run is full or
    /// [`Self::hand_out_rest`] is called.
    pub(super) fn push(&mut self, bytes: Vec<u8>, is_first: bool) -> Result<(), EngineError> {
        if self.units.is_between() {
            self.units.begin()?;
        }
        let number = self.units.push(bytes);
        if is_first {
            self.firsts.push(number);
        }
        if let Some(unit) = self.units.full() {
            self.extend_run(unit);
        }
        Ok(())
    }

    pub(super) fn hand_out_rest(&mut self) {
        if let Some(unit) = self.units.rest() {
            self.extend_run(unit);
        }
        self.under_way.extend(self.runs.rest().map(&self.append));
    }

    /// Waits until fewer appends are in flight than the window allows.
    pub(super) async fn wait_for_window(
        &mut self,
        urgency: &impl Fn() -> f64,
    ) -> Result<(), MediumError> {
        let window = pacing::window(urgency(), self.store.shape.parallelism);
        while self.under_way.len() >= window {
            self.under_way.pop_front().expect("the window is at least 1").await?;
        }
        Ok(())
    }

    /// As [`Self::wait_for_window`], after a group. The group may have left its last unit half
    /// full; that unit is filled up and submitted before the wait.
    pub(super) async fn wait_for_window_between_groups(
        &mut self,
        urgency: &impl Fn() -> f64,
    ) -> Result<(), MediumError> {
        let window = pacing::window(urgency(), self.store.shape.parallelism);
        if self.under_way.len() >= window {
            self.hand_out_rest();
        }
        if self.is_between() { self.wait_for_window(urgency).await } else { Ok(()) }
    }

    /// Waits until all pages can be read, and are durable unless edits sync them. Returns the
    /// number of each group's first page.
    pub(super) async fn finish(self, stream: Stream) -> Result<Vec<PageNo>, EngineError> {
        let store = self.store;
        if !store.goes_early(stream) {
            for append in self.under_way {
                append.await?;
            }
            if !store.edits_sync.get() {
                store.medium.sync(stream).await?;
            }
        }
        self.units.finish();
        // Pointers are built from these numbers: a group without pages would shift all groups after
        // it.
        assert_eq!(self.firsts.len(), self.count, "a group was written without a page");
        Ok(self.firsts)
    }
}
