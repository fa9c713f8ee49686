//! The cells: what each page holds, and the rules of NAND. No time passes here.
//!
//! Rules, asserted in every build because breaking one is a bug of the layer above: the pages of
//! a block are programmed in order, one program unit at a time; a block is erased before it is
//! programmed again; nothing is programmed into a block whose erase was cut short.
//!
//! This is what survives a power cut. Memory is in proportion to programmed pages.

use std::rc::Rc;

use runtime::{Carrier, PageImage, prefetch};

use crate::{BlockAddress, Geometry, PageAddress};

/// Why a page could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// Nothing was programmed there since the last erase.
    Erased,
    /// More bit errors than the code corrects, even after every retry.
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

/// What pages hold that were never programmed by anybody: the contents of a drive that was filled
/// before the story begins, made up when they are looked at. So a full drive costs no memory.
pub trait PageSource {
    /// The page's contents; the same at every call.
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
    /// Pages programmed since the last erase, in order. A torn program may leave a page `None`.
    pages: Vec<Option<PageImage>>,
    /// Whether all its pages were there from the beginning, as the array's source makes them.
    is_prefilled: bool,
    erases: u32,
    /// Since the last erase.
    reads: u64,
    /// An erase was cut short: only another erase helps.
    needs_erase: bool,
}

impl Block {
    /// Carries all of it; there are `most` pages at most.
    fn carry(&mut self, most: u32, by: &mut Carrier<'_>) -> Option<()> {
        assert!(!self.is_prefilled, "what was made up is not carried");
        by.u32(&mut self.erases)?;
        by.u64(&mut self.reads)?;
        by.bool(&mut self.needs_erase)?;
        by.list(&mut self.pages, |by, page| {
            let mut is_readable = page.is_some();
            by.bool(&mut is_readable)?;
            let bytes = by.string(page.as_ref().map_or(&[], PageImage::bytes))?;
            // On the way out nothing changes, and nothing is copied.
            if by.is_back() {
                *page = is_readable.then(|| PageImage::new(bytes));
            }
            Some(())
        })?;
        (self.pages.len() <= most as usize).then_some(())
    }
}

impl NandArray {
    /// Carries what a block holds and how worn it is. The array must not be prefilled.
    pub fn carry_block(&mut self, block: BlockAddress, by: &mut Carrier<'_>) -> Option<()> {
        let most = self.geometry.pages_per_die_block();
        self.blocks[block.0 as usize].carry(most, by)
    }

    /// A factory-fresh array: every block erased, no wear.
    pub fn new(geometry: &Geometry) -> Self {
        let count = geometry.dies() * geometry.blocks_per_die();
        let blocks = (0..count).map(|_| Block::default()).collect();
        Self { geometry: geometry.clone(), blocks, source: None }
    }

    /// Makes `blocks`, which must be erased, look programmed from end to end with what `source`
    /// makes up for each page.
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

    /// The geometry this array was made with.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What `page` holds. Counts a read of its block.
    ///
    /// # Errors
    /// [`ReadError::Erased`], or [`ReadError::Uncorrectable`] where a cut-short erase left noise.
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

    /// Hints that `page` will be read: where its image is found.
    pub(crate) fn prefetch_place(&self, page: PageAddress) {
        let (block, index) = self.geometry.locate(page);
        if let Some(place) = self.blocks[block.0 as usize].pages.get(index as usize) {
            prefetch(place);
        }
    }

    /// Hints that `page` will be read: its image.
    pub(crate) fn prefetch_image(&self, page: PageAddress) {
        let (block, index) = self.geometry.locate(page);
        if let Some(Some(image)) = self.blocks[block.0 as usize].pages.get(index as usize) {
            // All of a page of synthetic values, about.
            image.prefetch_front(448);
        }
    }

    /// Programs one unit that starts at `first`.
    pub fn program(&mut self, first: PageAddress, images: Vec<PageImage>) {
        self.assert_programmable(first, images.len());
        let stored = images.into_iter().map(Some);
        self.block_of(first).pages.extend(stored);
    }

    /// A program that power left halfway: each page holds `damaged` bytes or nothing readable.
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

    /// Erases a block: contents go, wear grows.
    pub fn erase(&mut self, block: BlockAddress) {
        let block = &mut self.blocks[block.0 as usize];
        block.pages = Vec::new();
        block.is_prefilled = false;
        block.needs_erase = false;
        block.reads = 0;
        block.erases += 1;
    }

    /// An erase that power left halfway.
    pub(crate) fn erase_torn(&mut self, block: BlockAddress) {
        self.erase(block);
        self.blocks[block.0 as usize].needs_erase = true;
    }

    /// How many pages of `block` were programmed since its last erase.
    pub fn programmed_pages(&self, block: BlockAddress) -> u32 {
        let block = &self.blocks[block.0 as usize];
        if block.is_prefilled {
            return self.geometry.pages_per_die_block();
        }
        block.pages.len() as u32
    }

    /// Whether `block` is still as [`Self::prefill`] left it.
    pub fn is_prefilled(&self, block: BlockAddress) -> bool {
        self.blocks[block.0 as usize].is_prefilled
    }

    /// Whether the last erase of `block` was cut short.
    pub fn needs_erase(&self, block: BlockAddress) -> bool {
        self.blocks[block.0 as usize].needs_erase
    }

    /// How often `block` was erased.
    pub fn erase_count(&self, block: BlockAddress) -> u32 {
        self.blocks[block.0 as usize].erases
    }

    /// How often pages of `block` were read since its last erase.
    pub fn read_count(&self, block: BlockAddress) -> u64 {
        self.blocks[block.0 as usize].reads
    }

    /// What `page` holds is `shorten`ed: for layers above that know that nobody can ask for the rest, so that
    /// it takes no memory. Nothing happens to the cells.
    pub fn shorten(&mut self, page: PageAddress, shorten: impl FnOnce(&PageImage) -> PageImage) {
        let (_, index) = self.geometry.locate(page);
        if let Some(Some(image)) = self.block_of(page).pages.get_mut(index as usize) {
            *image = shorten(image);
        }
    }

    /// Inverts one stored bit of `page`, for tests of bit rot. False if nothing is stored there.
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

    /// What `page` holds becomes `image`, for tests of lost and misdirected writes. False if nothing
    /// is stored there.
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
