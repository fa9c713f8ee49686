//! The firmware's table of superblocks: the state of each (free, open, full), and which of its
//! slots hold newest versions.

use std::rc::Rc;

use super::layout::{Layout, Slot};
use super::prefill::Prefill;

/// State of a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Erased.
    Free,
    /// Being written, or its last programs are in flight.
    Open,
    /// Fully written: may be collected.
    Full,
    /// Being collected, or about to be erased.
    Leaving,
    /// Has pages that can neither be read nor identified; never erased, never collected.
    Retired,
}

/// The slots of a superblock that hold newest versions.
enum Valid {
    /// As prefilled, where the mapping still points to the superblock: computed slot by slot when
    /// the superblock is collected.
    AsPrefilled,
    Bitmap(Box<[u64]>),
}

struct Superblock {
    state: State,
    valid_slots: u32,
    valid: Valid,
    /// Client reads in flight in the superblock.
    readers: u32,
    /// Programs in flight in the superblock.
    programs: u32,
    erases: u32,
    /// Whether other copies of some of its versions exist, or may exist since before a power cut.
    /// Copies have the sequence of their originals, so the next recovery may use either copy.
    has_originals: bool,
    /// Whether it was opened for mapping pages.
    is_mapping: bool,
}

/// All superblocks of a set that can hold data.
pub(crate) struct Table {
    layout: Layout,
    first: u32,
    superblocks: Vec<Superblock>,
    free: u32,
    /// Superblocks that were opened for mapping pages and are not free again.
    mapping: u32,
}

impl Table {
    /// Creates the table of superblocks from number `first` on: all free except the prefilled ones.
    pub(crate) fn new(layout: &Layout, first: u32, prefill: Option<&Rc<Prefill>>) -> Self {
        let new = |number: u32| {
            let filled = prefill.filter(|p| p.superblocks().contains(&number));
            Superblock {
                state: if filled.is_some() { State::Full } else { State::Free },
                valid_slots: filled.map_or(0, |p| p.valid(number)),
                valid: filled.map_or_else(|| Valid::Bitmap(Box::default()), |_| Valid::AsPrefilled),
                readers: 0,
                programs: 0,
                erases: 0,
                has_originals: false,
                is_mapping: false,
            }
        };
        let superblocks: Vec<_> = (first..layout.superblocks.count()).map(new).collect();
        let free = superblocks.iter().filter(|sb| sb.state == State::Free).count() as u32;
        Self { layout: layout.clone(), first, superblocks, free, mapping: 0 }
    }

    fn of(&self, superblock: u32) -> &Superblock {
        &self.superblocks[(superblock - self.first) as usize]
    }

    fn of_mut(&mut self, superblock: u32) -> &mut Superblock {
        &mut self.superblocks[(superblock - self.first) as usize]
    }

    /// Returns the number of free superblocks.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// Returns the number of all superblocks.
    pub(crate) fn count(&self) -> u32 {
        self.superblocks.len() as u32
    }

    /// Returns the number of superblocks in that state.
    pub(crate) fn in_state(&self, state: State) -> usize {
        self.superblocks.iter().filter(|superblock| superblock.state == state).count()
    }

    pub(crate) fn state(&self, superblock: u32) -> State {
        self.of(superblock).state
    }

    pub(crate) fn valid_slots(&self, superblock: u32) -> u32 {
        self.of(superblock).valid_slots
    }

    /// Returns whether the superblock has not been written since the drive was prefilled.
    pub(crate) fn is_prefilled(&self, superblock: u32) -> bool {
        matches!(self.of(superblock).valid, Valid::AsPrefilled)
    }

    /// Returns the superblocks of mapping pages, including those being collected.
    pub(crate) fn mapping(&self) -> u32 {
        self.mapping
    }

    /// Returns the superblocks of mapping pages, without those being collected.
    pub(crate) fn mapping_that_stay(&self) -> u32 {
        if self.mapping == 0 {
            return 0;
        }
        let leaving = |sb: &&Superblock| sb.is_mapping && sb.state == State::Leaving;
        self.mapping - self.superblocks.iter().filter(leaving).count() as u32
    }

    /// Marks a newly opened superblock as one for mapping pages.
    pub(crate) fn is_for_mapping(&mut self, superblock: u32) {
        let was_mapping = std::mem::replace(&mut self.of_mut(superblock).is_mapping, true);
        assert!(!was_mapping, "superblock {superblock} is for mapping pages already");
        self.mapping += 1;
    }

