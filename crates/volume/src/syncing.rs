//! Syncs and releases, which go to all members that take writes.
//!
//! Both are submitted to all of these members at once. They succeed if no more members fail than
//! the layout tolerates. A member that fails takes no more writes; after a failed sync it counts as
//! having nothing of the data to be synced.
//!
//! A member that missed a write is noted before the sync of the other members is acknowledged. On
//! media that can be written anywhere the note is in the header of each extent concerned; on other
//! media the member's own frontier shows it. A release waits for other writes to the extent, which
//! would otherwise reach the members after the release.

use std::future::Future;
use std::rc::Rc;

use engine::{ExtentId, Medium, Stream};

use crate::extents::{Extent, bit, bits};
use crate::planted::Fault;
use crate::volume::{Inner, Taker};
use crate::windows::Pass;
use crate::writing::Done;

/// An extent that a sync covers, as it was when the sync began.
#[derive(Clone, Debug)]
struct Unsynced {
    id: ExtentId,
    life: u64,
    appends: u64,
    /// Stripes that were acknowledged before the members had them. The sync covers them too.
    cached: Vec<u32>,
}

/// State of the extents when a sync was submitted: the writes that the sync covers.
struct InFront {
    /// Whether the members had been given all that the sync covers.
    is_all: bool,
    /// Header revisions of the extents; `None` while a header was being rewritten.
    headers: Vec<Option<u64>>,
}

impl<M: Medium> Inner<M> {
    pub(crate) fn sync_stream(
        self: &Rc<Self>,
        stream: Stream,
    ) -> impl Future<Output = Done> + use<M> {
        let (inner, synced) = (Rc::clone(self), self.unsynced(stream));
        let waits = !self.planted.has(Fault::SyncWithoutSlots) || self.windows().is_none();
        let is_noted = self.first_unnoted(&synced).is_none();
        let mut submitted = is_noted.then(|| (self.submit_syncs(stream), self.in_front(&synced)));
        async move {
            if !waits {
                return Ok(());
            }
            loop {
                while let Some((id, life)) = inner.first_unnoted(&synced) {
                    inner.note_absence(id, life).await?;
                }
                inner.end_notes(&synced).await;
                let submit = || (inner.submit_syncs(stream), inner.in_front(&synced));
                let (syncs, in_front) = submitted.take().unwrap_or_else(submit);
                inner.end_syncs(syncs, &synced).await?;
                inner.end_cached(&synced).await;
                // A member that was lost meanwhile has to be noted, and the note synced, before the
                // acknowledgement.
                if inner.covers(&synced, &in_front) && inner.first_unnoted(&synced).is_none() {
                    inner.set_synced(&synced);
                    return Ok(());
                }
            }
        }
    }

    /// Returns the extents that a sync covers.
    fn unsynced(&self, stream: Stream) -> Vec<Unsynced> {
        let extents = self.extents.borrow();
        let is_due =
            |extent: &Extent| extent.is_live && extent.is_unsynced() && extent.stream == stream;
        let due = extents.iter().filter(|(_, extent)| is_due(extent));
        let has_windows = self.windows.borrow().is_some();
        due.map(|(id, extent)| {
            // A journal that is written at once is acknowledged only after the members have it.
            let is_cached = has_windows && self.pass(extent.stream) == Pass::InSlot;
            let cached = if is_cached { extent.under_way.clone() } else { Vec::new() };
            Unsynced { id, life: extent.life, appends: extent.appends, cached }
        })
        .collect()
    }

    /// Returns the state of the extents that a sync submitted now covers.
    fn in_front(&self, synced: &[Unsynced]) -> InFront {
        let extents = self.extents.borrow();
        let headers = synced.iter().map(|unsynced| {
            let extent = extents.get(unsynced.id);
            (!extent.is_noting).then_some(extent.revision)
        });
        InFront { is_all: !self.has_put_off(synced), headers: headers.collect() }
    }

