//! A medium with writes to any page and minimal guarantees: a power cut leaves of each page any
//! version since the last synced one.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{Handle, IoClass, Nanos, PageImage, Rng, Runtime};

use super::pick;

/// The number of a write or discard, in the order of their starts.
type Number = u64;

/// A page as it was written; blank if it was discarded.
#[derive(Clone)]
struct Version {
    by: Number,
    /// The image that a read returns.
    own: PageImage,
    /// The image rebuilt from redundancy.
    redundant: PageImage,
}

fn is_blank(image: &PageImage) -> bool {
    image.bytes().is_empty()
}

#[derive(Clone, Default)]
struct Place {
    /// The versions that may survive a cut, oldest first; reads return the newest one until then.
    versions: Vec<Version>,
    /// The previous contents.
    before: Option<PageImage>,
}

impl Place {
    /// Drops the versions before `at`, which can no longer reappear.
    fn forget_before(&mut self, at: usize, discards: Discards) {
        let counts = |image: &PageImage| discards == Discards::Kept || !is_blank(image);
        let older = self.versions[..at].iter().rev().map(|version| &version.own);
        let seen = older.into_iter().find(|image| counts(image)).cloned();
        self.before = seen.or(self.before.take());
        self.versions.drain(..at);
    }

    /// Loses the write of the current contents: reads return the previous contents, redundancy the
    /// current ones.
    fn lose_write(&mut self) {
        if let [Version { own, .. }] = &mut self.versions[..]
            && let Some(before) = &self.before
            && !is_blank(own)
        {
            own.clone_from(before);
        }
    }
}

/// The effect of a power cut on discards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Discards {
    /// Any sync makes them durable.
    Kept,
    /// Discards are only advice.
    Forgotten,
}

/// The version of unsynced pages that a power cut leaves.
#[derive(Clone, Copy)]
enum Leaves {
    Any,
    Newest,
    Oldest,
    MostlyNewest,
    MostlyOldest,
    /// The old version of the first pages of extents, the new version of other pages.
    OldFirstPages,
    NewFirstPages,
}

impl Leaves {
    const ALL: [Self; 7] = [
        Self::Any,
        Self::Newest,
        Self::Oldest,
        Self::MostlyNewest,
        Self::MostlyOldest,
        Self::OldFirstPages,
        Self::NewFirstPages,
    ];

    fn choose(self, is_first: bool, versions: usize, rng: &mut Rng) -> usize {
        let newest = versions - 1;
        let any = rng.below(versions as u64) as usize;
        match self {
            Self::Any => any,
            Self::Newest => newest,
            Self::Oldest => 0,
            Self::MostlyNewest => pick(rng, &[newest, newest, newest, any]),
            Self::MostlyOldest => pick(rng, &[0, 0, 0, any]),
            Self::OldFirstPages => (1 - usize::from(is_first)) * newest,
            Self::NewFirstPages => usize::from(is_first) * newest,
        }
    }
}

/// The contents of a medium, across power cuts.
#[derive(Clone)]
pub(super) struct Cells {
    pub shape: Shape,
    pub discards: Discards,
    /// Whether a sync of one stream syncs all streams.
    pub syncs_all: bool,
    pub is_redundant: bool,
    places: Rc<RefCell<BTreeMap<PageNo, Place>>>,
    streams: Rc<RefCell<BTreeMap<ExtentId, Stream>>>,
}

impl Cells {
    pub(super) fn new(
        shape: Shape,
        discards: Discards,
        syncs_all: bool,
        is_redundant: bool,
    ) -> Self {
        let (places, streams) = (Rc::default(), Rc::default());
        Self { shape, discards, syncs_all, is_redundant, places, streams }
    }

    /// Cuts the power.
    pub(super) fn cut(&self, rng: &mut Rng) {
        let leaves = pick(rng, &Leaves::ALL);
        for (page, place) in self.places.borrow_mut().iter_mut() {
            let is_first = page.0.is_multiple_of(self.shape.pages_per_extent);
            let at = leaves.choose(is_first, place.versions.len(), rng);
            place.forget_before(at, self.discards);
            place.versions.truncate(1);
        }
    }

    /// Loses a `share` of the synced writes.
    pub(super) fn lose_writes(&self, share: f64, rng: &mut Rng) {
        for place in self.places.borrow_mut().values_mut() {
            if rng.chance(share) {
                place.lose_write();
            }
        }
    }
}

struct Inner {
    handle: Handle,
    cells: Cells,
    next: Cell<Number>,
    under_way: RefCell<BTreeSet<Number>>,
    /// Pages with more than one version.
    dirty: RefCell<BTreeSet<PageNo>>,
    rng: RefCell<Rng>,
}

