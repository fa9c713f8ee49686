//! Writes, discards and flushes of clients.

use std::ops::Range;
use std::rc::Rc;

use block::nvme::Event;
use block::{BLOCK_BYTES, Block, Force};

use super::Set;
use crate::nand::Lane;
use crate::ssd::page::Lpn;
use crate::ssd::planted::Fault;
use crate::ssd::windows::Admission;

impl Set {
    /// Writes blocks from number `first` on. Returns when they are in the buffer: they are durable
    /// if the buffer has capacitors, or if the write was forced.
    pub(crate) async fn write(self: &Rc<Self>, first: u32, blocks: Vec<Block>, force: Force) {
        self.charge_command(Lane::Shared, blocks.len() as u32).await;
        let bytes = blocks.len() as u64 * u64::from(BLOCK_BYTES);
        self.handle.sleep_until(self.through_memory(Lane::Shared, bytes)).await;
        self.count(|stats| stats.blocks_written += blocks.len() as u64);
        {
            // One command after the other: if a full buffer admitted blocks of several commands in
            // turns, a host page would be split over two pages of the flash, often on the same die,
            // and a read of it would wait for one after the other.
            let _taking = self.taking.acquire(1).await;
            for (lpn, block) in (first..).zip(blocks) {
                self.write_one(Lpn(lpn), block).await;
            }
        }
        if force == Force::Unit && !self.planted.has(Fault::IgnoreForce) {
            self.make_durable().await;
        }
    }

    async fn write_one(self: &Rc<Self>, lpn: Lpn, block: Block) {
        self.until_its_turn().await;
        let is_full = self.room.in_use() >= self.room.limit();
        if is_full && self.plm.windows.borrow().is_deterministic() {
            // No task empties the buffer in the window: room would never become free.
            self.leave_dtwin(Some(Event::Excursion));
        }
        let room = self.room.acquire(1).await;
        self.until_writes_are_taken(u64::from(BLOCK_BYTES)).await;
        let sequence = self.next_sequence();
        self.buffer.borrow_mut().insert(lpn, sequence, block, room);
        if !self.planted.has(Fault::StaleCache) {
            self.cache.borrow_mut().remove(lpn);
        }
        self.flusher.wake();
    }

    /// Paces the next block, for a drive with write pacing. Requires: no concurrent caller.
    async fn until_its_turn(&self) {
        let pacing = self.profile.background.pacing.as_ref();
        let Some(pacing) = pacing.filter(|_| self.jobs.is_space_low.get()) else { return };
        let (now, each) = (self.handle.now(), self.jobs.pace.get());
        let turn = self.pacer.borrow_mut().admit(now, each, pacing.burst_blocks);
        if turn > now {
            self.count(|stats| {
                stats.blocks_paced += 1;
                stats.paced_ns += (turn - now).0;
            });
            self.handle.sleep_until(turn).await;
        }
    }

    /// Waits until the window admits a write. The caller must insert it at once.
    async fn until_writes_are_taken(self: &Rc<Self>, bytes: u64) {
        loop {
            let admission = self.plm.windows.borrow().admit_write(bytes);
            match admission {
                Admission::Now => break,
                Admission::Later => self.plm.changed.notified().await,
                Admission::EndsWindow => self.leave_dtwin(Some(Event::Exceeded)),
            }
        }
        self.plm.windows.borrow_mut().count_write(bytes, self.handle.now());
        self.announce_events();
    }

    /// Discards `blocks`: they read as zeros. Advisory: ignored if there is no room to remember the
    /// range.
    pub(crate) async fn discard(self: &Rc<Self>, blocks: Range<u32>) {
        self.charge_command(Lane::Shared, 1).await;
        self.until_writes_are_taken(u64::from(BLOCK_BYTES)).await;
        let limit = self.profile.background.discarded_ranges as usize;
        // A new range may split an old one in two.
        if self.discards.borrow().len() + 2 > limit {
            return self.count(|stats| stats.discards_ignored += 1);
        }
        let sequence = self.next_sequence();
        for lpn in blocks.clone().map(Lpn) {
            self.buffer.borrow_mut().discard(lpn);
            self.cache.borrow_mut().remove(lpn);
            if self.mapping.borrow().get(lpn).is_some() {
                let was = self.mapping.borrow_mut().set(lpn, None);
                if let Some(slot) = was {
                    self.slot_died(slot);
                }
            }
        }
        self.forget_stale_pages();
        self.pace_writes_by_next();
        self.flusher.landed.notify_all();
        if !self.planted.has(Fault::ForgetDiscards) {
            self.discards.borrow_mut().add(blocks, sequence);
            self.discards_changed.set(true);
        }
    }

    /// Returns when all writes acknowledged before are durable.
    pub(crate) async fn flush(self: &Rc<Self>) {
        self.charge_command(Lane::Shared, 1).await;
        self.make_durable().await;
    }

    /// Makes durable the writes acknowledged before, and the discards: otherwise a power cut could
    /// bring back a version that is older than a forced one which was discarded since.
    async fn make_durable(self: &Rc<Self>) {
        if self.profile.buffer.has_capacitors {
            return;
        }
        let has_work = !self.buffer.borrow().is_empty() || self.discards_changed.get();
        if has_work && self.plm.windows.borrow().is_deterministic() {
            self.leave_dtwin(Some(Event::Excursion));
        }
        if !self.planted.has(Fault::FlushTooEarly) {
            let generation = self.buffer.borrow_mut().begin_generation();
            self.flush_generation(generation).await;
        }
        self.save_discards().await;
    }

    /// Makes all discards durable. With capacitors the dump does so.
    pub(super) async fn save_discards(self: &Rc<Self>) {
        let is_saved = !self.discards_changed.get() && self.dumps.saving.in_use() == 0;
        if self.profile.buffer.has_capacitors || is_saved {
            return;
        }
        let _one_at_a_time = self.dumps.saving.acquire(1).await;
        if !self.discards_changed.get() {
            // The previous holder saved them.
            return;
        }
        let inside = self.gates.flush.enter().await;
        self.discards_changed.set(false);
        let dump = self.encode_dump(false);
        let epoch = self.dumps.epoch.replace(self.dumps.epoch.get() + 1);
        self.dumps.reserve.store(&self.flash, epoch, &dump).await;
        self.dumps.reserve.erase(&self.flash, epoch + 1).await;
        drop(inside);
    }
}
