//! The headers of extents.
//!
//! They say who missed some of an extent, and are written again for that where it is possible.

use std::future::Future;
use std::rc::Rc;

use pages::{ExtentId, Medium};
use runtime::{IoClass, PageImage};

use crate::header::{self, Header};
use crate::planted::Fault;
use crate::run;
use crate::volume::{Inner, Taker};
use crate::writing::Done;

impl<M: Medium> Inner<M> {
    /// Writes a member's header of an extent as things stand.
    pub(crate) fn append_header(
        &self,
        taker: &Taker<M>,
        id: ExtentId,
    ) -> impl Future<Output = Done> + use<M> {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        let header = Header {
            layout: self.stripes.layout(),
            members: self.stripes.members() as u8,
            member: taker.index as u8,
            volume: self.options.id,
            generation: extent.generation,
            extent: id,
            run: extent.run,
            revision: extent.revision,
            absent: extent.noted,
            stream: extent.stream,
        };
        let unit = self.stripes.member_shape().append_unit as usize;
        let mut pages = vec![PageImage::new(&[]); unit];
        pages[0] = PageImage::new(&header::encode(&header));
        let (pass, place) = (self.pass(extent.stream), self.stripes.header_place(id));
        taker.medium.append_by(pass, place, pages, IoClass::Journal)
    }

    /// Writes the headers of an extent again where that is possible: who has not all of it, and that
    /// those in `filled` have.
    pub(crate) async fn note(self: &Rc<Self>, id: ExtentId, life: u64, filled: u64) {
        // A header that is still being written might land behind this one.
        let is_free = || {
            let extents = self.extents.borrow();
            let extent = extents.get(id);
            extent.life != life || !extent.is_noting && extent.headers_under_way == 0
        };
        self.changed.wait_until(is_free).await;
        let whole = {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            if extent.life != life {
                return;
            }
            (extent.is_noting, extent.busy) = (true, extent.busy + 1);
            extent.noted = extent.noted & !filled | extent.missing();
            extent.revision = run::next_revision(self.run.get(), extent.revision);
            !extent.missing()
        };
        let forgets = self.planted.has(Fault::ForgetAbsence);
        if self.is_anywhere && !forgets {
            let append = |taker: Taker<M>| {
                let header = self.append_header(&taker, id);
                (taker, header)
            };
            let headers: Vec<_> = self.takers_of(whole & self.all()).map(append).collect();
            for (taker, header) in headers {
                if let Err(why) = header.await {
                    self.missed(&taker, id, life, why);
                }
            }
        }
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        (extent.is_noting, extent.busy) = (false, extent.busy - 1);
        drop(extents);
        self.changed.notify_all();
    }
}
