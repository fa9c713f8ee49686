//! Recovery after a power cut, including members that come back.
//!
//! Recovery reads each member's frontier and header of each extent, and brings the members to a
//! common state, so that all of them can be appended to again. Where frontiers are known, members
//! that have less than others are brought up to date at once: only few stripes were torn. A member
//! that has nothing of an extent that counts, or has no frontier and missed some of the extent, is
//! filled in the background. So is a member with a hole that the power cut left before its frontier
//! (torn.rs).

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, Stream};
use runtime::{IoClass, PageImage, join_all};

use crate::error::VolumeError;
use crate::extents::{Presence, bit, bits};
use crate::header::{Header, Standing};
use crate::incarnations::{Tellings, incarnations, leave_out_former};
use crate::layout::Spot;
use crate::planted::Fault;
use crate::reading::Outcome;
use crate::survey::{Found, Rules, Verdict, judge};
use crate::volume::{Condition, Inner, Setup, Taker, Volume};
use crate::{header, run};

impl<M: Medium> Volume<M> {
    /// Assembles the volume from its members, after a power cut or a clean end. Writes nothing on
    /// media that can be written anywhere: once the caller has found its data, it calls
    /// [`Self::begin_filling`].
    ///
    /// # Errors
    /// Returns [`VolumeError`] if the members do not fit together, or belong to another volume.
    pub async fn recover(setup: Setup<M>) -> Result<Self, VolumeError> {
        let volume = Self::create(setup)?;
        let inner = &volume.inner;
        // This sync finds the members that take no more writes, before a decision relies on them.
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
        // These may lack nothing any more: they were filled completely before the power cut, but
        // not listed yet.
        inner.unlisted.set(inner.unlisted.get() | unlisted);
        Ok(volume)
    }

    /// Notes durably which members take part in this run, so that older copies of them are
    /// recognized later. A caller that has opened a store on the volume calls this before it
    /// acknowledges any write. Requires: the manifest is on this volume. Each run opens an extent
    /// for the manifest, and the last of these extents stays: so a member that took part has a
    /// header that proves it.
    pub async fn note_tenures(&self) {
        self.inner.note_tenures().await;
    }

    /// Fills members with the extents they lack, in the background; empty members like fresh ones.
    /// Also overwrites headers of openings that do not count.
    pub fn begin_filling(&self) {
        self.inner.start_tidying();
        for member in 0..self.inner.stripes.members() {
            self.inner.start_filling(member);
        }
    }
}

impl<M: Medium> Inner<M> {
    /// Reads the state of an extent on each member, in order.
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

    /// Drops the headers of members that have since been replaced. A member that has only such
    /// headers is the next incarnation in its place.
    fn leave_out_former(&self, found: &mut [Vec<Found>], tellings: &Tellings) {
        if self.planted.has(Fault::BelieveReplaced) {
            return;
        }
        let known = incarnations(found, tellings);
        leave_out_former(found, &known);
        self.set_tenures(&known.tenures);
    }