#[derive(Clone)]
pub(super) struct Wild(Rc<Inner>);

impl Wild {
    pub(super) fn new(rt: &Runtime, cells: &Cells, seed: u64) -> Self {
        Self(Rc::new(Inner {
            handle: rt.handle(),
            cells: cells.clone(),
            next: Cell::new(1),
            under_way: RefCell::default(),
            dirty: RefCell::default(),
            rng: RefCell::new(Rng::derive(seed, "medium")),
        }))
    }

    fn pause(&self, most: u64) -> Nanos {
        Nanos(1_000 + self.0.rng.borrow_mut().below(most))
    }

    fn put(&self, page: PageNo, by: Number, image: PageImage) {
        let version = Version { by, own: image.clone(), redundant: image };
        self.0.cells.places.borrow_mut().entry(page).or_default().versions.push(version);
        self.0.dirty.borrow_mut().insert(page);
    }

    fn newest(&self, page: PageNo) -> Option<Version> {
        self.0.cells.places.borrow().get(&page)?.versions.last().cloned()
    }

    fn get(&self, page: PageNo) -> PageImage {
        self.newest(page).map_or_else(|| PageImage::new(&[]), |version| version.own)
    }

    /// Begins a write or discard.
    fn begin(&self) -> Number {
        let number = self.0.next.replace(self.0.next.get() + 1);
        self.0.under_way.borrow_mut().insert(number);
        number
    }

    /// Ends a write or discard after a random time of at most `most`.
    fn end(
        &self,
        number: Number,
        most: u64,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let sleep = self.0.handle.sleep(self.pause(most));
        let medium = self.clone();
        async move {
            sleep.await;
            medium.0.under_way.borrow_mut().remove(&number);
            Ok(())
        }
    }

    /// Makes the writes for which `is_done` is true durable: older versions can no longer reappear.
    fn make_durable(&self, stream: Stream, is_done: impl Fn(Number) -> bool) {
        let cells = &self.0.cells;
        let streams = cells.streams.borrow();
        let mut places = cells.places.borrow_mut();
        self.0.dirty.borrow_mut().retain(|page| {
            let place = places.get_mut(page).expect("it is there");
            let is_of =
                cells.syncs_all || streams.get(&cells.shape.extent_of(*page)) == Some(&stream);
            let is_synced = |version: &Version| {
                let keeps_discard = cells.discards == Discards::Kept;
                let is_covered = if is_blank(&version.own) { keeps_discard } else { is_of };
                is_covered && is_done(version.by)
            };
            if let Some(at) = place.versions.iter().rposition(is_synced) {
                place.forget_before(at, cells.discards);
            }
            place.versions.len() > 1
        });
    }
}

impl Medium for Wild {
    fn shape(&self) -> Shape {
        self.0.cells.shape
    }

    fn open(&self, extent: ExtentId, _: u64, stream: Stream) -> Result<(), MediumError> {
        self.0.cells.streams.borrow_mut().insert(extent, stream);
        Ok(())
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        _: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let number = self.begin();
        for (page, image) in (first.0..).map(PageNo).zip(pages) {
            self.put(page, number, image);
        }
        self.end(number, 20_000)
    }

    fn sync(&self, stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let medium = self.clone();
        let sleep = self.0.handle.sleep(self.pause(60_000));
        let (next, not_done) = (self.0.next.get(), self.0.under_way.borrow().clone());
        async move {
            sleep.await;
            medium.make_durable(stream, |number| number < next && !not_done.contains(&number));
            Ok(())
        }
    }

    fn read(
        &self,
        page: PageNo,
        _: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<> {
        let image = self.get(page);
        let sleep = self.0.handle.sleep(self.pause(9_000));
        async move {
            sleep.await;
            Ok(image)
        }
    }

    fn read_versions(
        &self,
        page: PageNo,
        _: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<> {
        let newest = self.newest(page).filter(|_| self.0.cells.is_redundant);
        ready(newest.map(|version| version.redundant).into_iter().collect())
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        _: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<> {
        ready((first.0..first.0 + pages).map(|page| Ok(self.get(PageNo(page)))).collect())
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
        let first = self.0.cells.shape.page(extent, 0);
        let behind = PageNo(first.0 + self.0.cells.shape.pages_per_extent);
        let places = self.0.cells.places.borrow();
        let written: Vec<PageNo> = places.range(first..behind).map(|(page, _)| *page).collect();
        drop(places);
        let number = self.begin();
        for page in written {
            self.put(page, number, PageImage::new(&[]));
        }
        self.end(number, 60_000)
    }

    fn wear(&self, _: ExtentId, _: Stream) -> u32 {
        0
    }
}
