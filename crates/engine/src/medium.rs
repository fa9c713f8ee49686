//! The interface to the storage that indexes store pages on. One of the three seams of the design.
//!
//! A medium is a set of extents of equal size. An extent is opened for a stream, written from its
//! first page to its last in append units, and released as a whole. Appended pages can be read at
//! once and are durable after the next sync. Raw flash implements a medium with superblocks, a
//! volume over several drives with stripes, files with preallocated ranges.
//!
//! A medium may return more bytes of a page than were appended (padding), another page than the
//! requested one, or an older one: pages contain the data to detect this.

use std::fmt;
use std::future::{Future, ready};

use runtime::{FileRead, IoClass, PageImage};

/// The number of an extent, from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ExtentId(pub u32);

/// The number of a page: `extent * pages_per_extent + index in the extent`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PageNo(pub u32);

/// The geometry of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes of a page that the store can use, spare area included.
    pub payload_bytes: u32,
    /// The nominal page size in bytes: the size charged for a page in memory.
    pub page_bytes: u32,
    /// The number of pages of an extent.
    pub pages_per_extent: u32,
    /// The number of extents that the store may use.
    pub extents: u32,
    /// The largest number of extents of a medium that can grow. Pointers are sized for it. 0: the
    /// medium does not grow.
    pub grows_to: u32,
    /// The number of pages that are appended together.
    pub append_unit: u32,
    /// The number of appends that progress in parallel.
    pub parallelism: u32,
}

impl Shape {
    /// Returns the extent that holds a page.
    pub fn extent_of(&self, page: PageNo) -> ExtentId {
        ExtentId(page.0 / self.pages_per_extent)
    }

    /// Returns page `index` of an extent.
    pub fn page(&self, extent: ExtentId, index: u32) -> PageNo {
        PageNo(extent.0 * self.pages_per_extent + index)
    }

    /// Returns `pages` rounded up to whole append units.
    pub fn in_units(&self, pages: u32) -> u32 {
        pages.next_multiple_of(self.append_unit)
    }

    /// Returns the number of extents that hold `pages` pages.
    pub fn extents_of(&self, pages: u32) -> usize {
        pages.div_ceil(self.pages_per_extent) as usize
    }

    /// Returns the nominal size of an extent in bytes.
    pub fn extent_bytes(&self) -> u64 {
        u64::from(self.pages_per_extent) * u64::from(self.page_bytes)
    }

    /// Returns the nominal size of all extents in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.extents) * self.extent_bytes()
    }
}

/// The record of an extent's opening, kept by the medium even if its pages cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenedFor {
    /// The stream that it was opened for.
    pub stream: Stream,
    /// The run of the medium that opened it; later runs have higher numbers.
    pub run: u64,
    /// Generation that the extent was opened with.
    pub generation: u64,
}

/// The kind of data in an extent. A medium may separate streams: by place, by drive, or by the time
/// of writing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Stream {
    /// Packed keys and values.
    Objects = 0,
    /// Pages of the index.
    Index = 1,
    /// The WAL: writes that are not in the index yet.
    Log = 2,
    /// The manifest: edits of the index.
    Manifest = 3,
    /// Tables of the index, in extents of their own: such an extent dies as a whole.
    Tables = 4,
}

impl Stream {
    /// All streams.
    pub const ALL: [Self; 5] =
        [Self::Objects, Self::Index, Self::Log, Self::Manifest, Self::Tables];

    /// Whether the stream belongs to the journal: the index refers to none of its pages.
    pub const fn is_journal(self) -> bool {
        matches!(self, Self::Log | Self::Manifest)
    }
}

/// The error of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediumError {
    /// This page was never written, is lost, or cannot be corrected. Other pages are not affected.
    Unreadable(PageNo),
    /// The medium has less space than its shape states. Free some and open the store again.
    NoSpace,
    /// The device is gone, or a part of it that nothing can replace.
    Gone,
    /// The device accepts no more writes. Its contents can still be read.
    ReadOnly,
    /// The operating system's error with this number.
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

