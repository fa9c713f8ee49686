//! Memory of the simulation for dead data: the payload of pages that can never be read again is
//! freed; their slot headers stay.
//!
//! Only with capacitors, because the dump then preserves the discards; without them a power cut may
//! bring a discarded block back. Cost: one page of headers for each dead page.

use std::rc::Rc;

use super::Set;
use crate::ssd::layout::Slot;
use crate::ssd::page;
use crate::ssd::page::Sequence;
use crate::ssd::stale_pages::{Period, StalePage};

/// A read in flight: pages that die during the read keep their payload.
pub(super) struct InPeriod {
    set: Rc<Set>,
    period: Period,
}

impl InPeriod {
    pub(super) fn enter(set: &Rc<Set>) -> Self {
        let period = set.stale_pages.borrow_mut().begin_read();
        Self { set: Rc::clone(set), period }
    }
}

impl Drop for InPeriod {
    fn drop(&mut self) {
        self.set.stale_pages.borrow_mut().end_read(self.period);
    }
}

impl Set {
    /// Notes that the mapping points to a version with `sequence` instead of to `slot`. A version
    /// that was in the buffer at the power cut may have been programmed then too: both copies are
    /// the same version.
    pub(super) fn slot_superseded(&self, slot: Slot, sequence: Sequence) {
        if sequence.0 < self.first_of_life.get() {
            self.table.borrow_mut().remove_copied(slot);
        } else {
            self.slot_died(slot);
        }
    }

    /// Notes that the mapping no longer points to `slot`.
    pub(super) fn slot_died(&self, slot: Slot) {
        let mut table = self.table.borrow_mut();
        table.remove_valid(slot);
        if !self.profile.buffer.has_capacitors {
            return;
        }
        let (page, _) = self.layout.page(slot);
        if table.is_dead(self.layout.first_of_page(page)) {
            let (superblock, _) = self.layout.locate(slot);
            let erases = table.erases(superblock);
            self.stale_pages.borrow_mut().add(StalePage { page, superblock, erases });
        }
    }

    /// Frees the payload of pages that no read can reach any more.
    pub(super) fn forget_stale_pages(&self) {
        let ripe = self.stale_pages.borrow_mut().take_ripe();
        let table = self.table.borrow();
        for StalePage { page, superblock, erases } in ripe {
            let is_as_it_was = table.erases(superblock) == erases;
            if is_as_it_was && table.is_dead(self.layout.first_of_page(page)) {
                let slots = self.layout.slots_per_page;
                let shorten = |image: &_| page::headers_alone(image, slots);
                self.flash.with_array(|array| array.shorten(page, shorten));
            }
        }
    }
}
