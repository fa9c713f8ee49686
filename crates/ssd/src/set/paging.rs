//! A mapping of which only a part is in memory: what that costs. The mapping itself is whole in this program's
//! memory and right at any time; a mapping page here is a block like others, beyond those that clients see, whose
//! contents nobody looks at.
//!
//! Who needs the place of a block waits until its mapping page has been read. Changed pages that leave memory go to
//! flash, a program full at a time, to superblocks of their own: they are out of date long before anything else, and
//! those superblocks are nearly empty when they are collected.
//!
//! No erase and no copy waits for a mapping page to be written, or collection could wait for room that only itself can
//! make. Clients wait instead: what they wrote stays in the buffer while too many mapping pages wait for a program.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use block::Block;
use flash::{Lane, ReadError};
use runtime::{IoClass, Notify, PageImage};

use super::Set;
use super::place::Stream;
use crate::map_cache::{Access, MapCache};
use crate::page::{Lpn, Versioned};
use crate::profile::SsdProfile;

/// See the module.
pub(super) struct Paging {
    blocks_per_page: u32,
    cache: RefCell<MapCache>,
    arrived: Notify,
    /// Pages have come, left, been taken by a program or marked.
    changed: Notify,
    /// A collection is put off because the mapping is behind.
    puts_off: Cell<bool>,
}

impl Paging {
    /// None if the whole mapping is in memory.
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

    /// The mapping page that has the place of a block.
    fn page_of(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.blocks_per_page
    }
}

impl Set {
    /// Waits until the places of `blocks` are in memory. With the whole mapping there they are.
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
        // Some may have been about to leave.
        self.pages_changed(paging);
        for (page, read) in reads {
            if let Some(read) = read {
                // What it says is known; that it may be lost is left out.
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

    /// Begins to read a mapping page; none if it never was written.
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

    /// Whether the place of a block could be looked up at once.
    pub(super) fn has_place(&self, lpn: Lpn) -> bool {
        let is_known = |paging: &Paging| paging.cache.borrow().is_known(paging.page_of(lpn));
        self.paging.as_ref().is_none_or(is_known)
    }

    /// A client's block has a new place.
    pub(super) fn place_changed(&self, lpn: Lpn) {
        if let Some(paging) = self.paging.as_ref().filter(|_| !self.is_mapping(lpn)) {
            paging.cache.borrow_mut().change(paging.page_of(lpn));
            self.pages_changed(paging);
        }
    }

    /// A block was moved.
    pub(super) fn place_moved(&self, lpn: Lpn) {
        if let Some(paging) = self.paging.as_ref().filter(|_| !self.is_mapping(lpn)) {
            paging.cache.borrow_mut().change_or_owe(paging.page_of(lpn));
            self.pages_changed(paging);
        }
    }

    /// All that was to be moved has been copied.
    pub(super) fn moves_are_due(&self) {
        if let Some(paging) = &self.paging {
            paging.cache.borrow_mut().make_due();
            self.pages_changed(paging);
        }
    }

    /// Tells who waits for pages, for fewer that wait for a program, or for more.
    fn pages_changed(&self, paging: &Paging) {
        paging.changed.notify_all();
        self.flusher.wake();
    }

    /// Whether the mapping is far behind what was moved. Who asks is woken when it is not any more.
    pub(super) fn owes_much(&self) -> bool {
        let Some(paging) = &self.paging else { return false };
        paging.puts_off.set(paging.cache.borrow().owes_much());
        paging.puts_off.get()
    }

    /// Whether a block is a mapping page.
    pub(super) fn is_mapping(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.blocks && lpn != Lpn::NONE
    }

    /// The mapping pages of blocks that are none themselves.
    fn pages_of(&self, paging: &Paging, blocks: impl Iterator<Item = Lpn>) -> BTreeSet<u32> {
        let of_clients = blocks.filter(|lpn| lpn.0 < self.blocks);
        of_clients.map(|lpn| paging.page_of(lpn)).collect()
    }

    /// Mapping pages that may wait for a program before others wait for them: a program of each die.
    fn most_leaving(&self) -> usize {
        (self.flash.geometry().dies() * self.layout.slots_per_unit) as usize
    }

    /// Whether what clients wrote may change places. In a lockdown it has to, or the window would never come.
    pub(super) fn has_room_for_places(&self) -> bool {
        let Some(paging) = &self.paging else { return true };
        let has_room = paging.cache.borrow().leaving() < self.most_leaving();
        has_room || !self.plm.windows.borrow().runs_jobs()
    }

    /// The task that writes changed mapping pages.
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
                continue; // they are used again
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

    /// Takes mapping pages for a program.
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

    /// The task that changes the mapping pages of moved blocks, in order.
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

    /// The program of a mapping page has ended.
    pub(super) fn mapping_page_landed(&self, lpn: Lpn) {
        if let Some(paging) = &self.paging {
            paging.cache.borrow_mut().landed(lpn.0 - self.blocks);
            self.pages_changed(paging);
        }
    }
}
