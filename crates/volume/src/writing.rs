//! Stripes, and the opening of extents.
//!
//! A stripe is written by its own task, so that it completes even if its caller stops waiting. It
//! is acknowledged when each member that takes writes has its chunk or has failed, and the header
//! of the extent is written. With windows it is acknowledged earlier, once it is in `plm_cache`.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo, Stream};
use runtime::{IoClass, OneshotReceiver, PageImage, oneshot};

use crate::extents::{Extent, Presence, bit, bits};
use crate::layout::{Layout, Spot};
use crate::parity;
use crate::planted::Fault;
use crate::volume::{Condition, Inner, Taker};
use crate::windows::Pass;

pub(crate) type Done = Result<(), MediumError>;

type Boxed = Pin<Box<dyn Future<Output = Done>>>;

/// Awaits the result of a stripe's task.
async fn acknowledgement(outcome: OneshotReceiver<Done>) -> Done {
    outcome.await.expect("a stripe comes to its end")
}

impl<M: Medium> Inner<M> {
    /// Whether the layout tolerates the loss of these members.
    pub(crate) fn stands(&self, missing: u64) -> bool {
        missing.count_ones() as usize <= self.stripes.spares()
    }

    /// Returns those of `members` that take writes.
    pub(crate) fn takers_of(&self, members: u64) -> impl Iterator<Item = Taker<M>> {
        let of = members & self.writable();
        self.takers().into_iter().filter(move |taker| of & bit(taker.index) != 0)
    }

    /// Returns the error for too few writable members.
    pub(crate) fn why_too_few(&self) -> MediumError {
        if self.is_any_gone() { MediumError::Gone } else { MediumError::ReadOnly }
    }

    /// Whether any member is gone.
    pub(crate) fn is_any_gone(&self) -> bool {
        self.gone() != 0
    }

    /// Returns the set of members that are gone.
    pub(crate) fn gone(&self) -> u64 {
        let is_gone = |member: &usize| self.condition(*member) == Condition::Gone;
        bits((0..self.stripes.members()).filter(is_gone))
    }

