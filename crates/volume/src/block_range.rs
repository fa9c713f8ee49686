//! A range of an NVM set as a medium.
//!
//! Extents are equal ranges of blocks; a page is a whole number of blocks. Writes need no order, so
//! there is no frontier. A write is one command for the whole unit; a flush of the set makes it
//! durable. A release discards the blocks.
//!
//! A device does not store the length of a page. A page is returned up to its last byte that is not
//! zero, and at least as long as its header says and as any header is; the rest is zeros. A page of
//! only zeros is returned empty: it was never written, was discarded, or was written with zeros,
//! which are the same to a reader.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use block::nvme::SetId;
use block::{BLOCK_BYTES, Block, BlockDevice, DeviceError, Force};
use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream, said_len};
use runtime::{FileRead, IoClass, PageImage};

/// The range of blocks, and how it is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeOptions {
    /// The set.
    pub set: SetId,
    /// The first block.
    pub first_block: u64,
    /// Blocks per page.
    pub page_blocks: u32,
    /// Pages per extent.
    pub pages_per_extent: u32,
    /// Number of extents.
    pub extents: u32,
    /// Number of extents that it may grow to: see [`Shape::grows_to`].
    pub grows_to: u32,
    /// Number of appends that make progress in parallel; a device does not report it.
    pub parallelism: u32,
    /// Maximum number of consecutive pages in one write. It is 1 for a simulated drive, whose
    /// writes cost by the block.
    pub run_pages: u32,
    /// The choice of the next free extent.
    pub reuse: Reuse,
    /// Whether a journal run that must be durable at once is written with Force Unit Access instead
    /// of being followed by a flush. For files and real drives, where that is one operation instead
    /// of two.
    pub forces_journal: bool,
}

/// The choice of the next free extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reuse {
    /// The extent that was opened least often: for drives that rely on the host for even wear.
    #[default]
    LeastWorn,
    /// The first free extent: for files. The file stays as short as the data in it, and space that
    /// was written before takes writes faster than new space. For each write into new space a file
    /// system must record, before the write is durable, that the space is now written. So an extent
    /// that held a journal is kept for the journal as long as another extent is free for other
    /// streams.
    First,
}

/// The use of an extent since the medium was opened.
#[derive(Default)]
struct Opened {
    times: Cell<u32>,
    /// Whether it holds a journal, or last held one.
    for_journal: Cell<bool>,
}

/// A range of blocks as a medium. Clones share the same range.
#[derive(Clone)]
pub struct BlockRange<D> {
    device: D,
    options: RangeOptions,
    /// The use of each extent.
    opened: Rc<[Opened]>,
}

impl<D: BlockDevice> BlockRange<D> {
    /// Returns the range of `device` that `options` describe.
    ///
    /// # Errors
    /// Returns [`DeviceError::NoSuchSet`] or [`DeviceError::OutOfRange`].
    ///
    /// # Panics
    /// If a size is zero, or if there are 2^32 pages or more.
    pub fn new(device: D, options: RangeOptions) -> Result<Self, DeviceError> {
        let RangeOptions { set, first_block, page_blocks, pages_per_extent, extents, .. } = options;
        assert!(page_blocks > 0 && pages_per_extent > 0 && extents > 0, "no range: {options:?}");
        let pages = u64::from(pages_per_extent) * u64::from(extents);
        assert!(u32::try_from(pages).is_ok(), "a medium has less than 2^32 pages");
        let sets = device.sets();
        let shape = sets.iter().find(|shape| shape.id == set).ok_or(DeviceError::NoSuchSet(set))?;
        let blocks = pages * u64::from(page_blocks);
        if first_block.checked_add(blocks).is_none_or(|end| end > shape.blocks) {
            let capacity = shape.blocks;
            return Err(DeviceError::OutOfRange { set, first: first_block, blocks, capacity });
        }
        let opened = (0..extents).map(|_| Opened::default()).collect();
        Ok(Self { device, options, opened })
    }

    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    pub(crate) fn set(&self) -> SetId {
        self.options.set
    }

    fn block_of(&self, page: PageNo) -> u64 {
        self.options.first_block + u64::from(page.0) * u64::from(self.options.page_blocks)
    }

    fn page_bytes(&self) -> u32 {
        self.options.page_blocks * BLOCK_BYTES
    }

