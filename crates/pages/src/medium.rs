//! What indexes store pages on. One of the three seams of the design.
//!
//! A medium is a set of extents of equal size. An extent is opened for a stream, written from its
//! first page to its last in append units, and released as a whole. What was appended can be read at
//! once and is durable after the next sync. Raw flash implements it with superblocks; a volume over
//! several drives will with stripes, files with preallocated ranges.
//!
//! A medium may give back more bytes of a page than were appended (padding), another page than was
//! asked for, or an older one: pages carry what it takes to notice.

use std::fmt;
use std::future::{Future, ready};

use runtime::{FileRead, IoClass, PageImage};

/// An extent, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ExtentId(pub u32);

/// A page of the medium: `extent * pages_per_extent + place in the extent`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PageNo(pub u32);

/// The sizes of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes a page carries for the store, spare area included.
    pub payload_bytes: u32,
    /// Nominal page size in bytes: what a page in memory is charged.
    pub page_bytes: u32,
    /// Pages in an extent.
    pub pages_per_extent: u32,
    /// Extents the store may use.
    pub extents: u32,
    /// Extents that it may have one day, of a medium that may grow; pointers are cut for so many. 0: it does not grow.
    pub grows_to: u32,
    /// Pages that are appended together.
    pub append_unit: u32,
    /// Appends that make progress side by side.
    pub parallelism: u32,
}

impl Shape {
    /// The extent that holds a page.
    pub fn extent_of(&self, page: PageNo) -> ExtentId {
        ExtentId(page.0 / self.pages_per_extent)
    }

    /// Page `index` of an extent.
    pub fn page(&self, extent: ExtentId, index: u32) -> PageNo {
        PageNo(extent.0 * self.pages_per_extent + index)
    }

    /// `pages`, rounded up to whole append units.
    pub fn in_units(&self, pages: u32) -> u32 {
        pages.next_multiple_of(self.append_unit)
    }

    /// Extents that hold `pages`.
    pub fn extents_of(&self, pages: u32) -> usize {
        pages.div_ceil(self.pages_per_extent) as usize
    }

    /// Nominal bytes of an extent.
    pub fn extent_bytes(&self) -> u64 {
        u64::from(self.pages_per_extent) * u64::from(self.page_bytes)
    }

    /// Nominal bytes of all extents.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.extents) * self.extent_bytes()
    }
}

/// What a medium knows of the opening of an extent whose pages it cannot give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenedFor {
    /// What it was opened for.
    pub stream: Stream,
    /// The run of the medium in which it was; later ones have higher numbers.
    pub run: u64,
    /// The generation that it was opened with.
    pub generation: u64,
}

/// What an extent is written for. A medium may keep streams apart: by place, by drive, or by when it
/// writes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Stream {
    /// Keys and values, packed.
    Objects = 0,
    /// Pages of the index.
    Index = 1,
    /// The log: writes that are not in the index yet.
    Log = 2,
    /// The manifest: edits of the index.
    Manifest = 3,
    /// Tables of the index, in extents of their own: each dies as a whole.
    Tables = 4,
}

impl Stream {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Objects, Self::Index, Self::Log, Self::Manifest, Self::Tables];

    /// Whether it belongs to the journal: nothing in the index refers to it.
    pub const fn is_journal(self) -> bool {
        matches!(self, Self::Log | Self::Manifest)
    }
}

/// Why a medium did not do what it was asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediumError {
    /// This page was never written, is lost, or beyond correction. Others are not concerned.
    Unreadable(PageNo),
    /// There is less room than the medium's shape says. Free some and open the store again.
    NoSpace,
    /// The device is gone, or a part of it that nothing else can stand in for.
    Gone,
    /// The device takes no more writes. What is there can still be read.
    ReadOnly,
    /// The operating system's error of this number.
    Io(i32),
}

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(page) => write!(f, "page {} cannot be read", page.0),
            Self::NoSpace => f.write_str("there is no space left on the device"),
            Self::Gone => f.write_str("the device is gone"),
            Self::ReadOnly => f.write_str("the device takes no more writes"),
            Self::Io(code) => write!(f, "input/output error {code}"),
        }
    }
}

impl std::error::Error for MediumError {}

