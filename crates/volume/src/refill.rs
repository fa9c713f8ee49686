//! A member is filled in the background, extent by extent, stripe by stripe, at a bounded rate.
//!
//! What it has already is served by it at once. An extent that is being appended to meanwhile is filled
//! up to its end, and from then on appended to directly; so no stripe is written out of order, which
//! not every medium takes. Where places can be written again, the header comes last: until it is there
//! the member counts as without that extent after a power cut. Elsewhere it comes first, and the
//! member's frontier tells how far it came: one unit is appended after the other, so that there are no
//! holes in front of it but in the last unit, which recovery looks at.

use std::mem::replace;
use std::rc::Rc;

use pages::{ExtentId, Medium, MediumError, PageNo};
use runtime::{IoClass, Nanos, PageImage, first, join_all};

use crate::extents::{Fill, Presence, bit};
use crate::header::Standing;
use crate::layout::Spot;
use crate::planted::Fault;
use crate::volume::{Condition, Inner, Taker};

/// How long a filling waits before it reads again what others could not give.
const PAUSE: Nanos = Nanos::from_millis(1_000);

/// How long a filling waits before it takes up what it put off.
const LATER: Nanos = Nanos::from_millis(60_000);

/// How often it does so.
const ROUNDS: u32 = 60;

/// How fast a member is filled.
struct Pace {
    /// When the next stripe may be filled in.
    due: Nanos,
    /// How often it may still read again what others could not give of an extent.
    retries: u32,
    /// Pages of the extent that were taken for lost, and whether the last one was.
    lost: u64,
    is_last_lost: bool,
}

/// Why the filling of an extent ended.
enum End {
    /// The member has it, or it is not wanted any more.
    Next,
    /// Too few others are left to fill it from.
    Stop,
}

impl<M: Medium> Inner<M> {
    /// Lists a member, and fills it with what it lacks, unless that is under way.
    pub(crate) fn start_filling(self: &Rc<Self>, member: usize) {
        self.extents.borrow_mut().take_up_filling(member);
        let is_to_be_listed = self.condition(member) == Condition::Serving
            && self.standing(member) != Standing::Listed;
        let has_work = self.next_to_fill(member).is_some() || is_to_be_listed;
        if !self.options.fills || !has_work || !self.set_filling(member, true) {
            return;
        }
        let inner = Rc::clone(self);
        self.handle.spawn("refill", async move {
            inner.enlist(member).await;
            let mut has_filled = inner.fill_all(member).await;
            for _ in 0..ROUNDS {
                if !inner.extents.borrow().is_filling_put_off(member) {
                    break;
                }
                inner.wait_to_take_up(member).await;
                inner.extents.borrow_mut().take_up_filling(member);
                has_filled |= inner.fill_all(member).await;
            }
            // What could not be noted has been filled, or another one has taken the member's place.
            inner.enlist(member).await;
            inner.set_filling(member, false);
            // Those that stopped for want of what this one has now go on.
            let others = (0..inner.stripes.members()).filter(|_| has_filled);
            others.for_each(|other| inner.start_filling(other));
        });
    }

    /// Waits until a member may be filled again with what was put off, or is another one.
    async fn wait_to_take_up(&self, member: usize) {
        let is_taken_up = || !self.extents.borrow().is_filling_put_off(member);
        let mut taken_up = Box::pin(self.changed.wait_until(is_taken_up));
        first(&mut taken_up, &mut self.handle.sleep(LATER)).await;
    }

    /// Fills a member with what it lacks and others can give now. Returns whether it has more than before.
    async fn fill_all(self: &Rc<Self>, member: usize) -> bool {
        let mut pace = Pace { due: Nanos::ZERO, retries: 0, lost: 0, is_last_lost: false };
        let mut has_filled = false;
        while let Some(id) = self.next_to_fill(member) {
            if let End::Stop = self.fill(member, id, &mut pace).await {
                break;
            }
            has_filled |= self.is_whole(member, id);
        }
        has_filled
    }

    /// An extent that a member lacks, and that others can fill it with.
    fn next_to_fill(&self, member: usize) -> Option<ExtentId> {
        let mut ids = (0..self.stripes.shape().extents).map(ExtentId);
        ids.find(|id| self.can_fill(member, *id))
    }

