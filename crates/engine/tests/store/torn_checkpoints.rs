//! Two power cuts, each during a checkpoint: the remains of the two checkpoints must not be
//! combined.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{pending, ready};
use std::rc::Rc;

use engine::{Engine, ExtentId, Medium, MediumError, PageNo, Shape, Stream, Value, WriteOptions};
use runtime::{Handle, IoClass, Nanos, PageImage, Runtime};

use crate::memory::SHAPE;
use crate::setup::logged;

type Pages = RefCell<BTreeMap<PageNo, PageImage>>;

/// The effect of a power cut on discarded pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Discards {
    Kept,
    Forgotten,
}

/// The state after a power cut during a checkpoint.
struct Cut {
    /// The last write of each key.
    acknowledged: BTreeMap<u64, u64>,
    cells: Rc<Pages>,
    checkpoint: Vec<PageNo>,
}

/// A drive with a buffer that a power cut empties: each page that was not synced may or may not
/// have reached the cells, and a discard may be forgotten.
#[derive(Clone)]
struct Anywhere {
    handle: Handle,
    cells: Rc<Pages>,
    /// The buffer: pages that were written or discarded (`None`).
    buffer: Rc<RefCell<BTreeMap<PageNo, Option<PageImage>>>>,
    streams: Rc<RefCell<BTreeMap<ExtentId, Stream>>>,
    /// Whether the next sync of a checkpoint never ends.
    stops: Rc<Cell<bool>>,
    discards: Discards,
    /// The checkpoint's pages, once its sync has stopped.
    checkpoint: Rc<RefCell<Vec<(PageNo, PageImage)>>>,
}

impl Anywhere {
    fn new(rt: &Runtime, cells: &Rc<Pages>, stops: bool, discards: Discards) -> Self {
        Self {
            handle: rt.handle(),
            cells: Rc::clone(cells),
            buffer: Rc::default(),
            streams: Rc::default(),
            stops: Rc::new(Cell::new(stops)),
            discards,
            checkpoint: Rc::default(),
        }
    }

    /// Cuts the power. The pages of the checkpoint for whose position `survives` is true have
    /// reached the cells.
    fn cut(&self, survives: impl Fn(usize) -> bool) {
        for (n, (page, image)) in self.checkpoint.borrow().iter().enumerate() {
            if survives(n) {
                self.cells.borrow_mut().insert(*page, image.clone());
            }
        }
    }

    fn has_stopped(&self) -> bool {
        !self.checkpoint.borrow().is_empty()
    }

    /// Returns the pages in the buffer that were not discarded.
    fn written(&self) -> Vec<(PageNo, PageImage)> {
        let buffer = self.buffer.borrow();
        buffer.iter().filter_map(|(page, image)| Some((*page, image.clone()?))).collect()
    }

    /// Returns the buffered checkpoint, if it has more than one page and begins an extent. For
    /// tests in which the extent's old first page reappears, the extent must have been written
    /// before.
    fn buffered_checkpoint(&self) -> Vec<(PageNo, PageImage)> {
        let streams = self.streams.borrow();
        let is_manifest = |page| streams.get(&SHAPE.extent_of(page)) == Some(&Stream::Manifest);
        let mut pages = self.written();
        pages.retain(|(page, _)| is_manifest(*page));
        let begins = |(page, _): &(PageNo, PageImage)| {
            let shows = self.discards == Discards::Kept || self.cells.borrow().contains_key(page);
            page.0.is_multiple_of(SHAPE.pages_per_extent) && shows
        };
        if pages.len() > 1 && pages.first().is_some_and(begins) { pages } else { Vec::new() }
    }

    fn pages_of_checkpoint(&self) -> Vec<PageNo> {
        self.checkpoint.borrow().iter().map(|(page, _)| *page).collect()
    }

    fn get(&self, page: PageNo) -> Option<PageImage> {
        let buffered = self.buffer.borrow().get(&page).cloned();
        buffered.unwrap_or_else(|| self.cells.borrow().get(&page).cloned())
    }
}

impl Medium for Anywhere {
    fn shape(&self) -> Shape {
        SHAPE
    }

    fn open(&self, extent: ExtentId, _: u64, stream: Stream) -> Result<(), MediumError> {
        self.streams.borrow_mut().insert(extent, stream);
        Ok(())
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        _: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        for (page, image) in (first.0..).map(PageNo).zip(pages) {
            self.buffer.borrow_mut().insert(page, Some(image));
        }
        let sleep = self.handle.sleep(Nanos(1_000));
        async move {
            sleep.await;
            Ok(())
        }
    }

    fn sync(&self, stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let medium = self.clone();
        let sleep = self.handle.sleep(Nanos(50_000));
        async move {
            if medium.stops.get() && stream == Stream::Manifest {
                let checkpoint = medium.buffered_checkpoint();
                medium.checkpoint.replace(checkpoint);
            }
            let buffered = medium.written();
            sleep.await;
            if medium.has_stopped() {
                pending::<()>().await;
            }
            for (page, image) in buffered {
                medium.cells.borrow_mut().insert(page, image);
                let mut buffer = medium.buffer.borrow_mut();
                if buffer.get(&page).is_some_and(Option::is_some) {
                    buffer.remove(&page);
                }
            }
            Ok(())
        }
    }

