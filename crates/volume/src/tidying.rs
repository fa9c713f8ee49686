//! Removes headers of openings that do not count: power failed while the extent was opened or
//! released. Also removes unreadable headers of empty extents.
//!
//! As long as all members answer, such a header has no effect. Once a member is lost, it is unknown
//! whether that member had the extent, and a store would wait for it forever. So these headers are
//! overwritten when the store is open.

use std::future::Future;
use std::mem::take;
use std::rc::Rc;

use engine::{ExtentId, Medium, Stream};
use runtime::{IoClass, PageImage};

use crate::planted::Fault;
use crate::volume::{Inner, Taker};
use crate::writing::Done;

impl<M: Medium> Inner<M> {
    /// Overwrites the headers of openings that do not count, in the background. Until that is
    /// durable the members with such headers count as behind: no other member may be lost.
    pub(crate) fn start_tidying(self: &Rc<Self>) {
        if !self.options.fills {
            return;
        }
        let (mut due, mut strays) = (Vec::new(), 0);
        for (id, extent) in self.extents.borrow().iter().filter(|(_, extent)| extent.stray != 0) {
            due.push((id, extent.stream));
            strays |= extent.stray;
        }
        // On other media a member's own frontier shows how much it has.
        if due.is_empty() || !self.is_anywhere {
            return;
        }
        self.tidied.set(strays);
        let inner = Rc::clone(self);
        drop(self.handle.spawn("tidy", async move {
            for (id, _) in &due {
                inner.overwrite_strays(*id).await;
            }
            let is_due = |stream: &Stream| due.iter().any(|(_, of)| of == stream);
            for stream in Stream::ALL.into_iter().filter(is_due) {
                inner.sync_members(stream).await;
            }
            inner.tidied.set(0);
            inner.changed.notify_all();
        }));
    }

    /// Overwrites the stray headers of an extent. If the extent is opened meanwhile, its headers
    /// are written afterwards.
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

    /// Overwrites a member's header of an empty extent, on media that can be written anywhere.
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