    /// Whether a submitted sync covered all the data, and the current headers of the extents.
    fn covers(&self, synced: &[Unsynced], in_front: &InFront) -> bool {
        let extents = self.extents.borrow();
        let is_covered = |(unsynced, header): (&Unsynced, &Option<u64>)| {
            let extent = extents.get(unsynced.id);
            let is_as_it_was = !extent.is_noting && *header == Some(extent.revision);
            extent.life != unsynced.life || is_as_it_was || !self.is_anywhere
        };
        in_front.is_all && synced.iter().zip(&in_front.headers).all(is_covered)
    }

    /// Waits until no header of these extents is being rewritten.
    async fn end_notes(&self, synced: &[Unsynced]) {
        for Unsynced { id, life, .. } in synced {
            let is_over = || {
                let extents = self.extents.borrow();
                let extent = extents.get(*id);
                extent.life != *life || !extent.is_noting
            };
            self.changed.wait_until(is_over).await;
        }
    }

    /// Whether some writes that a sync must cover will be given to members only after the sync.
    fn has_put_off(&self, synced: &[Unsynced]) -> bool {
        let extents = self.extents.borrow();
        let is_put_off = |Unsynced { id, life, .. }: &Unsynced| {
            let extent = extents.get(*id);
            extent.life == *life && extent.put_off > 0
        };
        synced.iter().any(is_put_off)
    }

    fn first_unnoted(&self, synced: &[Unsynced]) -> Option<(ExtentId, u64)> {
        if self.planted.has(Fault::AcknowledgeBeforeNote) {
            return None;
        }
        let extents = self.extents.borrow();
        let is_due = |unsynced: &&Unsynced| {
            let extent = extents.get(unsynced.id);
            extent.life == unsynced.life && extent.has_unnoted_absence()
        };
        synced.iter().find(is_due).map(|unsynced| (unsynced.id, unsynced.life))
    }

    fn set_synced(&self, synced: &[Unsynced]) {
        let mut extents = self.extents.borrow_mut();
        for unsynced in synced {
            let extent = extents.get_mut(unsynced.id);
            if extent.life == unsynced.life {
                // The end of a stripe counts as one more append.
                let appends = unsynced.appends + unsynced.cached.len() as u64;
                extent.synced = extent.synced.max(appends);
            }
        }
    }

    fn submit_syncs(
        self: &Rc<Self>,
        stream: Stream,
    ) -> Vec<(Taker<M>, impl Future<Output = Done> + use<M>)> {
        let skipped = usize::from(self.planted.has(Fault::SyncAllButOne));
        let members = self.takers_of(self.all()).skip(skipped).map(|taker| taker.index);
        self.submit_syncs_of(bits(members), stream)
    }

    /// Submits a sync to those of `members` that take writes.
    pub(crate) fn submit_syncs_of(
        self: &Rc<Self>,
        members: u64,
        stream: Stream,
    ) -> Vec<(Taker<M>, impl Future<Output = Done> + use<M>)> {
        let pass = self.pass(stream);
        let takers = self.takers_of(members);
        let submit = |taker: Taker<M>| {
            let covers_header = self.covers_header(taker.index, stream);
            let sync = taker.medium.sync_by(pass, stream);
            let (inner, of) = (Rc::clone(self), taker.clone());
            let sync = async move {
                sync.await?;
                if covers_header {
                    inner.remember_part(&of);
                }
                Ok(())
            };
            (taker, sync)
        };
        let syncs = takers.map(submit).collect();
        self.tell_windows();
        syncs
    }

    /// Syncs a stream on all members; a member that fails takes no more writes.
    pub(crate) async fn sync_members(self: &Rc<Self>, stream: Stream) {
        for (taker, sync) in self.submit_syncs(stream) {
            if let Err(why) = sync.await {
                self.fail(&taker, why);
            }
        }
    }

    /// Notifies the windows that writes wait for slots.
    pub(crate) fn tell_windows(&self) {
        if let Some(windows) = self.windows() {
            windows.changed.notify_all();
        }
    }

