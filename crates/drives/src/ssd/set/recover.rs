//! Recovery after a power cut.
//!
//! Recovery reads the dump, then the contents of each superblock's slots: from the summary if it is
//! intact, else from the page headers. For each block the version with the greatest sequence
//! counts, unless the block was discarded later. Partly written superblocks are continued; holes
//! left by torn or missing programs are padded.

use std::rc::Rc;

use block::{BLOCK_BYTES, Block};
use runtime::IoClass;

use super::place::{OpenSuperblock, Stream};
use super::power::{Saved, SetImage};
use super::{Parts, Set};
use crate::nand::PageAddress;
use crate::ssd::failure::SetFailure;
use crate::ssd::layout::Slot;
use crate::ssd::page;
use crate::ssd::page::{Lpn, Sequence, Versioned};
use crate::ssd::planted::Fault;
use crate::ssd::table::{State, Table};

/// Reads in flight at a time.
const READS_AT_ONCE: usize = 256;

/// Contents found in a superblock.
struct Found {
    number: u32,
    /// Programmed units of each die.
    units_by_die: Vec<u32>,
    contents: Vec<(Lpn, Sequence)>,
}

impl Found {
    /// Returns the unit after the last programmed one.
    fn next_unit(&self) -> u32 {
        let dies = self.units_by_die.len() as u32;
        let last = (0..dies).zip(&self.units_by_die).filter(|(_, units)| **units > 0);
        last.map(|(die, units)| (units - 1) * dies + die + 1).max().unwrap_or(0)
    }
}

impl Set {
    /// Creates a set after power was restored, before its recovery.
    pub(crate) fn power_up(parts: Parts, image: SetImage) -> Rc<Self> {
        let set = Self::new(parts, image.array, image.prefill);
        set.failure.set(image.failure);
        set
    }

    /// Recovers the contents of the set, and starts taking commands.
    pub(crate) async fn recover(self: Rc<Self>) {
        if self.failure.get().is_some() {
            return;
        }
        let saved = match self.load_saved().await {
            Ok(saved) => saved,
            Err(failure) => return self.fail(failure),
        };
        let first = 2 * self.profile.reserved_per_half(&self.layout);
        *self.table.borrow_mut() = Table::new(&self.layout, first, None);
        let mut found = Vec::new();
        for superblock in first..self.layout.superblocks.count() {
            found.extend(self.look_at(superblock).await);
        }
        self.build_mapping(&found, saved).await;
        self.write_on(found).await;
        self.start();
        self.handle.spawn("forget dump", Rc::clone(&self).forget_dump());
        self.jobs.wake();
    }

    /// Loads the last dump, and erases the other half of the reserved region.
    async fn load_saved(&self) -> Result<Saved, SetFailure> {
        let has_capacitors = self.profile.buffer.has_capacitors;
        let dump = self.dumps.reserve.find(&self.flash, has_capacitors).await?;
        let next = dump.as_ref().map_or(1, |dump| dump.epoch + 1);
        if self.planted.has(Fault::EraseDumpInUse) {
            self.dumps.reserve.erase(&self.flash, next + 1).await;
        }
        self.dumps.reserve.erase(&self.flash, next).await;
        self.dumps.epoch.set(next);
        let Some(dump) = dump else { return Ok(Saved::default()) };
        let buffer = self.profile.buffer.bytes / u64::from(self.profile.sets * BLOCK_BYTES);
        let saved = Saved::decode(&dump.bytes);
        let saved = saved.filter(|saved| saved.fits(self.blocks, buffer.max(1) as u32));
        saved.ok_or(SetFailure::DumpDamaged)
    }

    /// Erases the dump that the recovery used, for a drive with capacitors. Every power cut writes
    /// a new dump; if the new one were lost, a kept old one could be mistaken for it.
    async fn forget_dump(self: Rc<Self>) {
        if self.profile.buffer.has_capacitors {
            let inside = self.gates.jobs.enter().await;
            self.dumps.reserve.erase(&self.flash, self.dumps.epoch.get() + 1).await;
            drop(inside);
        }
    }

