//! Raw flash as a medium: an extent is a superblock, one erase block of every die.
//!
//! Append units go round robin over the dies, so that consecutive units are written, and read
//! back, side by side. The first superblocks are reserved for dumps and not part of the medium.

use engine::{ExtentId, Medium, PageNo, Shape, Unreadable};
use flash::{BlockAddress, DieIndex, Flash, Geometry, PageAddress, ReadError};
use runtime::{IoClass, PageImage};

/// The medium of an in-drive engine.
#[derive(Clone)]
pub struct RawFlash {
    flash: Flash,
    layout: Layout,
}

/// Where the pages of superblocks are. Pure arithmetic.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    geometry: Geometry,
    /// Superblocks kept for dumps, at the beginning of the drive.
    reserved: u32,
}

impl Layout {
    pub(crate) fn new(geometry: &Geometry, reserved: u32) -> Self {
        Self { geometry: geometry.clone(), reserved }
    }

    pub(crate) fn pages_per_superblock(&self) -> u32 {
        self.geometry.dies() * self.geometry.pages_per_die_block()
    }

    /// Page `index` of superblock `superblock`, in append order.
    pub(crate) fn page(&self, superblock: u32, index: u32) -> PageAddress {
        let unit = self.geometry.program_unit();
        let (row, place) = (index / unit, index % unit);
        let die = DieIndex(row % self.geometry.dies());
        let block = self.geometry.block(die, superblock);
        self.geometry.page(block, row / self.geometry.dies() * unit + place)
    }

    /// The erase blocks of a superblock.
    pub(crate) fn blocks(&self, superblock: u32) -> impl Iterator<Item = BlockAddress> {
        (0..self.geometry.dies()).map(move |die| self.geometry.block(DieIndex(die), superblock))
    }

    fn superblock(&self, extent: ExtentId) -> u32 {
        extent.0 + self.reserved
    }

    fn page_of(&self, page: PageNo) -> PageAddress {
        let per = self.pages_per_superblock();
        self.page(self.superblock(ExtentId(page.0 / per)), page.0 % per)
    }

    fn shape(&self) -> Shape {
        let geometry = &self.geometry;
        Shape {
            payload_bytes: geometry.page_bytes + geometry.spare_bytes,
            page_bytes: geometry.page_bytes,
            pages_per_extent: self.pages_per_superblock(),
            extents: geometry.blocks_per_die() - self.reserved,
            append_unit: geometry.program_unit(),
            parallelism: geometry.dies(),
        }
    }
}

impl RawFlash {
    pub(crate) fn new(flash: Flash, layout: Layout) -> Self {
        Self { flash, layout }
    }

    /// Where a page of the medium lies in the flash; for tests that damage it.
    pub fn flash_page(&self, page: PageNo) -> PageAddress {
        self.layout.page_of(page)
    }
}

impl Medium for RawFlash {
    fn shape(&self) -> Shape {
        self.layout.shape()
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = ()> + use<> {
        self.flash.program(self.layout.page_of(first), pages, class)
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, Unreadable>> + use<> {
        let read = self.flash.read(self.layout.page_of(page), class);
        async move { read.await.map_err(|_| Unreadable(page)) }
    }

    fn hurry(&self, page: PageNo) {
        self.flash.hurry(self.layout.page_of(page));
    }

    fn skip(&self, first: PageNo) -> impl Future<Output = ()> + use<> {
        let (flash, address) = (self.flash.clone(), self.layout.page_of(first));
        let unit = self.layout.geometry.program_unit() as usize;
        async move {
            // NAND is programmed in order: a page that was left out would bar its block.
            if flash.read(address, IoClass::Journal).await.err() == Some(ReadError::Erased) {
                let nothing = vec![PageImage::new(&[]); unit];
                flash.program(address, nothing, IoClass::Journal).await;
            }
        }
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = ()> + use<> {
        let blocks = self.layout.blocks(self.layout.superblock(extent));
        let erases: Vec<_> =
            blocks.map(|block| self.flash.erase(block, IoClass::GcWrite)).collect();
        async move {
            for erase in erases {
                erase.await;
            }
        }
    }

    fn wear(&self, extent: ExtentId) -> u32 {
        let block = self.layout.geometry.block(DieIndex(0), self.layout.superblock(extent));
        self.flash.with_array(|array| array.erase_count(block))
    }
}
