//! What a power cut left, and members that come back.
//!
//! Every member is asked for its frontier and its header of every extent, so that all of them can be
//! appended to again. Where members tell how far they were written, those that have less than others
//! are brought up to date at once: stripes that were torn are few. A member that has nothing of an
//! extent that counts, or cannot tell and missed some of it, is filled in the background; so is one with
//! a hole that the power cut left in front of its frontier (torn.rs).

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use pages::{ExtentId, Medium, MediumError, Stream};
use runtime::{IoClass, PageImage, join_all};

use crate::error::VolumeError;
use crate::extents::{Presence, bit, bits};
use crate::header::{self, Header, Standing};
use crate::incarnations::{Tellings, incarnations, leave_out_former};
use crate::layout::Spot;
use crate::planted::Fault;
use crate::reading::Outcome;
use crate::run;
use crate::survey::{Found, Rules, Verdict, judge};
use crate::volume::{Condition, Inner, Setup, Taker, Volume};

impl<M: Medium> Volume<M> {
    /// The volume that lies on members, after a power cut or any other end. Where places can be written again nothing is
    /// written: whoever finds all there that is needed calls [`Self::begin_filling`].
    ///
    /// # Errors
    /// [`VolumeError`] if the members do not fit together, or are not this volume's.
    pub async fn recover(setup: Setup<M>) -> Result<Self, VolumeError> {
        let volume = Self::create(setup)?;
        let inner = &volume.inner;
        // Members that take no more writes say so before anything is decided that counts on them.
        inner.sync_members(Stream::Manifest).await;
        let mut found = Vec::with_capacity(inner.stripes.shape().extents as usize);
        let tellings = RefCell::new(Tellings::new(inner.stripes.members()));
        for id in (0..inner.stripes.shape().extents).map(ExtentId) {
            found.push(inner.look_at(id, &tellings).await?);
        }
        let strays: Vec<u64> = found.iter().map(|found| strays_of(found)).collect();
        inner.leave_out_former(&mut found, &tellings.borrow());
        let Standings { fresh, listed, unlisted } = standings(&found, inner.stripes.members());
        for ((id, found), strays) in (0..).map(ExtentId).zip(&found).zip(strays) {
            inner.survey(id, found, (fresh, listed)).await;
            let mut extents = inner.extents.borrow_mut();
            let extent = extents.get_mut(id);
            extent.stray = if extent.is_live { 0 } else { strays };
        }
        inner.unlist(!listed);
        // They had all that they lacked when power failed, and were not listed yet.
        inner.unlisted.set(inner.unlisted.get() | unlisted);
        Ok(volume)
    }

    /// Notes durably which members take part in this run, so that older copies of them are known for what they are. Whoever has opened a store that
    /// lies on the volume calls it before anything is acknowledged. Requires: the manifest is on this volume. In each run extents are opened for that, and the last of
    /// them stays: a member that took part has a header that says so.
    pub async fn note_tenures(&self) {
        self.inner.note_tenures().await;
    }

    /// Fills members with what they lack, in the background; blank ones like fresh ones. Headers of openings that do not count go.
    pub fn begin_filling(&self) {
        self.inner.start_tidying();
        for member in 0..self.inner.stripes.members() {
            self.inner.start_filling(member);
        }
    }
}

impl<M: Medium> Inner<M> {
    /// What members have of an extent, in their order.
    async fn look_at(
        &self,
        id: ExtentId,
        tellings: &RefCell<Tellings>,
    ) -> Result<Vec<Found>, VolumeError> {
        let takers = self.takers();
        let mut found = join_all(takers.iter().map(|taker| self.look(taker, id, tellings))).await;
        for (taker, found) in takers.iter().zip(&mut found) {
            match found {
                Found::Gone => self.fail(taker, MediumError::Gone),
                Found::There { header: Some(header), .. } => match self.know(taker.index, header) {
                    Err(VolumeError::Foreign { .. }) if self.options.last_resort => {
                        self.fail(taker, MediumError::Gone);
                        *found = Found::Gone;
                    }
                    known => {
                        known?;
                        self.hear_of(header.run.max(header.revision));
                    }
                },
                Found::Unread => self.unread.set(self.unread.get() | bit(taker.index)),
                Found::There { header: None, .. } => {}
            }
        }
        Ok(found)
    }

    /// What members that have been replaced since have of extents counts for nothing. One that has nothing else is the next in its place.
    fn leave_out_former(&self, found: &mut [Vec<Found>], tellings: &Tellings) {
        if self.planted.has(Fault::BelieveReplaced) {
            return;
        }
        let known = incarnations(found, tellings);
        leave_out_former(found, &known);
        self.set_tenures(&known.tenures);
    }