    /// Scans a superblock; `None` if it is free, or as it was prefilled.
    async fn look_at(&self, number: u32) -> Option<Found> {
        let blocks: Vec<_> = self.layout.superblocks.blocks(number).collect();
        let unit = self.layout.pages_per_unit;
        let (states, erases, is_torn) = self.flash.with_array(|array| {
            let of = |block: &crate::nand::BlockAddress| {
                (array.programmed_pages(*block) / unit, array.is_prefilled(*block))
            };
            let states: Vec<_> = blocks.iter().map(of).collect();
            let is_torn = blocks.iter().any(|block| array.needs_erase(*block));
            (states, array.erase_count(blocks[0]), is_torn)
        });
        self.table.borrow_mut().set_erases(number, erases);
        let is_prefilled = states.iter().filter(|(_, is_prefilled)| *is_prefilled).count();
        if is_prefilled == states.len() {
            let valid = self.prefill.as_ref().expect("it was prefilled").valid(number);
            self.table.borrow_mut().adopt_prefilled(number, valid);
            return None;
        }
        let units_by_die: Vec<u32> = states.iter().map(|(units, _)| *units).collect();
        if is_torn || is_prefilled > 0 || self.was_being_erased(&units_by_die) {
            // All its data are elsewhere.
            self.erase_all(number).await;
            return None;
        }
        if units_by_die.iter().all(|units| *units == 0) {
            return None;
        }
        self.table.borrow_mut().adopt(number, State::Open);
        let mut found = Found { number, units_by_die, contents: Vec::new() };
        found.contents = self.contents_of(&found).await;
        Some(found)
    }

    /// Returns whether a superblock lost power while it was being erased. A superblock with part of
    /// its summary has all of its data, unless some dies were erased since: its summary would list
    /// blocks that no longer exist.
    fn was_being_erased(&self, units_by_die: &[u32]) -> bool {
        let dies = units_by_die.len() as u32;
        let data_units = |die: u32| (self.layout.data_units + dies - 1 - die) / dies;
        let mut counted = (0..dies).zip(units_by_die);
        let has_summary = counted.clone().any(|(die, units)| *units > data_units(die));
        has_summary
            && !self.planted.has(Fault::FillErased)
            && counted.any(|(die, units)| *units < data_units(die))
    }

    async fn erase_all(&self, number: u32) {
        let blocks = self.layout.superblocks.blocks(number);
        let erases: Vec<_> =
            blocks.map(|block| self.flash.erase(block, IoClass::Journal)).collect();
        for erase in erases {
            erase.await;
        }
    }

    /// Returns the contents of a superblock's slots.
    async fn contents_of(&self, found: &Found) -> Vec<(Lpn, Sequence)> {
        let layout = &self.layout;
        let per_die = layout.units / self.flash.geometry().dies();
        if found.units_by_die.iter().all(|units| *units == per_die)
            && let Some(contents) = self.read_summary(found.number).await
        {
            return contents;
        }
        let dies = self.flash.geometry().dies();
        let units = found.next_unit().min(layout.data_units);
        let nothing = (Lpn::NONE, Sequence(0));
        let mut contents = vec![nothing; (units * layout.slots_per_unit) as usize];
        let pages: Vec<u32> = (0..units * layout.pages_per_unit)
            .filter(|page| {
                let unit = page / layout.pages_per_unit;
                unit / dies < found.units_by_die[(unit % dies) as usize]
            })
            .collect();
        for pages in pages.chunks(READS_AT_ONCE) {
            let reads: Vec<_> =
                pages.iter().map(|page| self.read_index(found.number, *page)).collect();
            for (page, read) in pages.iter().zip(reads) {
                let Ok(image) = read.await else { continue };
                for place in 0..layout.slots_per_page {
                    if let Some(version) = page::slot(&image, place) {
                        let slot = (page * layout.slots_per_page + place) as usize;
                        contents[slot] = (version.lpn, version.sequence);
                    }
                }
            }
        }
        contents
    }

    fn read_index(
        &self,
        superblock: u32,
        index: u32,
    ) -> impl Future<Output = Result<runtime::PageImage, crate::nand::ReadError>> + use<> {
        self.flash.read(self.layout.superblocks.page(superblock, index), IoClass::Journal)
    }

    async fn read_summary(&self, superblock: u32) -> Option<Vec<(Lpn, Sequence)>> {
        let slots = self.layout.data_slots();
        let pages = slots.div_ceil(page::summary_entries(self.flash.geometry().page_bytes));
        let first = self.layout.data_units * self.layout.pages_per_unit;
        let reads: Vec<_> =
            (first..first + pages).map(|index| self.read_index(superblock, index)).collect();
        let mut contents = Vec::with_capacity(slots as usize);
        for read in reads {
            contents.extend(page::read_summary(&read.await.ok()?)?);
        }
        (contents.len() == slots as usize).then_some(contents)
    }

