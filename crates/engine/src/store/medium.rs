//! What an engine stores pages on. One of the three seams of the design.
//!
//! A medium is a set of extents of equal size. An extent is written from its first page to its
//! last, in append units, and released as a whole. Raw flash implements it with superblocks; a
//! volume over several drives will with stripes.

use std::fmt;
use std::future::Future;

use runtime::{IoClass, PageImage};

/// An extent, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ExtentId(pub u32);

/// A page of the medium: `extent * pages_per_extent + place in the extent`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PageNo(pub u32);

/// The sizes of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes a page carries for the engine, spare area included.
    pub payload_bytes: u32,
    /// Nominal page size in bytes: what a page in memory is charged.
    pub page_bytes: u32,
    /// Pages in an extent.
    pub pages_per_extent: u32,
    /// Extents the engine may use.
    pub extents: u32,
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

    /// Nominal bytes of all extents.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.extents) * u64::from(self.pages_per_extent) * u64::from(self.page_bytes)
    }
}

/// A page could not be read: never written, lost, or beyond correction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreadable(pub PageNo);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {} cannot be read", self.0.0)
    }
}

impl std::error::Error for Unreadable {}

/// The seam. Reads, appends and releases are submitted by the call itself, in call order; the
/// returned futures only wait for the end.
pub trait Medium: 'static {
    /// The sizes of this medium; constant.
    fn shape(&self) -> Shape;

    /// Writes one append unit at `first`, which must be the next place of its extent. The pages
    /// are durable when the future is ready.
    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = ()> + use<Self>;

    /// Reads one page.
    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, Unreadable>> + use<Self>;

    /// Reads `pages` pages of one extent, of which the last ones may never have been written. One
    /// long read where the medium has such.
    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, Unreadable>>> + use<Self>;

    /// A client waits now for `page`, which is being read as a prefetch. Does nothing if it is not.
    fn hurry(&self, page: PageNo);

    /// After a power cut: gets the append unit at `first`, which was handed out before and of which
    /// nobody knows how far it came, out of the way of those behind it. Units of an extent are
    /// skipped in order. What is in them is lost.
    fn skip(&self, first: PageNo) -> impl Future<Output = ()> + use<Self>;

    /// Makes an extent empty again. The engine no longer refers to any of its pages.
    fn release(&self, extent: ExtentId) -> impl Future<Output = ()> + use<Self>;

    /// How worn an extent is; the engine opens the least worn one.
    fn wear(&self, extent: ExtentId) -> u32;
}