    /// Decides what an extent is, of what its members have, by their [`standings`].
    async fn survey(self: &Rc<Self>, id: ExtentId, found: &[Found], (fresh, listed): (u64, u64)) {
        let rules = Rules {
            layout: self.stripes.layout(),
            spares: self.stripes.spares(),
            heeds_notes: self.is_anywhere,
            believes_stale: self.planted.has(Fault::BelieveStaleExtents),
            believes_too_many: self.planted.has(Fault::NoteTooMany),
            believes_released: self.planted.has(Fault::BelieveReleased),
            fresh,
            listed,
        };
        let verdict = judge(found, &rules);
        if let Some(verdict) = verdict {
            let frontiers = frontiers_of(verdict.whole, found);
            let furthest = frontiers.iter().copied().max().unwrap_or(0);
            let rows = self.stripes.rows_begun(furthest);
            let silent = self.gone() | unread_of(found);
            // An extent that was opened and not appended to is as good as empty, if that can be told.
            if self.is_anywhere || verdict.whole == 0 || rows > 0 {
                self.restore(id, &verdict, silent, &frontiers, rows).await;
                return;
            }
        }
        self.set_left_over(id, found);
    }

    /// What a member has of an extent.
    async fn look(&self, taker: &Taker<M>, id: ExtentId, tellings: &RefCell<Tellings>) -> Found {
        if self.condition(taker.index) == Condition::Gone {
            return Found::Gone;
        }
        let Ok(frontier) = taker.medium.frontier(id).await else { return Found::Gone };
        if frontier == 0 && !self.is_anywhere {
            return Found::There { frontier, header: None };
        }
        let header = match taker.medium.read(self.stripes.header_place(id), IoClass::Journal).await
        {
            // A header that rot made into something else cannot be read either.
            Ok(image) => {
                let own = header::decode(image.bytes()).filter(|header| header.extent == id);
                if own.is_some_and(|header| header.volume == self.options.id) {
                    let told: Vec<u64> = header::tenures(image.bytes()).collect();
                    tellings.borrow_mut().hear(taker.index, &told);
                    for told in told {
                        self.hear_of(told << 32);
                    }
                }
                if own.is_none() && !image.bytes().is_empty() {
                    if self.heeds_unread(taker, id) {
                        return Found::Unread;
                    }
                    tellings.borrow_mut().see_torn(taker.index);
                }
                own
            }
            Err(MediumError::Gone) => return Found::Gone,
            // A member of another kind may have a header that a power cut left half written.
            Err(_) if self.heeds_unread(taker, id) => return Found::Unread,
            Err(_) => {
                tellings.borrow_mut().see_torn(taker.index);
                None
            }
        };
        Found::There { frontier, header }
    }

    /// Whether a member that cannot read a header may have one.
    fn heeds_unread(&self, taker: &Taker<M>, id: ExtentId) -> bool {
        taker.medium.unreadable_is_lost(id) && !self.planted.has(Fault::UnreadAsBlank)
    }

    /// Whether a header is this member's of this volume.
    fn know(&self, member: usize, header: &Header) -> Result<(), VolumeError> {
        let members = usize::from(header.members);
        let is_own = header.volume == self.options.id
            && header.layout == self.stripes.layout()
            && members == self.stripes.members();
        if !is_own {
            return Err(VolumeError::Foreign { member });
        }
        let says = usize::from(header.member);
        if says == member { Ok(()) } else { Err(VolumeError::Swapped { member, says }) }
    }

    /// This run comes after one that a member knows of.
    fn hear_of(&self, known: u64) {
        if run::count(known) >= run::count(self.run.get()) {
            self.run.set(run::after(known, &self.handle));
        }
    }

    /// An extent holds nothing that counts: what members have of it goes before it is opened.
    fn set_left_over(&self, id: ExtentId, found: &[Found]) {
        let has = |found: &Found| matches!(found, Found::There { frontier: 1.., .. });
        let members = found.iter().enumerate().filter(|(_, found)| has(found));
        let left_over = bits(members.map(|(member, _)| member));
        self.extents.borrow_mut().get_mut(id).left_over = left_over;
    }

    async fn restore(
        self: &Rc<Self>,
        id: ExtentId,
        verdict: &Verdict,
        silent: u64,
        frontiers: &[u32],
        begun: u32,
    ) {
        // Where nobody tells, anything may be written.
        let rows = if self.is_anywhere { self.stripes.rows() } else { begun };
        let missing = self.all() & !verdict.whole;
        // Nothing can be appended where too much is missing: it counts as full.
        let is_lost = missing.count_ones() as usize > self.stripes.spares().max(1);
        let rows = if is_lost { self.stripes.rows() } else { rows };
        {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            extent.open(verdict.generation, verdict.stream, missing);
            (extent.rows, extent.run) = (rows, verdict.run);
            // Who does not answer may have a newer header, which says that it has all of it: that it was filled. So it counts
            // as not noted, and is noted again in this run before anything more is synced.
            extent.seems_unsynced = verdict.seems_unsynced;
            extent.may_be_older = !verdict.is_newest;
            let noted = if self.is_anywhere { verdict.noted & !silent } else { verdict.noted };
            for member in (0..self.stripes.members()).filter(|it| verdict.doubted & bit(*it) != 0) {
                extent.on[member] = Presence::Torn { rows };
            }
            (extent.revision, extent.noted) = (verdict.revision, noted);
            // Who does not answer may have stripes that the others lost when power was cut. Were these
            // written anew, it would bring back the old ones, and its frontier would not tell.
            extent.is_closed = !self.is_anywhere && self.is_any_gone();
        }
        let stale = missing & self.writable() & !verdict.doubted;
        self.count(|stats| stats.stale_extents += u64::from(stale.count_ones()));
        if !self.is_anywhere && !is_lost {
            self.bring_in_line(id, frontiers, verdict.whole).await;
        }
    }

