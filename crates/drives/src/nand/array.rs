//! The cells: the contents of each page, and the rules of NAND. No time passes here.
//!
//! The rules are asserted in every build, because breaking one is a bug of the layer above: the
//! pages of a block are programmed in order, one program unit at a time; a block is erased before
//! it is programmed again; a block whose erase was interrupted takes no programs.
//!
//! The cells survive a power cut. Memory grows with the number of programmed pages.

use std::rc::Rc;

use runtime::{Carrier, PageImage, prefetch};

use super::{BlockAddress, Geometry, PageAddress};

/// Why a page could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// The page was not programmed since the last erase.
    Erased,
    /// More bit errors than the ECC corrects, even after all retries.
    Uncorrectable,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Erased => "the page is erased",
            Self::Uncorrectable => "the page has more bit errors than its code corrects",
        })
    }
}

impl std::error::Error for ReadError {}

/// Contents of pages that were never programmed: those of a prefilled drive, computed when they are
/// read. So a full drive costs no memory.
pub trait PageSource {
    /// Returns the contents of a page; the same at every call.
    fn page(&self, page: PageAddress) -> PageImage;
}

/// All blocks of a drive.
pub struct NandArray {
    geometry: Geometry,
    blocks: Vec<Block>,
    source: Option<Rc<dyn PageSource>>,
}

#[derive(Default)]
struct Block {
    /// Pages programmed since the last erase, in order. A torn program may leave a page as `None`.
    pages: Vec<Option<PageImage>>,
    /// Whether all its pages are prefilled, with contents from the array's source.
    is_prefilled: bool,
    erases: u32,
    /// Reads since the last erase.
    reads: u64,
    /// Whether its erase was interrupted: it must be erased again before use.
    needs_erase: bool,
}

impl Block {
    /// Saves or restores the block, which has at most `most` pages.
    fn carry(&mut self, most: u32, by: &mut Carrier<'_>) -> Option<()> {
        assert!(!self.is_prefilled, "what was made up is not carried");
        by.u32(&mut self.erases)?;
        by.u64(&mut self.reads)?;
        by.bool(&mut self.needs_erase)?;
        by.list(&mut self.pages, |by, page| {
            let mut is_readable = page.is_some();
            by.bool(&mut is_readable)?;
            let bytes = by.string(page.as_ref().map_or(&[], PageImage::bytes))?;
            // When saving, nothing changes and nothing is copied.
            if by.is_back() {
                *page = is_readable.then(|| PageImage::new(bytes));
            }
            Some(())
        })?;
        (self.pages.len() <= most as usize).then_some(())
    }
}

impl NandArray {
    /// Saves or restores the contents and the wear of a block. Requires: the array is not
    /// prefilled.
    pub fn carry_block(&mut self, block: BlockAddress, by: &mut Carrier<'_>) -> Option<()> {
        let most = self.geometry.pages_per_die_block();
        self.blocks[block.0 as usize].carry(most, by)
    }

    /// Creates a factory-fresh array: every block erased, no wear.
    pub fn new(geometry: &Geometry) -> Self {
        let count = geometry.dies() * geometry.blocks_per_die();
        let blocks = (0..count).map(|_| Block::default()).collect();
        Self { geometry: geometry.clone(), blocks, source: None }
    }

    /// Prefills `blocks`: they look fully programmed, with the contents from `source`. Requires:
    /// the blocks are erased.
    pub fn prefill(
        &mut self,
        blocks: impl Iterator<Item = BlockAddress>,
        source: Rc<dyn PageSource>,
    ) {
        assert!(self.source.is_none(), "an array is prefilled once");
        self.source = Some(source);
        for block in blocks {
            let block = &mut self.blocks[block.0 as usize];
            assert!(block.pages.is_empty() && !block.needs_erase, "only erased blocks are filled");
            block.is_prefilled = true;
        }
    }

    /// Returns the geometry of the array.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the contents of `page`, and counts a read of its block.
    ///
    /// # Errors
    /// Returns [`ReadError::Erased`] if the page is erased, or [`ReadError::Uncorrectable`] if an
    /// interrupted erase or a torn program left noise.
    pub fn read(&mut self, page: PageAddress) -> Result<PageImage, ReadError> {
        let (block, index) = self.geometry.locate(page);
        let source = &self.source;
        let block = &mut self.blocks[block.0 as usize];
        block.reads += 1;
        if block.needs_erase {
            return Err(ReadError::Uncorrectable);
        }
        match block.pages.get(index as usize) {
            None if block.is_prefilled => Ok(source.as_ref().expect("it was filled").page(page)),
            None => Err(ReadError::Erased),
            Some(None) => Err(ReadError::Uncorrectable),
            Some(Some(image)) => Ok(image.clone()),
        }
    }

    /// Prefetches the reference to the image of `page`, which will be read soon.
    pub(crate) fn prefetch_place(&self, page: PageAddress) {
        let (block, index) = self.geometry.locate(page);
        if let Some(place) = self.blocks[block.0 as usize].pages.get(index as usize) {
            prefetch(place);
        }
    }

