//! Append units on their way to the medium: pages in, sealed units out.

use runtime::PageImage;

use crate::error::EngineError;
use crate::format::{data_page, page};
use crate::medium::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use crate::store::PageStore;
use crate::store::extents::Extents;
use crate::store::promise::Promise;

/// Pages that are appended together.
pub(crate) struct Unit {
    pub first: PageNo,
    pub pages: Vec<PageImage>,
}

impl Unit {
    /// The page behind it.
    pub(crate) fn end(&self) -> PageNo {
        PageNo(self.first.0 + self.pages.len() as u32)
    }
}

/// Puts whole units together to runs: they follow one another in an extent, and are no more pages than one write has.
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

    /// Adds a unit. Gives `out` each run that nothing more is added to.
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

    /// The run that something could be added to.
    pub(crate) fn rest(&mut self) -> Option<Unit> {
        self.open.take()
    }
}

/// Fills units of one stream, in space that was promised.
pub(crate) struct Units<'a, M> {
    store: &'a PageStore<M>,
    promise: Promise<'a>,
    /// The unit that is being filled.
    open: Option<Unit>,
    /// Empty pages that units were filled up with.
    fillers: Vec<PageNo>,
}

impl<'a, M: Medium> Units<'a, M> {
    pub(crate) fn new(store: &'a PageStore<M>, promise: Promise<'a>) -> Self {
        Self { store, promise, open: None, fillers: Vec::new() }
    }

    /// Makes sure that `pages` pages follow one another from here on: where they do not fit in what
    /// is left of the extent, that is left empty. Returns the unit that was being filled then.
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

    /// Begins the next unit of what was promised. It has to be submitted before anybody else takes
    /// the one behind it in the extent, so no await may come before that.
    pub(crate) fn begin(&mut self) -> Result<(), EngineError> {
        assert!(self.open.is_none(), "a unit is begun while another one is being filled");
        let unit = self.store.shape.append_unit;
        let first = self.store.next_unit(self.promise.stream())?;
        self.promise.take(unit);
        self.store.note_handed_out(first);
        self.open = Some(Unit { first, pages: Vec::with_capacity(unit as usize) });
        self.store.work.notify_all(); // free space has shrunk: garbage collection may be due
        Ok(())
    }

    /// Seals a page and puts it in the unit that was begun. Returns its number.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) -> PageNo {
        let unit = self.open.as_mut().expect("a unit was begun");
        let number = PageNo(unit.first.0 + unit.pages.len() as u32);
        assert!(number.0 < unit.first.0 + self.store.shape.append_unit, "a unit was overfilled");
        unit.pages.push(page::seal(bytes, self.store.identity(number)));
        number
    }

    /// The unit, if it is full.
    pub(crate) fn full(&mut self) -> Option<Unit> {
        let unit = self.store.shape.append_unit as usize;
        self.open.take_if(|open| open.pages.len() == unit)
    }

    /// The unit that is being filled, filled up with empty pages.
    pub(crate) fn rest(&mut self) -> Option<Unit> {
        while let Some(unit) = &self.open
            && unit.pages.len() < self.store.shape.append_unit as usize
        {
            let number = self.push(data_page::filler());
            self.fillers.push(number);
        }
        self.open.take()
    }

    /// Everything is written, and what is left of the promise is given back. A power cut would have
    /// made holes of the pages that units were filled up with; durable, they are just empty.
    pub(crate) fn finish(self) {
        assert!(self.open.is_none(), "pages of a unit were never handed to the medium");
        self.store.note_fillers(&self.fillers);
    }
}

impl<M: Medium> PageStore<M> {
    /// The pages of the unit that begins at `first` wait for a place in an index from now on.
    pub(crate) fn note_handed_out(&self, first: PageNo) {
        let mut unpublished = self.unpublished.borrow_mut();
        for page in (first.0..first.0 + self.shape.append_unit).map(PageNo) {
            let is_new = unpublished.insert(page);
            assert!(is_new, "page {} is handed out, and it is out already", page.0);
        }
    }

    /// Units were filled up with these pages, which are durable: they wait for nothing.
    pub(crate) fn note_fillers(&self, fillers: &[PageNo]) {
        let mut unpublished = self.unpublished.borrow_mut();
        for page in fillers {
            let was_out = unpublished.remove(page);
            assert!(was_out, "the empty page {} got a place in an index", page.0);
        }
    }

    /// Hands out the next append unit of `stream`; opens an extent for it if need be.
    ///
    /// # Errors
    /// What the medium says; [`MediumError::NoSpace`] if the journal has outgrown what was set aside for
    /// it and nothing else is free either.
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

    /// Has the medium open a free extent for `stream`; `None` if there is none. It is to be listed then, without an await
    /// before that. If the medium refuses, it stays free.
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
