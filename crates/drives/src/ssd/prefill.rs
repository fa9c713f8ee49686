//! Prefill: the state of a drive after earlier writes, computed instead of simulated.
//!
//! The place of each block is computed from its number, and the reverse, so a full drive of any
//! size costs no memory and no time. After long random overwriting under greedy collection,
//! superblocks lose valid blocks from the time they are written, all at the same rate: in a
//! superblock that is written now all blocks are valid, in the next victim a share `u`, and in
//! between the share falls exponentially with age. The mean of the shares is the share of slots in
//! use `p`, hence `(1 - u) / -ln u = p` (Desnoyers, "Analytic models of SSD write performance", ACM
//! TOS 2014, and earlier work).

use std::rc::Rc;

use runtime::{PageImage, Permutation};

use super::layout::{Layout, Slot};
use super::page;
use super::page::{Lpn, Sequence, Versioned};
use crate::nand::{BlockAddress, NandArray, PageAddress, PageSource};

/// State of a drive before the simulation starts.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Precondition {
    /// Fresh out of the box.
    #[default]
    Empty,
    /// The first part of its blocks, as a share of all (0 to 1), was written once, sequentially.
    Sequential(f64),
    /// The first part was written sequentially and then overwritten at random until steady state.
    Random(f64),
}

/// The places of a prefilled drive's blocks.
#[derive(Debug)]
pub(crate) struct Prefill {
    layout: Layout,
    /// Number of the first filled superblock; the others follow.
    first: u32,
    /// Blocks in each superblock and in those before it.
    ends: Vec<u32>,
    /// Numbers `0..mapped` were written; [`MappingPages`] maps numbers to blocks.
    mapped: u32,
    pages: MappingPages,
    scattered: Option<Scatter>,
}

/// The mapping pages of a drive with its mapping on flash: `count` blocks from `first` on. Their
/// numbers come first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MappingPages {
    pub first: u32,
    pub count: u32,
}

impl MappingPages {
    /// Returns the write number of a block: its position in the order of writing.
    fn number(self, lpn: Lpn) -> u32 {
        let page = lpn.0.checked_sub(self.first).filter(|page| *page < self.count);
        page.unwrap_or(lpn.0 + self.count)
    }

    fn lpn(self, number: u32) -> Lpn {
        Lpn(if number < self.count { self.first + number } else { number - self.count })
    }
}

#[derive(Debug)]
struct Scatter {
    blocks: Permutation,
    /// Permutation of places within each superblock.
    places: Vec<Permutation>,
}

/// Maps a number below the count of a permutation; the image is below the count too.
fn forward(by: &Permutation, number: u32) -> u32 {
    by.forward(u64::from(number)) as u32
}

fn backward(by: &Permutation, number: u32) -> u32 {
    by.backward(u64::from(number)) as u32
}

impl Prefill {
    /// Prefills superblocks from `first` on with `mapped` blocks in order, in as few as necessary.
    pub(crate) fn sequential(layout: &Layout, first: u32, mapped: u32) -> Self {
        let slots = layout.data_slots();
        let ends = (1..=mapped.div_ceil(slots)).map(|i| (i * slots).min(mapped)).collect();
        let pages = MappingPages::default();
        Self { layout: layout.clone(), first, ends, mapped, pages, scattered: None }
    }

    /// Prefills `count` superblocks from `first` on with `mapped` blocks, as long overwriting
    /// leaves them.
    pub(crate) fn random(layout: &Layout, first: u32, count: u32, mapped: u32, seed: u64) -> Self {
        let valid = steady_state(count, layout.data_slots(), mapped);
        let ends = valid.iter().scan(0, |sum, valid| {
            *sum += valid;
            Some(*sum)
        });
        let slots = u64::from(layout.data_slots());
        let places =
            (0..count).map(|i| Permutation::new(slots, seed.wrapping_add(u64::from(i) + 1)));
        let blocks = Permutation::new(u64::from(mapped), seed);
        let scattered = Scatter { blocks, places: places.collect() };
        Self {
            layout: layout.clone(),
            first,
            ends: ends.collect(),
            mapped,
            pages: MappingPages::default(),
            scattered: Some(scattered),
        }
    }

