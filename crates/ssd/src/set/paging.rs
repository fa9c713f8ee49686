//! A mapping of which only a part is in memory: what that costs. The mapping itself is whole in this program's
//! memory and right at any time; a mapping page here is a block like others, beyond those that clients see, whose
//! contents nobody looks at.
//!
//! Who needs the place of a block waits until its mapping page has been read. Changed pages that leave memory go to
//! flash in front of what clients wrote, in the same programs; collection moves them like any block.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use block::Block;
use flash::{Lane, ReadError};
use runtime::{IoClass, Notify, PageImage};

use super::Set;
use crate::map_cache::{Access, BLOCKS_PER_PAGE, MapCache};
use crate::page::{Lpn, Versioned};

/// See the module.
pub(super) struct Paging {
    cache: RefCell<MapCache>,
    arrived: Notify,
}

impl Paging {
    pub(super) fn new(capacity: usize) -> Self {
        Self { cache: RefCell::new(MapCache::new(capacity)), arrived: Notify::default() }
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
        let Some(paging) = &self.paging else { return };
        let (mut coming, mut reads) = (Vec::new(), Vec::new());
        for page in self.pages_of(blocks) {
            let access = paging.cache.borrow_mut().access(page);
            match access {
                Access::InMemory => {}
                Access::Coming => coming.push(page),
                Access::Missing => reads.push((page, self.read_mapping(page, class, lane))),
            }
        }
        for (page, read) in reads {
            if let Some(read) = read {
                // What it says is known; that it may be lost is left out.
                drop(read.await);
            }
            paging.cache.borrow_mut().arrived(page);
            paging.arrived.notify_all();
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
        let is_known = |paging: &Paging| paging.cache.borrow().is_known(lpn.0 / BLOCKS_PER_PAGE);
        self.paging.as_ref().is_none_or(is_known)
    }

    /// The place of a block has changed.
    pub(super) fn place_changed(&self, lpn: Lpn) {
        if let Some(paging) = self.paging.as_ref().filter(|_| !self.is_mapping(lpn)) {
            paging.cache.borrow_mut().change(lpn.0 / BLOCKS_PER_PAGE);
            if self.mapping_pages_waiting() >= self.layout.slots_per_unit {
                self.flusher.wake();
            }
        }
    }

    /// Whether a block is a mapping page.
    pub(super) fn is_mapping(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.blocks && lpn != Lpn::NONE
    }

    /// The mapping pages of blocks that are none themselves.
    fn pages_of(&self, blocks: impl Iterator<Item = Lpn>) -> BTreeSet<u32> {
        blocks.filter(|lpn| lpn.0 < self.blocks).map(|lpn| lpn.0 / BLOCKS_PER_PAGE).collect()
    }

    /// Mapping pages that wait for a program.
    pub(super) fn mapping_pages_waiting(&self) -> u32 {
        self.paging.as_ref().map_or(0, |paging| paging.cache.borrow().leaving() as u32)
    }

    /// Takes up to `most` of them for a program.
    pub(super) fn take_mapping_pages(&self, most: u32) -> Vec<Versioned> {
        let Some(paging) = &self.paging else { return Vec::new() };
        let pages = paging.cache.borrow_mut().take_leaving(most as usize);
        self.count(|stats| stats.mapping_writes += pages.len() as u64);
        let version = |page: &u32| Versioned {
            lpn: Lpn(self.blocks + page),
            sequence: self.next_sequence(),
            block: Some(Block::ZERO),
        };
        pages.iter().map(version).collect()
    }

    /// The program of a mapping page has ended.
    pub(super) fn mapping_page_landed(&self, lpn: Lpn) {
        if let Some(paging) = &self.paging {
            paging.cache.borrow_mut().landed(lpn.0 - self.blocks);
        }
    }
}
