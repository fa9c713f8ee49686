//! Slots: places of logical blocks on flash, and the division of a superblock into slots.
//!
//! ```text
//! superblock = data units .......................................... | summary units
//! unit       = the pages of one program: all planes and page types of one die
//! page       = slots of one logical block each, and a header in the spare area
//! ```

use block::BLOCK_BYTES;

use super::page;
use crate::firmware::Superblocks;
use crate::nand::{Geometry, PageAddress};

/// A place for one logical block on flash, counted over the set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(pub u32);

/// The division of a set's flash. Pure arithmetic.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub superblocks: Superblocks,
    pub slots_per_page: u32,
    /// Slots that one program writes.
    pub slots_per_unit: u32,
    /// Pages that one program writes.
    pub pages_per_unit: u32,
    /// Slot numbers of a superblock, including those of the summary.
    pub slots_per_superblock: u32,
    /// Program units of a superblock.
    pub units: u32,
    /// Units of a superblock that hold logical blocks; the others hold the summary.
    pub data_units: u32,
}

impl Layout {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let superblocks = Superblocks::new(geometry);
        let slots_per_page = geometry.page_bytes / BLOCK_BYTES;
        let pages_per_unit = geometry.program_unit();
        let slots_per_unit = pages_per_unit * slots_per_page;
        let units = superblocks.pages() / pages_per_unit;
        let summary_units = |data_units: u32| {
            let entries = data_units * slots_per_unit;
            entries.div_ceil(page::summary_entries(geometry.page_bytes)).div_ceil(pages_per_unit)
        };
        // The largest number of data units whose summary fits after them.
        let fits = |data_units: &u32| data_units + summary_units(*data_units) <= units;
        let data_units = (1..units).rev().find(fits).unwrap_or(0);
        Self {
            slots_per_superblock: superblocks.pages() * slots_per_page,
            superblocks,
            slots_per_page,
            slots_per_unit,
            pages_per_unit,
            units,
            data_units,
        }
    }

    /// Returns the logical blocks that a superblock holds.
    pub(crate) fn data_slots(&self) -> u32 {
        self.data_units * self.slots_per_unit
    }

    /// Returns the first slot of a superblock.
    pub(crate) fn first(&self, superblock: u32) -> Slot {
        Slot(superblock * self.slots_per_superblock)
    }

    /// Returns the superblock of a slot, and the slot's index in it.
    pub(crate) fn locate(&self, slot: Slot) -> (u32, u32) {
        (slot.0 / self.slots_per_superblock, slot.0 % self.slots_per_superblock)
    }

    /// Returns the page of a slot, and the slot's index in it.
    pub(crate) fn page(&self, slot: Slot) -> (PageAddress, u32) {
        let (superblock, index) = self.locate(slot);
        let page = self.superblocks.page(superblock, index / self.slots_per_page);
        (page, index % self.slots_per_page)
    }

    /// Returns the first slot of a page.
    pub(crate) fn first_of_page(&self, page: PageAddress) -> Slot {
        let (superblock, index) = self.superblocks.locate(page);
        Slot(self.first(superblock).0 + index * self.slots_per_page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry {
            channels: 2,
            dies_per_channel: 8,
            planes_per_die: 2,
            blocks_per_plane: 8,
            pages_per_block: 768,
            page_bytes: 16_384,
            spare_bytes: 128,
            transfer_bytes: 18_022,
            one_shot: true,
            bits_per_cell: 3,
        }
    }

    #[test]
    fn the_summary_takes_a_third_of_a_percent() {
        let layout = Layout::new(&geometry());
        assert_eq!((layout.slots_per_unit, layout.units), (24, 4_096));
        assert_eq!(layout.data_units, 4_084);
    }

    #[test]
    fn a_slot_is_found_by_its_page() {
        let layout = Layout::new(&geometry());
        for slot in (0..layout.slots_per_superblock * 8).step_by(997) {
            let (page, place) = layout.page(Slot(slot));
            assert_eq!(layout.first_of_page(page).0 + place, slot);
        }
    }
}