    /// Builds the mapping from the newest version of each block.
    async fn build_mapping(&self, found: &[Found], saved: Saved) {
        let mut newest = Vec::new();
        let end = self.blocks + self.profile.mapping_pages_on_flash() as u32;
        for superblock in found {
            let first = self.layout.first(superblock.number).0;
            let slots = (first..).zip(&superblock.contents);
            let named = slots.filter(|(_, (lpn, _))| lpn.0 < end);
            newest.extend(named.map(|(slot, (lpn, sequence))| (*lpn, *sequence, Slot(slot))));
        }
        newest.sort_unstable();
        let last = newest.iter().map(|(_, sequence, _)| *sequence).max().unwrap_or_default();
        newest.dedup_by(|next, kept| {
            // `dedup_by` keeps the first element: make it the newest.
            let is_same = next.0 == kept.0;
            if is_same {
                *kept = *next;
            }
            is_same
        });
        let mut sequence = last.max(saved.discards.newest());
        self.forget_discarded(&saved);
        for (lpn, found_sequence, slot) in newest {
            let was_discarded =
                saved.discards.get(lpn).is_some_and(|discard| discard > found_sequence);
            self.enter_found(lpn, (!was_discarded).then_some(slot));
        }
        for version in saved.buffered {
            sequence = sequence.max(version.sequence);
            let room = self.room.acquire(1).await;
            let block = version.block.unwrap_or(Block::ZERO);
            self.buffer.borrow_mut().insert(version.lpn, version.sequence, block, room);
        }
        self.discards.replace(saved.discards);
        if !self.planted.has(Fault::SequenceRestarts) {
            self.sequence.set(sequence.0 + 1);
        }
        self.first_of_life.set(self.sequence.get());
    }

    fn enter_found(&self, lpn: Lpn, slot: Option<Slot>) {
        let was = self.mapping.borrow_mut().set(lpn, slot);
        let mut table = self.table.borrow_mut();
        let is_prefilled = |slot: &Slot| table.is_prefilled(self.layout.locate(*slot).0);
        if let Some(was) = was.filter(is_prefilled) {
            table.remove_valid(was);
        }
        if let Some(slot) = slot {
            table.add_valid(slot);
        }
    }

    /// Unmaps discarded blocks from their prefilled slots. Blocks written after the discard are
    /// entered afterwards, possibly in the same slots as they were prefilled in.
    fn forget_discarded(&self, saved: &Saved) {
        if self.prefill.is_none() {
            return;
        }
        for lpn in saved.discards.ranges().flatten().map(Lpn) {
            if self.mapping.borrow().get(lpn).is_some() {
                self.enter_found(lpn, None);
            }
        }
    }

    /// Continues partly written superblocks; erases those without valid slots.
    async fn write_on(self: &Rc<Self>, found: Vec<Found>) {
        let mut open = Vec::new();
        for found in found {
            let number = found.number;
            let next_unit = found.next_unit();
            let per_die = self.layout.units / self.flash.geometry().dies();
            if found.units_by_die.iter().all(|units| *units == per_die) {
                self.table.borrow_mut().close(number);
            } else if self.table.borrow().valid_slots(number) == 0 {
                self.table.borrow_mut().give_up(number);
                self.erase_all(number).await;
                self.table.borrow_mut().freed(number);
            } else {
                self.fill_holes(&found).await;
                open.push(OpenSuperblock { number, next_unit, contents: found.contents });
            }
        }
        // The two least filled ones are continued, the others are closed.
        open.sort_by_key(|open| open.next_unit);
        let rest = open.split_off(open.len().min(2));
        for (stream, open) in [Stream::Host, Stream::Moved].into_iter().zip(open) {
            if open.next_unit < self.layout.data_units {
                self.streams.open[stream as usize].replace(Some(open));
            } else {
                self.end(open).await;
            }
        }
        for open in rest {
            self.end(open).await;
        }
    }

    /// Pads the missing units below the frontier: the pages of a block must be programmed in order.
    async fn fill_holes(&self, found: &Found) {
        let dies = self.flash.geometry().dies();
        let is_missing = |unit: &u32| unit / dies >= found.units_by_die[(unit % dies) as usize];
        let missing: Vec<u32> = (0..found.next_unit()).filter(is_missing).collect();
        self.program_nothing(found.number, &missing).await;
    }

    async fn program_nothing(&self, superblock: u32, units: &[u32]) {
        let filler = vec![Versioned::FILLER; self.layout.slots_per_page as usize];
        let images = vec![page::data(&filler); self.layout.pages_per_unit as usize];
        let programs: Vec<_> = units
            .iter()
            .map(|unit| {
                let page = self.unit_page(superblock, *unit);
                self.flash.program(page, images.clone(), IoClass::Journal)
            })
            .collect();
        for program in programs {
            program.await;
        }
    }

    fn unit_page(&self, superblock: u32, unit: u32) -> PageAddress {
        self.layout.superblocks.page(superblock, unit * self.layout.pages_per_unit)
    }

    /// Pads a superblock to its end and closes it.
    async fn end(self: &Rc<Self>, mut open: OpenSuperblock) {
        let missing: Vec<u32> = (open.next_unit..self.layout.data_units).collect();
        self.program_nothing(open.number, &missing).await;
        open.next_unit = open.next_unit.max(self.layout.data_units);
        open.contents.resize(self.layout.data_slots() as usize, (Lpn::NONE, Sequence(0)));
        Rc::clone(self).write_summary(open).await;
    }
}
