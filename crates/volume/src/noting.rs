//! The headers of extents.
//!
//! A header lists the members that missed some of the extent. Where the medium allows it, headers
//! are rewritten when another member misses a write.

use std::future::Future;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, Stream};
use runtime::{IoClass, PageImage, join_all};

use crate::extents::{Extent, Presence, bit};
use crate::header::{Header, Standing};
use crate::planted::Fault;
use crate::volume::{Inner, Taker};
use crate::writing::Done;
use crate::{header, run};

/// Number of extents whose headers are written concurrently.
const NOTES_AT_ONCE: usize = 64;

impl<M: Medium> Inner<M> {
    /// Writes a member's header of an extent with the current state.
    pub(crate) fn append_header(
        self: &Rc<Self>,
        taker: &Taker<M>,
        id: ExtentId,
    ) -> impl Future<Output = Done> + use<M> {
        self.append_header_as(self.standing(taker.index), taker, id)
    }

    fn append_header_as(
        self: &Rc<Self>,
        standing: Standing,
        taker: &Taker<M>,
        id: ExtentId,
    ) -> impl Future<Output = Done> + use<M> {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        let mut tenures = self.tenures();
        // The member may have been replaced by now, so its own tenure comes from the taker.
        tenures[taker.index] = self.tenure_now(taker);
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
            standing,
            incarnation: taker.incarnation,
        };
        let unit = self.stripes.member_shape().append_unit as usize;
        let mut pages = vec![PageImage::new(&[]); unit];
        pages[0] = PageImage::new(&header::encode(&header, &tenures));
        let (pass, place) = (self.pass(extent.stream), self.stripes.header_place(id));
        let append = taker.medium.append_by(pass, place, pages, IoClass::Journal);
        let (inner, taker) = (Rc::clone(self), taker.clone());
        async move {
            append.await?;
            inner.remember_header(&taker, header.stream);
            Ok(())
        }
    }

    /// Notes in the headers of an extent which members lack some of it, before a sync without them
    /// is acknowledged.
    ///
    /// A header never notes more members than the layout tolerates. It is written only after the
    /// data of the other members is durable: after a power cut at this point, recovery relies on
    /// those members alone.
    pub(crate) async fn note_absence(self: &Rc<Self>, id: ExtentId, life: u64) -> Done {
        loop {
            self.changed.wait_until(|| self.can_be_noted(id, life)).await;
            if !self.begin_noting(id, life).await {
                return Ok(());
            }
            let is_noted = self.note_who_is_missing(id, life).await;
            self.end_noting(id);
            if is_noted? {
                return Ok(());
            }
        }
    }

    /// Whether the absent members can be noted now. A member that was just filled stays noted until
    /// it has its own header; together with another absent member these may be too many.
    fn can_be_noted(&self, id: ExtentId, life: u64) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        let (missing, all) = (extent.missing(), extent.noted | extent.missing());
        let waits = self.is_anywhere && self.stands(missing) && !self.stands(all);
        extent.life != life || !waits
    }

    /// Notes all extents that a member lacks. Afterwards the member's headers mark it as listed: an
    /// extent that it lacks is noted, or was never synced. If an extent cannot be noted, or the
    /// member has no header, its standing does not change.
    pub(crate) async fn enlist(self: &Rc<Self>, member: usize) {
        if !self.is_anywhere {
            return;
        }
        loop {
            let due = self.unnoted(member);
            if due.is_empty() {
                return self.note_listed(&self.taker(member)).await;
            }
            for due in due.chunks(NOTES_AT_ONCE) {
                let notes = due.iter().map(|(id, life)| self.note_absence(*id, *life));
                join_all(notes.collect::<Vec<_>>()).await;
            }
            for stream in Stream::ALL {
                self.sync_members(stream).await;
            }
            // More extents may have been opened meanwhile.
            if self.unnoted(member).iter().any(|left| due.contains(left)) {
                return;
            }
        }
    }

    /// Writes durably, in one of the member's headers if it has any, that the member is listed.
    async fn note_listed(self: &Rc<Self>, taker: &Taker<M>) {
        let is_unlisted = || self.unlisted.get() & bit(taker.index) != 0;
        let has_header = |extent: &Extent| {
            extent.is_live && extent.on[taker.index] == Presence::Whole && !extent.is_noting
        };
        let find = || {
            let extents = self.extents.borrow();
            let found = extents.iter().find(|(_, extent)| has_header(extent));
            found.map(|(id, extent)| (id, extent.life, extent.stream))
        };
        let (id, stream) = loop {
            let Some((id, life, stream)) = find().filter(|_| is_unlisted()) else { return };
            if self.begin_noting(id, life).await {
                break (id, stream);
            }
        };
        let header = self.append_header_as(Standing::Listed, taker, id).await;
        let noted = match header {
            Ok(()) => taker.medium.sync_by(self.pass(stream), stream).await,
            Err(why) => Err(why),
        };
        self.end_noting(id);
        if self.of_member(taker, noted).is_ok() && self.is_current(taker) {
            self.unlisted.set(self.unlisted.get() & !bit(taker.index));
        }
    }

    /// Returns the extents that a member lacks without being noted, with their lives.
    fn unnoted(&self, member: usize) -> Vec<(ExtentId, u64)> {
        let extents = self.extents.borrow();
        let is_due = |extent: &Extent| {
            extent.is_live
                && extent.on[member] == Presence::Absent
                && extent.noted & bit(member) == 0
        };
        let due = extents.iter().filter(|(_, extent)| is_due(extent));
        due.map(|(id, extent)| (id, extent.life)).collect()
    }

    /// Returns the standing that the member's headers record.
    pub(crate) fn standing(&self, member: usize) -> Standing {
        let is_unlisted = self.unlisted.get() & bit(member) != 0;
        if is_unlisted { Standing::Unlisted } else { Standing::Listed }
    }

    /// Marks those of `members` that lack an extent as not listed.
    pub(crate) fn unlist(&self, members: u64) {
        if !self.is_anywhere {
            return;
        }
        let extents = self.extents.borrow();
        let of = |extent: &Extent| if extent.is_live { extent.missing() } else { 0 };
        let lacking = extents.iter().fold(0, |all, (_, extent)| all | of(extent));
        self.unlisted.set(self.unlisted.get() | lacking & members);
    }

    /// Notes durably that a member lacks an extent, before it is emptied. Returns false if that
    /// failed.
    pub(crate) async fn note_before_emptying(
        self: &Rc<Self>,
        member: usize,
        id: ExtentId,
        life: u64,
    ) -> bool {
        let is_noted = || self.extents.borrow().get(id).noted & bit(member) != 0;
        if !self.is_anywhere || is_noted() {
            return true;
        }
        if self.note_absence(id, life).await.is_err() || !is_noted() {
            return false;
        }
        let stream = self.extents.borrow().get(id).stream;
        self.sync_members(stream).await;
        true
    }

    /// Notes the absent members. Returns false if they cannot be noted yet.
    async fn note_who_is_missing(
        self: &Rc<Self>,
        id: ExtentId,
        life: u64,
    ) -> Result<bool, MediumError> {
        let heeds_most = !self.planted.has(Fault::NoteTooMany);
        let may_go_on = || {
            if heeds_most {
                self.check_redundancy(id)?;
            }
            Ok(!heeds_most || self.can_be_noted(id, life))
        };
        if !may_go_on()? {
            return Ok(false);
        }
        if self.is_anywhere && self.extents.borrow().get(id).is_unsynced() {
            self.sync_whole(id, life).await;
        }
        if self.extents.borrow().get(id).life != life {
            return Ok(true);
        }
        // Meanwhile more members may lack the extent, or have been filled.
        if !may_go_on()? {
            return Ok(false);
        }
        let whole = {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            extent.noted |= extent.missing();
            let stands = !self.is_anywhere || !heeds_most || self.stands(extent.noted);
            assert!(stands, "a header condemns more members than the layout stands");
            extent.revision = run::next_revision(self.run.get(), extent.revision);
            !extent.missing()
        };
        if self.is_anywhere && !self.planted.has(Fault::ForgetAbsence) {
            self.append_headers(whole, id, life).await;
        }
        Ok(true)
    }

    /// Notes that a member now has all of an extent. The other members' headers are rewritten only
    /// after the member has its own header. Otherwise, if another member were noted before, no
    /// member might be left to rely on.
    pub(crate) async fn note_filled(
        self: &Rc<Self>,
        taker: &Taker<M>,
        id: ExtentId,
        life: u64,
    ) -> Done {
        if !self.begin_noting(id, life).await {
            return Ok(());
        }
        let noted = self.note_one_filled(taker, id, life).await;
        self.end_noting(id);
        noted
    }

    async fn note_one_filled(self: &Rc<Self>, taker: &Taker<M>, id: ExtentId, life: u64) -> Done {
        let is_filled = || {
            let is_same = self.extents.borrow().get(id).life == life;
            is_same && self.is_current(taker) && self.is_whole(taker.index, id)
        };
        if !is_filled() {
            return Ok(());
        }
        let (missing, stream) = {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            // Absent members may have lost their notes in this run (see `restore` in recovery.rs);
            // they are noted again here.
            extent.noted = (extent.noted | extent.missing()) & !bit(taker.index);
            extent.revision = run::next_revision(self.run.get(), extent.revision);
            (extent.missing(), extent.stream)
        };
        if !self.is_anywhere {
            return Ok(());
        }
        self.of_member(taker, self.append_header(taker, id).await)?;
        self.of_member(taker, taker.medium.sync_by(self.pass(stream), stream).await)?;
        if is_filled() {
            self.append_headers(!missing & !bit(taker.index), id, life).await;
        }
        Ok(())
    }

    /// Notes durably, on all members, which members take part in this run. A member that fails
    /// takes no more writes.
    pub(crate) async fn note_tenures(self: &Rc<Self>) {
        if !self.is_anywhere || !self.options.fills {
            return;
        }
        // A member without a header of this run gets one in the first round.
        for round in 0..2 {
            if !self.tell_tenures() && round > 0 {
                return;
            }
            let Some((id, life)) = self.manifest_of_this_run() else { return };
            if !self.begin_noting(id, life).await {
                return;
            }
            let whole = !self.extents.borrow().get(id).missing();
            self.append_headers(whole, id, life).await;
            self.end_noting(id);
            self.sync_members(Stream::Manifest).await;
        }
    }

    /// Returns the manifest extent that was opened in this run. Headers of other extents may note
    /// members that have not answered yet and that this run does not know about, so those headers
    /// must not be rewritten with the current state.
    fn manifest_of_this_run(&self) -> Option<(ExtentId, u64)> {
        let extents = self.extents.borrow();
        let is_it = |extent: &Extent| {
            let is_of_this_run = extent.is_live && extent.run == self.run.get();
            is_of_this_run && extent.stream == Stream::Manifest && !extent.has_unnoted_absence()
        };
        let (id, extent) = extents.iter().find(|(_, extent)| is_it(extent))?;
        Some((id, extent.life))
    }

    /// Waits until the headers of an extent may be rewritten. Returns false if the extent has
    /// another life by then.
    async fn begin_noting(&self, id: ExtentId, life: u64) -> bool {
        // A header that is still being written might overwrite this one.
        let is_free = || {
            let extents = self.extents.borrow();
            let extent = extents.get(id);
            extent.life != life || !extent.is_noting && extent.headers_under_way == 0
        };
        self.changed.wait_until(is_free).await;
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        if extent.life != life {
            return false;
        }
        (extent.is_noting, extent.busy) = (true, extent.busy + 1);
        true
    }

    fn end_noting(&self, id: ExtentId) {
        let mut extents = self.extents.borrow_mut();
        let extent = extents.get_mut(id);
        (extent.is_noting, extent.busy) = (false, extent.busy - 1);
        drop(extents);
        self.changed.notify_all();
    }

    /// Returns an error if more members lack some of an extent than the layout tolerates.
    pub(crate) fn check_redundancy(&self, id: ExtentId) -> Done {
        let missing = self.extents.borrow().get(id).missing();
        if self.stands(missing) { Ok(()) } else { Err(self.why_too_few()) }
    }

    /// Syncs the members that have all of an extent. A member that fails is marked absent.
    async fn sync_whole(self: &Rc<Self>, id: ExtentId, life: u64) {
        let (missing, stream) = {
            let extents = self.extents.borrow();
            (extents.get(id).missing(), extents.get(id).stream)
        };
        for (taker, sync) in self.submit_syncs_of(self.all() & !missing, stream) {
            if let Err(why) = sync.await {
                self.missed(&taker, id, life, why);
            }
        }
    }

    /// Writes the headers of an extent on `members`. A member that fails is marked absent.
    async fn append_headers(self: &Rc<Self>, members: u64, id: ExtentId, life: u64) {
        let append = |taker: Taker<M>| {
            let header = self.append_header(&taker, id);
            (taker, header)
        };
        let headers: Vec<_> = self.takers_of(members & self.all()).map(append).collect();
        self.tell_windows();
        for (taker, header) in headers {
            if let Err(why) = header.await {
                self.missed(&taker, id, life, why);
            }
        }
    }
}