    /// Returns the blocks of a page, which share its bytes.
    fn blocks_of(&self, page: &PageImage) -> impl Iterator<Item = Block> {
        assert!(page.bytes().len() <= self.page_bytes() as usize, "a page does not fit its blocks");
        let missing = std::iter::repeat(Block::ZERO);
        Block::all_of(page).chain(missing).take(self.options.page_blocks as usize)
    }

    fn write(
        &self,
        first: PageNo,
        pages: &[PageImage],
        class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), MediumError>> + use<D> {
        let blocks: Vec<_> = pages.iter().flat_map(|page| self.blocks_of(page)).collect();
        let (set, at) = (self.options.set, self.block_of(first));
        let write = self.device.write(set, at, blocks, class, force);
        async move { write.await.map_err(|error| as_medium_error(&error, first)) }
    }

    fn read_blocks(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<D> {
        let blocks = pages * self.options.page_blocks;
        self.device.read(self.options.set, self.block_of(first), blocks, class)
    }
}

/// An upper limit, in bytes, of all headers that readers look for at the start of a page.
const ANY_HEADER_BYTES: usize = 64;

/// Returns the page in these blocks. It shares the block's bytes if they end in the first block.
fn page_in(blocks: &[Block]) -> PageImage {
    let Some(last) = blocks.iter().rposition(|block| !block.bytes().is_empty()) else {
        return PageImage::new(&[]);
    };
    let stored = last * BLOCK_BYTES as usize + blocks[last].bytes().len();
    let said = said_len(blocks[0].bytes()).min(blocks.len() * BLOCK_BYTES as usize);
    let said = said.max(ANY_HEADER_BYTES);
    if let (0, Some(image)) = (last, blocks[0].image())
        && said <= stored
    {
        return image;
    }
    let mut page = PageImage::zeroed(stored.max(said), 1);
    let bytes = page.bytes_mut().expect("nobody shares a new page");
    for (part, block) in bytes.chunks_mut(BLOCK_BYTES as usize).zip(&blocks[..=last]) {
        part[..block.bytes().len()].copy_from_slice(block.bytes());
    }
    page
}

/// Translates a device's error on an access to `page`.
pub(crate) fn as_medium_error(error: &DeviceError, page: PageNo) -> MediumError {
    /// "Invalid argument": the device refused a command of this module.
    const EINVAL: i32 = 22;
    match error {
        DeviceError::Unreadable { .. } => MediumError::Unreadable(page),
        DeviceError::Gone(_) | DeviceError::NoSuchSet(_) => MediumError::Gone,
        DeviceError::NoSpace(_) => MediumError::NoSpace,
        DeviceError::ReadOnly(_) => MediumError::ReadOnly,
        DeviceError::Io { code, .. } => MediumError::Io(*code),
        DeviceError::OutOfRange { .. } | DeviceError::Refused(_) => MediumError::Io(EINVAL),
    }
}

impl<D: BlockDevice + Clone> Medium for BlockRange<D> {
    fn shape(&self) -> Shape {
        Shape {
            payload_bytes: self.page_bytes(),
            page_bytes: self.page_bytes(),
            pages_per_extent: self.options.pages_per_extent,
            extents: self.options.extents,
            grows_to: self.options.grows_to,
            append_unit: 1,
            parallelism: self.options.parallelism,
        }
    }

