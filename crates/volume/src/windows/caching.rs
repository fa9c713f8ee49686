//! Use of `plm_cache`: stripes that are acknowledged before the members have them.

use std::rc::Rc;

use engine::{ExtentId, Medium};
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
    /// Number of pages, including parity.
    pages: usize,
}

impl<M: Medium> Inner<M> {
    /// Inserts a stripe into `plm_cache`. From now on it is read from there.
    pub(crate) fn cache_stripe(
        &self,
        windows: Rc<Windows>,
        spot: Spot,
        life: u64,
        pages: &[PageImage],
    ) -> Cached {
        let Spot { extent, row, .. } = spot;
        windows.images.borrow_mut().insert(extent, row, life, pages.to_vec());
        // A release waits for this stripe.
        self.extents.borrow_mut().get_mut(extent).on_their_way += 1;
        let pages = self.stripe_pages_in_all();
        self.set_overflows(&windows);
        Cached { windows, extent, row, life, pages }
    }

    /// Removes a stripe once each member has its chunk or is lost.
    pub(crate) fn drop_stripe(&self, cached: Cached, room: Permit) {
        let Cached { windows, extent, row, life, .. } = cached;
        windows.images.borrow_mut().remove(extent, row, life);
        self.extents.borrow_mut().get_mut(extent).on_their_way -= 1;
        drop(room);
        self.set_overflows(&windows);
        self.changed.notify_all();
    }

    /// Returns the number of pages of a stripe, including parity or copies.
    fn stripe_pages_in_all(&self) -> usize {
        self.stripes.members() * self.stripes.chunk_pages() as usize
    }

    /// Lets writes go to members outside their slots while `plm_cache` is full, with
    /// [`Overflow::Write`].
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
    /// Removes the stripe from the cache, so that it is not read from there any more.
    pub(crate) fn forget(&self) {
        self.windows.images.borrow_mut().remove(self.extent, self.row, self.life);
    }

    /// Waits for room in `plm_cache`. The writer of the stripe waits as long.
    pub(crate) async fn room(&self, clock: &Handle) -> Permit {
        let (windows, since) = (&self.windows, clock.now());
        let room = windows.room.acquire(self.pages).await;
        windows.note_stripe(clock.now() - since);
        room
    }
}
