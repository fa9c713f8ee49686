//! Builds append units: pages in, sealed units out.

use runtime::PageImage;

use super::PageStore;
use super::extents::Extents;
use super::promise::Promise;
use crate::error::EngineError;
use crate::format::{data_page, page};
use crate::medium::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};

/// Pages that are appended together.
pub(crate) struct Unit {
    pub first: PageNo,
    pub pages: Vec<PageImage>,
}

impl Unit {
    /// Returns the page after the unit.
    pub(crate) fn end(&self) -> PageNo {
        PageNo(self.first.0 + self.pages.len() as u32)
    }
}

/// Joins consecutive units of an extent into runs. A run has at most the pages of one write.
pub(crate) struct Runs {
    shape: Shape,
    most: usize,
    open: Option<Unit>,
}

impl Runs {
    pub(crate) fn of<M: Medium>(store: &PageStore<M>) -> Self {
        Self { shape: store.shape, most: store.run_pages as usize, open: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_none()
    }

    /// Adds a unit. Calls `out` with each run that is complete.
    pub(crate) fn add(&mut self, unit: Unit, mut out: impl FnMut(Unit)) {
        let run = match self.open.take() {
            Some(mut run) if run.end() == unit.first => {
                run.pages.extend(unit.pages);
                run
            }
            before => {
                before.into_iter().for_each(&mut out);
                unit
            }
        };
        assert!(run.pages.len() <= self.most, "a run of {} pages", run.pages.len());
        let room = self.most - run.pages.len();
        let is_over = room < self.shape.append_unit as usize
            || run.end().0.is_multiple_of(self.shape.pages_per_extent);
        if is_over {
            out(run);
        } else {
            self.open = Some(run);
        }
    }

    /// Returns the incomplete run, if any.
    pub(crate) fn rest(&mut self) -> Option<Unit> {
        self.open.take()
    }
}

/// Fills units of one stream, in promised space.
pub(crate) struct Units<'a, M> {
    store: &'a PageStore<M>,
    promise: Promise<'a>,
    /// The unit that is being filled.
    open: Option<Unit>,
    /// Filler pages that completed units.
    fillers: Vec<PageNo>,
}

impl<'a, M: Medium> Units<'a, M> {
    pub(crate) fn new(store: &'a PageStore<M>, promise: Promise<'a>) -> Self {
        Self { store, promise, open: None, fillers: Vec::new() }
    }

    /// Ensures that the next `pages` pages are consecutive. If they do not fit into the rest of the
    /// extent, the rest is left empty. Returns the unit that was being filled in that case.
    pub(crate) fn keep_together(&mut self, pages: u32) -> Option<Unit> {
        let in_unit = self.open.as_ref().map_or(0, |unit| unit.pages.len() as u32);
        let left = self.open.as_ref().map_or(0, |_| self.store.shape.append_unit - in_unit);
        if pages <= left + self.store.extents.borrow().room(self.promise.stream()) {
            return None;
        }
        let unit = self.rest();
        self.store.extents.borrow_mut().close(self.promise.stream());
        unit
    }

    /// Whether the next page begins a unit.
    pub(crate) fn is_between(&self) -> bool {
        self.open.is_none()
    }

    /// Begins the next unit of the promised space. Requires: no await before the unit is submitted,
    /// because otherwise another task could use the next unit of the extent first.
    pub(crate) fn begin(&mut self) -> Result<(), EngineError> {
        assert!(self.open.is_none(), "a unit is begun while another one is being filled");
        let unit = self.store.shape.append_unit;
        let first = self.store.next_unit(self.promise.stream())?;
        self.promise.take(unit);
        self.store.note_handed_out(first);
        self.open = Some(Unit { first, pages: Vec::with_capacity(unit as usize) });
        self.store.work.notify_all(); // less free space: garbage collection may be due
        Ok(())
    }

    /// Seals a page, adds it to the open unit, and returns its number.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) -> PageNo {
        let unit = self.open.as_mut().expect("a unit was begun");
        let number = PageNo(unit.first.0 + unit.pages.len() as u32);
        assert!(number.0 < unit.first.0 + self.store.shape.append_unit, "a unit was overfilled");
        unit.pages.push(page::seal(bytes, self.store.identity(number)));
        number
    }

    /// Returns the unit if it is full.
    pub(crate) fn full(&mut self) -> Option<Unit> {
        let unit = self.store.shape.append_unit as usize;
        self.open.take_if(|open| open.pages.len() == unit)
    }

    /// Fills up the open unit with empty pages and returns it.
    pub(crate) fn rest(&mut self) -> Option<Unit> {
        while let Some(unit) = &self.open
            && unit.pages.len() < self.store.shape.append_unit as usize
        {
            let number = self.push(data_page::filler());
            self.fillers.push(number);
        }
        self.open.take()
    }

    /// Ends the writing after all pages are durable, and gives the rest of the promise back. A
    /// power cut would have turned the filler pages into holes. Now that they are durable, they are
    /// just empty.
    pub(crate) fn finish(self) {
        assert!(self.open.is_none(), "pages of a unit were never handed to the medium");
        self.store.note_fillers(&self.fillers);
    }
}

impl<M: Medium> PageStore<M> {
    /// Marks the pages of the unit that begins at `first` as unpublished.
    pub(crate) fn note_handed_out(&self, first: PageNo) {
        let mut unpublished = self.unpublished.borrow_mut();
        for page in (first.0..first.0 + self.shape.append_unit).map(PageNo) {
            let is_new = unpublished.insert(page);
            assert!(is_new, "page {} is handed out, and it is out already", page.0);
        }
    }

    /// Removes durable filler pages from the unpublished ones.
    pub(crate) fn note_fillers(&self, fillers: &[PageNo]) {
        let mut unpublished = self.unpublished.borrow_mut();
        for page in fillers {
            let was_out = unpublished.remove(page);
            assert!(was_out, "the empty page {} got a place in an index", page.0);
        }
    }

    /// Returns the first page of the next append unit of `stream`. Opens an extent if needed.
    ///
    /// # Errors
    /// Returns the medium's error, or [`MediumError::NoSpace`] if the journal has outgrown the
    /// space set aside for it and no other extent is free.
    pub(crate) fn next_unit(&self, stream: Stream) -> Result<PageNo, EngineError> {
        let mut extents = self.extents.borrow_mut();
        if extents.room(stream) == 0 {
            extents.close(stream);
            let Some(id) = self.open_on_medium(&mut extents, stream)? else {
                assert!(stream.is_journal(), "what is promised is there");
                return Err(MediumError::NoSpace.into());
            };
            extents.open(id, stream);
        }
        Ok(extents.next_unit(stream))
    }

    /// Opens a free extent on the medium for `stream`; returns `None` if no extent is free. If the
    /// medium refuses, the extent stays free. Requires: the caller lists the extent as open without
    /// an await in between.
    pub(crate) fn open_on_medium(
        &self,
        extents: &mut Extents,
        stream: Stream,
    ) -> Result<Option<ExtentId>, MediumError> {
        let next = extents.next_free(|id| self.medium.wear(id, stream));
        let Some((id, generation)) = next else { return Ok(None) };
        self.medium.open(id, generation, stream)?;
        Ok(Some(id))
    }
}
