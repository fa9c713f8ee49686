//! The interface to the storage below a store. One of the three seams of the design.
//!
//! A medium is a set of extents of equal size. An extent is opened for a stream, written from its
//! first page to its last in append units, and released as a whole. Appended pages can be read at
//! once and are durable after the next sync. Raw flash implements it with superblocks, a volume
//! over several drives with stripes, files with preallocated ranges.
//!
//! A medium may return more bytes of a page than were appended (padding), a wrong page, or an older
//! version of the page. The header of a page contains the fields that detect these cases.

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
    /// Bytes that a page holds for the store, including its spare area.
    pub payload_bytes: u32,
    /// Nominal page size in bytes: the charge for a page in memory.
    pub page_bytes: u32,
    /// Pages per extent.
    pub pages_per_extent: u32,
    /// Number of extents that the store may use.
    pub extents: u32,
    /// Maximum number of extents, for a medium that may grow; pointers are sized for it. 0 if it
    /// does not grow.
    pub grows_to: u32,
    /// Pages per append unit: pages that are appended together.
    pub append_unit: u32,
    /// Number of appends that make progress in parallel.
    pub parallelism: u32,
}

impl Shape {
    /// Returns the extent of a page.
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

    /// Returns the nominal bytes of an extent.
    pub fn extent_bytes(&self) -> u64 {
        u64::from(self.pages_per_extent) * u64::from(self.page_bytes)
    }

    /// Returns the nominal bytes of all extents.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.extents) * self.extent_bytes()
    }
}

/// A medium's own record of the opening of an extent, which is valid even if its pages are
/// unreadable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenedFor {
    /// Stream of the extent.
    pub stream: Stream,
    /// Run of the medium in which the extent was opened; later runs have higher numbers.
    pub run: u64,
    /// Generation that the extent was opened with.
    pub generation: u64,
}

/// The purpose of an extent. A medium may separate streams by place, by drive, or by the time at
/// which it writes them.
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
    /// Tables of the index, each in extents of its own, so that it dies as a whole.
    Tables = 4,
}

impl Stream {
    /// All streams.
    pub const ALL: [Self; 5] =
        [Self::Objects, Self::Index, Self::Log, Self::Manifest, Self::Tables];

    /// Whether the stream belongs to the journal. The index does not refer to journal pages.
    pub const fn is_journal(self) -> bool {
        matches!(self, Self::Log | Self::Manifest)
    }
}

/// The reason why a medium could not execute a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediumError {
    /// This page was never written, is lost, or is beyond correction. Other pages are not affected.
    Unreadable(PageNo),
    /// The medium has less space than its shape promises. Free space below it and open the store
    /// again.
    NoSpace,
    /// The device is gone, or a part of it for which no redundancy exists.
    Gone,
    /// The device accepts no more writes. Existing data can still be read.
    ReadOnly,
    /// An error of the operating system, with its error number.
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

