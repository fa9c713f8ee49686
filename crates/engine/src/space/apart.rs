//! Writing apart: a run of pages in extents of its own. The extents hold nothing else, so they
//! become free as soon as the whole run is dead.

use std::collections::VecDeque;

use runtime::{IoClass, PageImage};

use super::PageStore;
use super::priority::{Claimant, Need};
use super::promise::Promise;
use crate::error::EngineError;
use crate::format::{data_page, page};
use crate::medium::{ExtentId, Medium, PageNo, Stream};

/// Consecutive sealed pages that wait to be appended.
struct Stretch {
    first: PageNo,
    pages: Vec<PageImage>,
}

/// Writes pages into extents of their own, in order. Each extent is filled before the next is
/// opened.
pub struct Apart<'a, M> {
    store: &'a PageStore<M>,
    promise: Promise<'a>,
    extents: Vec<ExtentId>,
    /// Unused page numbers of the unit that was handed out last.
    unit: std::ops::Range<u32>,
    waiting: VecDeque<Stretch>,
}

/// The place of a run that was written apart: its extents, all but the last one full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretches {
    /// The extents, in the order in which they were filled.
    pub extents: Vec<ExtentId>,
    /// The number of pages.
    pub pages: u32,
}

impl<M: Medium> PageStore<M> {
    /// Returns the number of pages to promise for `extents` whole extents.
    pub fn pages_of_extents(&self, extents: usize) -> u32 {
        // Capped at 2^31 pages: no medium has more, and the cap leaves room for rounding up.
        let pages = extents as u64 * u64::from(self.shape.pages_per_extent);
        pages.min(1 << 31) as u32
    }

    /// Returns the space needed for `extents` extents of tables.
    pub fn need_of_tables(&self, extents: usize, claimant: Claimant) -> Need {
        Need { stream: Stream::Tables, pages: self.pages_of_extents(extents), claimant }
    }
}

impl<'a, M: Medium> Apart<'a, M> {
    /// Creates a writer that has written nothing yet. Requires: `promise` is a whole number of
    /// extents.
    pub fn new(store: &'a PageStore<M>, promise: Promise<'a>) -> Self {
        let (pages, per_extent) = (promise.left, store.shape.pages_per_extent);
        assert!(pages.is_multiple_of(per_extent), "{pages} pages are no whole extents");
        Self { store, promise, extents: Vec::new(), unit: 0..0, waiting: VecDeque::new() }
    }

