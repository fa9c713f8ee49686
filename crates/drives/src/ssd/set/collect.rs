//! Execution of internal jobs: garbage collection, read reclaim, wear levelling. One task executes
//! one job at a time; `jobs.rs` chooses it.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use block::Block;
use runtime::{IoClass, JoinHandle, Nanos};

use super::Set;
use super::jobs::{Facts, Job, Reason, Room, decide, is_space_low, lacks_room};
use super::place::Stream;
use super::stale::InPeriod;
use crate::nand::{BlockAddress, PageAddress};
use crate::ssd::gate::{Gate, Inside};
use crate::ssd::layout::Slot;
use crate::ssd::page::{Lpn, Sequence, Versioned};
use crate::ssd::planted::Fault;
use crate::ssd::table::{State, Table};
use crate::ssd::{pacing, page};

/// Batches of reads in flight ahead of the copies. A batch is one page program of each die.
const BATCHES_AHEAD: usize = 2;

/// Parts of a batch where collection keeps pace with clients. Each move is a burst: it delays
/// reads, and distorts the write amplification of a short job.
const PARTS_OF_BATCH: usize = 8;

/// Result of reading pages whose valid slots are to be moved.
struct Batch {
    moving: Vec<Moving>,
    /// Whether every valid version was read, or at least identified.
    is_complete: bool,
}

/// A version to be moved, and its slot.
struct Moving {
    from: Slot,
    version: Versioned,
}

impl Set {
    /// Executes internal jobs. A task that runs as long as the set.
    pub(super) async fn run_jobs(self: Rc<Self>) {
        loop {
            match self.next_job() {
                Some(Job::Collect(superblock, reason)) => self.collect(superblock, reason).await,
                Some(Job::Reclaim(block)) => self.reclaim(block).await,
                None => self.jobs.changed.notified().await,
            }
        }
    }

    /// Chooses the next job, and notifies tasks that wait for the decision.
    fn next_job(&self) -> Option<Job> {
        self.jobs.decided.notify_all();
        let table = self.table.borrow();
        let facts = self.facts(&table);
        let decision = decide(&table, &facts);
        if self.profile.background.pacing.is_some() {
            self.jobs.is_space_low.set(is_space_low(&table, &facts));
        }
        let ends = |was: bool, is: bool| was && !is;
        if ends(self.jobs.is_collecting.replace(decision.is_collecting), decision.is_collecting) {
            self.jobs.credit.set(if self.keeps_pace() { self.jobs.lead } else { 0 });
            self.space_changed.notify_all();
        }
        if ends(self.jobs.wants_room.replace(decision.wants_room), decision.wants_room) {
            self.space_changed.notify_all();
        }
        decision.job
    }

    fn facts(&self, table: &Table) -> Facts {
        let background = &self.profile.background;
        Facts {
            may_run: self.plm.windows.borrow().runs_jobs() || self.planted.has(Fault::JobsInWindow),
            in_danger: self.most_in_danger(),
            read_often: self.jobs.reclaims.borrow().front().copied(),
            room: self.room(table),
            reserve: self.reserve(table),
            kept: self.kept(table),
            mapping_superblocks: self.mapping_superblocks,
            owes_much: self.owes_much(),
            is_collecting: self.jobs.is_collecting.get(),
            waits_for_clients: self.keeps_pace() && self.slots_lacking(table, 0) == 0,
            most_valid: self.layout.data_slots() - self.layout.slots_per_unit,
            start_free_percent: background.start_free_percent,
            stop_free_percent: background.stop_free_percent,
            wear_spread: background.wear_spread,
        }
    }

    /// Returns the block with the most reads among those whose data must move now.
    fn most_in_danger(&self) -> Option<BlockAddress> {
        let reads = |block: BlockAddress| self.flash.with_array(|array| array.read_count(block));
        let reclaims = self.jobs.reclaims.borrow();
        let counted = reclaims.iter().map(|block| (reads(*block), *block));
        let critical =
            counted.filter(|(reads, _)| *reads >= self.profile.background.critical_reads);
        critical.max().map(|(_, block)| block)
    }

    /// Returns whether a read must wait because one of its blocks is in danger while a lockdown
    /// waits for room.
    pub(super) fn is_held_back(&self, blocks: &Range<u32>) -> bool {
        if self.jobs.reclaims.borrow().is_empty() || !self.plm.windows.borrow().runs_jobs() {
            return false;
        }
        lacks_room(self.room(&self.table.borrow()))
            && blocks.clone().any(|block| self.is_in_danger(Lpn(block)))
    }