    /// Appends to a member what others have more of an extent.
    pub(crate) async fn catch_up(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId, frontier: u32) {
        let shape = self.stripes.member_shape();
        let (rows, life, stream) = {
            let extents = self.extents.borrow();
            let extent = extents.get(id);
            (extent.rows, extent.life, extent.stream)
        };
        if frontier == 0 {
            // Striped members count even so: nothing could stand in for them.
            if let Err(why) = self.append_header(taker, id).await {
                self.missed(taker, id, life, why);
                return;
            }
        }
        let from = frontier.max(shape.append_unit);
        let end = self.stripes.end_of_rows(rows);
        let mut done = Ok(());
        for at in (from..end).step_by(shape.append_unit as usize) {
            let mut unit = Vec::with_capacity(shape.append_unit as usize);
            for at in at..at + shape.append_unit {
                unit.push(self.page_at(taker.index, id, at).await);
            }
            done = taker.medium.append(shape.page(id, at), unit, IoClass::Journal).await;
            if done.is_err() {
                break;
            }
        }
        if from < end && done.is_ok() {
            // The others may have lost what this one was given.
            done = taker.medium.sync(stream).await;
        }
        if let Err(why) = done {
            self.missed(taker, id, life, why);
        }
    }

    /// What a member should have at a place of its extent, or what says that it is lost.
    async fn page_at(self: &Rc<Self>, member: usize, id: ExtentId, at: u32) -> PageImage {
        match self.rebuild_at(member, id, at).await {
            Ok(image) => image,
            Err(_) => self.lost_page(),
        }
    }

    /// What a member should have at a place of its extent.
    pub(crate) fn rebuild_at(
        self: &Rc<Self>,
        member: usize,
        id: ExtentId,
        at: u32,
    ) -> impl Future<Output = Outcome> + use<M> {
        let (chunk, behind_header) = (self.stripes.chunk_pages(), at - self.stripes.end_of_rows(0));
        let (row, offset) = (behind_header / chunk, behind_header % chunk);
        let spot = Spot { extent: id, row, column: 0, offset };
        self.rebuild_for(member, spot, IoClass::Journal)
    }

    /// What stands where nothing can be rebuilt. It is counted.
    fn lost_page(&self) -> PageImage {
        self.count(|stats| stats.lost_pages += 1);
        self.lost_image()
    }

    /// What stands where nothing can be rebuilt.
    pub(crate) fn lost_image(&self) -> PageImage {
        let as_empty = self.planted.has(Fault::LostAsEmpty);
        PageImage::new(if as_empty { &[] } else { header::LOST })
    }

    /// Whether a member has all of an extent.
    pub(crate) fn is_whole(&self, member: usize, id: ExtentId) -> bool {
        self.extents.borrow().get(id).on[member] == Presence::Whole
    }
}

/// What the headers of members say of them.
struct Standings {
    /// Members that answer and have no header that says more than that they are not listed.
    fresh: u64,
    /// Members that have one which says that they are.
    listed: u64,
    /// Members that have headers, all of which say that they are not.
    unlisted: u64,
}

fn standings(found: &[Vec<Found>], members: usize) -> Standings {
    let of = |member: usize| found.iter().map(move |found| &found[member]);
    let said = |member: usize| of(member).filter_map(|it| Some(it.header()?.standing));
    let answers = |member: usize| of(member).all(|it| matches!(it, Found::There { .. }));
    let is_unlisted = |member: usize| said(member).all(|it| it == Standing::Unlisted);
    let such = |is_it: &dyn Fn(usize) -> bool| bits((0..members).filter(|member| is_it(*member)));
    Standings {
        fresh: such(&|member| answers(member) && is_unlisted(member)),
        listed: such(&|member| said(member).any(|it| it == Standing::Listed)),
        unlisted: such(&|member| said(member).next().is_some() && is_unlisted(member)),
    }
}

/// Members that have a header of an extent, or one that cannot be read.
fn strays_of(found: &[Found]) -> u64 {
    let is_stray = |found: &Found| *found == Found::Unread || found.header().is_some();
    let strays = found.iter().enumerate().filter(|(_, found)| is_stray(found));
    bits(strays.map(|(member, _)| member))
}

/// Members whose headers cannot be read.
fn unread_of(found: &[Found]) -> u64 {
    let unread = found.iter().enumerate().filter(|(_, found)| **found == Found::Unread);
    bits(unread.map(|(member, _)| member))
}

/// How far members are written, those that are not `whole` not at all.
fn frontiers_of(whole: u64, found: &[Found]) -> Vec<u32> {
    let frontier_of = |(member, found): (usize, &Found)| match found {
        Found::There { frontier, .. } if whole & bit(member) != 0 => *frontier,
        _ => 0,
    };
    found.iter().enumerate().map(frontier_of).collect()
}
