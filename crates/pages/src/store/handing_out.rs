//! Groups of pages on their way to the medium: which pages they get, and how many appends are under way.

use std::collections::VecDeque;

use crate::error::EngineError;
use crate::medium::{Medium, MediumError, PageNo, Stream};
use crate::store::PageStore;
use crate::store::pacing;
use crate::store::promise::Promise;
use crate::store::units::{Runs, Unit, Units};
use crate::store::writing::Group;

/// Groups on their way to the medium.
pub(super) struct HandingOut<'a, M, F, Append> {
    store: &'a PageStore<M>,
    units: Units<'a, M>,
    append: F,
    runs: Runs,
    under_way: VecDeque<Append>,
    /// How many groups there are.
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

    /// Whether nothing waits to be handed out, so that others may be waited for.
    pub(super) fn is_between(&self) -> bool {
        self.runs.is_empty() && self.units.is_between()
    }

    /// Adds a whole unit to the run, and hands out what nothing more is added to.
    fn extend_run(&mut self, unit: Unit) {
        let Self { runs, under_way, append, .. } = self;
        runs.add(unit, |run| under_way.push_back(append(run)));
    }

    /// A whole group, without an await.
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

    /// The next page. No await comes before the run that it is in is full, or the rest is handed out.
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

    /// Waits until fewer appends are under way than may be.
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

    /// The same behind a group, which may have left its last unit half full: nobody waits with that.
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

    /// Waits until all can be read, and is durable where edits do not see to that. The number of each group's first
    /// page.
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
        // By these numbers pointers are told apart: a group without pages would shift all behind it.
        assert_eq!(self.firsts.len(), self.count, "a group was written without a page");
        Ok(self.firsts)
    }
}
