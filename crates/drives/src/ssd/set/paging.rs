//! A paged mapping: the cost of a mapping of which only a part is in memory. This process keeps the
//! whole mapping in memory, always up to date. A mapping page here is an ordinary block, numbered
//! after those of clients, whose contents are never used.
//!
//! A lookup of a block's place waits until its mapping page has been read. Modified pages evicted
//! from memory go to flash, one full program at a time, to superblocks of their own: they become
//! stale long before other blocks, so those superblocks are nearly empty when they are collected.
//!
//! No erase and no copy waits for the write of a mapping page; otherwise collection could wait for
//! room that only it can make. Clients wait instead: their writes stay in the buffer while too many
//! mapping pages wait for a program.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use block::Block;
use runtime::{IoClass, Notify, PageImage};

use super::Set;
use super::place::Stream;
use crate::nand::{Lane, ReadError};
use crate::ssd::map_cache::{Access, MapCache};
use crate::ssd::page::{Lpn, Versioned};
use crate::ssd::profile::SsdProfile;

/// The paged mapping of a set.
pub(super) struct Paging {
    blocks_per_page: u32,
    cache: RefCell<MapCache>,
    arrived: Notify,
    /// Notified when pages arrive, are evicted, are moved into a program, or are marked.
    changed: Notify,
    /// Whether a collection is deferred because the mapping is behind.
    puts_off: Cell<bool>,
}

impl Paging {
    /// Returns `None` if the whole mapping is in memory.
    pub(super) fn of(profile: &SsdProfile) -> Option<Self> {
        let (mapping, capacity) = profile.mapping.as_ref().zip(profile.cached_mapping_pages())?;
        Some(Self {
            blocks_per_page: mapping.blocks_per_page(),
            cache: RefCell::new(MapCache::new(capacity)),
            arrived: Notify::default(),
            changed: Notify::default(),
            puts_off: Cell::new(false),
        })
    }

    /// Returns the mapping page that has the place of a block.
    fn page_of(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.blocks_per_page
    }
}

impl Set {
    /// Waits until the places of `blocks` are in memory. Returns at once if the whole mapping is.
    pub(super) async fn have_places(
        self: &Rc<Self>,
        blocks: impl Iterator<Item = Lpn>,
        class: IoClass,
        lane: Lane,
    ) {
        if let Some(paging) = &self.paging {
            self.have_pages(paging, self.pages_of(paging, blocks), class, lane).await;
        }
    }

    async fn have_pages(
        self: &Rc<Self>,
        paging: &Paging,
        pages: BTreeSet<u32>,
        class: IoClass,
        lane: Lane,
    ) {
        let (mut coming, mut reads) = (Vec::new(), Vec::new());
        for page in pages {
            let access = paging.cache.borrow_mut().access(page);
            match access {
                Access::InMemory => {}
                Access::Coming => coming.push(page),
                Access::Missing => reads.push((page, self.read_mapping(page, class, lane))),
            }
        }
        // Some pages may have been about to be evicted.
        self.pages_changed(paging);
        for (page, read) in reads {
            if let Some(read) = read {
                // The contents are known; that the page may be lost is not modelled.
                drop(read.await);
            }
            paging.cache.borrow_mut().arrived(page);
            paging.arrived.notify_all();
            self.pages_changed(paging);
        }
        for page in coming {
            paging.arrived.wait_until(|| !paging.cache.borrow().is_coming(page)).await;
        }
    }

    /// Starts the read of a mapping page; `None` if it was never written.
    fn read_mapping(
        self: &Rc<Self>,
        page: u32,
        class: IoClass,
        lane: Lane,
    ) -> Option<impl Future<Output = Result<PageImage, ReadError>> + use<>> {
        let lpn = self.blocks + page;
        let slot = self.mapping.borrow().get(Lpn(lpn))?;
        self.count(|stats| stats.mapping_reads += 1);
        Some(self.read_page(&self.piece(lpn, slot), class, lane))
    }

    /// Returns whether the place of a block could be looked up at once.
    pub(super) fn has_place(&self, lpn: Lpn) -> bool {
        let is_known = |paging: &Paging| paging.cache.borrow().is_known(paging.page_of(lpn));
        self.paging.as_ref().is_none_or(is_known)
    }

    /// Notes that a client's block has a new place.
    pub(super) fn place_changed(&self, lpn: Lpn) {
        if let Some(paging) = self.paging.as_ref().filter(|_| !self.is_mapping(lpn)) {
            paging.cache.borrow_mut().change(paging.page_of(lpn));
            self.pages_changed(paging);
        }
    }

    /// Notes that a block was moved.
    pub(super) fn place_moved(&self, lpn: Lpn) {
        if let Some(paging) = self.paging.as_ref().filter(|_| !self.is_mapping(lpn)) {
            paging.cache.borrow_mut().change_or_owe(paging.page_of(lpn));
            self.pages_changed(paging);
        }
    }

