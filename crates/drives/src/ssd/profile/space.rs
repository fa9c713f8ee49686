//! Checks that a drive's user capacity fits its flash, and that mapping and buffers fit its memory.

use block::BLOCK_BYTES;

use super::SsdProfile;
use crate::ssd::layout::Layout;
use crate::ssd::set::RESERVE;
use crate::ssd::{discards, page};

/// Spare superblocks of a set, beyond those for its blocks and its buffer: two are open, two are
/// reserved for garbage collection, one covers rounding.
const SPARE_SUPERBLOCKS: u32 = 5;

impl SsdProfile {
    /// Returns the superblocks of one half of the region at the beginning of each set that stores
    /// the dump at a power cut. The region has two halves.
    pub(crate) fn reserved_per_half(&self, layout: &Layout) -> u32 {
        let sets = u64::from(self.sets);
        // Each buffered block is saved with its number and sequence; the discarded ranges follow.
        let blocks = self.buffer.bytes / sets / u64::from(BLOCK_BYTES) + 1;
        let buffered = blocks * u64::from(BLOCK_BYTES + 32);
        let discards = u64::from(self.background.discarded_ranges) * discards::ENTRY_BYTES as u64;
        let pages =
            (buffered + discards).div_ceil(u64::from(self.flash.geometry.page_bytes) / 2) + 2;
        pages.div_ceil(u64::from(layout.superblocks.pages())) as u32
    }

    /// Returns the superblocks that a full buffer fills when it is written in units that are not
    /// all full.
    pub(crate) fn superblocks_of_buffer(&self, layout: &Layout) -> u32 {
        let blocks = self.buffer.bytes / u64::from(self.sets) / u64::from(BLOCK_BYTES);
        (blocks as u32 + layout.slots_per_unit).div_ceil(layout.data_slots()) + 1
    }

    /// Returns the superblocks of a set that are reserved for mapping pages; 0 if the mapping is in
    /// memory. Mapping pages are rewritten far more often than other blocks: mixed with those, each
    /// collection would find few stale mapping pages. The result is twice the superblocks that the
    /// pages fill, so that a superblock is nearly empty when it is collected, but at least as many
    /// as leave one that can be collected; plus the one being written.
    pub(crate) fn mapping_superblocks(&self, layout: &Layout) -> u32 {
        let pages = self.mapping_pages_on_flash() as u32;
        if pages == 0 || layout.data_units == 0 {
            return 0;
        }
        let twice = (2 * pages).div_ceil(layout.data_slots());
        let least = pages.div_ceil(layout.data_slots() - layout.slots_per_unit + 1);
        twice.max(least) + 1
    }

    /// Returns the spare superblocks that mapping pages need: their reserve, one by which they may
    /// exceed it for a while, and room for a full buffer, which may not use the reserve.
    fn spare_for_mapping(&self, layout: &Layout) -> u32 {
        match self.mapping_superblocks(layout) {
            0 => 0,
            superblocks => superblocks + 2,
        }
    }

    /// Returns the logical blocks of a set that fit however they are scattered: superblocks whose
    /// collection would gain less than one unit are not collected.
    fn usable_blocks(&self, layout: &Layout) -> u64 {
        if layout.data_units == 0 {
            return 0;
        }
        let reserved = 2 * self.reserved_per_half(layout) + SPARE_SUPERBLOCKS;
        let spare =
            reserved + self.superblocks_of_buffer(layout) - 1 + self.spare_for_mapping(layout);
        let superblocks = layout.superblocks.count().saturating_sub(spare);
        u64::from(superblocks) * u64::from(layout.data_slots() - layout.slots_per_unit + 1)
    }

    /// Returns the user capacity, in bytes, of a drive with `blocks` blocks in each set.
    fn user_bytes_of(&self, blocks: u64) -> u64 {
        blocks * u64::from(self.sets) * u64::from(BLOCK_BYTES)
    }

    fn words_for_no_room(&self, layout: &Layout) -> String {
        if layout.data_units == 0 {
            return "blocks_per_plane and pages_per_block make superblocks (a block of every die of a \
                    set) too small for one program and their summary: give them more pages"
                .to_owned();
        }
        let (saved, buffer) =
            (2 * self.reserved_per_half(layout), self.superblocks_of_buffer(layout));
        format!(
            "blocks_per_plane gives each set {} superblocks (a block of every die), and none is left \
             for data: {saved} are for what is saved when power fails, {buffer} for a full write \
             buffer, {SPARE_SUPERBLOCKS} spare; give it more, or a smaller buffer",
            layout.superblocks.count()
        )
    }

