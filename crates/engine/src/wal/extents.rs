//! Journal pages. Their extents come from the same medium and hold nothing that an index refers to.
//! Each extent counts as one live item until the journal no longer needs it.
//!
//! Alternatively the journal has a medium of its own (Vigil-KV's meta-set). That medium then has
//! its own page store, which shares identity, failure and waiting tasks with the store of the
//! index. No space of the other medium is set aside for it.

use std::rc::Rc;

use runtime::IoClass;

use crate::error::EngineError;
use crate::format::{data_page, page};
use crate::manifest::changes::Counts;
use crate::medium::{ExtentId, Medium, PageNo, Stream};
use crate::space::PageStore;
use crate::space::extent::{Extent, State};
use crate::space::units::{Runs, Unit};

impl<M: Medium> PageStore<M> {
    /// Puts log and manifest on `medium`, which holds nothing else. Requires: called before the
    /// store is created or scanned, every time.
    ///
    /// # Panics
    /// Panics if the store already has a journal medium.
    pub fn set_journal(&self, medium: M) {
        let journal = self.store_of_journal(medium);
        let is_first = self.journal.set(Rc::new(journal)).is_ok();
        assert!(is_first, "a store has one journal");
    }

    /// Returns the store that holds log and manifest: this one, unless they have a medium of their
    /// own.
    pub(crate) fn journal(&self) -> &Self {
        self.journal.get().map_or(self, |journal| journal)
    }

    /// As [`Self::journal`], as a shared pointer.
    pub(crate) fn kept_journal(self: &Rc<Self>) -> &Rc<Self> {
        self.journal.get().unwrap_or(self)
    }

    /// Whether this is the store of a separate journal medium.
    pub(crate) fn is_journal(&self) -> bool {
        self.is_journal
    }

    /// Whether log and manifest have a medium of their own.
    pub(crate) fn has_journal_apart(&self) -> bool {
        self.journal.get().is_some()
    }

    /// Assigns places to unsealed journal pages and seals them. Their space was set aside.
    fn journal_units(&self, stream: Stream, pages: Vec<Vec<u8>>) -> Result<Vec<Unit>, EngineError> {
        assert!(stream.is_journal(), "{stream:?} is written in space that was promised");
        let unit = self.shape.append_unit;
        let mut units = Vec::new();
        let mut pages = pages.into_iter().peekable();
        while pages.peek().is_some() {
            let first = self.next_unit(stream)?;
            self.count_journal_extent(self.shape.extent_of(first));
            let numbers = (first.0..first.0 + unit).map(PageNo);
            let page = |number| {
                let bytes = pages.next().unwrap_or_else(data_page::filler);
                page::seal(bytes, self.identity(number))
            };
            units.push(Unit { first, pages: numbers.map(page).collect() });
        }
        Ok(units)
    }

    /// Writes unsealed journal pages in parallel. They are durable when this returns. `note` is
    /// called for each extent before anything is written to it. Other tasks may run between two
    /// runs.
    pub(crate) async fn write_journal(
        &self,
        stream: Stream,
        pages: Vec<Vec<u8>>,
        note: impl Fn(ExtentId),
    ) -> Result<(), EngineError> {
        let (class, mut under_way) = (IoClass::Journal, Vec::new());
        let mut pages = pages.into_iter().peekable();
        while pages.peek().is_some() {
            let some = pages.by_ref().take(self.run_pages as usize).collect();
            let mut runs = self.journal_runs(stream, some, &note)?;
            let is_one = under_way.is_empty() && runs.len() == 1 && pages.peek().is_none();
            if is_one && let Some(Unit { first, pages }) = runs.pop() {
                // A single writer that syncs by itself waits for this append, so append and sync
                // are one request.
                return Ok(self.medium.append_durably(stream, first, pages, class).await?);
            }
            under_way.extend(runs.into_iter().map(|run| self.append_run(run, class)));
            self.handle.give_way().await;
        }
        for append in under_way {
            append.await?;
        }
        Ok(self.medium.sync(stream).await?)
    }

    /// Assigns places to journal pages, in as few runs as possible, and calls `note` for each
    /// extent.
    fn journal_runs(
        &self,
        stream: Stream,
        pages: Vec<Vec<u8>>,
        note: impl Fn(ExtentId),
    ) -> Result<Vec<Unit>, EngineError> {
        let (mut runs, mut out) = (Runs::of(self), Vec::new());
        for unit in self.journal_units(stream, pages)? {
            note(self.shape.extent_of(unit.first));
            runs.add(unit, |run| out.push(run));
        }
        out.extend(runs.rest());
        Ok(out)
    }

    /// Counts a journal extent as one live item.
    fn count_journal_extent(&self, id: ExtentId) {
        let mut extents = self.extents.borrow_mut();
        if extents.get(id).published == 0 {
            let counted = extents.count(id, Counts { published: 1, entered: 1, dead: 0 }, true);
            assert_eq!(counted, Ok(()), "extent {} begins as the journal's", id.0);
        }
    }

    /// Releases an extent that the journal no longer needs. The release starts at once and does not
    /// wait for a collector, which may itself be waiting for the journal.
    pub(crate) fn release_journal_extent(self: &Rc<Self>, id: ExtentId) {
        let counts = Counts { dead: 1, ..Counts::default() };
        let counted = self.extents.borrow_mut().count(id, counts, true);
        assert_eq!(counted, Ok(()), "extent {} is the journal's", id.0);
        self.retire(id);
        self.work.notify_all();
    }

    /// Waits until `stream` has at most `most` extents, or none that is being released.
    pub(crate) async fn wait_for_releases(&self, stream: Stream, most: usize) {
        let has_too_many = || {
            let extents = self.extents.borrow();
            let is_going = |e: &Extent| e.stream == stream && e.state == State::Releasing;
            extents.in_use(stream) > most && extents.iter().any(|(_, extent)| is_going(extent))
        };
        self.work.wait_until(|| !self.is_healthy() || !has_too_many()).await;
    }
}