    fn read(
        &self,
        page: PageNo,
        _: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<> {
        ready(Ok(self.get(page).unwrap_or_else(|| PageImage::new(&[]))))
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        _: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<> {
        let image = |page| Ok(self.get(PageNo(page)).unwrap_or_else(|| PageImage::new(&[])));
        ready((first.0..first.0 + pages).map(image).collect())
    }

    fn promote(&self, _: PageNo) {}

    fn set_write_stall(&self, _: bool) {}

    fn frontier(&self, _: ExtentId) -> impl Future<Output = Result<u32, MediumError>> + use<> {
        ready(Ok(0))
    }

    fn is_written_anywhere(&self) -> bool {
        true
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let first = SHAPE.page(extent, 0).0;
        for page in (first..first + SHAPE.pages_per_extent).map(PageNo) {
            self.buffer.borrow_mut().insert(page, None);
        }
        let sleep = self.handle.sleep(Nanos(300_000));
        let medium = self.clone();
        async move {
            sleep.await;
            if medium.discards == Discards::Kept && !medium.has_stopped() {
                for page in (first..first + SHAPE.pages_per_extent).map(PageNo) {
                    medium.cells.borrow_mut().remove(&page);
                }
            }
            Ok(())
        }
    }

    fn wear(&self, _: ExtentId, _: Stream) -> u32 {
        0
    }
}

/// Runs a store whose power is cut during a checkpoint after `before` writes; `None` if there was
/// no checkpoint.
fn run(discards: Discards, len: u32, before: u64, survives: impl Fn(usize) -> bool) -> Option<Cut> {
    let cells = Rc::<Pages>::default();
    let rt = Runtime::new(3);
    let medium = Anywhere::new(&rt, &cells, false, discards);
    let engine = Engine::create(logged(&rt, medium.clone())).expect("it fits");
    let acknowledged = Rc::<RefCell<BTreeMap<u64, u64>>>::default();
    let (own, stops) = (Rc::clone(&acknowledged), Rc::clone(&medium.stops));
    rt.handle().spawn("client", async move {
        for round in 1..before + 2_000 {
            stops.set(round >= before);
            let key = round * 7 % 160;
            let value = Value::Synthetic { seed: round, len };
            let name = key.to_be_bytes();
            let put = engine.put(&name, value, WriteOptions::default(), Nanos::ZERO);
            put.await.expect("it is written");
            own.borrow_mut().insert(key, round);
        }
    });
    rt.run_until(Nanos::from_millis(2_000));
    let checkpoint = medium.pages_of_checkpoint();
    if checkpoint.is_empty() {
        return None;
    }
    medium.cut(survives);
    let acknowledged = acknowledged.borrow().clone();
    Some(Cut { acknowledged, cells, checkpoint })
}

/// Opens the store; power is cut during the checkpoint of that opening. Returns the checkpoint's
/// pages.
fn open_and_cut(
    discards: Discards,
    cells: &Rc<Pages>,
    survives: impl Fn(usize) -> bool,
) -> Vec<PageNo> {
    let rt = Runtime::new(4);
    let medium = Anywhere::new(&rt, cells, true, discards);
    let setup = logged(&rt, medium.clone());
    rt.handle().spawn("opening", async move {
        let opened = Engine::open(setup).await;
        panic!("it was to stop in its checkpoint: {:?}", opened.map(|_| ()));
    });
    rt.run_until(Nanos::from_millis(500));
    medium.cut(survives);
    medium.pages_of_checkpoint()
}

/// Returns the first problem of opening the store or of reading an acknowledged write; `None` if
/// there is none.
fn first_problem(discards: Discards, cut: &Cut) -> Option<String> {
    let rt = Runtime::new(5);
    let medium = Anywhere::new(&rt, &cut.cells, false, discards);
    let setup = logged(&rt, medium);
    let acknowledged = cut.acknowledged.clone();
    rt.block_on(async move {
        let engine = match Engine::open(setup).await {
            Ok(engine) => engine,
            Err(error) => return Some(format!("it does not open: {error}")),
        };
        for (key, round) in acknowledged {
            let found = match engine.get(&key.to_be_bytes(), Nanos::ZERO).await {
                Ok(found) => found.value,
                Err(error) => return Some(format!("key {key}: {error}")),
            };
            // The write in flight when power failed may or may not have survived.
            let is_right = matches!(found, Some(Value::Synthetic { seed, .. }) if seed >= round);
            if !is_right {
                return Some(format!("key {key}, written in {round}: {found:?}"));
            }
        }
        None
    })
}

#[test]
fn parts_of_two_checkpoints_are_not_put_together() {
    check(Discards::Forgotten);
}

#[test]
fn parts_of_two_checkpoints_are_not_put_together_where_discards_are_kept() {
    check(Discards::Kept);
}

fn check(discards: Discards) {
    let (mut wrong, mut same_pages) = (Vec::new(), 0);
    let lengths = [300, 1_500].into_iter();
    let runs = lengths.flat_map(|len| (20..420).step_by(9).map(move |before| (len, before)));
    for (len, before) in runs {
        // Of one checkpoint all pages but the first reach the cells, of the other only the first.
        for first_has_the_rest in [true, false] {
            let survives = |n: usize| (n > 0) == first_has_the_rest;
            let Some(cut) = run(discards, len, before, survives) else { continue };
            let second = open_and_cut(discards, &cut.cells, |n| !survives(n));
            same_pages += u32::from(cut.checkpoint == second);
            let problem = first_problem(discards, &cut);
            wrong.extend(problem.map(|text| format!("values of {len}, {before} before: {text}")));
        }
    }
    assert!(same_pages >= 20, "{same_pages} were cut in checkpoints of the same pages");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