    /// Waits until all stripes that were acknowledged from `plm_cache` have been written, before
    /// the sync. Afterwards it is known which members missed one of them.
    async fn end_cached(&self, synced: &[Unsynced]) {
        for Unsynced { id, life, cached, .. } in synced {
            let is_over = || {
                let extents = self.extents.borrow();
                let extent = extents.get(*id);
                extent.life != *life || cached.iter().all(|row| !extent.under_way.contains(row))
            };
            self.changed.wait_until(is_over).await;
        }
    }

    /// Waits for the members' syncs. A member that fails counts as having nothing of the data to be
    /// synced.
    async fn end_syncs(
        &self,
        syncs: Vec<(Taker<M>, impl Future<Output = Done>)>,
        synced: &[Unsynced],
    ) -> Done {
        let mut error = None;
        for (taker, sync) in syncs {
            if let Err(why) = sync.await {
                error = Some(why);
                self.fail(&taker, why);
                for Unsynced { id, life, .. } in synced {
                    self.missed(&taker, *id, *life, why);
                }
            }
        }
        let extents = self.extents.borrow();
        let stands = |unsynced: &Unsynced| {
            let extent = extents.get(unsynced.id);
            extent.life != unsynced.life || self.stands(extent.missing())
        };
        match error {
            _ if synced.iter().all(stands) && self.stands(self.all() & !self.writable()) => Ok(()),
            Some(error) if self.stripes.spares() == 0 => Err(error),
            _ => Err(self.why_too_few()),
        }
    }

    pub(crate) fn release_extent(
        self: &Rc<Self>,
        id: ExtentId,
    ) -> impl Future<Output = Done> + use<M> {
        let early = self.planted.has(Fault::ReleaseUnderFill);
        if let Some(windows) = self.windows() {
            windows.images.borrow_mut().forget(id);
        }
        let pass = self.pass(self.extents.borrow().get(id).stream);
        let (is_busy, is_noted, life) = {
            let mut extents = self.extents.borrow_mut();
            let extent = extents.get_mut(id);
            let is_noted = extent.noted != 0;
            extent.release(self.all() & !self.writable());
            (extent.holds_up_release() && !early, is_noted, extent.life)
        };
        // Makes a running rebuild of a member give this extent up.
        self.tell_of_headers();
        let inner = Rc::clone(self);
        let submit = move || -> Vec<_> {
            let takers = inner.takers_of(inner.all());
            let release = |taker: Taker<M>| {
                // A medium may keep the bytes of a released extent, and a note in them would still
                // be believed.
                let overwritten = is_noted.then(|| inner.overwrite_header(&taker, id)).flatten();
                taker.submit(|medium| {
                    let released = medium.release_by(pass, id);
                    async move {
                        match overwritten {
                            Some(overwritten) => overwritten.await.and(released.await),
                            None => released.await,
                        }
                    }
                })
            };
            takers.map(release).collect()
        };
        let submitted = (!is_busy).then(&submit);
        let inner = Rc::clone(self);
        self.handle.spawn("release", async move {
            if is_busy {
                // Rebuild writes and header rewrites would otherwise reach the members after the
                // release.
                let is_free = || !inner.extents.borrow().get(id).holds_up_release();
                inner.changed.wait_until(is_free).await;
            }
            let releases = submitted.unwrap_or_else(submit);
            inner.end_releases(id, life, releases).await
        })
    }

    async fn end_releases(
        &self,
        id: ExtentId,
        life: u64,
        releases: Vec<(Taker<M>, impl Future<Output = Done>)>,
    ) -> Done {
        let (mut empty, mut error) = (0, None);
        for (taker, release) in releases {
            match release.await {
                Ok(()) => empty |= bit(taker.index),
                Err(why) => {
                    error = Some(why);
                    self.fail(&taker, why);
                    let mut extents = self.extents.borrow_mut();
                    let extent = extents.get_mut(id);
                    if extent.life == life {
                        extent.left_over |= bit(taker.index);
                    }
                }
            }
        }
        match error {
            _ if self.stands(self.all() & !empty) => Ok(()),
            Some(error) if self.stripes.spares() == 0 => Err(error),
            _ => Err(self.why_too_few()),
        }
    }
}
