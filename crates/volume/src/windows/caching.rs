//! `plm_cache` at work: stripes that are acknowledged before the members have them.

use std::rc::Rc;

use pages::{ExtentId, Medium};
use runtime::{Handle, PageImage, Permit};

use super::{Overflow, Windows};
use crate::layout::Spot;
use crate::volume::Inner;

/// A stripe in `plm_cache`.
pub(crate) struct Cached {
    windows: Rc<Windows>,
    extent: ExtentId,
    row: u32,
    life: u64,
    /// Pages, with parity.
    pages: usize,
}

impl<M: Medium> Inner<M> {
    /// Takes a stripe into `plm_cache`: from now on it is read from there.
    pub(crate) fn cache_stripe(
        &self,
        windows: Rc<Windows>,
        spot: Spot,
        life: u64,
        pages: &[PageImage],
    ) -> Cached {
        let Spot { extent, row, .. } = spot;
        windows.images.borrow_mut().insert(extent, row, life, pages.to_vec());
        // A release waits for it.
        self.extents.borrow_mut().get_mut(extent).on_their_way += 1;
        let pages = self.stripe_pages_in_all();
        self.set_overflows(&windows);
        Cached { windows, extent, row, life, pages }
    }

    /// All members have their chunks of a stripe, or have turned out to be lost.
    pub(crate) fn drop_stripe(&self, cached: Cached, room: Permit) {
        let Cached { windows, extent, row, life, .. } = cached;
        windows.images.borrow_mut().remove(extent, row, life);
        self.extents.borrow_mut().get_mut(extent).on_their_way -= 1;
        drop(room);
        self.set_overflows(&windows);
        self.changed.notify_all();
    }

    /// Pages of a stripe, with parity or copies.
    fn stripe_pages_in_all(&self) -> usize {
        self.stripes.members() * self.stripes.chunk_pages() as usize
    }

    /// Lets writes out of their slots while `plm_cache` is full, if that is how it is to be.
    fn set_overflows(&self, windows: &Windows) {
        if windows.options.overflow == Overflow::Wait {
            return;
        }
        let stripe = self.stripe_pages_in_all();
        let is_full = windows.room.in_use() + stripe > windows.room.limit();
        for taker in self.takers() {
            taker.medium.flow().set_overflows(is_full);
        }
    }
}

impl Cached {
    /// It is not read from the cache any more.
    pub(crate) fn forget(&self) {
        self.windows.images.borrow_mut().remove(self.extent, self.row, self.life);
    }

    /// Waits for room in `plm_cache`: until then whoever writes the stripe waits.
    pub(crate) async fn room(&self, clock: &Handle) -> Permit {
        let (windows, since) = (&self.windows, clock.now());
        let room = windows.room.acquire(self.pages).await;
        windows.note_stripe(clock.now() - since);
        room
    }
}
