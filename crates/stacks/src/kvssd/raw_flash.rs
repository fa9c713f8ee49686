//! Raw flash as a medium: an extent is a superblock, one erase block of every die.
//!
//! Append units rotate over the dies, so consecutive units are written, and read back, in parallel.
//! The first superblocks are reserved for dumps and are not part of the medium.

use std::future::{Future, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use drives::firmware::Superblocks;
use drives::nand::{DieIndex, Flash, Geometry, PageAddress, PageReading, ReadError};
use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{IoClass, PageImage};

/// The medium of an in-drive engine.
#[derive(Clone)]
pub struct RawFlash {
    flash: Flash,
    layout: Superblocks,
    /// Superblocks reserved for dumps, at the beginning of the drive.
    reserved: u32,
}

impl RawFlash {
    pub(crate) fn new(flash: Flash, reserved: u32) -> Self {
        let layout = Superblocks::new(flash.geometry());
        assert!(reserved < layout.count(), "all {reserved} superblocks are reserved");
        Self { flash, layout, reserved }
    }

    fn superblock(&self, extent: ExtentId) -> u32 {
        extent.0 + self.reserved
    }

    /// Returns the flash address of a page of the medium; for tests that damage it.
    pub fn flash_page(&self, page: PageNo) -> PageAddress {
        let per = self.layout.pages();
        self.layout.page(self.superblock(ExtentId(page.0 / per)), page.0 % per)
    }
}

/// Returns the shape of a medium on this flash with `reserved` reserved superblocks.
pub(crate) fn shape(geometry: &Geometry, reserved: u32) -> Shape {
    Shape {
        payload_bytes: geometry.page_bytes + geometry.spare_bytes,
        page_bytes: geometry.page_bytes,
        pages_per_extent: Superblocks::new(geometry).pages(),
        extents: geometry.blocks_per_die() - reserved,
        grows_to: 0,
        append_unit: geometry.program_unit(),
        parallelism: geometry.dies(),
    }
}

impl RawFlash {
    /// Finds the end of the written part of a superblock, and fills the missing units before it,
    /// which a power cut left unwritten. Cost: a read of each block, and in a written superblock a
    /// binary search in each.
    async fn recover_frontier(&self, extent: ExtentId) -> u32 {
        let dies = self.flash.geometry().dies();
        let starts = self.are_written(extent, (0..dies).collect()).await;
        if !starts.contains(&true) {
            return 0;
        }
        let mut rows = Vec::with_capacity(dies as usize);
        for die in 0..dies {
            rows.push(self.rows_written(extent, die).await);
        }
        // Units rotate over the dies: the last unit of the furthest die is the last of all.
        let units = (0..dies).zip(&rows).filter(|(_, rows)| **rows > 0);
        let units = units.map(|(die, rows)| (rows - 1) * dies + die + 1).max().unwrap_or(0);
        for (die, rows) in (0..dies).zip(rows) {
            for unit in (rows..).map(|row| row * dies + die).take_while(|unit| *unit < units) {
                // NAND is programmed in order: a missing unit would block the rest of its erase
                // block.
                let nothing = vec![PageImage::new(&[]); self.unit_pages() as usize];
                self.flash.program(self.unit(extent, unit), nothing, IoClass::Journal).await;
            }
        }
        let pages = units * self.unit_pages();
        assert!(pages <= self.layout.pages(), "extent {} was written past its end", extent.0);
        pages
    }

    /// Returns the units of a superblock that were written to one die. They are written in order,
    /// so a binary search finds the last one.
    async fn rows_written(&self, extent: ExtentId, die: u32) -> u32 {
        let dies = self.flash.geometry().dies();
        let (mut low, mut high) = (0, self.layout.pages() / self.unit_pages() / dies);
        while low < high {
            let middle = u32::midpoint(low, high);
            let is_written = self.are_written(extent, vec![middle * dies + die]).await[0];
            (low, high) = if is_written { (middle + 1, high) } else { (low, middle) };
        }
        low
    }

    /// Returns whether each of these units was ever programmed. The reads run in parallel.
    async fn are_written(&self, extent: ExtentId, units: Vec<u32>) -> Vec<bool> {
        let read = |unit| self.flash.read(self.unit(extent, unit), IoClass::Journal);
        let reads: Vec<_> = units.into_iter().map(read).collect();
        let mut written = Vec::with_capacity(reads.len());
        for read in reads {
            written.push(read.await.err() != Some(ReadError::Erased));
        }
        written
    }

    /// Returns the first page of a unit, counted in the superblock.
    fn unit(&self, extent: ExtentId, unit: u32) -> PageAddress {
        self.layout.page(self.superblock(extent), unit * self.unit_pages())
    }

    fn unit_pages(&self) -> u32 {
        self.flash.geometry().program_unit()
    }
}

/// A read in flight. A struct instead of an `async` block, because every read needs one.
struct PageRead {
    read: PageReading,
    page: PageNo,
}

impl Future for PageRead {
    type Output = Result<PageImage, MediumError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let page = self.page;
        Pin::new(&mut self.read).poll(cx).map_err(|_| MediumError::Unreadable(page))
    }
}

impl Medium for RawFlash {
    fn shape(&self) -> Shape {
        shape(self.flash.geometry(), self.reserved)
    }

    /// Does nothing: streams share the dies.
    fn open(&self, _: ExtentId, _: u64, _: Stream) -> Result<(), MediumError> {
        Ok(())
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let unit = self.unit_pages();
        assert!(
            first.0.is_multiple_of(unit) && pages.len() == unit as usize,
            "{} pages from page {} on are no unit of {unit}",
            pages.len(),
            first.0
        );
        let program = self.flash.program(self.flash_page(first), pages, class);
        async move {
            program.await;
            Ok(())
        }
    }

    /// Does nothing: programmed pages are durable.
    fn sync(&self, _stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<> {
        ready(Ok(()))
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<> {
        PageRead { read: self.flash.read(self.flash_page(page), class), page }
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<> {
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

    fn promote(&self, page: PageNo) {
        self.flash.promote(self.flash_page(page));
    }

    fn set_write_stall(&self, is_on: bool) {
        self.flash.set_write_stall(is_on);
    }

    fn frontier(&self, extent: ExtentId) -> impl Future<Output = Result<u32, MediumError>> + use<> {
        let medium = self.clone();
        async move { Ok(medium.recover_frontier(extent).await) }
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<> {
        let superblock = self.superblock(extent);
        assert!(superblock < self.layout.count(), "the drive has no extent {}", extent.0);
        let blocks = self.layout.blocks(superblock);
        let erases: Vec<_> =
            blocks.map(|block| self.flash.erase(block, IoClass::GcWrite)).collect();
        async move {
            for erase in erases {
                erase.await;
            }
            Ok(())
        }
    }

    fn wear(&self, extent: ExtentId, _: Stream) -> u32 {
        let block = self.flash.geometry().block(DieIndex(0), self.superblock(extent));
        self.flash.with_array(|array| array.erase_count(block))
    }
}