    /// Whether a member lacks an extent and enough others have it: what it holds of it goes first.
    fn can_fill(&self, member: usize, id: ExtentId) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        let is_there = |other: usize| {
            extent.on[other] == Presence::Whole && self.condition(other) != Condition::Gone
        };
        let others = (0..self.stripes.members()).filter(|other| *other != member);
        let missing = others.filter(|other| !is_there(*other)).count();
        extent.needs_filling(member)
            && self.condition(member) == Condition::Serving
            && missing < self.stripes.spares()
    }

    /// Fills a member with an extent.
    async fn fill(self: &Rc<Self>, member: usize, id: ExtentId, pace: &mut Pace) -> End {
        // Headers may wait for the filling of an earlier life to end, and stripes wait for them.
        let headers = || self.extents.borrow().get(id).headers_under_way;
        self.changed.wait_until(|| headers() == 0).await;
        let (taker, life) = (self.taker(member), self.extents.borrow().get(id).life);
        let kept = if self.is_better_emptied(&taker, id).await {
            0
        } else if self.is_anywhere {
            // Its header is read again by the next opening.
            self.keep_in_doubt(member, id, life);
            return End::Next;
        } else {
            // Its own error shows by its condition.
            self.of_member(&taker, taker.medium.frontier(id).await).unwrap_or(0)
        };
        if kept == 0 && !self.note_before_emptying(member, id, life).await {
            let is_same = self.extents.borrow().get(id).life == life;
            return if is_same { End::Stop } else { End::Next };
        }
        let is_same = self.extents.borrow().get(id).life == life && self.is_current(&taker);
        if !is_same || !self.can_fill(member, id) {
            return End::Next;
        }
        let gives_up = self.planted.has(Fault::GiveUpAtOnce);
        *pace = Pace {
            due: pace.due,
            retries: if gives_up { 0 } else { self.options.refill_retries },
            lost: 0,
            is_last_lost: false,
        };
        let before = {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            extent.busy += 1;
            let done = self.stripes.rows_whole(kept);
            replace(&mut extent.on[member], Presence::Filling { done, again: false })
        };
        if let Presence::Torn { .. } = before {
            self.count(|stats| match kept {
                0 => stats.stale_extents += 1,
                _ => stats.kept_holes += 1,
            });
        }
        self.set_filled_with(member, Some(id));
        let filled = self.fill_rows(&taker, id, life, kept, pace).await;
        self.set_filled_with(member, None);
        let is_same = self.extents.borrow().get(id).life == life && self.is_current(&taker);
        let end = self.end_of(&taker, id, life, filled.map(|()| pace.lost));
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        if is_same && extent.on[member] != Presence::Whole {
            let is_gone = self.condition(member) == Condition::Gone;
            extent.on[member] = if kept > 0 && !is_gone { before } else { Presence::Absent };
        }
        extent.busy -= 1;
        extent.deferred &= !bit(member);
        drop(extents);
        self.changed.notify_all();
        end
    }

    /// What comes behind the filling of an extent, which gave so many pages up for lost.
    fn end_of(
        &self,
        taker: &Taker<M>,
        id: ExtentId,
        life: u64,
        filled: Result<u64, MediumError>,
    ) -> End {
        // A member's own error shows by its condition.
        let is_sound = self.is_current(taker) && self.condition(taker.index) == Condition::Serving;
        match filled {
            Ok(lost) => {
                self.count(|stats| stats.lost_pages += lost);
                End::Next
            }
            // Somebody else is lost: what is not filled in yet stays where it was not.
            Err(MediumError::Gone) if is_sound => End::Stop,
            Err(_) if is_sound => {
                self.put_off_filling(taker.index, id, life);
                End::Next
            }
            Err(why) => {
                self.missed(taker, id, life, why);
                End::Next
            }
        }
    }

    /// A member keeps what it has of an extent, which others cannot give.
    fn keep_in_doubt(&self, member: usize, id: ExtentId, life: u64) {
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        if extent.life == life {
            extent.kept |= bit(member);
            self.count(|stats| stats.kept_holes += 1);
        }
    }

    /// A member is filled with an extent later: others cannot be read now.
    fn put_off_filling(&self, member: usize, id: ExtentId, life: u64) {
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        if extent.life == life {
            extent.put_off_filling |= bit(member);
        }
    }

    /// Empties a member's extent, and begins it anew.
    async fn begin_anew(
        self: &Rc<Self>,
        taker: &Taker<M>,
        id: ExtentId,
        life: u64,
    ) -> Result<(), MediumError> {
        let (generation, stream) = {
            let extents = self.extents.borrow();
            (extents.get(id).generation, extents.get(id).stream)
        };
        let medium = &taker.medium;
        if self.is_anywhere || self.of_member(taker, medium.frontier(id).await)? > 0 {
            self.of_member(taker, medium.release_by(self.pass(stream), id).await)?;
        }
        if !self.is_wanted(taker, id, life) {
            return Ok(());
        }
        self.of_member(taker, medium.open(id, generation, stream))?;
        if !self.is_anywhere {
            let header = self.append_header(taker, id);
            self.of_member(taker, header.await)?;
        }
        Ok(())
    }

    /// Fills in stripes from place `kept` of the member's extent on; from its beginning if that is zero.
    async fn fill_rows(
        self: &Rc<Self>,
        taker: &Taker<M>,
        id: ExtentId,
        life: u64,
        kept: u32,
        pace: &mut Pace,
    ) -> Result<(), MediumError> {
        if kept == 0 {
            self.begin_anew(taker, id, life).await?;
        }
        loop {
            let next = self.extents.borrow_mut().get_mut(id).next_fill(taker.index, life);
            match next {
                Fill::GivenUp => return Ok(()),
                Fill::Done => break,
                Fill::Wait => self.changed.notified().await,
                Fill::Row(row) => self.fill_row(taker, id, life, (row, kept), pace).await?,
            }
        }
        self.changed.notify_all();
        let stream = self.extents.borrow().get(id).stream;
        self.of_member(taker, taker.medium.sync_by(self.pass(stream), stream).await)?;
        if self.is_current(taker) && self.is_whole(taker.index, id) {
            self.note_filled(taker, id, life).await?;
        }
        Ok(())
    }

    /// A member's own error: it is lost by that, whatever the error of others would mean.
    pub(crate) fn of_member<T>(
        &self,
        taker: &Taker<M>,
        outcome: Result<T, MediumError>,
    ) -> Result<T, MediumError> {
        outcome.inspect_err(|why| self.fail(taker, *why))
    }

    /// Whether a filling goes on.
    fn is_wanted(&self, taker: &Taker<M>, id: ExtentId, life: u64) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        let is_filling = matches!(extent.on[taker.index], Presence::Filling { .. });
        extent.life == life && is_filling && self.is_current(taker)
    }

    /// Fills in a member's chunk of a stripe from place `kept` of its extent on, not before it is due.
    async fn fill_row(
        self: &Rc<Self>,
        taker: &Taker<M>,
        id: ExtentId,
        life: u64,
        (row, kept): (u32, u32),
        pace: &mut Pace,
    ) -> Result<(), MediumError> {
        if pace.due > self.handle.now() {
            self.handle.sleep_until(pace.due).await;
        }
        let chunk = self.rebuilt_chunk(taker, id, life, row, pace).await?;
        if !self.is_wanted(taker, id, life) {
            return Ok(());
        }
        // Where a place was discarded nothing is nothing, written or not.
        let is_blank = chunk.iter().all(|page| page.bytes().is_empty());
        if !(self.is_anywhere && is_blank) {
            let shape = self.stripes.member_shape();
            let (first, kept) = (self.stripes.place(id, row, 0).0, shape.page(id, kept).0);
            let units = chunk.chunks(shape.append_unit as usize).map(<[PageImage]>::to_vec);
            let units = (first..).step_by(shape.append_unit as usize).zip(units);
            for (place, unit) in units.filter(|(place, _)| *place >= kept) {
                let pass = self.pass(self.extents.borrow().get(id).stream);
                let append = taker.medium.append_by(pass, PageNo(place), unit, IoClass::GcWrite);
                self.of_member(taker, append.await)?;
                if !self.is_wanted(taker, id, life) {
                    return Ok(());
                }
            }
        }
        if self.is_wanted(taker, id, life) {
            let checks = !self.planted.has(Fault::FillWithoutRecheck);
            self.extents.borrow_mut().get_mut(id).end_fill(taker.index, checks);
            pace.due = self.count_filled(taker.index, pace.due);
        }
        Ok(())
    }

    /// What a member should have of a stripe; all reads are submitted together.
    async fn rebuilt_chunk(
        self: &Rc<Self>,
        taker: &Taker<M>,
        id: ExtentId,
        life: u64,
        row: u32,
        pace: &mut Pace,
    ) -> Result<Vec<PageImage>, MediumError> {
        let spot = |offset| Spot { extent: id, row, column: 0, offset };
        let rebuild = |offset| self.rebuild_for(taker.index, spot(offset), IoClass::GcRead);
        let reads: Vec<_> = (0..self.stripes.chunk_pages()).map(rebuild).collect();
        let mut chunk = Vec::with_capacity(reads.len());
        for (offset, read) in (0..).zip(reads) {
            let mut read = read.await;
            while matches!(read, Err(MediumError::Unreadable(_) | MediumError::Io(_)))
                && pace.retries > 0
                && self.is_wanted(taker, id, life)
            {
                pace.retries -= 1;
                self.handle.sleep(PAUSE).await;
                read = rebuild(offset).await;
            }
            // The extent is another by now: nothing of it is lost.
            if read.is_err() && !self.is_wanted(taker, id, life) {
                return Ok(chunk);
            }
            let is_lost = matches!(read, Err(MediumError::Unreadable(_)))
                && !(pace.is_last_lost && self.is_any_unread(taker.index, id).await);
            pace.is_last_lost = is_lost;
            pace.lost += u64::from(is_lost);
            chunk.push(if is_lost { self.lost_image() } else { read? });
        }
        Ok(chunk)
    }

    /// Whether another member that has an extent cannot read its header now. Then more than the pages that were asked for cannot be
    /// read for the moment.
    async fn is_any_unread(&self, member: usize, id: ExtentId) -> bool {
        let has = |other: &usize| *other != member && self.is_whole(*other, id);
        let place = self.stripes.header_place(id);
        let read = |other| self.taker(other).medium.read(place, IoClass::GcRead);
        let others = (0..self.stripes.members()).filter(has).map(read);
        join_all(others.collect::<Vec<_>>()).await.iter().any(Result::is_err)
    }
}