    fn open(&self, extent: ExtentId, _: u64, stream: Stream) -> Result<(), MediumError> {
        let opened = &self.opened[extent.0 as usize];
        opened.times.set(opened.times.get() + 1);
        opened.for_journal.set(stream.is_journal());
        Ok(())
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<D> {
        self.write(first, &pages, class, Force::No)
    }

    async fn append_durably(
        &self,
        stream: Stream,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> Result<(), MediumError> {
        if self.options.forces_journal {
            return self.write(first, &pages, class, Force::Unit).await;
        }
        self.append_run(first, pages, class).await?;
        self.sync(stream).await
    }

    fn run_pages(&self) -> u32 {
        self.options.run_pages.max(1)
    }

    fn sync(&self, _: Stream) -> impl Future<Output = Result<(), MediumError>> + use<D> {
        let flush = self.device.flush(self.options.set);
        async move { flush.await.map_err(|error| as_medium_error(&error, PageNo(0))) }
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<D> {
        let read = self.read_blocks(page, 1, class);
        async move {
            match read.await {
                Ok(blocks) => Ok(page_in(&blocks)),
                Err(error) => Err(as_medium_error(&error, page)),
            }
        }
    }

    fn file_read(&self, page: PageNo) -> Option<FileRead> {
        let RangeOptions { set, page_blocks, .. } = self.options;
        self.device.file_read(set, self.block_of(page), page_blocks)
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<D> {
        let run = self.read_blocks(first, pages, class);
        let range = self.clone();
        async move {
            let numbers = (first.0..first.0 + pages).map(PageNo);
            let per_page = range.options.page_blocks as usize;
            match run.await {
                Ok(blocks) => blocks.chunks(per_page).map(|blocks| Ok(page_in(blocks))).collect(),
                // One lost block fails the whole command; the others can be read all the same.
                Err(DeviceError::Unreadable { .. }) if pages > 1 => {
                    let reads: Vec<_> = numbers.map(|page| range.read(page, class)).collect();
                    let mut images = Vec::with_capacity(reads.len());
                    for read in reads {
                        images.push(read.await);
                    }
                    images
                }
                Err(error) => numbers.map(|page| Err(as_medium_error(&error, page))).collect(),
            }
        }
    }

    fn promote(&self, _: PageNo) {}

    fn set_write_stall(&self, _: bool) {}

    fn frontier(&self, _: ExtentId) -> impl Future<Output = Result<u32, MediumError>> + use<D> {
        std::future::ready(Ok(0))
    }

    fn is_written_anywhere(&self) -> bool {
        true
    }

    fn unreadable_is_lost(&self, _: ExtentId) -> bool {
        true // a block being written is old or new after a power cut, never torn
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<D> {
        let first = self.shape().page(extent, 0);
        let pages = u64::from(self.options.pages_per_extent);
        let blocks = pages * u64::from(self.options.page_blocks);
        let discard = self.device.discard(self.options.set, self.block_of(first), blocks);
        async move { discard.await.map_err(|error| as_medium_error(&error, first)) }
    }

    fn wear(&self, extent: ExtentId, stream: Stream) -> u32 {
        let opened = &self.opened[extent.0 as usize];
        match self.options.reuse {
            Reuse::LeastWorn => opened.times.get(),
            Reuse::First => u32::from(opened.for_journal.get() != stream.is_journal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::internals::page::{self, PageKind};

    use super::*;
    use crate::parity;

    #[test]
    fn a_page_comes_back_up_to_its_last_byte_and_one_of_zeros_empty() {
        let page = page_in(&[Block::ZERO, Block::new(&[1, 2, 0]), Block::ZERO]);
        assert_eq!(page.bytes().len(), BLOCK_BYTES as usize + 2);
        assert_eq!(page.bytes()[4094..], [0, 0, 1, 2]);
        assert_eq!(page_in(&[Block::ZERO; 2]).bytes(), []);
        let short = Block::new(&[1; 300]);
        let page = page_in(&[short.clone(), Block::ZERO]);
        assert!(std::ptr::eq(page.bytes(), short.bytes()), "nothing is copied");
    }

    #[test]
    fn zeros_at_the_end_that_belong_to_a_page_come_back() {
        for said in [33, 4_096, 5_000, 8_192_u16] {
            let mut bytes = page::start(PageKind::Meta, 1, 2, 3, 0);
            bytes.resize(usize::from(said), 0);
            let bytes = page::finish(bytes);
            let mut blocks: Vec<_> = Block::all_of(&PageImage::new(&bytes)).collect();
            blocks.resize(2, Block::ZERO);
            let page = page_in(&blocks);
            assert!(page.bytes().len() >= bytes.len().max(ANY_HEADER_BYTES), "{said}");
            assert!(parity::is_same(page.bytes(), &bytes), "{said}");
        }
        let noise = Block::new(&[255; 40]);
        assert_eq!(page_in(&[noise, Block::ZERO]).bytes().len(), 2 * BLOCK_BYTES as usize);
    }

    #[test]
    fn errors_keep_what_a_caller_can_do_about_them() {
        let set = SetId::new(1).expect("numbers begin with 1");
        let page = PageNo(9);
        let as_medium = |error: DeviceError| as_medium_error(&error, page);
        assert_eq!(
            as_medium(DeviceError::Unreadable { set, block: 3 }),
            MediumError::Unreadable(page)
        );
        assert_eq!(as_medium(DeviceError::Gone(set)), MediumError::Gone);
        assert_eq!(as_medium(DeviceError::ReadOnly(set)), MediumError::ReadOnly);
        assert_eq!(as_medium(DeviceError::NoSpace(set)), MediumError::NoSpace);
        assert_eq!(as_medium(DeviceError::Io { set, code: 5 }), MediumError::Io(5));
    }
}
