//! Pages of the journal: their extents are taken from all there are, and hold nothing that an index
//! refers to. Each counts as one item in use until the journal needs it no more.
//!
//! Or they are taken from a medium that has nothing else on it (Vigil-KV's meta-set): then that has a page
//! store of its own, which shares identity, failure and whoever waits with the one of the index, and
//! nothing of the other medium's space is set aside.

use std::rc::Rc;

use runtime::IoClass;

use crate::error::EngineError;
use crate::format::{data_page, page};
use crate::medium::{ExtentId, Medium, PageNo, Stream};
use crate::store::changes::Counts;
use crate::store::extent::{Extent, State};
use crate::store::units::{Runs, Unit};
use crate::store::{Cpu, PageStore};

impl<M: Medium> PageStore<M> {
    /// Log and manifest go to `medium`, which has nothing else on it. To be said before a store is created
    /// or scanned, and each time that it is.
    ///
    /// # Panics
    /// If it was said before.
    pub fn set_journal(&self, medium: M) {
        let cpu = Cpu { cores: Rc::clone(&self.cpu.cores), costs: self.cpu.costs.clone() };
        let journal = Self {
            id: Rc::clone(&self.id),
            room: Rc::clone(&self.room),
            work: Rc::clone(&self.work),
            failure: Rc::clone(&self.failure),
            is_journal: true,
            ..Self::new(self.handle.clone(), medium, cpu, self.planted, self.id.get())
        };
        let is_first = self.journal.set(Rc::new(journal)).is_ok();
        assert!(is_first, "a store has one journal");
    }

    /// The store that log and manifest are in: this one, unless they have a medium of their own.
    pub(crate) fn journal(&self) -> &Self {
        self.journal.get().map_or(self, |journal| journal)
    }

    /// The same, to be kept.
    pub(crate) fn kept_journal(self: &Rc<Self>) -> &Rc<Self> {
        self.journal.get().unwrap_or(self)
    }

    /// Whether this is the store of log and manifest on a medium of their own.
    pub(crate) fn is_journal(&self) -> bool {
        self.is_journal
    }

    /// Whether log and manifest have a medium of their own.
    pub(crate) fn has_journal_apart(&self) -> bool {
        self.journal.get().is_some()
    }

    /// Gives pages of the journal, unsealed, their places. Space was set aside for them.
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

    /// Writes pages of the journal, unsealed, side by side; they are durable when this returns. Each extent that they come to
    /// is noted before anything of them is written there. Others may go first between two runs.
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
                // Whoever made a write durable by itself waits for this.
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

    /// Gives pages of the journal their places, in as few runs as there may be; notes each extent that they come to.
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

    /// An extent of the journal counts as one item.
    fn count_journal_extent(&self, id: ExtentId) {
        let mut extents = self.extents.borrow_mut();
        if extents.get(id).published == 0 {
            let counted = extents.count(id, Counts { published: 1, entered: 1, dead: 0 }, true);
            assert_eq!(counted, Ok(()), "extent {} begins as the journal's", id.0);
        }
    }

    /// The journal needs nothing of an extent any more. It is released at once, and not by a collector,
    /// which may be waiting for the journal itself.
    pub(crate) fn release_journal_extent(self: &Rc<Self>, id: ExtentId) {
        let counts = Counts { dead: 1, ..Counts::default() };
        let counted = self.extents.borrow_mut().count(id, counts, true);
        assert_eq!(counted, Ok(()), "extent {} is the journal's", id.0);
        self.retire(id);
        self.work.notify_all();
    }

    /// Waits until `stream` has no more than `most` extents, or none that is about to be free.
    pub(crate) async fn wait_for_releases(&self, stream: Stream, most: usize) {
        let has_too_many = || {
            let extents = self.extents.borrow();
            let is_going = |e: &Extent| e.stream == stream && e.state == State::Releasing;
            extents.in_use(stream) > most && extents.iter().any(|(_, extent)| is_going(extent))
        };
        self.work.wait_until(|| !self.is_healthy() || !has_too_many()).await;
    }
}
