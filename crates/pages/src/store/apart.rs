//! Writing apart: a run of pages in extents that hold nothing else, so that they are free as soon as all of
//! it is dead.

use std::collections::VecDeque;

use runtime::{IoClass, PageImage};

use crate::error::EngineError;
use crate::format::{data_page, page};
use crate::medium::{ExtentId, Medium, PageNo, Stream};
use crate::store::PageStore;
use crate::store::promise::Promise;
use crate::store::space::{Claimant, Need};

/// Pages that follow one another, sealed, on their way to the medium.
struct Stretch {
    first: PageNo,
    pages: Vec<PageImage>,
}

/// Writes pages in extents of their own, one after the other, each filled to its end before the next.
pub struct Apart<'a, M> {
    store: &'a PageStore<M>,
    promise: Promise<'a>,
    extents: Vec<ExtentId>,
    /// Places of the unit that was handed out last, which are not taken yet.
    unit: std::ops::Range<u32>,
    waiting: VecDeque<Stretch>,
}

/// Where pages lie that were written apart: extent after extent, each but the last one full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretches {
    /// In the order in which they were filled.
    pub extents: Vec<ExtentId>,
    /// Pages in all.
    pub pages: u32,
}

impl<M: Medium> PageStore<M> {
    /// Pages that a promise takes for `extents` extents of their own.
    pub fn pages_of_extents(&self, extents: usize) -> u32 {
        // As many as no medium has are as good as any more, and can be rounded up.
        let pages = extents as u64 * u64::from(self.shape.pages_per_extent);
        pages.min(1 << 31) as u32
    }

    /// What somebody needs for `extents` extents of tables.
    pub fn need_of_tables(&self, extents: usize, claimant: Claimant) -> Need {
        Need { stream: Stream::Tables, pages: self.pages_of_extents(extents), claimant }
    }
}

impl<'a, M: Medium> Apart<'a, M> {
    /// Nothing is written yet. `promise` is of whole extents.
    pub fn new(store: &'a PageStore<M>, promise: Promise<'a>) -> Self {
        let (pages, per_extent) = (promise.left, store.shape.pages_per_extent);
        assert!(pages.is_multiple_of(per_extent), "{pages} pages are no whole extents");
        Self { store, promise, extents: Vec::new(), unit: 0..0, waiting: VecDeque::new() }
    }

    /// Pages that were handed in and not written yet.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(|stretch| stretch.pages.len()).sum()
    }

    /// Seals the next page, which is written with [`Self::write`]. Returns its number.
    ///
    /// # Errors
    /// What the medium says to an extent that is opened.
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
        store.work.notify_all(); // free space has shrunk: garbage collection may be due
        Ok(id)
    }

    /// Writes the whole units among what was handed in, as one run for each extent, and waits for them.
    ///
    /// # Errors
    /// [`EngineError::Medium`].
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

    /// Fills the last unit up and writes what is left. Nothing refers to it, and it need not be durable before
    /// [`Self::make_durable`]. What is left of the promise is for the next run.
    ///
    /// # Errors
    /// [`EngineError::Medium`].
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

    /// Waits until all runs that were finished are durable, where edits do not see to that. Once for as many as come into
    /// the index together: a medium may take long.
    ///
    /// # Errors
    /// [`EngineError::Medium`].
    pub async fn make_durable(&self) -> Result<(), EngineError> {
        let stream = self.promise.stream();
        if !self.store.edits_sync.get() && !self.store.goes_early(stream) {
            self.store.medium.sync(stream).await?;
        }
        Ok(())
    }
}

impl<M> Apart<'_, M> {
    /// Gives the run up that is being written, of which no write may be under way. Returns its pages, which
    /// wait for their place in an index as before, those that were never written among them. What is left of
    /// the promise is given back.
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
    /// The page at place `index`.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn page(&self, index: u32, pages_per_extent: u32) -> PageNo {
        assert!(index < self.pages, "page {index} of {}", self.pages);
        let extent = self.extents[(index / pages_per_extent) as usize];
        PageNo(extent.0 * pages_per_extent + index % pages_per_extent)
    }
}

impl<M: Medium> PageStore<M> {
    /// Reads the pages `range` of what was written apart, checked, in order; in one read for each extent.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
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
