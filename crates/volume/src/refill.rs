//! Background filling (rebuild) of a member: extent by extent, stripe by stripe, at a limited rate.
//!
//! The member serves at once the stripes it already has. An extent that is being appended to is
//! filled up to its end, and from then on appended to directly. So no stripe is written out of
//! order, which some media do not accept. On media that can be written anywhere the header is
//! written last: until then the member counts as lacking the extent after a power cut. On other
//! media the header is written first, and the member's frontier shows the progress. Units are
//! appended one at a time, so a power cut can leave holes only in the last unit, which recovery
//! checks.

use std::mem::replace;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo};
use runtime::{IoClass, Nanos, PageImage, first, join_all};

use crate::extents::{Fill, Presence, bit};
use crate::header::Standing;
use crate::layout::Spot;
use crate::planted::Fault;
use crate::volume::{Condition, Inner, Taker};

/// Pause before a filling rereads pages that the others could not read.
const PAUSE: Nanos = Nanos::from_millis(1_000);

/// Pause before put-off fillings are tried again.
const LATER: Nanos = Nanos::from_millis(60_000);

/// Maximum number of such retries.
const ROUNDS: u32 = 60;

/// The pace of filling a member.
struct Pace {
    /// The earliest time for the next stripe.
    due: Nanos,
    /// Number of rereads left for this extent.
    retries: u32,
    /// Number of pages of the extent that were declared lost, and whether the last page was.
    lost: u64,
    is_last_lost: bool,
}

/// The outcome of filling an extent.
enum End {
    /// The member has the extent, or does not need it any more.
    Next,
    /// Too few other members are left as sources.
    Stop,
}

impl<M: Medium> Inner<M> {
    /// Starts a task that lists a member and fills it with the extents it lacks, unless one is
    /// running.
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
            // Extents that could not be noted have been filled, or the member was replaced.
            inner.enlist(member).await;
            inner.set_filling(member, false);
            // Other members' fillings may have stopped for lack of the extents that this member has
            // now.
            let others = (0..inner.stripes.members()).filter(|_| has_filled);
            others.for_each(|other| inner.start_filling(other));
        });
    }

    /// Waits for `LATER`, or until no filling of the member is put off.
    async fn wait_to_take_up(&self, member: usize) {
        let is_taken_up = || !self.extents.borrow().is_filling_put_off(member);
        let mut taken_up = Box::pin(self.changed.wait_until(is_taken_up));
        first(&mut taken_up, &mut self.handle.sleep(LATER)).await;
    }

    /// Fills a member with all extents that the others can provide now. Returns whether it got any.
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

    /// Returns an extent that a member lacks and the others can provide.
    fn next_to_fill(&self, member: usize) -> Option<ExtentId> {
        let mut ids = (0..self.stripes.shape().extents).map(ExtentId);
        ids.find(|id| self.can_fill(member, *id))
    }

    /// Whether a member lacks an extent and enough others have it. Filling first removes the
    /// member's own data of it.
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
        // Headers may wait for the filling of an earlier life, and stripes wait for these headers.
        let headers = || self.extents.borrow().get(id).headers_under_way;
        self.changed.wait_until(|| headers() == 0).await;
        let (taker, life) = (self.taker(member), self.extents.borrow().get(id).life);
        let kept = if self.is_better_emptied(&taker, id).await {
            0
        } else if self.is_anywhere {
            // The next recovery reads its header again.
            self.keep_in_doubt(member, id, life);
            return End::Next;
        } else {
            // On an error of the member itself its condition changes, which is checked below.
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

    /// Decides how to continue after filling an extent. `filled` has the number of pages declared
    /// lost.
    fn end_of(
        &self,
        taker: &Taker<M>,
        id: ExtentId,
        life: u64,
        filled: Result<u64, MediumError>,
    ) -> End {
        // An error of the member itself changes its condition.
        let is_sound = self.is_current(taker) && self.condition(taker.index) == Condition::Serving;
        match filled {
            Ok(lost) => {
                self.count(|stats| stats.lost_pages += lost);
                End::Next
            }
            // Another member is lost. Stripes not filled in yet stay absent.
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

    /// Keeps a member's doubted data of an extent, because the others cannot provide it.
    fn keep_in_doubt(&self, member: usize, id: ExtentId, life: u64) {
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        if extent.life == life {
            extent.kept |= bit(member);
            self.count(|stats| stats.kept_holes += 1);
        }
    }

    /// Puts off filling a member with an extent, because the others cannot be read now.
    fn put_off_filling(&self, member: usize, id: ExtentId, life: u64) {
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        if extent.life == life {
            extent.put_off_filling |= bit(member);
        }
    }

    /// Empties a member's extent and opens it again.
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

    /// Fills in the stripes from offset `kept` (pages) of the member's extent; from the start,
    /// after emptying it, if `kept` is zero.
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

    /// Marks the member as failed if `outcome` is an error. An error of another member must not
    /// pass through here.
    pub(crate) fn of_member<T>(
        &self,
        taker: &Taker<M>,
        outcome: Result<T, MediumError>,
    ) -> Result<T, MediumError> {
        outcome.inspect_err(|why| self.fail(taker, *why))
    }

    /// Whether filling the extent should continue.
    fn is_wanted(&self, taker: &Taker<M>, id: ExtentId, life: u64) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        let is_filling = matches!(extent.on[taker.index], Presence::Filling { .. });
        extent.life == life && is_filling && self.is_current(taker)
    }

    /// Fills in a member's chunk of a stripe, from offset `kept` of its extent, once it is due.
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
        // A discarded place already reads as empty, so an empty chunk need not be written.
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

    /// Rebuilds a member's chunk of a stripe. All reads are submitted together.
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
            // The extent has another life by now, so nothing of it is lost.
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

    /// Whether another member that has the extent cannot read its header now. Then more than the
    /// requested pages is unreadable, probably for a moment only.
    async fn is_any_unread(&self, member: usize, id: ExtentId) -> bool {
        let has = |other: &usize| *other != member && self.is_whole(*other, id);
        let place = self.stripes.header_place(id);
        let read = |other| self.taker(other).medium.read(place, IoClass::GcRead);
        let others = (0..self.stripes.members()).filter(has).map(read);
        join_all(others.collect::<Vec<_>>()).await.iter().any(Result::is_err)
    }
}