/// A medium. Reads, appends and releases are submitted by the call itself, in call order; the
/// returned futures only wait for completion.
pub trait Medium: 'static {
    /// Returns the shape of this medium; constant.
    fn shape(&self) -> Shape;

    /// Opens an empty extent, to be filled with pages of `stream`, for the `generation`th time.
    ///
    /// # Errors
    /// Returns [`MediumError::Gone`], [`MediumError::ReadOnly`] or [`MediumError::NoSpace`].
    fn open(&self, extent: ExtentId, generation: u64, stream: Stream) -> Result<(), MediumError>;

    /// Writes one append unit, or a run of at most [`Self::run_pages`] pages, at `first`. The pages
    /// can be read when the future completes. They are durable after a [`Self::sync`] of their
    /// stream that begins after that. Requires: `first` is the next page of its open extent.
    ///
    /// # Errors
    /// Returns any error but [`MediumError::Unreadable`]. It is then unknown which pages were
    /// written, and the extent cannot be appended to any more.
    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// Writes several append units from `first` on, all in one extent. A medium may do this as one
    /// long write.
    ///
    /// # Errors
    /// Returns the errors of [`Self::append`], for each unit.
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

    /// Returns the best length of a run of appends in pages, a multiple of the append unit. Longer
    /// runs gain nothing.
    fn run_pages(&self) -> u32 {
        self.shape().append_unit
    }

    /// Makes the completed appends to `stream` durable.
    ///
    /// # Errors
    /// Returns the errors of [`Self::append`]. No page that was not durable before can be relied on
    /// then.
    fn sync(&self, stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// Executes [`Self::append_run`] for pages of `stream` and the [`Self::sync`] that makes them
    /// durable. A medium may do this as one operation. It may be submitted only when the future is
    /// polled, so the caller must wait for it.
    ///
    /// # Errors
    /// Returns the errors of [`Self::append`].
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
    /// Returns [`MediumError::Unreadable`], [`MediumError::Gone`] or [`MediumError::Io`].
    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<Self>;

    /// Returns a read of `page` that a caller can execute without the medium; `None` if it would
    /// not return the same as [`Self::read`]. If it fails, call [`Self::read`], which reports the
    /// error or repairs the page.
    fn file_read(&self, _page: PageNo) -> Option<FileRead> {
        None
    }

    /// Returns other versions of a page, for a caller that found the result of [`Self::read`] to be
    /// damaged: the versions rebuilt from redundancy, and the stored one if [`Self::read`] may have
    /// returned a rebuilt one. Each of them may be damaged too. Empty where no redundancy exists or
    /// none is left.
    fn read_versions(
        &self,
        _page: PageNo,
        _class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<Self> {
        ready(Vec::new())
    }

    /// Reads `pages` pages of one extent. The last ones may never have been written. A medium may
    /// do this as one long read.
    ///
    /// # Errors
    /// Returns the errors of [`Self::read`], for each page.
    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<Self>;

    /// Notifies the medium that a client now waits for `page`, which is being read as a prefetch:
    /// the read counts as a client's read from now on. Does nothing if `page` is not being read.
    fn promote(&self, page: PageNo);

    /// Sets whether clients' writes wait for background work (a write stall, as in `RocksDB`).
    /// During a stall, background work should get its share of the medium's time, about half, and
    /// not only the time that clients' reads leave.
    fn set_write_stall(&self, is_on: bool);

    /// Whether background work of `class` should wait with its next step, because clients need the
    /// medium. The end is not signalled: ask again some milliseconds later.
    fn pauses(&self, _class: IoClass) -> bool {
        false
    }

    /// Returns the position where appends to an extent continue after a power cut. Nothing is
    /// stored at or after this position, and missing units before it do not obstruct later units. 0
    /// for an empty extent. A medium that can be written anywhere always returns 0.
    ///
    /// # Errors
    /// Returns the errors of [`Self::read`] and [`Self::append`].
    fn frontier(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<u32, MediumError>> + use<Self>;

    /// Whether an extent that was opened and not released since may be appended to after a power
    /// cut. A medium with its own record of extents may have lost a part of it by damage. Nothing
    /// can be appended to such an extent before it is opened again.
    fn knows(&self, _extent: ExtentId) -> bool {
        true
    }

    /// Whether any place can be written at any time, so that [`Self::frontier`] returns no
    /// information; constant. Old contents of an extent may be visible in pages that were not
    /// rewritten since its release.
    fn is_written_anywhere(&self) -> bool {
        false
    }

    /// Whether an unreadable page of an extent may have been written and synced, so that it is
    /// lost. Otherwise it is a page that a power cut left half written, or one of an extent of
    /// which nothing was synced.
    fn unreadable_is_lost(&self, _extent: ExtentId) -> bool {
        false
    }

    /// Returns the last opening of an extent, if the medium knows it for certain: the extent was
    /// not opened again since and written durably. The extent's pages may be unreadable.
    fn opened_for(&self, _extent: ExtentId) -> Option<OpenedFor> {
        None
    }

    /// Makes an extent empty again. Requires: the store refers to none of its pages.
    ///
    /// # Errors
    /// As [`Self::append`].
    fn release(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// Returns the wear of an extent, which is to be opened for `stream`. The store opens the least
    /// worn one. On media without wear, the number says how badly the extent suits the stream.
    fn wear(&self, extent: ExtentId, stream: Stream) -> u32;
}
