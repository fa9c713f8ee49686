//! A medium in memory. Appends take time, so a power cut (dropping the runtime) loses those in
//! flight. On request, the n-th append to a stream, or the n-th opening of an extent for it, fails.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::ops::Range;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
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

/// The state that survives a power cut.
pub(crate) struct Cells {
    shape: Shape,
    pages: RefCell<Vec<Option<PageImage>>>,
    /// The stream for which each extent is or was last open.
    streams: RefCell<Vec<Option<Stream>>>,
    /// Pages that cannot be read for now.
    unreadable: RefCell<BTreeSet<PageNo>>,
    /// The stream whose extents cannot be read for now.
    failing_stream: Cell<Option<Stream>>,
    /// Whether it behaves like a file: any page can be written, released pages are kept, and reads
    /// of blank pages do not fail.
    is_file: bool,
}

impl Cells {
    pub(crate) fn new(shape: Shape) -> Rc<Self> {
        Rc::new(Self::with(shape, false))
    }

    /// Returns cells that behave like a file.
    pub(crate) fn of_file(shape: Shape) -> Rc<Self> {
        Rc::new(Self::with(shape, true))
    }

    fn with(shape: Shape, is_file: bool) -> Self {
        let pages = vec![None; (shape.extents * shape.pages_per_extent) as usize];
        let streams = vec![None; shape.extents as usize];
        Self {
            shape,
            pages: RefCell::new(pages),
            streams: RefCell::new(streams),
            unreadable: RefCell::default(),
            failing_stream: Cell::default(),
            is_file,
        }
    }

    /// Returns a copy with the same contents, all of which can be read.
    pub(crate) fn copy(&self) -> Rc<Self> {
        let copy = Self::with(self.shape, self.is_file);
        copy.pages.borrow_mut().clone_from(&self.pages.borrow());
        copy.streams.borrow_mut().clone_from(&self.streams.borrow());
        Rc::new(copy)
    }

    /// Returns the stream for which the extent of a page is or was last open.
    pub(crate) fn stream_of(&self, page: PageNo) -> Option<Stream> {
        self.streams.borrow()[self.shape.extent_of(page).0 as usize]
    }

    /// Makes exactly these pages unreadable until they are written.
    pub(crate) fn set_unreadable(&self, pages: impl IntoIterator<Item = PageNo>) {
        self.unreadable.replace(pages.into_iter().collect());
    }

    /// Makes all pages of this stream's extents unreadable.
    pub(crate) fn fail_reads_of(&self, stream: Option<Stream>) {
        self.failing_stream.set(stream);
    }

    /// Flips a bit of a page.
    pub(crate) fn flip(&self, page: PageNo) {
        let mut pages = self.pages.borrow_mut();
        let found = pages[page.0 as usize].as_mut().expect("it was written");
        let mut bytes = found.bytes().to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        *found = PageImage::new(&bytes);
    }

    /// Returns the result of a read.
    fn read(&self, page: PageNo) -> Result<PageImage, MediumError> {
        let fails = self.failing_stream.get().is_some_and(|of| self.stream_of(page) == Some(of));
        let found = self.pages.borrow()[page.0 as usize].clone();
        let blank = || self.is_file.then(|| PageImage::new(&[]));
        let found = found.or_else(blank).filter(|_| !fails);
        found
            .filter(|_| !self.unreadable.borrow().contains(&page))
            .ok_or(MediumError::Unreadable(page))
    }

    /// Returns the pages with contents.
    pub(crate) fn written(&self) -> Vec<PageNo> {
        let pages = self.pages.borrow();
        let written = (0..).zip(pages.iter()).filter(|(_, page)| page.is_some());
        written.map(|(page, _)| PageNo(page)).collect()
    }

    /// Makes a page unreadable for good.
    pub(crate) fn lose(&self, page: PageNo) {
        self.pages.borrow_mut()[page.0 as usize] = None;
    }

    /// Returns the indexes of an extent's pages.
    fn of_extent(&self, extent: ExtentId) -> Range<usize> {
        let start = self.shape.page(extent, 0).0 as usize;
        start..start + self.shape.pages_per_extent as usize
    }
}

/// The operation that fails, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failing {
    Append(Stream, u64),
    Opening(Stream, u64),
}

/// The medium. Clones are handles to the same medium.
#[derive(Clone)]
pub(crate) struct MemoryMedium {
    handle: Handle,
    cells: Rc<Cells>,
    failing: Option<Failing>,
    appends: Rc<[Cell<u64>; Stream::ALL.len()]>,
    openings: Rc<[Cell<u64>; Stream::ALL.len()]>,
    has_failed: Rc<Cell<bool>>,
    after_failure: Rc<RefCell<Vec<Stream>>>,
    /// The number of reads of each page.
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

    /// Returns the streams of appends that began after a failure was reported.
    pub(crate) fn appended_after_failure(&self) -> Vec<Stream> {
        self.after_failure.borrow().clone()
    }

    /// Returns the maximum number of reads of a page, and the number of all reads.
    pub(crate) fn reads(&self) -> (u32, u64) {
        let reads = self.reads.borrow();
        let most = reads.values().max().copied().unwrap_or(0);
        (most, reads.values().map(|count| u64::from(*count)).sum())
    }

    /// Resets the read counters.
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
                medium.cells.unreadable.borrow_mut().remove(&PageNo(at as u32));
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
        let found = self.cells.read(page);
        let sleep = self.handle.sleep(READ);
        async move {
            sleep.await;
            found
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
        if self.cells.is_file {
            return ready(Ok(0));
        }
        let pages = self.cells.pages.borrow();
        let written = &pages[self.cells.of_extent(extent)];
        let end = written.iter().rposition(Option::is_some).map_or(0, |last| last as u32 + 1);
        ready(Ok(end))
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let (cells, sleep) = (Rc::clone(&self.cells), self.handle.sleep(RELEASE));
        async move {
            sleep.await;
            if !cells.is_file {
                cells.pages.borrow_mut()[cells.of_extent(extent)].fill(None);
            }
            Ok(())
        }
    }

    fn is_written_anywhere(&self) -> bool {
        self.cells.is_file
    }

    fn unreadable_is_lost(&self, _: ExtentId) -> bool {
        self.cells.is_file
    }

    fn wear(&self, extent: ExtentId, _: Stream) -> u32 {
        extent.0
    }
}