/// A medium. Each call of a read, append or release submits it at once, in call order; the returned
/// future only waits for its completion.
pub trait Medium: 'static {
    /// Returns the geometry of this medium; constant.
    fn shape(&self) -> Shape;

    /// Opens an empty extent for pages of `stream`, for its use number `generation`.
    ///
    /// # Errors
    /// Returns [`MediumError::Gone`], [`MediumError::ReadOnly`] or [`MediumError::NoSpace`].
    fn open(&self, extent: ExtentId, generation: u64, stream: Stream) -> Result<(), MediumError>;

    /// Appends one append unit at `first`, or a run of up to [`Self::run_pages`] pages. Requires:
    /// `first` is the next free place of its open extent. The pages can be read when the future
    /// completes. They are durable after a [`Self::sync`] of their stream that begins after that.
    ///
    /// # Errors
    /// Returns any error but [`MediumError::Unreadable`]. The contents of the unit are then
    /// unknown, and its extent accepts no more appends.
    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// Appends several append units from `first` on, all in one extent. One long write if the
    /// medium supports it.
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

    /// Returns the best length of a run of appends in pages, a multiple of the append unit. If it
    /// is one unit, longer runs gain nothing.
    fn run_pages(&self) -> u32 {
        self.shape().append_unit
    }

    /// Makes durable all appends to `stream` that had completed before the call.
    ///
    /// # Errors
    /// As [`Self::append`]. Data that was not durable before the call cannot be relied on then.
    fn sync(&self, stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// [`Self::append_run`] of pages of `stream`, followed by the [`Self::sync`] that makes them
    /// durable. One operation if the medium supports it. The caller must poll the future: the
    /// medium may submit the operation only at the first poll.
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
    /// Returns [`MediumError::Unreadable`], [`MediumError::Gone`] or [`MediumError::Io`].
    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<Self>;

    /// Returns the read as an operation that the caller can execute without the medium, if its
    /// result is the same as that of [`Self::read`]. If it fails, call [`Self::read`], which
    /// reports the error or repairs it.
    fn file_read(&self, _page: PageNo) -> Option<FileRead> {
        None
    }

    /// Returns alternative images of a page whose [`Self::read`] returned a wrong one: the page
    /// rebuilt from redundancy and, if the read may have returned a rebuilt page, also the stored
    /// page. Each image may be wrong too. Empty without redundancy, or if no redundancy is left.
    fn read_versions(
        &self,
        _page: PageNo,
        _class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<Self> {
        ready(Vec::new())
    }

    /// Reads `pages` pages of one extent; the last ones may never have been written. One long read
    /// if the medium supports it.
    ///
    /// # Errors
    /// For each page as [`Self::read`].
    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<Self>;

    /// Promotes the prefetch of `page` to a client's read, because a client waits for it now. Does
    /// nothing if the page is not being read.
    fn promote(&self, page: PageNo);

    /// Sets whether clients' writes wait for background work (a write stall in `RocksDB`). During a
    /// stall background work gets a fair share of the medium's time, about half of it, and not only
    /// the time that clients' reads leave.
    fn set_write_stall(&self, is_on: bool);

    /// Whether background work of `class` must delay its next step because clients need the medium.
    /// The end of the pause is not signalled: poll again after some milliseconds.
    fn pauses(&self, _class: IoClass) -> bool {
        false
    }

    /// Returns the index in the extent at which appends continue after a power cut. No data exists
    /// at or after that index, and skipped units before it do not obstruct later ones. Zero for an
    /// empty extent. A medium that allows in-place writes always returns zero.
    ///
    /// # Errors
    /// As [`Self::read`] and [`Self::append`].
    fn frontier(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<u32, MediumError>> + use<Self>;

    /// Whether an extent that was opened, and not released since, accepts appends after a power
    /// cut. A medium that keeps its own record of extents may have lost the entry of one by damage;
    /// that extent must be opened anew before it is appended to.
    fn knows(&self, _extent: ExtentId) -> bool {
        true
    }

    /// Whether the medium allows in-place writes at any time, so that [`Self::frontier`] has no
    /// information; constant. Unwritten pages of a reused extent may then still show its earlier
    /// contents.
    fn is_written_anywhere(&self) -> bool {
        false
    }

    /// Whether an unreadable page of the extent may have been written and synced, and be lost. If
    /// false, an unreadable page is a page that a power cut left half written, or belongs to an
    /// extent of which nothing was synced.
    fn unreadable_is_lost(&self, _extent: ExtentId) -> bool {
        false
    }

    /// Returns the purpose for which an extent was last opened, if the medium is certain of it: the
    /// extent was not reopened and durably written since. Works for extents whose pages are
    /// unreadable, too.
    fn opened_for(&self, _extent: ExtentId) -> Option<OpenedFor> {
        None
    }

    /// Empties an extent. Requires: the store no longer refers to any of its pages.
    ///
    /// # Errors
    /// As [`Self::append`].
    fn release(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<(), MediumError>> + use<Self>;

    /// Returns the wear of an extent that is a candidate for `stream`; the store opens the extent
    /// with the lowest value. On media without wear, returns how badly the extent suits the stream.
    fn wear(&self, extent: ExtentId, stream: Stream) -> u32;
}