    /// Returns the superblocks of a set that can hold data.
    fn data_superblocks(&self, layout: &Layout) -> u32 {
        layout.superblocks.count() - 2 * self.reserved_per_half(layout)
    }

    /// Returns the superblocks that collection keeps free for `percent` of all, beyond the reserve.
    pub(crate) fn superblocks_kept(&self, layout: &Layout, percent: f64) -> u32 {
        (f64::from(self.data_superblocks(layout)) * percent / 100.0).ceil() as u32
    }

    /// Checks that collection does not try to keep more superblocks free than a full drive can
    /// spare: it would never end.
    fn problem_of_free_superblocks(&self, layout: &Layout, blocks: u64) -> Option<String> {
        let all = self.data_superblocks(layout);
        let full = blocks.div_ceil(u64::from(layout.data_slots())) as u32;
        let reserve = RESERVE + self.mapping_superblocks(layout);
        // At least one superblock must have stale blocks.
        let spare = all.saturating_sub(full + reserve + 1);
        let most = f64::from(spare) / f64::from(all) * 100.0;
        // Without windows collection ends where it begins.
        let (key, percent) = match self.plm {
            Some(_) => ("stop_free_percent", self.background.stop_free_percent),
            None => ("start_free_percent", self.background.start_free_percent),
        };
        let kept = self.superblocks_kept(layout, percent);
        (kept > spare).then(|| {
            format!(
                "{key} {percent} keeps {kept} of {all} superblocks of a set free, and a full drive has {spare} to \
                 spare: give {most:.1} at most, or less user_bytes"
            )
        })
    }

    pub(super) fn problems_of_space(&self) -> Vec<String> {
        let flash = self.flash_of_set();
        let layout = Layout::new(&flash.geometry);
        let mut problems = Vec::new();
        if page::header_bytes(flash.geometry.page_bytes) > flash.geometry.spare_bytes {
            problems.push("spare_bytes has no room for the numbers of a page's blocks".to_owned());
        }
        let unit = u64::from(layout.slots_per_unit * BLOCK_BYTES);
        if self.buffer.bytes < u64::from(self.sets) * unit {
            problems.push(format!("buffer.bytes must hold a program of {unit} bytes for each set"));
        }
        let whole = self.whole_mapping_bytes();
        let mapping = self.mapping.as_ref().map_or(whole, |paged| paged.cached_bytes);
        if self.mapping.is_some() && mapping >= whole {
            problems.push(format!(
                "mapping.cached_bytes is {mapping}, but the whole mapping takes {whole}: leave the \
                 section out"
            ));
        }
        let least = u64::from(self.sets * BLOCK_BYTES);
        if self.mapping.is_some() && mapping < least {
            problems.push(format!(
                "mapping.cached_bytes must hold a mapping page of each set, {least} bytes"
            ));
        }
        let needed = mapping + self.buffer.bytes + self.dram.read_cache_bytes;
        if needed > self.dram.bytes {
            problems.push(format!(
                "dram.bytes is {}, but mapping (4 bytes a block, or its cached_bytes), buffer and read cache \
                 need {needed}",
                self.dram.bytes
            ));
        }
        let (blocks, on_flash) = (self.blocks_per_set(), self.mapping_pages_on_flash());
        let usable = self.usable_blocks(&layout).saturating_sub(on_flash);
        if usable == 0 {
            problems.push(self.words_for_no_room(&layout));
        } else if !(1..=usable).contains(&blocks) {
            problems.push(format!(
                "user_bytes gives each set {blocks} blocks of {BLOCK_BYTES} bytes, and its flash has \
                 room for {usable}: user_bytes may be {} to {}",
                self.user_bytes_of(1),
                self.user_bytes_of(usable)
            ));
        }
        if (1..=usable).contains(&blocks) {
            problems.extend(self.problem_of_free_superblocks(&layout, blocks + on_flash));
        }
        if u64::from(layout.superblocks.count()) * u64::from(layout.slots_per_superblock)
            >= u64::from(u32::MAX) - 1
        {
            problems.push("a set has more than 4294967293 slots of 4 KiB".to_owned());
        }
        problems
    }
}
