//! Reads: buffer, cache, flash.

use std::ops::Range;
use std::rc::Rc;

use block::nvme::Event;
use block::{BLOCK_BYTES, Block};
use runtime::{IoClass, Nanos, PageImage};

use super::stale::InPeriod;
use super::{Set, Unreadable};
use crate::nand::{Lane, PageAddress, ReadError};
use crate::ssd::layout::Slot;
use crate::ssd::page;
use crate::ssd::page::Lpn;
use crate::ssd::planted::Fault;
use crate::ssd::read_cache::Cached;

/// The place of a block's newest version.
enum Found {
    /// In memory, or unmapped: blocks that were never written read as zeros.
    Here(Block),
    /// Its page is being read ahead.
    Coming,
    /// On flash.
    At(Slot),
}

/// A client's read in flight: keeps a superblock from being erased.
struct Reader {
    set: Rc<Set>,
    superblock: u32,
}

impl Reader {
    fn new(set: &Rc<Set>, superblock: u32) -> Self {
        set.table.borrow_mut().begin_read(superblock);
        Self { set: Rc::clone(set), superblock }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let is_last = self.set.table.borrow_mut().end_read(self.superblock);
        if is_last {
            self.set.space_changed.notify_all();
        }
    }
}

/// Consecutive blocks in consecutive slots of a page.
pub(super) struct Piece {
    page: PageAddress,
    superblock: u32,
    place: u32,
    blocks: Range<u32>,
}

impl Set {
    /// Reads `blocks`. Returns them, and the time at which the last byte has passed through the
    /// drive's memory.
    pub(crate) async fn read(
        self: &Rc<Self>,
        blocks: Range<u32>,
        lane: Lane,
    ) -> Result<(Vec<Block>, Nanos), Unreadable> {
        self.charge_command(lane, blocks.end - blocks.start).await;
        self.jobs.decided.wait_until(|| !self.is_held_back(&blocks)).await;
        self.note_read(&blocks);
        let bytes = u64::from(blocks.end - blocks.start) * u64::from(BLOCK_BYTES);
        let read = if blocks.end - blocks.start == 1 {
            vec![self.read_one(blocks.start, lane).await?]
        } else {
            self.read_many(blocks, lane).await?
        };
        Ok((read, self.through_memory(lane, bytes)))
    }

    fn note_read(self: &Rc<Self>, blocks: &Range<u32>) {
        let count = u64::from(blocks.end - blocks.start);
        self.count(|stats| stats.blocks_read += count);
        let ahead = self.cache.borrow_mut().note(blocks, self.blocks);
        // Read-ahead is speculative, and reads of clients would queue behind it.
        if !ahead.is_empty() && !self.plm.windows.borrow().is_deterministic() {
            self.read_ahead(ahead);
        }
        let mut windows = self.plm.windows.borrow_mut();
        if windows.is_deterministic() {
            assert_eq!(
                self.gates.jobs.inside() + self.gates.flush.inside(),
                0,
                "an internal job is under way in a deterministic window"
            );
            let bytes = count * u64::from(BLOCK_BYTES);
            let is_spent = windows.count_read(bytes, self.handle.now());
            drop(windows);
            self.announce_events();
            if is_spent {
                self.leave_dtwin(Some(Event::Exceeded));
            }
        }
    }

    fn find(&self, lpn: Lpn, lane: Lane) -> Found {
        if let Some(block) = self.buffer.borrow().get(lpn) {
            self.count(|stats| stats.buffer_hits += 1);
            return Found::Here(block.clone());
        }
        match self.cache.borrow().get(lpn) {
            Some(Cached::Here(block)) => {
                self.count(|stats| stats.cache_hits += 1);
                return Found::Here(block.clone());
            }
            // A block read ahead in another lane would arrive too late.
            Some(Cached::Coming(_)) if lane == Lane::Shared => return Found::Coming,
            Some(Cached::Coming(_)) | None => {}
        }
        self.mapping.borrow().get(lpn).map_or(Found::Here(Block::ZERO), Found::At)
    }

    async fn read_one(self: &Rc<Self>, block: u32, lane: Lane) -> Result<Block, Unreadable> {
        if !self.is_in_memory(Lpn(block)) {
            let blocks = std::iter::once(Lpn(block));
            self.have_places(blocks, IoClass::ClientRead, lane).await;
        }
        loop {
            match self.find(Lpn(block), lane) {
                Found::Here(found) => return Ok(found),
                Found::Coming => {
                    self.promote(Lpn(block));
                    self.arrived.notified().await;
                }
                Found::At(slot) => {
                    let piece = self.piece(block, slot);
                    let read = self.read_page(&piece, IoClass::ClientRead, lane).await;
                    return take(&read, &piece, block);
                }
            }
        }
    }

    /// Promotes the read-ahead of a block for which a client waits to a demand read, and that of
    /// the blocks after it; otherwise the client would wait again at each one. The slots are those
    /// where their reads began, even if the blocks were moved since.
    fn promote(&self, first: Lpn) {
        let cache = self.cache.borrow();
        for lpn in (first.0..self.blocks).map(Lpn) {
            let Some(Cached::Coming(from)) = cache.get(lpn) else { break };
            self.flash.promote(self.layout.page(*from).0);
        }
    }