    /// Opens the free superblock with the least wear.
    pub(crate) fn open(&mut self) -> Option<u32> {
        let free = self.superblocks.iter().enumerate().filter(|(_, sb)| sb.state == State::Free);
        let (index, _) = free.min_by_key(|(index, sb)| (sb.erases, *index))?;
        self.free -= 1;
        let words = self.layout.slots_per_superblock.div_ceil(64) as usize;
        let superblock = &mut self.superblocks[index];
        superblock.state = State::Open;
        superblock.has_originals = false;
        superblock.valid = Valid::Bitmap(vec![0; words].into());
        Some(index as u32 + self.first)
    }

    /// Notes that recovery found a superblock written.
    pub(crate) fn adopt(&mut self, superblock: u32, state: State) {
        assert_eq!(self.state(superblock), State::Free, "it is not known yet");
        self.free -= 1;
        let words = self.layout.slots_per_superblock.div_ceil(64) as usize;
        let this = self.of_mut(superblock);
        this.state = state;
        this.valid = Valid::Bitmap(vec![0; words].into());
        this.has_originals = true;
    }

    /// Notes that recovery found a superblock as prefilled, with that many valid blocks.
    pub(crate) fn adopt_prefilled(&mut self, superblock: u32, valid_slots: u32) {
        self.adopt(superblock, State::Full);
        let this = self.of_mut(superblock);
        this.valid = Valid::AsPrefilled;
        this.valid_slots = valid_slots;
    }

    /// Marks a superblock for erasing: recovery found no useful data in it.
    pub(crate) fn give_up(&mut self, superblock: u32) {
        let this = self.of_mut(superblock);
        assert_eq!(this.valid_slots, 0, "data would be lost");
        this.state = State::Leaving;
    }

    pub(crate) fn set_erases(&mut self, superblock: u32, erases: u32) {
        self.of_mut(superblock).erases = erases;
    }

    /// Notes that a superblock is fully written, and that all its programs have ended.
    pub(crate) fn close(&mut self, superblock: u32) {
        let this = self.of_mut(superblock);
        assert!(this.state == State::Open && this.programs == 0, "it is still being written");
        this.state = State::Full;
    }

    pub(crate) fn begin_leaving(&mut self, superblock: u32) {
        let this = self.of_mut(superblock);
        assert_eq!(this.state, State::Full, "only what is full is collected");
        this.state = State::Leaving;
    }

    /// Retires a superblock whose collection failed.
    pub(crate) fn retire(&mut self, superblock: u32) {
        let this = self.of_mut(superblock);
        assert_eq!(this.state, State::Leaving, "it was to leave");
        this.state = State::Retired;
    }

    /// Notes that a superblock was erased.
    pub(crate) fn freed(&mut self, superblock: u32) {
        let this = self.of_mut(superblock);
        assert!(this.state == State::Leaving && this.valid_slots == 0, "data would be lost");
        assert_eq!(this.readers, 0, "somebody reads it");
        this.state = State::Free;
        this.erases += 1;
        this.valid = Valid::Bitmap(Box::default());
        let was_mapping = std::mem::replace(&mut this.is_mapping, false);
        self.mapping -= u32::from(was_mapping);
        self.free += 1;
    }

    /// Notes that the mapping now points to `slot`.
    pub(crate) fn add_valid(&mut self, slot: Slot) {
        let (superblock, place) = self.layout.locate(slot);
        let this = self.of_mut(superblock);
        let Valid::Bitmap(bitmap) = &mut this.valid else {
            unreachable!("nothing is written to a prefilled superblock")
        };
        let (word, bit) = (place as usize / 64, 1_u64 << (place % 64));
        assert_eq!(bitmap[word] & bit, 0, "a slot is filled once");
        bitmap[word] |= bit;
        this.valid_slots += 1;
    }

    /// Notes that the mapping no longer points to `slot`.
    pub(crate) fn remove_valid(&mut self, slot: Slot) {
        let (superblock, place) = self.layout.locate(slot);
        let this = self.of_mut(superblock);
        assert!(
            this.valid_slots > 0,
            "the mapping pointed to superblock {superblock}, which is {:?} and holds nothing",
            this.state
        );
        if let Valid::Bitmap(bitmap) = &mut this.valid {
            let (word, bit) = (place as usize / 64, 1_u64 << (place % 64));
            assert_ne!(bitmap[word] & bit, 0, "a slot becomes stale once");
            bitmap[word] &= !bit;
        }
        this.valid_slots -= 1;
    }