    fn is_in_danger(&self, lpn: Lpn) -> bool {
        let Some(slot) = self.mapping.borrow().get(lpn) else { return false };
        let (block, _) = self.flash.geometry().locate(self.layout.page(slot).0);
        let reads = self.flash.with_array(|array| array.read_count(block));
        reads >= self.profile.background.critical_reads
            && self.jobs.reclaims.borrow().contains(&block)
    }

    /// Moves the valid slots of a superblock and starts a task that erases it. Returns when the
    /// copies are in flight.
    async fn collect(self: &Rc<Self>, superblock: u32, reason: Reason) {
        let leaving = self.jobs.leaving.acquire(1).await;
        self.table.borrow_mut().begin_leaving(superblock);
        let valid = self.table.borrow().valid_slots(superblock);
        let gain = match reason {
            Reason::Space | Reason::Wear => self.layout.data_slots() - valid,
            // Other mapping pages fill the superblock.
            Reason::Mapping => 0,
        };
        if reason == Reason::Space {
            self.pace_writes(valid);
        }
        self.jobs.emptied.set(Some(0));
        let (is_complete, copies) = self.move_valid(self.pages_by_die(superblock), gain).await;
        self.jobs.emptied.set(None);
        let set = Rc::clone(self);
        self.handle.spawn("erase", async move {
            if !set.planted.has(Fault::EraseBeforeCopied) {
                until_ended(copies).await;
            }
            set.moves_are_due();
            if is_complete {
                set.erase(superblock).await;
                set.count(|stats| match reason {
                    Reason::Space | Reason::Mapping => stats.collections += 1,
                    Reason::Wear => stats.wear_moves += 1,
                });
            } else {
                // Some pages could neither be read nor identified: the superblock is retired as it
                // is.
                set.table.borrow_mut().retire(superblock);
            }
            drop(leaving);
            set.space_changed.notify_all();
            set.jobs.wake();
        });
    }

    /// Updates the pace of writes after discards, which change the gain of the next collection.
    pub(super) fn pace_writes_by_next(&self) {
        if self.jobs.pace.get() > Nanos::ZERO {
            let table = self.table.borrow();
            if let Some(victim) = table.greediest(false) {
                self.pace_writes(table.valid_slots(victim));
            }
        }
    }

    /// Sets the pace of writes for the collection of a superblock with `valid` valid slots.
    fn pace_writes(&self, valid: u32) {
        if let Some(pacing) = &self.profile.background.pacing {
            let flash = self.profile.flash_of_set();
            self.jobs.pace.set(pacing::each(&flash, &self.layout, valid, pacing.percent));
        }
    }

    /// Erases a superblock without valid slots, after its last reader has left.
    async fn erase(self: &Rc<Self>, superblock: u32) {
        if !self.planted.has(Fault::EraseBeforeSaved) {
            self.save_discards().await;
        }
        if !self.planted.has(Fault::EraseUnderReaders) {
            self.space_changed.wait_until(|| !self.table.borrow().has_readers(superblock)).await;
        }
        let blocks: Vec<_> = self.layout.superblocks.blocks(superblock).collect();
        for round in blocks.chunks(self.erases_at_once()) {
            // A window waits for at most one round.
            let inside = self.enter_jobs_gate().await;
            let erases: Vec<_> =
                round.iter().map(|block| self.flash.erase(*block, IoClass::GcWrite)).collect();
            for erase in erases {
                erase.await;
            }
            drop(inside);
        }
        self.table.borrow_mut().freed(superblock);
    }

    /// Returns the dies of a superblock that erase at a time: this set's share of the drive's
    /// limit.
    fn erases_at_once(&self) -> usize {
        let all = self.flash.geometry().dies();
        let share = |drive: u32| (drive / self.profile.sets).max(1);
        self.profile.background.erases_at_once.map_or(all, share) as usize
    }

    /// Moves the valid slots of a block that was read often.
    async fn reclaim(self: &Rc<Self>, block: BlockAddress) {
        let geometry = self.flash.geometry();
        let programmed = self.flash.with_array(|array| array.programmed_pages(block));
        let pages: Vec<_> = (0..programmed).map(|index| geometry.page(block, index)).collect();
        let (_, copies) = self.move_valid(pages, 0).await;
        until_ended(copies).await;
        self.moves_are_due();
        self.jobs.reclaims.borrow_mut().retain(|other| *other != block);
        self.count(|stats| stats.reclaims += 1);
    }

    /// Returns the data pages of a superblock, ordered such that consecutive ones are on different
    /// dies.
    fn pages_by_die(&self, superblock: u32) -> Vec<PageAddress> {
        let layout = &self.layout;
        let dies = self.flash.geometry().dies();
        let (unit, units) = (layout.pages_per_unit, layout.data_units);
        let stripes = (0..units).step_by(dies as usize);
        let page = |index: u32| layout.superblocks.page(superblock, index);
        stripes
            .flat_map(|first| (0..unit).map(move |place| (first, place)))
            .flat_map(|(first, place)| (first..units.min(first + dies)).map(move |u| (u, place)))
            .map(|(u, place)| page(u * unit + place))
            .collect()
    }

