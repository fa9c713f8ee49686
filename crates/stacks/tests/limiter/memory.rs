//! A medium that records the commands it receives, with their times. An append takes 100 us; a
//! power cut loses appends in progress.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::ready;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{Handle, IoClass, Nanos, PageImage};

pub(crate) const SHAPE: Shape = Shape {
    payload_bytes: 1_000,
    page_bytes: 1_000,
    pages_per_extent: 1_000,
    extents: 100,
    grows_to: 0,
    append_unit: 1,
    parallelism: 4,
};

const APPEND: Nanos = Nanos(100_000);

/// A command that has reached the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    pub at: Nanos,
    pub first: PageNo,
    pub pages: u32,
    pub class: IoClass,
}

/// A medium in memory. Clones share its contents.
#[derive(Clone)]
pub(crate) struct MemoryMedium {
    handle: Handle,
    pub commands: Rc<RefCell<Vec<Command>>>,
    pub pages: Rc<RefCell<BTreeMap<PageNo, PageImage>>>,
}

impl MemoryMedium {
    pub(crate) fn new(handle: &Handle) -> Self {
        Self { handle: handle.clone(), commands: Rc::default(), pages: Rc::default() }
    }

    fn note(&self, first: PageNo, pages: u32, class: IoClass) {
        let command = Command { at: self.handle.now(), first, pages, class };
        self.commands.borrow_mut().push(command);
    }

    /// Returns the bytes that have reached the medium by `until`, of the classes that `counts`
    /// accepts.
    pub(crate) fn bytes_by(&self, until: Nanos, counts: impl Fn(IoClass) -> bool) -> u64 {
        let commands = self.commands.borrow();
        let counted = commands.iter().filter(|it| it.at <= until && counts(it.class));
        counted.map(|it| u64::from(it.pages) * u64::from(SHAPE.page_bytes)).sum()
    }
}

impl Medium for MemoryMedium {
    fn shape(&self) -> Shape {
        SHAPE
    }

    fn open(&self, _: ExtentId, _: u64, _: Stream) -> Result<(), MediumError> {
        Ok(())
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        self.append_run(first, pages, class)
    }

    fn append_run(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        self.note(first, pages.len() as u32, class);
        let (cells, sleep) = (Rc::clone(&self.pages), self.handle.sleep(APPEND));
        async move {
            sleep.await;
            cells.borrow_mut().extend((first.0..).map(PageNo).zip(pages));
            Ok(())
        }
    }

    fn sync(&self, _: Stream) -> impl Future<Output = Result<(), MediumError>> + use<> {
        ready(Ok(()))
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<> {
        self.note(page, 1, class);
        let found = self.pages.borrow().get(&page).cloned();
        ready(found.ok_or(MediumError::Unreadable(page)))
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<> {
        self.note(first, pages, class);
        let cells = self.pages.borrow();
        let found = |page: PageNo| cells.get(&page).cloned().ok_or(MediumError::Unreadable(page));
        ready((first.0..first.0 + pages).map(PageNo).map(found).collect())
    }

    fn promote(&self, _: PageNo) {}

    fn set_write_stall(&self, _: bool) {}

    fn frontier(&self, _: ExtentId) -> impl Future<Output = Result<u32, MediumError>> + use<> {
        ready(Ok(0))
    }

    fn release(&self, _: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<> {
        ready(Ok(()))
    }

    fn wear(&self, _: ExtentId, _: Stream) -> u32 {
        0
    }
}