    /// Returns whether `slot` is valid by the bitmap; `None` if only the mapping knows.
    pub(crate) fn is_valid(&self, slot: Slot) -> Option<bool> {
        let (superblock, place) = self.layout.locate(slot);
        match &self.of(superblock).valid {
            Valid::AsPrefilled => None,
            // Empty if the superblock has become free since.
            Valid::Bitmap(bitmap) => {
                let word = bitmap.get(place as usize / 64);
                Some(word.is_some_and(|word| word >> (place % 64) & 1 == 1))
            }
        }
    }

    /// Notes that the mapping now points to a copy instead of to `slot`.
    pub(crate) fn remove_copied(&mut self, slot: Slot) {
        self.remove_valid(slot);
        let (superblock, _) = self.layout.locate(slot);
        self.of_mut(superblock).has_originals = true;
    }

    /// Returns whether the blocks of the page with first slot `first` can never be read again, not
    /// even by a recovery. Returns false if that is unknown.
    pub(crate) fn is_dead(&self, first: Slot) -> bool {
        let (superblock, _) = self.layout.locate(first);
        if self.of(superblock).has_originals {
            return false;
        }
        let mut slots = (first.0..first.0 + self.layout.slots_per_page).map(Slot);
        slots.all(|slot| self.is_valid(slot) == Some(false))
    }

    /// Returns the number of erases of a superblock.
    pub(crate) fn erases(&self, superblock: u32) -> u32 {
        self.of(superblock).erases
    }

    pub(crate) fn begin_read(&mut self, superblock: u32) {
        self.of_mut(superblock).readers += 1;
    }

    /// Returns true if this was the last read in a superblock that is to be erased.
    pub(crate) fn end_read(&mut self, superblock: u32) -> bool {
        let this = self.of_mut(superblock);
        this.readers -= 1;
        this.readers == 0 && this.state == State::Leaving
    }

    pub(crate) fn has_readers(&self, superblock: u32) -> bool {
        self.of(superblock).readers > 0
    }

    pub(crate) fn begin_program(&mut self, superblock: u32) {
        self.of_mut(superblock).programs += 1;
    }

    /// Returns true if no program is left.
    pub(crate) fn end_program(&mut self, superblock: u32) -> bool {
        let this = self.of_mut(superblock);
        this.programs -= 1;
        this.programs == 0
    }

    /// Returns the full superblock with the fewest valid slots, among those for mapping pages or
    /// among the others.
    pub(crate) fn greediest(&self, is_mapping: bool) -> Option<u32> {
        let is_one = |sb: &Superblock| sb.state == State::Full && sb.is_mapping == is_mapping;
        let full = self.superblocks.iter().enumerate().filter(|(_, sb)| is_one(sb));
        let (index, _) = full.min_by_key(|(index, sb)| (sb.valid_slots, *index))?;
        Some(index as u32 + self.first)
    }

    /// Returns the full superblock with the least wear if it lags behind the most worn one by more
    /// than `spread` erases: its data are cold, so other superblocks wear in its place.
    pub(crate) fn laggard(&self, spread: u32) -> Option<u32> {
        let most = self.superblocks.iter().map(|sb| sb.erases).max()?;
        let full = self.superblocks.iter().enumerate().filter(|(_, sb)| sb.state == State::Full);
        let (index, least) = full.min_by_key(|(index, sb)| (sb.erases, *index))?;
        (most - least.erases > spread).then_some(index as u32 + self.first)
    }

    /// Returns the least and the most erases of a superblock.
    pub(crate) fn wear(&self) -> (u32, u32) {
        let erases = || self.superblocks.iter().map(|sb| sb.erases);
        (erases().min().unwrap_or(0), erases().max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use crate::nand::Geometry;

    use super::*;

    #[test]
    fn nothing_is_valid_in_a_superblock_that_has_become_free() {
        let layout = Layout::new(&Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 8,
            pages_per_block: 24,
            page_bytes: 16_384,
            spare_bytes: 128,
            transfer_bytes: 18_022,
            one_shot: true,
            bits_per_cell: 3,
        });
        let mut table = Table::new(&layout, 2, None);
        let superblock = table.open().expect("all are free");
        let slot = layout.first(superblock);
        table.add_valid(slot);
        assert_eq!((table.is_valid(slot), table.free()), (Some(true), 5));
        table.close(superblock);
        table.begin_leaving(superblock);
        table.remove_valid(slot);
        table.freed(superblock);
        // A read reclaim may still look up one of its blocks.
        assert_eq!((table.is_valid(slot), table.free()), (Some(false), 6));
    }
}