    async fn read_many(
        self: &Rc<Self>,
        blocks: Range<u32>,
        lane: Lane,
    ) -> Result<Vec<Block>, Unreadable> {
        let elsewhere = blocks.clone().map(Lpn).filter(|lpn| !self.is_in_memory(*lpn));
        self.have_places(elsewhere, IoClass::ClientRead, lane).await;
        let mut found: Vec<Option<Block>> = Vec::with_capacity(blocks.len());
        let mut pieces: Vec<Piece> = Vec::new();
        for block in blocks.clone() {
            let here = match self.find(Lpn(block), lane) {
                Found::Here(here) => Some(here),
                // Read separately below.
                Found::Coming => None,
                Found::At(slot) => {
                    self.add_piece(&mut pieces, block, slot);
                    None
                }
            };
            found.push(here);
        }
        let reads: Vec<_> =
            pieces.iter().map(|piece| self.read_page(piece, IoClass::ClientRead, lane)).collect();
        for (piece, read) in pieces.iter().zip(reads) {
            let read = read.await;
            for block in piece.blocks.clone() {
                found[(block - blocks.start) as usize] = Some(take(&read, piece, block)?);
            }
        }
        let mut all = Vec::with_capacity(found.len());
        for (block, found) in blocks.zip(found) {
            all.push(match found {
                Some(found) => found,
                None => self.read_one(block, lane).await?,
            });
        }
        Ok(all)
    }

    pub(super) fn piece(&self, block: u32, slot: Slot) -> Piece {
        let (page, place) = self.layout.page(slot);
        let (superblock, _) = self.layout.locate(slot);
        Piece { page, superblock, place, blocks: block..block + 1 }
    }

    /// Returns the slot of the first block of a piece.
    fn slot(&self, piece: &Piece) -> Slot {
        Slot(self.layout.first_of_page(piece.page).0 + piece.place)
    }

    /// Appends a block to the last piece if it is adjacent, or as a new piece.
    fn add_piece(&self, pieces: &mut Vec<Piece>, block: u32, slot: Slot) {
        let new = self.piece(block, slot);
        match pieces.last_mut() {
            Some(last)
                if last.page == new.page
                    && last.blocks.end == block
                    && last.place + last.blocks.len() as u32 == new.place =>
            {
                last.blocks.end += 1;
            }
            _ => pieces.push(new),
        }
    }

    /// Reads a piece of a page. The read is in flight when this returns.
    ///
    /// The superblock of a read-ahead may be erased during the read: a speculative read can be
    /// delayed without limit, and collection would wait for it. A client that waits for such a
    /// block looks it up again.
    pub(super) fn read_page(
        self: &Rc<Self>,
        piece: &Piece,
        class: IoClass,
        lane: Lane,
    ) -> impl Future<Output = Result<PageImage, ReadError>> + use<> {
        let keeps = class == IoClass::ClientRead && !self.planted.has(Fault::EraseUnderReaders);
        let reader = keeps.then(|| Reader::new(self, piece.superblock));
        let period = InPeriod::enter(self);
        let bytes = piece.blocks.len() as u32 * BLOCK_BYTES;
        let read = self.flash.read_in(lane, piece.page, bytes, class);
        let (set, page) = (Rc::clone(self), piece.page);
        async move {
            let read = read.await;
            set.look_at_wear(page);
            drop((reader, period));
            read
        }
    }

    /// Requests the move of a block's data if the block was read too often (read reclaim).
    fn look_at_wear(self: &Rc<Self>, page: PageAddress) {
        let (block, _) = self.flash.geometry().locate(page);
        let reads = self.flash.with_array(|array| array.read_count(block));
        let background = &self.profile.background;
        if reads < background.reclaim_reads || self.planted.has(Fault::NoReclaim) {
            return;
        }
        self.jobs.ask_for_reclaim(block);
        self.pace_may_change();
        if reads >= background.critical_reads && self.plm.windows.borrow().is_deterministic() {
            self.leave_dtwin(Some(Event::Excursion));
        }
    }

    /// Reads blocks speculatively into the cache.
    fn read_ahead(self: &Rc<Self>, blocks: Range<u32>) {
        let mut pieces = Vec::new();
        for block in blocks {
            if let Found::At(slot) = self.find_quietly(Lpn(block)) {
                self.add_piece(&mut pieces, block, slot);
            }
        }
        for piece in pieces {
            let mut cache = self.cache.borrow_mut();
            let slots = (self.slot(&piece).0..).map(Slot);
            let tickets: Vec<u64> = piece
                .blocks
                .clone()
                .zip(slots)
                .map(|(block, slot)| cache.expect(Lpn(block), slot))
                .collect();
            drop(cache);
            let read = self.read_page(&piece, IoClass::ReadAhead, Lane::Shared);
            let set = Rc::clone(self);
            self.handle.spawn("read ahead", async move {
                let read = read.await;
                for (block, ticket) in piece.blocks.clone().zip(tickets) {
                    let arrived = take(&read, &piece, block).ok();
                    set.cache.borrow_mut().arrive(Lpn(block), ticket, arrived);
                }
                set.arrived.notify_all();
            });
        }
    }

    fn is_in_memory(&self, lpn: Lpn) -> bool {
        self.buffer.borrow().get(lpn).is_some() || self.cache.borrow().get(lpn).is_some()
    }

    /// Same as [`Self::find`] for a speculative read: counts nothing, and reads no mapping page.
    fn find_quietly(&self, lpn: Lpn) -> Found {
        let is_to_be_read = !self.is_in_memory(lpn) && self.has_place(lpn);
        let slot = self.mapping.borrow().get(lpn).filter(|_| is_to_be_read);
        slot.map_or(Found::Here(Block::ZERO), Found::At)
    }
}

/// Extracts a block from a piece that was read.
fn take(
    read: &Result<PageImage, ReadError>,
    piece: &Piece,
    block: u32,
) -> Result<Block, Unreadable> {
    let place = piece.place + (block - piece.blocks.start);
    let version = read.as_ref().ok().and_then(|image| page::slot(image, place));
    let own = version.filter(|version| version.lpn == Lpn(block));
    own.and_then(|version| version.block).ok_or(Unreadable { block })
}