    /// Notes that all blocks of a collection were copied.
    pub(super) fn moves_are_due(&self) {
        if let Some(paging) = &self.paging {
            paging.cache.borrow_mut().make_due();
            self.pages_changed(paging);
        }
    }

    /// Notifies tasks that wait for pages, or for the number of pages that wait for a program to
    /// change.
    fn pages_changed(&self, paging: &Paging) {
        paging.changed.notify_all();
        self.flusher.wake();
    }

    /// Returns whether the mapping is far behind with changes for moved blocks. If so, the job task
    /// is woken when it has caught up.
    pub(super) fn owes_much(&self) -> bool {
        let Some(paging) = &self.paging else { return false };
        paging.puts_off.set(paging.cache.borrow().owes_much());
        paging.puts_off.get()
    }

    /// Returns whether a block is a mapping page.
    pub(super) fn is_mapping(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.blocks && lpn != Lpn::NONE
    }

    /// Returns the mapping pages of `blocks`, ignoring blocks that are mapping pages themselves.
    fn pages_of(&self, paging: &Paging, blocks: impl Iterator<Item = Lpn>) -> BTreeSet<u32> {
        let of_clients = blocks.filter(|lpn| lpn.0 < self.blocks);
        of_clients.map(|lpn| paging.page_of(lpn)).collect()
    }

    /// Returns the mapping pages that may wait for a program before other tasks wait for them: one
    /// program per die.
    fn most_leaving(&self) -> usize {
        (self.flash.geometry().dies() * self.layout.slots_per_unit) as usize
    }

    /// Returns whether client blocks may change places. During a lockdown they must, or the window
    /// would never begin.
    pub(super) fn has_room_for_places(&self) -> bool {
        let Some(paging) = &self.paging else { return true };
        let has_room = paging.cache.borrow().leaving() < self.most_leaving();
        has_room || !self.plm.windows.borrow().runs_jobs()
    }

    /// Writes modified mapping pages. A task that runs as long as the set.
    pub(super) async fn write_mapping_pages(self: Rc<Self>) {
        let paging = self.paging.as_ref().expect("only a paged mapping is written");
        let unit = self.layout.slots_per_unit as usize;
        loop {
            paging.changed.wait_until(|| paging.cache.borrow().ready() >= unit).await;
            self.open_superblock(Stream::Mapping).await;
            let bound = self.streams.bounds[Stream::Mapping as usize].acquire(1).await;
            let inside = self.gates.flush.enter().await;
            if self.is_next_block_spent(Stream::Mapping) {
                self.skip_unit(Stream::Mapping, (inside, bound));
                continue;
            }
            if paging.cache.borrow().ready() < unit {
                // The pages are in use again.
                continue;
            }
            let pages = self.take_mapping_pages(paging, unit);
            let placed = self.place(Stream::Mapping, pages.clone());
            let set = Rc::clone(&self);
            self.handle.spawn("mapping page", async move {
                set.land(placed, pages).await;
                drop((inside, bound));
            });
        }
    }

    /// Moves up to `most` mapping pages into a program.
    fn take_mapping_pages(&self, paging: &Paging, most: usize) -> Vec<Versioned> {
        let pages = paging.cache.borrow_mut().take_leaving(most);
        self.count(|stats| stats.mapping_writes += pages.len() as u64);
        self.pages_changed(paging);
        let version = |page: &u32| Versioned {
            lpn: Lpn(self.blocks + page),
            sequence: self.next_sequence(),
            block: Some(Block::ZERO),
        };
        pages.iter().map(version).collect()
    }

    /// Updates the mapping pages of moved blocks, in order. A task that runs as long as the set.
    pub(super) async fn settle_moves(self: Rc<Self>) {
        let paging = self.paging.as_ref().expect("only a paged mapping lags behind");
        let at_once = 2 * self.flash.geometry().dies() as usize;
        loop {
            let pages = paging.cache.borrow_mut().due(at_once);
            if paging.puts_off.get() && !self.owes_much() {
                self.jobs.wake();
            }
            if pages.is_empty() {
                paging.changed.notified().await;
                continue;
            }
            let has_room = || paging.cache.borrow().leaving() < self.most_leaving();
            paging.changed.wait_until(has_room).await;
            let inside = self.enter_jobs_gate().await;
            self.have_pages(paging, pages, IoClass::GcRead, Lane::Shared).await;
            drop(inside);
        }
    }

    /// Notes that the program of a mapping page has ended.
    pub(super) fn mapping_page_landed(&self, lpn: Lpn) {
        if let Some(paging) = &self.paging {
            paging.cache.borrow_mut().landed(lpn.0 - self.blocks);
            self.pages_changed(paging);
        }
    }
}