    /// Moves the valid slots of `pages`. Gives clients the `gain`, in slots, bit by bit as it
    /// proceeds. Returns whether all could be moved, and the copies in flight.
    async fn move_valid(
        self: &Rc<Self>,
        pages: Vec<PageAddress>,
        gain: u32,
    ) -> (bool, Vec<JoinHandle<()>>) {
        let unit = self.layout.slots_per_unit as usize;
        let at_once = (self.flash.geometry().dies() * self.layout.pages_per_unit) as usize;
        let parts = if gain > 0 && self.keeps_pace() { PARTS_OF_BATCH } else { 1 };
        let total = pages.len();
        // Slots gained by the first `pages`.
        let gained = |pages: usize| u64::from(gain) * pages as u64 / total as u64;
        let (mut begun, mut ended) = (0, 0);
        let mut chunks = pages.chunks((at_once / parts).max(1));
        let mut reading: VecDeque<(usize, JoinHandle<Batch>)> = VecDeque::new();
        let (mut moving, mut copies, mut is_complete): (Vec<Moving>, _, _) = (vec![], vec![], true);
        loop {
            if gain > 0 && reading.is_empty() && chunks.len() > 0 {
                self.space_changed.wait_until(|| self.may_go_on(0)).await;
            }
            while reading.len() < BATCHES_AHEAD * parts
                && (gain == 0 || self.may_go_on(gained(begun) - gained(ended)))
                && let Some(pages) = chunks.next()
            {
                begun += pages.len();
                reading.push_back((pages.len(), self.start_reading(pages).await));
            }
            let Some((count, batch)) = reading.pop_front() else { break };
            let batch = batch.await;
            is_complete &= batch.is_complete;
            moving.extend(batch.moving);
            while moving.len() >= unit {
                let rest = moving.split_off(unit);
                copies.push(self.copy(std::mem::replace(&mut moving, rest)).await);
            }
            self.give_credit((gained(ended + count) - gained(ended)) as i64);
            ended += count;
            if gain > 0 {
                self.jobs.emptied.set(Some(ended as u32 * self.layout.slots_per_page));
            }
        }
        if !moving.is_empty() {
            copies.push(self.copy(moving).await);
        }
        (is_complete, copies)
    }

    /// Starts reads of the pages that have valid slots, in parallel.
    async fn start_reading(self: &Rc<Self>, pages: &[PageAddress]) -> JoinHandle<Batch> {
        let inside = self.enter_jobs_gate().await;
        let with_valid = pages.iter().filter_map(|page| {
            let valid = self.valid_slots(*page);
            (!valid.is_empty()).then(|| (valid, self.flash.read(*page, IoClass::GcRead)))
        });
        let reads: Vec<_> = with_valid.collect();
        let period = InPeriod::enter(self);
        let set = Rc::clone(self);
        self.handle.spawn("read to move", async move {
            let mut batch = Batch { moving: Vec::new(), is_complete: true };
            for (valid, read) in reads {
                let image = read.await.ok();
                set.path.cores.spend_in_background(set.times.map * valid.len() as u64).await;
                for from in valid {
                    let place = set.layout.page(from).1;
                    let read = image.as_ref().and_then(|image| page::slot(image, place));
                    let version = match read {
                        Some(version) => {
                            let (superblock, at) = set.layout.locate(from);
                            assert_ne!(
                                version.lpn,
                                Lpn::NONE,
                                "the mapping points to slot {at} of superblock {superblock}, which \
                                 was filled up with nothing"
                            );
                            Some(version)
                        }
                        None => set.lost(from).await,
                    };
                    batch.is_complete &= version.is_some();
                    batch.moving.extend(version.map(|version| Moving { from, version }));
                }
            }
            drop((inside, period));
            batch
        })
    }

    pub(super) async fn enter_jobs_gate(&self) -> Inside {
        if self.planted.has(Fault::JobsInWindow) {
            return Gate::new(true).enter().await;
        }
        self.gates.jobs.enter().await
    }

    /// Returns the slots of a page that hold newest versions.
    fn valid_slots(&self, page: PageAddress) -> Vec<Slot> {
        let first = self.layout.first_of_page(page).0;
        let slots = (first..first + self.layout.slots_per_page).map(Slot);
        let (table, mapping) = (self.table.borrow(), self.mapping.borrow());
        let is_valid = |slot: &Slot| {
            table.is_valid(*slot).unwrap_or_else(|| {
                let prefill = self.prefill.as_ref().expect("a superblock was prefilled");
                prefill.lpn_of(*slot).is_some_and(|lpn| mapping.is_untouched(lpn))
            })
        };
        slots.filter(is_valid).collect()
    }