/// The seam. Reads, appends and releases are submitted by the call itself, in call order; the
/// returned futures only wait for the end.
pub trait Medium: 'static {
    /// The sizes of this medium; constant.
    fn shape(&self) -> Shape;

    /// An empty extent is going to be filled with pages of `stream`, for the `generation`th time.
    ///
    /// # Errors
    /// [`MediumError::Gone`], [`MediumError::ReadOnly`], [`MediumError::NoSpace`].
    fn open(&self, extent: ExtentId, generation: u64, stream: Stream) -> Result<(), MediumError>;

    /// Writes one append unit, or a run of [`Self::run_pages`] at most, at `first`, which must be the next place of its open extent. The pages
    /// can be read when the future is ready, and are durable after a [`Self::sync`] of their stream
    /// that begins then.
    ///
    /// # Errors
    /// All but [`MediumError::Unreadable`]. What of the unit is there is unknown then, and its extent
    /// cannot be appended to any more.
    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// Writes several append units from `first` on, all in one extent. One long write where the medium has
    /// such.
    ///
    /// # Errors
    /// As [`Self::append`], for each unit.
    fn append_run(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self> {
        let longest = self.run_pages();
        let firsts = (first.0..).step_by(longest as usize).map(PageNo);
        let mut pages = pages.into_iter();
        let runs = std::iter::from_fn(|| {
            let pages: Vec<PageImage> = pages.by_ref().take(longest as usize).collect();
            (!pages.is_empty()).then_some(pages)
        });
        let appends: Vec<_> =
            firsts.zip(runs).map(|(first, pages)| self.append(first, pages, class)).collect();
        async move {
            for append in appends {
                append.await?;
            }
            Ok(())
        }
    }

    /// Pages that a run of appends has at best, a multiple of the append unit. Where that is one unit, longer runs
    /// gain nothing.
    fn run_pages(&self) -> u32 {
        self.shape().append_unit
    }

    /// What was appended to `stream` and was ready is durable when the future is ready.
    ///
    /// # Errors
    /// As [`Self::append`]. Nothing that was not durable before can be relied on then.
    fn sync(&self, stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// [`Self::append_run`] of pages of `stream`, and the [`Self::sync`] that makes them durable. One operation where the medium
    /// has such. Whoever calls waits: it may be submitted no sooner than the future is polled.
    ///
    /// # Errors
    /// As [`Self::append`].
    fn append_durably(
        &self,
        stream: Stream,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> {
        let append = self.append_run(first, pages, class);
        async move {
            append.await?;
            self.sync(stream).await
        }
    }

    /// Reads one page.
    ///
    /// # Errors
    /// [`MediumError::Unreadable`], [`MediumError::Gone`], [`MediumError::Io`].
    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<Self>;

    /// The same read for whoever is to carry it out without the medium, if that gives what [`Self::read`] would. What was wrong with it is for
    /// [`Self::read`] to say, and to make good.
    fn file_read(&self, _page: PageNo) -> Option<FileRead> {
        None
    }

    /// What else a page may be, for whoever found what [`Self::read`] gave to be wrong: what redundancy says, and where a
    /// read may have given that, also what is stored. Any may be wrong as well. None where there is no redundancy, or none
    /// is left.
    fn read_versions(
        &self,
        _page: PageNo,
        _class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<Self> {
        ready(Vec::new())
    }

    /// Reads `pages` pages of one extent, of which the last ones may never have been written. One
    /// long read where the medium has such.
    ///
    /// # Errors
    /// For each page as [`Self::read`].
    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<Self>;

    /// A client waits now for `page`, which is being read as a prefetch: it counts as a client's read
    /// from now on. Does nothing if it is not being read.
    fn promote(&self, page: PageNo);

    /// Whether clients' writes wait for background work (a write stall, as `RocksDB` calls it). As long as
    /// they do, that is to have its share of the medium's time, about half of it, and not only what
    /// clients' reads leave.
    fn set_write_stall(&self, is_on: bool);

    /// Whether background work of `class` is to wait with its next step, because clients need the medium.
    /// Nobody is told when that ends: ask again, some milliseconds later.
    fn pauses(&self, _class: IoClass) -> bool {
        false
    }

    /// Where appends to an extent go on after a power cut: nothing lies at or behind that place, and
    /// units in front of it that were left out are out of the way of those behind it. Zero for an
    /// empty extent. A medium on which any place can be written at any time gives zero always.
    ///
    /// # Errors
    /// As [`Self::read`] and [`Self::append`].
    fn frontier(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<u32, MediumError>> + use<Self>;

    /// Whether an extent that was opened, and not released since, may be appended to after a power cut. A medium that keeps a
    /// record of its own may have lost what it says of one, by damage: nothing can be appended to that before it is opened anew.
    fn knows(&self, _extent: ExtentId) -> bool {
        true
    }

    /// Whether any place can be written at any time, so that [`Self::frontier`] tells nothing; constant.
    /// What an extent held before it was released may show through where it was not written again.
    fn is_written_anywhere(&self) -> bool {
        false
    }

    /// Whether a page of an extent that cannot be read may be one that was written and synced, and is lost. Elsewhere it is one that a power
    /// cut left half written, or of an extent of which nothing was synced.
    fn unreadable_is_lost(&self, _extent: ExtentId) -> bool {
        false
    }

    /// What an extent was opened for last, if the medium knows that for certain, also of one whose pages it cannot give: it was not opened again
    /// since and written durably.
    fn opened_for(&self, _extent: ExtentId) -> Option<OpenedFor> {
        None
    }

    /// Makes an extent empty again. The store no longer refers to any of its pages.
    ///
    /// # Errors
    /// As [`Self::append`].
    fn release(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// How worn an extent is, which is to be opened for `stream`; the store opens the least worn one. Where nothing wears, how ill
    /// it suits that stream.
    fn wear(&self, extent: ExtentId, stream: Stream) -> u32;
}
