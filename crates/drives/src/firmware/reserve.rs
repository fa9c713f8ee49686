//! The reserved region of a drive: dumps of its memory, with epoch and checksum.
//!
//! Two halves alternate: dump `e` goes to half `e % 2`. The other half is erased when a recovery
//! has loaded dump `e`, before the drive takes commands. So there is always one complete dump, and
//! room for the next.
//!
//! ```text
//! each page: CRC-32C u32 | magic u32 | epoch u64 | page u32 of u32 | bytes of the dump
//! ```

#[cfg(test)]
#[path = "reserve_fuzz_tests.rs"]
mod fuzz_tests;
#[cfg(test)]
#[path = "reserve_tests.rs"]
mod tests;

use runtime::{IoClass, PageImage};

use super::Superblocks;
use crate::nand::{BlockAddress, Flash, Geometry, NandArray, PageAddress, ReadError};

const MAGIC: u32 = 0x4455_4D50;
const HEADER_BYTES: usize = 24;

/// The region for dumps.
#[derive(Clone, Debug)]
pub struct Reserve {
    layout: Superblocks,
    superblocks_per_half: u32,
    page_bytes: usize,
    unit: u32,
}

/// A complete dump, as read back.
pub struct Dump {
    /// Number of the dump; the newest complete one has the greatest.
    pub epoch: u64,
    /// Contents of the dump.
    pub bytes: Vec<u8>,
}

/// Why no dump could be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DumpError {
    /// Some of its pages cannot be read back as they were written.
    Damaged,
    /// No dump exists, although the last power cut wrote one.
    Missing,
}

struct DumpPage<'a> {
    epoch: u64,
    index: u32,
    total: u32,
    bytes: &'a [u8],
}

impl Reserve {
    /// Creates the region at the first superblocks of a drive, two times `superblocks_per_half`.
    pub fn new(geometry: &Geometry, superblocks_per_half: u32) -> Self {
        Self {
            layout: Superblocks::new(geometry),
            superblocks_per_half,
            page_bytes: geometry.page_bytes as usize,
            unit: geometry.program_unit(),
        }
    }

    /// Returns the superblocks of a dump of `bytes` bytes.
    pub fn superblocks_for(geometry: &Geometry, bytes: u64) -> u32 {
        let in_page = u64::from(geometry.page_bytes) - HEADER_BYTES as u64;
        let pages = bytes.div_ceil(in_page).next_multiple_of(u64::from(geometry.program_unit()));
        let superblocks = pages.div_ceil(u64::from(Superblocks::new(geometry).pages()));
        // The region needs twice as many; so large a number is refused later.
        u32::try_from(superblocks).unwrap_or(u32::MAX).min(u32::MAX / 4)
    }

    /// Returns the superblocks of the region.
    pub fn superblocks(&self) -> u32 {
        2 * self.superblocks_per_half
    }

    fn half(&self, epoch: u64) -> std::ops::Range<u32> {
        let start = (epoch % 2) as u32 * self.superblocks_per_half;
        start..start + self.superblocks_per_half
    }

    fn page(&self, epoch: u64, index: u32) -> PageAddress {
        let per = self.layout.pages();
        self.layout.page(self.half(epoch).start + index / per, index % per)
    }

    fn pages(&self) -> u32 {
        self.superblocks_per_half * self.layout.pages()
    }

    /// Writes a dump on capacitor power: the cells change, but no time is simulated, because no
    /// client can observe it.
    pub fn write(&self, array: &mut NandArray, epoch: u64, dump: &[u8]) {
        for (first, images) in self.units(epoch, dump) {
            array.program(first, images);
        }
    }

    /// Writes a dump on a running drive. The dump is complete when this returns; until then the
    /// previous one is valid.
    pub async fn store(&self, flash: &Flash, epoch: u64, dump: &[u8]) {
        let units = self.units(epoch, dump);
        let programs: Vec<_> =
            units.map(|(first, images)| flash.program(first, images, IoClass::Journal)).collect();
        for program in programs {
            program.await;
        }
    }

