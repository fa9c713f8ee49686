//! A medium in memory. Appends take time, so a power cut (whoever ran it is dropped) loses those under
//! way; the n-th append to a stream, or the n-th opening for one, fails if it is asked to.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Range;
use std::rc::Rc;

use pages::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{Handle, IoClass, Nanos, PageImage};

const APPEND: Nanos = Nanos(100_000);
const RELEASE: Nanos = Nanos(300_000);
const READ: Nanos = Nanos(10_000);

pub(crate) const SHAPE: Shape = Shape {
    payload_bytes: 1072,
    page_bytes: 1024,
    pages_per_extent: 32,
    extents: 40,
    grows_to: 0,
    append_unit: 1,
    parallelism: 4,
};

/// What outlives a power cut.
pub(crate) struct Cells {
    shape: Shape,
    pages: RefCell<Vec<Option<PageImage>>>,
    /// What each extent is open for.
    streams: RefCell<Vec<Option<Stream>>>,
}

impl Cells {
    pub(crate) fn new(shape: Shape) -> Rc<Self> {
        let pages = vec![None; (shape.extents * shape.pages_per_extent) as usize];
        let streams = vec![None; shape.extents as usize];
        Rc::new(Self { shape, pages: RefCell::new(pages), streams: RefCell::new(streams) })
    }

    /// The pages that hold anything.
    pub(crate) fn written(&self) -> Vec<PageNo> {
        let pages = self.pages.borrow();
        let written = (0..).zip(pages.iter()).filter(|(_, page)| page.is_some());
        written.map(|(page, _)| PageNo(page)).collect()
    }

    /// A page cannot be read any more.
    pub(crate) fn lose(&self, page: PageNo) {
        self.pages.borrow_mut()[page.0 as usize] = None;
    }

    /// The places of an extent's pages.
    fn of_extent(&self, extent: ExtentId) -> Range<usize> {
        let start = self.shape.page(extent, 0).0 as usize;
        start..start + self.shape.pages_per_extent as usize
    }
}

/// What fails, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failing {
    Append(Stream, u64),
    Opening(Stream, u64),
}

/// The medium. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct MemoryMedium {
    handle: Handle,
    cells: Rc<Cells>,
    failing: Option<Failing>,
    appends: Rc<[Cell<u64>; Stream::ALL.len()]>,
    openings: Rc<[Cell<u64>; Stream::ALL.len()]>,
    has_failed: Rc<Cell<bool>>,
    after_failure: Rc<RefCell<Vec<Stream>>>,
    /// How often each page was read.
    reads: Rc<RefCell<BTreeMap<PageNo, u32>>>,
}

impl MemoryMedium {
    pub(crate) fn new(handle: &Handle, cells: &Rc<Cells>, failing: Option<Failing>) -> Self {
        Self {
            handle: handle.clone(),
            cells: Rc::clone(cells),
            failing,
            appends: Rc::default(),
            openings: Rc::default(),
            has_failed: Rc::default(),
            after_failure: Rc::default(),
            reads: Rc::default(),
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// Streams of the appends that began when a failure had been reported.
    pub(crate) fn appended_after_failure(&self) -> Vec<Stream> {
        self.after_failure.borrow().clone()
    }

    /// How often the page was read that was read most often, and all reads.
    pub(crate) fn reads(&self) -> (u32, u64) {
        let reads = self.reads.borrow();
        let most = reads.values().max().copied().unwrap_or(0);
        (most, reads.values().map(|count| u64::from(*count)).sum())
    }

    /// Begins to count reads anew.
    pub(crate) fn forget_reads(&self) {
        self.reads.borrow_mut().clear();
    }

    fn index(first: PageNo) -> usize {
        first.0 as usize
    }
}

impl Medium for MemoryMedium {
    fn shape(&self) -> Shape {
        self.cells.shape
    }

    fn open(&self, extent: ExtentId, _: u64, stream: Stream) -> Result<(), MediumError> {
        let count = &self.openings[stream as usize];
        let number = count.replace(count.get() + 1);
        if self.failing == Some(Failing::Opening(stream, number)) {
            self.has_failed.set(true);
            return Err(MediumError::Io(5));
        }
        self.cells.streams.borrow_mut()[extent.0 as usize] = Some(stream);
        Ok(())
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        _: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let extent = self.cells.shape.extent_of(first).0 as usize;
        let stream = self.cells.streams.borrow()[extent].expect("an extent is opened first");
        let count = &self.appends[stream as usize];
        let number = count.replace(count.get() + 1);
        let fails = self.failing == Some(Failing::Append(stream, number));
        if self.has_failed.get() {
            self.after_failure.borrow_mut().push(stream);
        }
        let (medium, sleep) = (self.clone(), self.handle.sleep(APPEND));
        async move {
            sleep.await;
            if fails {
                medium.has_failed.set(true);
                return Err(MediumError::Io(5));
            }
            for (at, page) in (Self::index(first)..).zip(pages) {
                medium.cells.pages.borrow_mut()[at] = Some(page);
            }
            Ok(())
        }
    }

    fn sync(&self, _: Stream) -> impl Future<Output = Result<(), MediumError>> + use<> {
        ready(Ok(()))
    }

    fn read(
        &self,
        page: PageNo,
        _: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<> {
        *self.reads.borrow_mut().entry(page).or_default() += 1;
        let found = self.cells.pages.borrow()[Self::index(page)].clone();
        let sleep = self.handle.sleep(READ);
        async move {
            sleep.await;
            found.ok_or(MediumError::Unreadable(page))
        }
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<> {
        let reads: Vec<_> =
            (first.0..first.0 + pages).map(|page| self.read(PageNo(page), class)).collect();
        async move {
            let mut images = Vec::with_capacity(reads.len());
            for read in reads {
                images.push(read.await);
            }
            images
        }
    }

    fn promote(&self, _: PageNo) {}

    fn set_write_stall(&self, _: bool) {}

    fn frontier(&self, extent: ExtentId) -> impl Future<Output = Result<u32, MediumError>> + use<> {
        let pages = self.cells.pages.borrow();
        let written = &pages[self.cells.of_extent(extent)];
        let end = written.iter().rposition(Option::is_some).map_or(0, |last| last as u32 + 1);
        ready(Ok(end))
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let (cells, sleep) = (Rc::clone(&self.cells), self.handle.sleep(RELEASE));
        async move {
            sleep.await;
            cells.pages.borrow_mut()[cells.of_extent(extent)].fill(None);
            Ok(())
        }
    }

    fn wear(&self, extent: ExtentId, _: Stream) -> u32 {
        extent.0
    }
}