    /// Returns the number of pages that were pushed and not written yet.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(|stretch| stretch.pages.len()).sum()
    }

    /// Seals the next page and returns its number. [`Self::write`] writes it.
    ///
    /// # Errors
    /// Returns the medium's error if it cannot open an extent.
    pub fn push(&mut self, bytes: Vec<u8>) -> Result<PageNo, EngineError> {
        if self.unit.is_empty() {
            self.next_unit()?;
        }
        let number = PageNo(self.unit.next().expect("a unit has pages"));
        let image = page::seal(bytes, self.store.identity(number));
        let stretch = self.waiting.back_mut().expect("each unit belongs to a stretch");
        stretch.pages.push(image);
        Ok(number)
    }

    fn next_unit(&mut self) -> Result<(), EngineError> {
        let (store, stream) = (self.store, self.promise.stream());
        let shape = &store.shape;
        let has_room =
            |id: &&ExtentId| store.extents.borrow().get(**id).cursor < shape.pages_per_extent;
        let current = self.extents.last().filter(has_room).copied();
        let is_new = current.is_none();
        let id = match current {
            Some(id) => id,
            None => self.next_extent(stream)?,
        };
        let first = store.extents.borrow_mut().fill(id);
        self.unit = first.0..first.0 + shape.append_unit;
        store.note_handed_out(first);
        if is_new || self.waiting.is_empty() {
            self.waiting.push_back(Stretch { first, pages: Vec::new() });
        }
        Ok(())
    }

    fn next_extent(&mut self, stream: Stream) -> Result<ExtentId, EngineError> {
        let store = self.store;
        let mut extents = store.extents.borrow_mut();
        let opened = store.open_on_medium(&mut extents, stream)?;
        let id = opened.expect("what is promised is there");
        extents.take(id, stream);
        self.promise.take(store.shape.pages_per_extent);
        self.extents.push(id);
        store.work.notify_all(); // less free space: garbage collection may be due
        Ok(id)
    }

    /// Appends all whole units that were pushed, as one run for each extent, and waits for them.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`] if the medium fails.
    pub async fn write(&mut self, class: IoClass) -> Result<(), EngineError> {
        let unit = self.store.shape.append_unit as usize;
        let mut under_way = Vec::new();
        while let Some(mut stretch) = self.waiting.pop_front() {
            let whole = stretch.pages.len() - stretch.pages.len() % unit;
            let rest = stretch.pages.split_off(whole);
            if whole > 0 {
                under_way.push(self.store.medium.append_run(stretch.first, stretch.pages, class));
            }
            if !rest.is_empty() {
                let first = PageNo(stretch.first.0 + whole as u32);
                self.waiting.push_front(Stretch { first, pages: rest });
                break;
            }
        }
        if !self.store.goes_early(self.promise.stream()) {
            for append in under_way {
                append.await?;
            }
        }
        Ok(())
    }

    /// Fills up the last unit and writes the remaining pages. No index refers to them yet, and they
    /// need not be durable before [`Self::make_durable`]. The rest of the promise is kept for the
    /// next run.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`] if the medium fails.
    pub async fn finish(&mut self, class: IoClass) -> Result<Stretches, EngineError> {
        let shape = self.store.shape;
        let extents = self.extents.len() as u32;
        let last = self.extents.last().map_or(0, |id| self.store.extents.borrow().get(*id).cursor);
        let left = self.unit.len() as u32;
        let pages = (extents.max(1) - 1) * shape.pages_per_extent + last - left;
        let mut fillers = Vec::new();
        while !self.unit.is_empty() {
            fillers.push(self.push(data_page::filler())?);
        }
        self.write(class).await?;
        assert!(self.waiting.is_empty(), "pages were never handed to the medium");
        self.store.note_fillers(&fillers);
        Ok(Stretches { extents: std::mem::take(&mut self.extents), pages })
    }

    /// Waits until all finished runs are durable, unless edits sync them. Call it once for all runs
    /// that enter the index together, because a sync may take long.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`] if the medium fails.
    pub async fn make_durable(&self) -> Result<(), EngineError> {
        let stream = self.promise.stream();
        if !self.store.edits_sync.get() && !self.store.goes_early(stream) {
            self.store.medium.sync(stream).await?;
        }
        Ok(())
    }
}

impl<M> Apart<'_, M> {
    /// Abandons the run that is being written and returns its pages, including pages that were
    /// never written. They stay unpublished. The rest of the promise is given back. Requires: no
    /// write of the run is in flight.
    pub fn abandon(self) -> Vec<PageNo> {
        let extents = self.store.extents.borrow();
        let of = |id: &ExtentId| {
            let first = self.store.shape.page(*id, 0).0;
            (first..first + extents.get(*id).cursor).map(PageNo)
        };
        self.extents.iter().flat_map(of).collect()
    }
}

impl Stretches {
    /// Returns the page at position `index` of the run.
    ///
    /// # Panics
    /// Panics if the run has no such position.
    pub fn page(&self, index: u32, pages_per_extent: u32) -> PageNo {
        assert!(index < self.pages, "page {index} of {}", self.pages);
        let extent = self.extents[(index / pages_per_extent) as usize];
        PageNo(extent.0 * pages_per_extent + index % pages_per_extent)
    }
}

impl<M: Medium> PageStore<M> {
    /// Reads and checks the pages `range` of a run that was written apart, in order, with one read
    /// for each extent.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
    pub async fn read_apart(
        &self,
        stretches: &Stretches,
        range: std::ops::Range<u32>,
        class: IoClass,
    ) -> Result<Vec<PageImage>, EngineError> {
        let per_extent = self.shape.pages_per_extent;
        let mut images = Vec::with_capacity(range.len());
        let mut at = range.start;
        while at < range.end {
            let pages = (per_extent - at % per_extent).min(range.end - at);
            let first = stretches.page(at, per_extent);
            let run = self.medium.read_run(first, pages, class).await;
            for (page, read) in (first.0..).map(PageNo).zip(run) {
                images.push(self.check_or_rebuild(page, read, class).await?);
            }
            at += pages;
        }
        Ok(images)
    }
}
