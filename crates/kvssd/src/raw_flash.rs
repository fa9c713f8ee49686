//! Raw flash as a medium: an extent is a superblock, one erase block of every die.
//!
//! Append units go round robin over the dies, so that consecutive units are written, and read
//! back, side by side. The first superblocks are reserved for dumps and not part of the medium.

use engine::{ExtentId, Medium, PageNo, Shape, Unreadable};
use firmware::Superblocks;
use flash::{DieIndex, Flash, PageAddress, ReadError};
use runtime::{IoClass, PageImage};

/// The medium of an in-drive engine.
#[derive(Clone)]
pub struct RawFlash {
    flash: Flash,
    layout: Superblocks,
    /// Superblocks kept for dumps, at the beginning of the drive.
    reserved: u32,
}

impl RawFlash {
    pub(crate) fn new(flash: Flash, reserved: u32) -> Self {
        let layout = Superblocks::new(flash.geometry());
        Self { flash, layout, reserved }
    }

    fn superblock(&self, extent: ExtentId) -> u32 {
        extent.0 + self.reserved
    }

    /// Where a page of the medium lies in the flash; for tests that damage it.
    pub fn flash_page(&self, page: PageNo) -> PageAddress {
        let per = self.layout.pages();
        self.layout.page(self.superblock(ExtentId(page.0 / per)), page.0 % per)
    }
}

impl Medium for RawFlash {
    fn shape(&self) -> Shape {
        let geometry = self.flash.geometry();
        Shape {
            payload_bytes: geometry.page_bytes + geometry.spare_bytes,
            page_bytes: geometry.page_bytes,
            pages_per_extent: self.layout.pages(),
            extents: geometry.blocks_per_die() - self.reserved,
            append_unit: geometry.program_unit(),
            parallelism: geometry.dies(),
        }
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = ()> + use<> {
        self.flash.program(self.flash_page(first), pages, class)
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, Unreadable>> + use<> {
        let read = self.flash.read(self.flash_page(page), class);
        async move { read.await.map_err(|_| Unreadable(page)) }
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, Unreadable>>> + use<> {
        let pages = (first.0..first.0 + pages).map(PageNo);
        let reads: Vec<_> = pages.map(|page| self.read(page, class)).collect();
        async move {
            let mut images = Vec::with_capacity(reads.len());
            for read in reads {
                images.push(read.await);
            }
            images
        }
    }

    fn hurry(&self, page: PageNo) {
        self.flash.hurry(self.flash_page(page));
    }

    fn skip(&self, first: PageNo) -> impl Future<Output = ()> + use<> {
        let (flash, address) = (self.flash.clone(), self.flash_page(first));
        let unit = self.flash.geometry().program_unit() as usize;
        async move {
            // NAND is programmed in order: a page that was left out would bar its block.
            if flash.read(address, IoClass::Journal).await.err() == Some(ReadError::Erased) {
                let nothing = vec![PageImage::new(&[]); unit];
                flash.program(address, nothing, IoClass::Journal).await;
            }
        }
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = ()> + use<> {
        let blocks = self.layout.blocks(self.superblock(extent));
        let erases: Vec<_> =
            blocks.map(|block| self.flash.erase(block, IoClass::GcWrite)).collect();
        async move {
            for erase in erases {
                erase.await;
            }
        }
    }

    fn wear(&self, extent: ExtentId) -> u32 {
        let block = self.flash.geometry().block(DieIndex(0), self.superblock(extent));
        self.flash.with_array(|array| array.erase_count(block))
    }
}
