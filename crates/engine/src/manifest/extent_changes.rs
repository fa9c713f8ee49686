//! Collects the extent changes of an edit, and applies them.

use std::collections::BTreeSet;

use super::changes::{Changes, Counts, ExtentChange};
use crate::error::EngineError;
use crate::format::pointer::Pointer;
use crate::medium::{Medium, PageNo, Stream};
use crate::planted::Fault;
use crate::space::PageStore;
use crate::space::writing::STEP;

impl<M: Medium> PageStore<M> {
    /// Counts a written page as referred to by the index.
    pub fn publish_page(&self, changes: &mut Changes, page: PageNo) {
        let change = self.change_of(changes, page);
        change.place(page.0 % self.shape.pages_per_extent, 1);
        change.counts.add(Counts { published: 1, entered: 1, dead: 0 });
    }

    /// Counts a page as dead: the index has no entry of it any more.
    pub fn mark_page_dead(&self, changes: &mut Changes, page: PageNo) {
        self.change_of(changes, page).counts.dead += 1;
    }

    /// Counts objects as dead: the index has no entries of them any more. Objects of an earlier
    /// generation are skipped, because they were removed when their extent was collected. Other
    /// tasks may run between two steps.
    pub async fn mark_all_dead(&self, changes: &mut Changes, objects: &[Pointer]) {
        for step in objects.chunks(STEP) {
            self.mark_dead(changes, step);
            self.handle.give_way().await;
        }
    }

    /// As [`Self::mark_all_dead`], for a few objects in one step.
    pub fn mark_dead(&self, changes: &mut Changes, objects: &[Pointer]) {
        for pointer in objects {
            let (page, _) = self.format.locate(*pointer);
            if self.extents.borrow().may_hold(*pointer, &self.format) {
                self.change_of(changes, page).counts.dead += 1;
            }
        }
    }

    pub(crate) fn change_of<'a>(
        &self,
        changes: &'a mut Changes,
        page: PageNo,
    ) -> &'a mut ExtentChange {
        let id = self.shape.extent_of(page);
        changes.extents.entry(id).or_insert_with(|| {
            let extents = self.extents.borrow();
            let extent = extents.get(id);
            ExtentChange {
                stream: extent.stream,
                generation: extent.generation,
                age: extent.age,
                placed: Vec::new(),
                counts: Counts::default(),
            }
        })
    }

    /// Makes the pages that these changes place durable. The sync is submitted by the call; the
    /// future completes when it is done.
    ///
    /// # Errors
    /// Returns [`EngineError::Medium`]: it is then unknown which of the pages are durable.
    pub fn sync_placed(
        &self,
        changes: &Changes,
    ) -> impl Future<Output = Result<(), EngineError>> + use<M> {
        let placed = changes.extents.values().filter(|change| !change.placed.is_empty());
        let streams: BTreeSet<Stream> = placed.map(|change| change.stream).collect();
        self.sync_streams(&streams.into_iter().collect::<Vec<_>>())
    }

    /// Makes all readable pages outside of the journal durable, because a checkpoint may mention
    /// them. They include pages that nothing will refer to, besides the pages that edits have
    /// placed. The sync is submitted by the call.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::sync_placed`].
    pub fn sync_all(&self) -> impl Future<Output = Result<(), EngineError>> + use<M> {
        self.sync_streams(&[Stream::Objects, Stream::Index, Stream::Tables])
    }

    fn sync_streams(
        &self,
        streams: &[Stream],
    ) -> impl Future<Output = Result<(), EngineError>> + use<M> {
        let due = streams.iter().filter(|stream| !self.goes_early(**stream));
        let syncs: Vec<_> = due.map(|stream| self.medium.sync(*stream)).collect();
        async move {
            for sync in syncs {
                sync.await?;
            }
            Ok(())
        }
    }

    /// Whether a planted bug makes edits skip the wait for writes of this stream.
    pub(crate) fn goes_early(&self, stream: Stream) -> bool {
        let of_stream = match stream {
            Stream::Index => self.planted.has(Fault::CommitBeforeSegments),
            Stream::Tables => self.planted.has(Fault::CommitBeforeTables),
            Stream::Objects | Stream::Log | Stream::Manifest => false,
        };
        of_stream || stream != Stream::Tables && self.planted.has(Fault::PublishBeforeDurable)
    }

    /// Applies the changes: pages written for them are in use from now on. If recovered counts turn
    /// out to be contradictory, the store accepts no more writes.
    pub fn apply(&self, changes: &Changes) {
        let mut extents = self.extents.borrow_mut();
        let mut unpublished = self.unpublished.borrow_mut();
        for (id, change) in &changes.extents {
            let is_current = extents.get(*id).generation == change.generation;
            assert!(
                is_current || change.placed.is_empty(),
                "extent {} was released under pages that waited for their edit",
                id.0
            );
            for place in change.placed.iter().cloned().flatten() {
                let was_out = unpublished.remove(&self.shape.page(*id, place));
                assert!(was_out, "page {place} of extent {} gets two places in an index", id.0);
            }
            if is_current {
                let is_certain = change.is_certain(&self.format);
                if let Err(what) = extents.count(*id, change.counts, is_certain) {
                    self.contradicts_itself(what);
                }
            }
        }
    }
}