    /// Returns the program units of a dump, and their places.
    fn units<'a>(
        &'a self,
        epoch: u64,
        dump: &'a [u8],
    ) -> impl Iterator<Item = (PageAddress, Vec<PageImage>)> + 'a {
        let room = self.page_bytes - HEADER_BYTES;
        let total = dump.len().div_ceil(room).max(1) as u32;
        let padded = total.next_multiple_of(self.unit);
        assert!(
            padded <= self.pages(),
            "the dump has {total} pages, reserved are {}",
            self.pages()
        );
        let part = move |index: u32| {
            let start = (index as usize * room).min(dump.len());
            &dump[start..(start + room).min(dump.len())]
        };
        (0..padded).step_by(self.unit as usize).map(move |first| {
            let images = (first..first + self.unit)
                .map(|index| encode(&DumpPage { epoch, index, total, bytes: part(index) }))
                .collect();
            (self.page(epoch, first), images)
        })
    }

    /// Loads the newest dump, and distinguishes a damaged dump from one that was never finished.
    /// `is_always_there`: whether every power cut leaves a dump, because capacitors write it. The
    /// loaded dump must then be erased after use; otherwise it could later be mistaken for its
    /// successor.
    ///
    /// A dump whose pages are all damaged counts as never finished.
    ///
    /// # Errors
    /// Returns [`DumpError`] if the newest dump is damaged or missing.
    pub async fn find(
        &self,
        flash: &Flash,
        is_always_there: bool,
    ) -> Result<Option<Dump>, DumpError> {
        let dumps = [self.read_half(flash, 0).await, self.read_half(flash, 1).await];
        let newest = dumps.iter().flatten().map(|dump| dump.epoch).max().unwrap_or(0);
        for (half, dump) in (0..).zip(&dumps) {
            if dump.is_none()
                && let Some(epoch) = self.epoch_of_rest(flash, half).await
                && epoch > newest
                // A drive that stores dumps while running may have been storing this one.
                && (is_always_there || epoch != newest + 1)
            {
                return Err(DumpError::Damaged);
            }
        }
        let newest = dumps.into_iter().flatten().max_by_key(|dump| dump.epoch);
        if newest.is_none() && is_always_there { Err(DumpError::Missing) } else { Ok(newest) }
    }

    /// Returns the epoch of an incomplete dump, if any of its pages is intact.
    async fn epoch_of_rest(&self, flash: &Flash, half: u64) -> Option<u64> {
        for index in 0..self.pages() {
            match flash.read(self.page(half, index), IoClass::Journal).await {
                Ok(image) => {
                    if let Some(page) = decode(image.bytes()) {
                        return Some(page.epoch);
                    }
                }
                Err(ReadError::Erased) => return None,
                Err(ReadError::Uncorrectable) => {}
            }
        }
        None
    }

    /// Reads the newest complete dump; `None` on a drive that never had one.
    pub async fn read(&self, flash: &Flash) -> Option<Dump> {
        let mut newest: Option<Dump> = None;
        for half in 0..2 {
            if let Some(dump) = self.read_half(flash, half).await
                && newest.as_ref().is_none_or(|best| best.epoch < dump.epoch)
            {
                newest = Some(dump);
            }
        }
        newest
    }

    async fn read_half(&self, flash: &Flash, half: u64) -> Option<Dump> {
        let first = flash.read(self.page(half, 0), IoClass::Journal).await.ok()?;
        let DumpPage { epoch, total, .. } = decode(first.bytes())?;
        let fits = (1..=self.pages()).contains(&total) && epoch % 2 == half && epoch < u64::MAX;
        fits.then_some(())?;
        let mut bytes = Vec::new();
        let at_once = 128;
        for start in (0..total).step_by(at_once) {
            let reads: Vec<_> = (start..total.min(start + at_once as u32))
                .map(|index| (index, flash.read(self.page(half, index), IoClass::Journal)))
                .collect();
            for (index, read) in reads {
                let image = read.await.ok()?;
                let page = decode(image.bytes())?;
                if (page.epoch, page.index, page.total) != (epoch, index, total) {
                    return None;
                }
                bytes.extend_from_slice(page.bytes);
            }
        }
        Some(Dump { epoch, bytes })
    }

    /// Makes room for the dump of `epoch`. A half has room for the longest dump, and most dumps are
    /// short: only used blocks are erased. Otherwise a flush of a drive without capacitors would
    /// wait for the erase of all blocks.
    pub async fn erase(&self, flash: &Flash, epoch: u64) {
        let blocks = self.half(epoch).flat_map(|superblock| self.layout.blocks(superblock));
        let is_used = |array: &NandArray, block: BlockAddress| {
            array.programmed_pages(block) > 0 || array.needs_erase(block)
        };
        let used: Vec<_> =
            flash.with_array(|array| blocks.filter(|block| is_used(array, *block)).collect());
        let erases: Vec<_> =
            used.into_iter().map(|block| flash.erase(block, IoClass::Journal)).collect();
        for erase in erases {
            erase.await;
        }
    }
}

fn encode(page: &DumpPage<'_>) -> PageImage {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&MAGIC.to_le_bytes());
    bytes.extend_from_slice(&page.epoch.to_le_bytes());
    bytes.extend_from_slice(&page.index.to_le_bytes());
    bytes.extend_from_slice(&page.total.to_le_bytes());
    bytes.extend_from_slice(page.bytes);
    let crc = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    PageImage::new(&bytes)
}

fn decode(bytes: &[u8]) -> Option<DumpPage<'_>> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let is_whole = word(0)? == crc32c::crc32c(bytes.get(4..)?) && word(4)? == MAGIC;
    is_whole.then_some(())?;
    Some(DumpPage {
        epoch: u64::from(word(8)?) | u64::from(word(12)?) << 32,
        index: word(16)?,
        total: word(20)?,
        bytes: bytes.get(HEADER_BYTES..)?,
    })
}
