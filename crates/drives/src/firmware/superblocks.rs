//! Superblocks: one erase block of every die, written as a unit. Pure arithmetic.
//!
//! Program units rotate over the dies, so consecutive units are written, and read back, in
//! parallel.

use crate::nand::{BlockAddress, DieIndex, Geometry, PageAddress};

/// The layout of superblocks.
#[derive(Clone, Debug)]
pub struct Superblocks {
    geometry: Geometry,
}

impl Superblocks {
    /// Creates the layout for a drive of this geometry.
    pub fn new(geometry: &Geometry) -> Self {
        Self { geometry: geometry.clone() }
    }

    /// Returns the superblocks of the drive.
    pub fn count(&self) -> u32 {
        self.geometry.blocks_per_die()
    }

    /// Returns the pages of a superblock.
    pub fn pages(&self) -> u32 {
        self.geometry.dies() * self.geometry.pages_per_die_block()
    }

    /// Returns page `index` of superblock `superblock`, in append order.
    pub fn page(&self, superblock: u32, index: u32) -> PageAddress {
        let unit = self.geometry.program_unit();
        let (row, place) = (index / unit, index % unit);
        let die = DieIndex(row % self.geometry.dies());
        let block = self.geometry.block(die, superblock);
        self.geometry.page(block, row / self.geometry.dies() * unit + place)
    }

    /// Returns the superblock of a page, and the page's index in it in append order.
    pub fn locate(&self, page: PageAddress) -> (u32, u32) {
        let unit = self.geometry.program_unit();
        let (block, index) = self.geometry.locate(page);
        let row = index / unit * self.geometry.dies() + self.geometry.die_of(block).0;
        (block.0 % self.geometry.blocks_per_die(), row * unit + index % unit)
    }

    /// Returns the erase blocks of a superblock, in the order of dies.
    pub fn blocks(&self, superblock: u32) -> impl Iterator<Item = BlockAddress> {
        (0..self.geometry.dies()).map(move |die| self.geometry.block(DieIndex(die), superblock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_found_again_and_units_go_round_the_dies() {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 3,
            pages_per_block: 6,
            page_bytes: 4096,
            spare_bytes: 0,
            transfer_bytes: 4096,
            one_shot: true,
            bits_per_cell: 3,
        };
        let superblocks = Superblocks::new(&geometry);
        let mut seen = vec![false; geometry.pages() as usize];
        for superblock in 0..superblocks.count() {
            for index in 0..superblocks.pages() {
                let page = superblocks.page(superblock, index);
                assert_eq!(superblocks.locate(page), (superblock, index));
                assert!(!std::mem::replace(&mut seen[page.0 as usize], true));
                let (block, _) = geometry.locate(page);
                assert_eq!(geometry.die_of(block).0, index / geometry.program_unit() % 4);
            }
        }
    }
}
