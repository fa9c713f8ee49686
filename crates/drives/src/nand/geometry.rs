//! The geometry of a drive's flash, and its addresses.

use catalogue::bounds;
use serde::{Deserialize, Serialize};

/// Channels, dies, planes, blocks, pages. All counts are per next larger unit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Independent buses between controller and dies.
    pub channels: u32,
    /// Dies (or "ways") of each channel.
    pub dies_per_channel: u32,
    /// Planes that a die programs and erases together.
    pub planes_per_die: u32,
    /// Erase blocks in each plane.
    pub blocks_per_plane: u32,
    /// Pages in one plane's erase block.
    pub pages_per_block: u32,
    /// User bytes in a page.
    pub page_bytes: u32,
    /// Bytes of the spare area that error correction leaves to the controller.
    pub spare_bytes: u32,
    /// Bytes that cross the bus for one page: user bytes, spare area and error correction.
    pub transfer_bytes: u32,
    /// Whether all page types of a word line are programmed in one operation.
    pub one_shot: bool,
    /// Page types, 1 (SLC) to 4 (QLC): bits per cell.
    pub bits_per_cell: u32,
}

/// Most bytes that cross the bus for one page.
const MAX_TRANSFER_BYTES: u32 = 1 << 20;

/// A die, counted over all channels. Die `i` is on channel `i % channels`, so consecutive dies use
/// different channels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct DieIndex(pub u32);

/// A page: die, block and page in one number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PageAddress(pub u32);

/// An erase block of a die, over all its planes, counted over the whole drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct BlockAddress(pub u32);

impl Geometry {
    /// Returns all problems of these numbers, in words.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let positive = [
            ("channels", self.channels),
            ("dies_per_channel", self.dies_per_channel),
            ("planes_per_die", self.planes_per_die),
            ("blocks_per_plane", self.blocks_per_plane),
            ("pages_per_block", self.pages_per_block),
        ];
        for (name, value) in positive {
            if value == 0 {
                problems.push(format!("{name} must be at least 1"));
            }
        }
        if !self.page_bytes.is_power_of_two() || !(512..=65_536).contains(&self.page_bytes) {
            problems.push(format!(
                "page_bytes is {}, must be a power of two from 512 to 65536",
                self.page_bytes
            ));
        }
        problems.extend(bounds::range("spare_bytes", self.spare_bytes, 0..=MAX_TRANSFER_BYTES));
        let transfer_bytes = self.transfer_bytes;
        problems.extend(bounds::range("transfer_bytes", transfer_bytes, 1..=MAX_TRANSFER_BYTES));
        if self.transfer_bytes < self.page_bytes.saturating_add(self.spare_bytes) {
            problems.push("transfer_bytes must cover page_bytes and spare_bytes".to_owned());
        }
        if !(1..=4).contains(&self.bits_per_cell) {
            problems.push(format!("bits_per_cell is {}, must be 1 to 4", self.bits_per_cell));
        } else if self.one_shot && !self.pages_per_block.is_multiple_of(self.bits_per_cell) {
            problems.push("pages_per_block must be a multiple of bits_per_cell".to_owned());
        }
        let pages = [self.channels, self.dies_per_channel, self.planes_per_die]
            .into_iter()
            .chain([self.blocks_per_plane, self.pages_per_block])
            .try_fold(1_u32, u32::checked_mul);
        if pages.is_none() {
            problems.push("the drive has more than 4294967295 pages".to_owned());
        }
        problems
    }

    /// Returns the dies of the drive.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Returns the erase blocks of one die; each spans all its planes.
    pub fn blocks_per_die(&self) -> u32 {
        self.blocks_per_plane
    }

    /// Returns the pages in an erase block of a die, over all planes.
    pub fn pages_per_die_block(&self) -> u32 {
        self.pages_per_block * self.planes_per_die
    }

    /// Returns the pages of the drive.
    pub fn pages(&self) -> u32 {
        self.dies() * self.blocks_per_die() * self.pages_per_die_block()
    }

    /// Returns the user bytes of the drive.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.pages()) * u64::from(self.page_bytes)
    }

    /// Returns the pages that one program writes: all planes, and with one-shot programming all
    /// page types of the word line.
    pub fn program_unit(&self) -> u32 {
        self.planes_per_die * if self.one_shot { self.bits_per_cell } else { 1 }
    }

    /// Returns the channel of a die.
    pub fn channel_of(&self, die: DieIndex) -> u32 {
        die.0 % self.channels
    }

    /// Returns block `index` of a die.
    pub fn block(&self, die: DieIndex, index: u32) -> BlockAddress {
        debug_assert!(die.0 < self.dies() && index < self.blocks_per_die());
        BlockAddress(die.0 * self.blocks_per_die() + index)
    }

    /// Returns the die of a block.
    pub fn die_of(&self, block: BlockAddress) -> DieIndex {
        DieIndex(block.0 / self.blocks_per_die())
    }

    /// Returns page `index` of a block, in program order.
    pub fn page(&self, block: BlockAddress, index: u32) -> PageAddress {
        debug_assert!(index < self.pages_per_die_block());
        PageAddress(block.0 * self.pages_per_die_block() + index)
    }

    /// Returns the block of a page, and the page's index in it.
    pub fn locate(&self, page: PageAddress) -> (BlockAddress, u32) {
        let pages = self.pages_per_die_block();
        (BlockAddress(page.0 / pages), page.0 % pages)
    }

    /// Returns the plane of the page at `index` of its block.
    pub fn plane(&self, index: u32) -> u32 {
        index % self.planes_per_die
    }

    /// Returns the page type (0 = the fastest, "LSB") of the page at `index` of its block.
    pub fn page_type(&self, index: u32) -> u32 {
        (index / self.planes_per_die) % self.bits_per_cell
    }
}