    /// Adds mapping pages, which are counted in `mapped`.
    pub(crate) fn with_mapping_pages(self, pages: MappingPages) -> Self {
        Self { pages, ..self }
    }

    /// Returns the filled superblocks.
    pub(crate) fn superblocks(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.ends.len() as u32
    }

    /// Returns the blocks that a filled superblock holds.
    pub(crate) fn valid(&self, superblock: u32) -> u32 {
        let index = (superblock - self.first) as usize;
        self.ends[index] - self.start(index)
    }

    fn start(&self, index: usize) -> u32 {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Returns the slot of a block, if it was written.
    pub(crate) fn slot_of(&self, lpn: Lpn) -> Option<Slot> {
        let number = self.pages.number(lpn);
        if number >= self.mapped {
            return None;
        }
        let order = self.scattered.as_ref().map_or(number, |s| forward(&s.blocks, number));
        let index = self.ends.partition_point(|end| *end <= order);
        let nth = order - self.start(index);
        let place = self.scattered.as_ref().map_or(nth, |s| forward(&s.places[index], nth));
        Some(Slot(self.layout.first(self.first + index as u32).0 + place))
    }

    /// Returns the block in a slot of a filled superblock, if the slot holds its newest version.
    pub(crate) fn lpn_of(&self, slot: Slot) -> Option<Lpn> {
        let (superblock, place) = self.layout.locate(slot);
        let index = superblock.checked_sub(self.first)? as usize;
        if index >= self.ends.len() || place >= self.layout.data_slots() {
            return None;
        }
        let nth = self.scattered.as_ref().map_or(place, |s| backward(&s.places[index], place));
        let order = self.start(index) + nth;
        let is_valid = order < self.ends[index];
        let number = || self.scattered.as_ref().map_or(order, |s| backward(&s.blocks, order));
        is_valid.then(|| self.pages.lpn(number()))
    }

    /// Applies the prefill to the flash.
    pub(crate) fn apply(self: &Rc<Self>, array: &mut NandArray) {
        let blocks: Vec<BlockAddress> =
            self.superblocks().flat_map(|sb| self.layout.superblocks.blocks(sb)).collect();
        let source: Rc<dyn PageSource> = Rc::<Self>::clone(self);
        array.prefill(blocks.into_iter(), source);
    }
}

impl PageSource for Prefill {
    /// Stale slots have no block number: recovery could not distinguish them from the newest
    /// version.
    fn page(&self, page: PageAddress) -> PageImage {
        let first = self.layout.first_of_page(page);
        let filled = |place: u32| {
            let lpn = self.lpn_of(Slot(first.0 + place));
            lpn.map_or(Versioned::FILLER, |lpn| Versioned { lpn, ..Versioned::FILLER })
        };
        let slots: Vec<_> = (0..self.layout.slots_per_page).map(filled).collect();
        debug_assert!(slots.iter().all(|slot| slot.sequence == Sequence(0)));
        page::data(&slots)
    }
}

/// Returns the valid slots in each of `count` superblocks of `slots` slots, newest first, with a
/// sum of `mapped`.
fn steady_state(count: u32, slots: u32, mapped: u32) -> Vec<u32> {
    let in_use = f64::from(mapped) / (f64::from(count) * f64::from(slots));
    assert!(in_use < 1.0, "a drive without spare slots has no steady state");
    let victim = victim_share(in_use);
    let share = |i: u32| victim.powf((f64::from(i) + 0.5) / f64::from(count));
    let mut valid: Vec<u32> = (0..count).map(|i| (f64::from(slots) * share(i)) as u32).collect();
    // The rounding error is distributed one by one to superblocks with room, newest first.
    let mut missing = i64::from(mapped) - valid.iter().map(|v| i64::from(*v)).sum::<i64>();
    while missing != 0 {
        let step = missing.signum();
        let mut has_moved = false;
        for valid in &mut valid {
            let next = i64::from(*valid) + step;
            if missing != 0 && (0..=i64::from(slots)).contains(&next) {
                *valid = next as u32;
                missing -= step;
                has_moved = true;
            }
        }
        assert!(has_moved, "fewer slots than blocks");
    }
    valid
}

/// Returns the share of a victim's slots that are still valid when a share `in_use` of all slots
/// is, under random overwriting and greedy collection: the `u` with `(1 - u) / -ln u = in_use`
/// (Desnoyers).
pub fn victim_share(in_use: f64) -> f64 {
    let (mut low, mut high) = (1e-12, 1.0 - 1e-12);
    for _ in 0..100 {
        let u: f64 = f64::midpoint(low, high);
        if (1.0 - u) / -u.ln() < in_use {
            low = u;
        } else {
            high = u;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use crate::nand::Geometry;

    use super::*;

    fn layout() -> Layout {
        Layout::new(&Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 20,
            pages_per_block: 24,
            page_bytes: 16_384,
            spare_bytes: 128,
            transfer_bytes: 18_022,
            one_shot: true,
            bits_per_cell: 3,
        })
    }

    fn check(prefill: &Prefill, mapped: u32) {
        let layout = layout();
        let mut found = [0; 20];
        for lpn in 0..mapped {
            let slot = prefill.slot_of(Lpn(lpn)).expect("it was written");
            assert_eq!(prefill.lpn_of(slot), Some(Lpn(lpn)));
            found[layout.locate(slot).0 as usize] += 1;
        }
        assert_eq!(prefill.slot_of(Lpn(mapped)), None);
        for superblock in prefill.superblocks() {
            assert_eq!(prefill.valid(superblock), found[superblock as usize]);
            let first = layout.first(superblock).0;
            let slots = first..first + layout.slots_per_superblock;
            let valid = slots.filter(|slot| prefill.lpn_of(Slot(*slot)).is_some()).count();
            assert_eq!(valid, found[superblock as usize] as usize);
        }
        assert_eq!(found.iter().sum::<u32>(), mapped);
    }

    #[test]
    fn each_block_has_one_slot_and_is_found_from_it() {
        let layout = layout();
        let slots = layout.data_slots();
        check(&Prefill::sequential(&layout, 2, slots * 5 + 7), slots * 5 + 7);
        check(&Prefill::random(&layout, 2, 17, slots * 13 + 1, 5), slots * 13 + 1);
        check(&Prefill::random(&layout, 1, 19, slots * 19 - 1, 5), slots * 19 - 1);
    }

    #[test]
    fn mapping_pages_come_first_of_what_was_written() {
        let layout = layout();
        let pages = MappingPages { first: 10_000, count: 7 };
        let prefill = Prefill::random(&layout, 2, 17, 1_007, 5).with_mapping_pages(pages);
        for lpn in (0..1_000).chain(10_000..10_007) {
            let slot = prefill.slot_of(Lpn(lpn)).expect("it was written");
            assert_eq!(prefill.lpn_of(slot), Some(Lpn(lpn)));
        }
        assert_eq!(prefill.slot_of(Lpn(1_000)), None);
        assert_eq!(prefill.slot_of(Lpn(10_007)), None);
    }

    #[test]
    fn pages_say_what_they_hold() {
        let layout = layout();
        let prefill = Prefill::random(&layout, 2, 17, layout.data_slots() * 13, 5);
        let slot = prefill.slot_of(Lpn(77)).expect("it was written");
        let (page, place) = layout.page(slot);
        let read = page::slot(&prefill.page(page), place).expect("whole");
        assert_eq!((read.lpn, read.sequence), (Lpn(77), Sequence(0)));
    }

    #[test]
    fn the_share_left_in_a_victim_is_that_of_the_formula() {
        for (in_use, expected) in [(0.854, 0.720), (0.93, 0.8667), (0.5, 0.2032)] {
            assert!((victim_share(in_use) - expected).abs() < 5e-3, "{}", victim_share(in_use));
        }
    }
}