    /// Prefetches the image of `page`, which will be read soon.
    pub(crate) fn prefetch_image(&self, page: PageAddress) {
        let (block, index) = self.geometry.locate(page);
        if let Some(Some(image)) = self.blocks[block.0 as usize].pages.get(index as usize) {
            // Approximately all of a page of synthetic values.
            image.prefetch_front(448);
        }
    }

    /// Programs one unit that starts at `first`.
    pub fn program(&mut self, first: PageAddress, images: Vec<PageImage>) {
        self.assert_programmable(first, images.len());
        let stored = images.into_iter().map(Some);
        self.block_of(first).pages.extend(stored);
    }

    /// Programs a unit as torn by a power cut: each page holds `damaged` bytes, or is unreadable.
    pub(crate) fn program_torn(
        &mut self,
        first: PageAddress,
        damaged: impl Iterator<Item = Option<PageImage>>,
    ) {
        self.block_of(first).pages.extend(damaged);
    }

    /// Panics if a unit of `count` pages at `first` would break a rule of NAND.
    pub fn assert_programmable(&self, first: PageAddress, count: usize) {
        let (address, index) = self.geometry.locate(first);
        let block = &self.blocks[address.0 as usize];
        let unit = self.geometry.program_unit() as usize;
        assert!(!block.needs_erase, "block {} must be erased first", address.0);
        assert_eq!(count, unit, "a program unit of block {} has {unit} pages", address.0);
        assert!(!block.is_prefilled, "block {} is full", address.0);
        assert_eq!(
            index as usize,
            block.pages.len(),
            "the pages of block {} are programmed in order, each once",
            address.0
        );
    }

    /// Erases a block, and counts the wear.
    pub fn erase(&mut self, block: BlockAddress) {
        let block = &mut self.blocks[block.0 as usize];
        block.pages = Vec::new();
        block.is_prefilled = false;
        block.needs_erase = false;
        block.reads = 0;
        block.erases += 1;
    }

    /// Erases a block as interrupted by a power cut.
    pub(crate) fn erase_torn(&mut self, block: BlockAddress) {
        self.erase(block);
        self.blocks[block.0 as usize].needs_erase = true;
    }

    /// Returns the pages of `block` programmed since its last erase.
    pub fn programmed_pages(&self, block: BlockAddress) -> u32 {
        let block = &self.blocks[block.0 as usize];
        if block.is_prefilled {
            return self.geometry.pages_per_die_block();
        }
        block.pages.len() as u32
    }

    /// Returns whether `block` is unchanged since [`Self::prefill`].
    pub fn is_prefilled(&self, block: BlockAddress) -> bool {
        self.blocks[block.0 as usize].is_prefilled
    }

    /// Returns whether the last erase of `block` was interrupted.
    pub fn needs_erase(&self, block: BlockAddress) -> bool {
        self.blocks[block.0 as usize].needs_erase
    }

    /// Returns the number of erases of `block`.
    pub fn erase_count(&self, block: BlockAddress) -> u32 {
        self.blocks[block.0 as usize].erases
    }

    /// Returns the page reads of `block` since its last erase.
    pub fn read_count(&self, block: BlockAddress) -> u64 {
        self.blocks[block.0 as usize].reads
    }

    /// Replaces the contents of `page` with the shorter result of `shorten`, to save memory. For
    /// layers above that know that the rest can never be read. The state of the cells does not
    /// change.
    pub fn shorten(&mut self, page: PageAddress, shorten: impl FnOnce(&PageImage) -> PageImage) {
        let (_, index) = self.geometry.locate(page);
        if let Some(Some(image)) = self.block_of(page).pages.get_mut(index as usize) {
            *image = shorten(image);
        }
    }

    /// Inverts one stored bit of `page`, for tests of bit rot. Returns false if no data are stored
    /// there.
    pub fn flip_bit(&mut self, page: PageAddress, bit: u64) -> bool {
        let (_, index) = self.geometry.locate(page);
        let Some(Some(image)) = self.block_of(page).pages.get_mut(index as usize) else {
            return false;
        };
        let mut bytes = image.bytes().to_vec();
        if bytes.is_empty() {
            return false;
        }
        let bit = bit % (bytes.len() as u64 * 8);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        *image = PageImage::new(&bytes);
        true
    }

    /// Replaces the contents of `page` with `image`, for tests of lost and misdirected writes.
    /// Returns false if no data are stored there.
    pub fn replace(&mut self, page: PageAddress, image: PageImage) -> bool {
        let (_, index) = self.geometry.locate(page);
        let stored = self.block_of(page).pages.get_mut(index as usize).and_then(Option::as_mut);
        stored.map(|stored| *stored = image).is_some()
    }

    fn block_of(&mut self, page: PageAddress) -> &mut Block {
        let (block, _) = self.geometry.locate(page);
        &mut self.blocks[block.0 as usize]
    }
}