    /// Decides the state of an extent from the members' headers and their [`standings`].
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
            // An extent that was opened and never appended to counts as empty, where the frontiers
            // show that.
            if self.is_anywhere || verdict.whole == 0 || rows > 0 {
                self.restore(id, &verdict, silent, &frontiers, rows).await;
                return;
            }
        }
        self.set_left_over(id, found);
    }

    /// Reads the state of an extent on one member.
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
            // A header that bit rot turned into other bytes counts as unreadable, too.
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
            // On other media the power cut may have torn a header.
            Err(_) if self.heeds_unread(taker, id) => return Found::Unread,
            Err(_) => {
                tellings.borrow_mut().see_torn(taker.index);
                None
            }
        };
        Found::There { frontier, header }
    }

    /// Whether a header that the member cannot read may be a valid one.
    fn heeds_unread(&self, taker: &Taker<M>, id: ExtentId) -> bool {
        taker.medium.unreadable_is_lost(id) && !self.planted.has(Fault::UnreadAsBlank)
    }

    /// Checks that a header belongs to this volume and this member.
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

    /// Gives this run a later number than a run that a member knows.
    fn hear_of(&self, known: u64) {
        if run::count(known) >= run::count(self.run.get()) {
            self.run.set(run::after(known, &self.handle));
        }
    }

    /// Marks an extent as empty. The members' data of it is removed before it is opened.
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
        // Without frontiers any stripe may have been written.
        let rows = if self.is_anywhere { self.stripes.rows() } else { begun };
        let missing = self.all() & !verdict.whole;
        // With too many members missing nothing can be appended: the extent counts as full.
        let is_lost = missing.count_ones() as usize > self.stripes.spares().max(1);
        let rows = if is_lost { self.stripes.rows() } else { rows };
        {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            extent.open(verdict.generation, verdict.stream, missing);
            (extent.rows, extent.run) = (rows, verdict.run);
            // An unreachable member may hold a newer header that marks it as filled. So it counts
            // as not noted, and is noted again in this run before the next sync is acknowledged.
            extent.seems_unsynced = verdict.seems_unsynced;
            extent.may_be_older = !verdict.is_newest;
            let noted = if self.is_anywhere { verdict.noted & !silent } else { verdict.noted };
            for member in (0..self.stripes.members()).filter(|it| verdict.doubted & bit(*it) != 0) {
                extent.on[member] = Presence::Torn { rows };
            }
            (extent.revision, extent.noted) = (verdict.revision, noted);
            // An unreachable member may have stripes that the others lost at the power cut. If
            // these stripes were rewritten, the member would bring back the old ones, and its
            // frontier would not show that.
            extent.is_closed = !self.is_anywhere && self.is_any_gone();
        }
        let stale = missing & self.writable() & !verdict.doubted;
        self.count(|stats| stats.stale_extents += u64::from(stale.count_ones()));
        if !self.is_anywhere && !is_lost {
            self.bring_in_line(id, frontiers, verdict.whole).await;
        }
    }

    /// Appends to a member the stripes of an extent that others have and it lacks.
    pub(crate) async fn catch_up(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId, frontier: u32) {
        let shape = self.stripes.member_shape();
        let (rows, life, stream) = {
            let extents = self.extents.borrow();
            let extent = extents.get(id);
            (extent.rows, extent.life, extent.stream)
        };
        if frontier == 0 {
            // Striped members count even without a header, because no redundancy replaces them.
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
            // The other members may have lost the stripes that were copied.
            done = taker.medium.sync(stream).await;
        }
        if let Err(why) = done {
            self.missed(taker, id, life, why);
        }
    }

    /// Returns the page that a member should have at `at`, or the marker of a lost page.
    async fn page_at(self: &Rc<Self>, member: usize, id: ExtentId, at: u32) -> PageImage {
        match self.rebuild_at(member, id, at).await {
            Ok(image) => image,
            Err(_) => self.lost_page(),
        }
    }

    /// Rebuilds the page that a member should have at offset `at` (pages) of its extent.
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

    /// Returns the marker of a lost page, and counts it.
    fn lost_page(&self) -> PageImage {
        self.count(|stats| stats.lost_pages += 1);
        self.lost_image()
    }

    /// Returns the marker of a lost page.
    pub(crate) fn lost_image(&self) -> PageImage {
        let as_empty = self.planted.has(Fault::LostAsEmpty);
        PageImage::new(if as_empty { &[] } else { header::LOST })
    }

    /// Whether a member has all of an extent.
    pub(crate) fn is_whole(&self, member: usize, id: ExtentId) -> bool {
        self.extents.borrow().get(id).on[member] == Presence::Whole
    }
}

/// Sets of members by the standings in their headers.
struct Standings {
    /// Members that answer and have no headers, or only headers with standing `Unlisted`.
    fresh: u64,
    /// Members with a header of standing `Listed`.
    listed: u64,
    /// Members that have headers, all of standing `Unlisted`.
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

/// Returns the members that have a header of an extent, readable or not.
fn strays_of(found: &[Found]) -> u64 {
    let is_stray = |found: &Found| *found == Found::Unread || found.header().is_some();
    let strays = found.iter().enumerate().filter(|(_, found)| is_stray(found));
    bits(strays.map(|(member, _)| member))
}

/// Returns the members whose headers cannot be read.
fn unread_of(found: &[Found]) -> u64 {
    let unread = found.iter().enumerate().filter(|(_, found)| **found == Found::Unread);
    bits(unread.map(|(member, _)| member))
}

/// Returns the members' frontiers; zero for members that are not in `whole`.
fn frontiers_of(whole: u64, found: &[Found]) -> Vec<u32> {
    let frontier_of = |(member, found): (usize, &Found)| match found {
        Found::There { frontier, .. } if whole & bit(member) != 0 => *frontier,
        _ => 0,
    };
    found.iter().enumerate().map(frontier_of).collect()
}