    pub(crate) fn append_stripe(
        self: &Rc<Self>,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Done> + use<M> {
        let spot = self.stripes.spot(first);
        assert!(
            (spot.column, spot.offset) == (0, 0)
                && pages.len() == self.stripes.stripe_pages() as usize,
            "{} pages from page {} on are no stripe",
            pages.len(),
            first.0
        );
        let life = self.extents.borrow().get(spot.extent).life;
        let (tells, acknowledged) = oneshot();
        let Some(takers) = self.begin_stripe(spot) else {
            tells.send(Err(self.why_too_few()));
            return acknowledgement(acknowledged);
        };
        let missing = self.all() & !takers;
        self.count(|stats| stats.degraded_writes += u64::from(missing != 0));
        let waits = self.pass(self.extents.borrow().get(spot.extent).stream) == Pass::InSlot;
        let windows = self.windows().filter(|windows| waits && !windows.is_over.get());
        let cached = windows.map(|windows| self.cache_stripe(windows, spot, life, &pages));
        let chunks = self.chunks(spot, pages);
        let has_parity = matches!(self.stripes.layout(), Layout::Parity { .. });
        let parity = has_parity.then(|| {
            self.count(|stats| stats.parity_pages += u64::from(self.stripes.chunk_pages()));
            self.spend_on_parity(self.stripes.stripe_pages())
        });
        let mut appends = Vec::new();
        for taker in self.takers_of(takers) {
            let chunk = chunks[taker.index].clone();
            appends.extend(self.append_in_turn(taker, spot, chunk, class));
        }
        let inner = Rc::clone(self);
        self.handle.spawn("stripe", async move {
            if let Some(cached) = cached {
                if let Some(parity) = parity {
                    parity.await;
                }
                let room = cached.room(&inner.handle).await;
                tells.send(Ok(()));
                if inner.planted.has(Fault::DropImagesEarly) {
                    cached.forget();
                }
                // The stripe is acknowledged already. A later sync sees by `missing` which members
                // failed.
                let _done = inner.end_stripe(spot, life, takers, appends).await;
                inner.drop_stripe(cached, room);
            } else {
                let done = inner.end_stripe(spot, life, takers, appends).await;
                if let Some(parity) = parity {
                    parity.await;
                }
                tells.send(done);
            }
        });
        acknowledgement(acknowledged)
    }

    /// Returns the members that a stripe goes to, and marks the other members as lacking some of
    /// the extent. Returns `None` if those are too many: then nothing is written, and their state
    /// stays unchanged.
    fn begin_stripe(&self, spot: Spot) -> Option<u64> {
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(spot.extent);
        assert!(extent.is_live, "extent {} is appended to, and not open", spot.extent.0);
        let writable = self.writable();
        let is_due =
            |member: &usize| writable & bit(*member) == 0 && extent.on[*member] != Presence::Absent;
        let due = bits((0..self.stripes.members()).filter(is_due));
        // A member being filled is not counted: its sources may be among the members that are about
        // to be marked absent.
        let takers = if due == 0 { extent.takers(spot.row) } else { !extent.missing() };
        if !self.stands(self.all() & !(takers & writable)) {
            return None;
        }
        for member in (0..self.stripes.members()).filter(|member| due & bit(*member) != 0) {
            extent.on[member] = Presence::Absent;
        }
        Some(extent.begin_row(spot.row))
    }

    /// Returns the chunk of each member for a stripe.
    fn chunks(&self, spot: Spot, pages: Vec<PageImage>) -> Vec<Vec<PageImage>> {
        let members = self.stripes.members();
        if self.stripes.layout() == Layout::Mirrored {
            return vec![pages; members];
        }
        let size = self.stripes.chunk_pages() as usize;
        let mut chunks = vec![Vec::new(); members];
        if let Some(member) = self.stripes.parity_member(spot.extent, spot.row) {
            let column = |offset| pages.iter().skip(offset).step_by(size).map(PageImage::bytes);
            let page = |offset| PageImage::new(&parity::of(column(offset)));
            chunks[member] = (0..size).map(page).collect();
            if self.planted.has(Fault::ParityLeftOut) {
                chunks[member] = vec![PageImage::new(&[]); size];
            }
        }
        for (column, data) in (0..).zip(pages.chunks(size)) {
            chunks[self.stripes.home(Spot { column, ..spot })] = data.to_vec();
        }
        chunks
    }

    /// Appends a chunk to a member. If the member is still being filled with an earlier life of the
    /// extent, the append waits until that has ended.
    fn append_in_turn(
        self: &Rc<Self>,
        taker: Taker<M>,
        spot: Spot,
        chunk: Vec<PageImage>,
        class: IoClass,
    ) -> Vec<(Taker<M>, Boxed)> {
        let Spot { extent, row, .. } = spot;
        let is_deferred =
            |inner: &Self| inner.extents.borrow().get(extent).deferred & bit(taker.index) != 0;
        if !is_deferred(self) {
            let appends = self.append_chunk(&taker, extent, row, &chunk, class);
            return appends
                .into_iter()
                .map(|(taker, append)| (taker, Box::pin(append) as _))
                .collect();
        }
        assert!(self.is_anywhere, "extent {} is opened and not empty", extent.0);
        let (inner, other) = (Rc::clone(self), taker.clone());
        let life = {
            let mut extents = self.extents.borrow_mut();
            extents.get_mut(extent).put_off += 1;
            extents.get(extent).life
        };
        let append: Boxed = Box::pin(async move {
            let index = other.index;
            let deferred = || inner.extents.borrow().get(extent).deferred & bit(index);
            inner.changed.wait_until(|| deferred() == 0).await;
            let appends = inner.append_chunk(&other, extent, row, &chunk, class);
            inner.extents.borrow_mut().get_mut(extent).end_put_off(life);
            for (_, append) in appends {
                append.await?;
            }
            Ok(())
        });
        vec![(taker, append)]
    }

    /// Appends a chunk to a member, one append unit at a time.
    pub(crate) fn append_chunk(
        &self,
        taker: &Taker<M>,
        extent: ExtentId,
        row: u32,
        chunk: &[PageImage],
        class: IoClass,
    ) -> Vec<(Taker<M>, impl Future<Output = Done> + use<M>)> {
        let unit = self.stripes.member_shape().append_unit;
        let pass = self.pass(self.extents.borrow().get(extent).stream);
        let append = |(number, pages): (u32, &[PageImage])| {
            let place = self.stripes.place(extent, row, number * unit);
            taker.clone().submit(|medium| medium.append_by(pass, place, pages.to_vec(), class))
        };
        (0..).zip(chunk.chunks(unit as usize)).map(append).collect()
    }

    /// Waits for the members that a stripe goes to.
    async fn end_stripe(
        self: &Rc<Self>,
        spot: Spot,
        life: u64,
        takers: u64,
        appends: Vec<(Taker<M>, impl Future<Output = Done>)>,
    ) -> Done {
        let (mut have, mut error) = (takers, None);
        if appends.is_empty() {
            have = 0;
        }
        for (taker, append) in appends {
            if let Err(why) = append.await {
                have &= !bit(taker.index);
                error = Some(why);
                self.missed(&taker, spot.extent, life, why);
            }
        }
        let headers = || self.extents.borrow().get(spot.extent).headers_under_way;
        self.headers_changed.wait_until(|| headers() == 0).await;
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(spot.extent);
        if extent.life != life {
            // With windows a release waits for this stripe. Without windows, an extent must not be
            // released during an append.
            assert!(
                extent.on_their_way > 0,
                "extent {} was released under an append",
                spot.extent.0
            );
            return Ok(());
        }
        extent.end_row(spot.row);
        // A member that was lost since (for example by its header write) does not have the stripe
        // either.
        have &= !extent.missing() | self.filled_behind(extent, spot.row);
        drop(extents);
        self.changed.notify_all();
        match error {
            Some(MediumError::NoSpace) => Err(MediumError::NoSpace),
            _ if self.stands(self.all() & !have) => Ok(()),
            Some(error) if self.stripes.spares() == 0 => Err(error),
            _ => Err(self.why_too_few()),
        }
    }

    /// Returns the members that have the stripe, including those that are being filled and are past
    /// it.
    fn filled_behind(&self, extent: &Extent, row: u32) -> u64 {
        bits((0..self.stripes.members()).filter(|member| extent.has(*member, row)))
    }

    /// Records that a member has missed a write to an extent.
    pub(crate) fn missed(&self, taker: &Taker<M>, id: ExtentId, life: u64, why: MediumError) {
        // The member has less room than its shape promises; the others may have room. The caller
        // gets the error.
        if why != MediumError::NoSpace {
            self.fail(taker, why);
        }
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        if extent.life == life && self.is_current(taker) {
            extent.on[taker.index] = Presence::Absent;
        }
    }

    pub(crate) fn open_extent(
        self: &Rc<Self>,
        id: ExtentId,
        generation: u64,
        stream: Stream,
    ) -> Done {
        let missing = self.all() & !self.writable();
        if !self.stands(missing) {
            return Err(self.why_too_few());
        }
        let (left_over, life) = {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            // An extent that is still live was not released after a power cut.
            let left_over = if extent.is_live { self.all() } else { extent.left_over };
            extent.open(generation, stream, missing);
            let has_no_number = self.planted.has(Fault::RunsWithoutNumbers);
            extent.run = if has_no_number { 0 } else { self.run.get() };
            let unlisted = self.unlisted.get() & !missing;
            extent.first = if self.stands(missing | unlisted) { 0 } else { unlisted };
            (left_over, extent.life)
        };
        self.tell_of_headers();
        let (takers, first) = {
            let extents = self.extents.borrow();
            (!extents.get(id).missing(), extents.get(id).first)
        };
        for taker in self.takers_of(takers & first).chain(self.takers_of(takers & !first)) {
            let is_left_over = left_over & bit(taker.index) != 0 && !self.is_anywhere;
            let release = is_left_over.then(|| taker.medium.release_by(self.pass(stream), id));
            let opened = taker.medium.open(id, generation, stream);
            if opened.is_err() {
                self.extents.borrow_mut().get_mut(id).first &= !bit(taker.index);
                self.changed.notify_all();
            }
            match opened {
                Ok(()) => self.begin_header(taker, id, release),
                Err(MediumError::NoSpace) => return Err(MediumError::NoSpace),
                Err(why) => {
                    self.missed(&taker, id, life, why);
                    self.check_redundancy(id)?;
                }
            }
        }
        Ok(())
    }

    /// Records that a member's header of an opening has been written, or will not be.
    fn end_header(&self, id: ExtentId, life: u64, member: usize) {
        self.extents.borrow_mut().get_mut(id).end_header(life, member);
        self.tell_of_headers();
    }

    /// Writes a member's header of an opened extent, after the release of leftovers.
    fn begin_header(
        self: &Rc<Self>,
        taker: Taker<M>,
        id: ExtentId,
        release: Option<impl Future<Output = Done> + 'static>,
    ) {
        let (life, is_first, is_put_off) = {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            let is_first = extent.first & bit(taker.index) != 0;
            (extent.headers_under_way, extent.on_their_way) =
                (extent.headers_under_way + 1, extent.on_their_way + 1);
            let waits = extent.busy > 0 || extent.first != 0 && !is_first;
            let is_put_off = waits && self.is_anywhere;
            extent.put_off += u32::from(is_put_off);
            (extent.life, is_first, is_put_off)
        };
        // An older header that is still being written would overwrite this one.
        let submitted = (!is_put_off).then(|| self.append_header(&taker, id));
        let inner = Rc::clone(self);
        self.handle.spawn("header", async move {
            let append = if let Some(append) = submitted {
                append
            } else {
                let is_free = || {
                    let extents = inner.extents.borrow();
                    let extent = extents.get(id);
                    extent.busy == 0 && (extent.first == 0 || is_first)
                };
                inner.changed.wait_until(is_free).await;
                let stands = inner.check_redundancy(id).is_ok();
                let append = stands.then(|| inner.append_header(&taker, id));
                inner.extents.borrow_mut().get_mut(id).end_put_off(life);
                let Some(append) = append else {
                    // Too few members are left, so nothing of this opening will be synced.
                    return inner.end_header(id, life, taker.index);
                };
                append
            };
            let released = match release {
                Some(release) => release.await,
                None => Ok(()),
            };
            let mut done = append.await.and(released);
            if is_first && done.is_ok() {
                let stream = inner.extents.borrow().get(id).stream;
                done = taker.medium.sync_by(inner.pass(stream), stream).await;
            }
            if let Err(why) = done {
                inner.missed(&taker, id, life, why);
            }
            inner.end_header(id, life, taker.index);
        });
    }
}
