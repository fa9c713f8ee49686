//! Headers of openings that do not count: power failed while an extent was opened, or released. So are those that cannot be read of
//! extents that hold nothing.
//!
//! As long as all members answer, such a header counts for nothing. Once one of them is lost, nothing says any more that it did not
//! have the extent, and a store would wait for it in vain. So these headers go when the store is open.

use std::future::Future;
use std::mem::take;
use std::rc::Rc;

use pages::{ExtentId, Medium};
use runtime::{IoClass, PageImage};

use crate::planted::Fault;
use crate::volume::{Inner, Taker};
use crate::writing::Done;

impl<M: Medium> Inner<M> {
    /// Overwrites the headers of openings that do not count, in the background. They are gone for good with whatever is synced next.
    pub(crate) fn start_tidying(self: &Rc<Self>) {
        if !self.options.fills {
            return;
        }
        let due: Vec<ExtentId> = {
            let extents = self.extents.borrow();
            let due = extents.iter().filter(|(_, extent)| extent.stray != 0);
            due.map(|(id, _)| id).collect()
        };
        if due.is_empty() {
            return;
        }
        let inner = Rc::clone(self);
        drop(self.handle.spawn("tidy", async move {
            for id in due {
                inner.overwrite_strays(id).await;
            }
        }));
    }

    /// Whoever opens the extent meanwhile writes its headers behind this.
    async fn overwrite_strays(&self, id: ExtentId) {
        let stray = {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            if extent.is_live || extent.stray == 0 {
                return;
            }
            extent.busy += 1;
            take(&mut extent.stray)
        };
        for taker in self.takers_of(stray) {
            if let Some(overwritten) = self.overwrite_header(&taker, id)
                && let Err(why) = overwritten.await
            {
                self.fail(&taker, why);
            }
        }
        self.extents.borrow_mut().get_mut(id).busy -= 1;
        self.changed.notify_all();
    }

    /// Overwrites a member's header of an extent that holds nothing, where that can be done.
    pub(crate) fn overwrite_header(
        &self,
        taker: &Taker<M>,
        id: ExtentId,
    ) -> Option<impl Future<Output = Done> + use<M>> {
        if !self.is_anywhere || self.planted.has(Fault::LeaveStrayHeaders) {
            return None;
        }
        let blank = vec![PageImage::new(&[]); self.stripes.member_shape().append_unit as usize];
        let pass = self.pass(self.extents.borrow().get(id).stream);
        let place = self.stripes.header_place(id);
        Some(taker.medium.append_by(pass, place, blank, IoClass::Journal))
    }
}