    /// Identifies the block in an unreadable slot by the summary of its superblock. The block is
    /// lost: readers of it must get an error.
    async fn lost(&self, slot: Slot) -> Option<Versioned> {
        let (lpn, sequence) = self.named_in_summary(slot).await?;
        self.count(|stats| stats.blocks_lost += 1);
        let block = self.planted.has(Fault::LostAsZeros).then_some(Block::ZERO);
        Some(Versioned { lpn, sequence, block })
    }

    async fn named_in_summary(&self, slot: Slot) -> Option<(Lpn, Sequence)> {
        let (superblock, place) = self.layout.locate(slot);
        if let Some(lpn) =
            self.prefill.as_ref().filter(|_| self.table.borrow().is_prefilled(superblock))
        {
            return lpn.lpn_of(slot).map(|lpn| (lpn, Sequence(0)));
        }
        if let Some(contents) = self.contents_in_memory(superblock, place) {
            return Some(contents);
        }
        let entries = page::summary_entries(self.flash.geometry().page_bytes);
        let index = self.layout.data_units * self.layout.pages_per_unit + place / entries;
        let page = self.layout.superblocks.page(superblock, index);
        let image = self.flash.read(page, IoClass::GcRead).await.ok()?;
        page::read_summary(&image)?.get((place % entries) as usize).copied()
    }

    /// Writes copies. They are in flight when this returns, and programmed when the returned task
    /// ends.
    async fn copy(self: &Rc<Self>, moving: Vec<Moving>) -> JoinHandle<()> {
        let bound = self.streams.bounds[Stream::Moved as usize].acquire(1).await;
        let inside = loop {
            self.open_superblock(Stream::Moved).await;
            let inside = self.gates.jobs.enter().await;
            if !self.is_next_block_spent(Stream::Moved) {
                break inside;
            }
            self.skip_unit(Stream::Moved, inside);
        };
        let is_new = self.planted.has(Fault::CopyAsNew);
        let versions = moving.iter().map(|moving| Versioned {
            sequence: if is_new { self.next_sequence() } else { moving.version.sequence },
            ..moving.version.clone()
        });
        let placed = self.place(Stream::Moved, versions.collect());
        let set = Rc::clone(self);
        self.handle.spawn("copy", async move {
            placed.program.await;
            set.path.cores.spend_in_background(set.times.map * moving.len() as u64).await;
            for (slot, moving) in (placed.first.0..).map(Slot).zip(&moving) {
                set.enter_moved(moving, slot);
            }
            set.program_ended(placed.superblock);
            drop((inside, bound));
        })
    }

    /// Maps a block to its copy, unless the block was written or discarded meanwhile.
    fn enter_moved(&self, moving: &Moving, to: Slot) {
        let Moving { from, version } = moving;
        let mut table = self.table.borrow_mut();
        let was_prefilled = table.is_prefilled(self.layout.locate(*from).0);
        let mut mapping = self.mapping.borrow_mut();
        let left = if self.planted.has(Fault::MoveWithoutRecheck) {
            mapping.set(version.lpn, Some(to))
        } else if mapping.move_from(version.lpn, *from, was_prefilled, to) {
            Some(*from)
        } else {
            return;
        };
        if let Some(from) = left {
            table.remove_copied(from);
        }
        table.add_valid(to);
        self.place_moved(version.lpn);
    }

    fn room(&self, table: &Table) -> Room {
        match self.jobs.wants_room.get() {
            false => Room::NotWanted,
            true if self.has_room_for_buffer(table) => Room::There,
            true if self.makes_room(table) => Room::MayCome,
            true => Room::Lacking,
        }
    }

    /// Returns whether there is room for a full buffer beyond the reserve of collection: during a
    /// lockdown no more can be made.
    pub(super) fn has_room_for_buffer(&self, table: &Table) -> bool {
        table.free() >= self.reserve(table) + self.profile.superblocks_of_buffer(&self.layout)
    }

    /// Returns whether superblocks are about to become free, or to become full and thus
    /// collectable.
    fn makes_room(&self, table: &Table) -> bool {
        let are_open = self.streams.open.iter().filter(|open| open.borrow().is_some()).count();
        table.in_state(State::Leaving) > 0 || table.in_state(State::Open) > are_open
    }
}

async fn until_ended(copies: Vec<JoinHandle<()>>) {
    for copy in copies {
        copy.await;
    }
}
