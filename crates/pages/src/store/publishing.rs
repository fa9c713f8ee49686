//! Counting what an edit changes of the extents, and making those changes.

use std::collections::BTreeSet;

use crate::error::EngineError;
use crate::format::pointer::Pointer;
use crate::medium::{Medium, PageNo, Stream};
use crate::planted::Fault;
use crate::store::PageStore;
use crate::store::changes::{Changes, Counts, ExtentChange};
use crate::store::writing::STEP;

impl<M: Medium> PageStore<M> {
    /// A page that was written gets an entry in the index.
    pub fn publish_page(&self, changes: &mut Changes, page: PageNo) {
        let change = self.change_of(changes, page);
        change.place(page.0 % self.shape.pages_per_extent, 1);
        change.counts.add(Counts { published: 1, entered: 1, dead: 0 });
    }

    /// The index has no entry of `page` any more.
    pub fn mark_page_dead(&self, changes: &mut Changes, page: PageNo) {
        self.change_of(changes, page).counts.dead += 1;
    }

    /// The index has no entries of these objects any more. Those of an earlier generation went when
    /// their extent was collected. Others may go first between two steps of it.
    pub async fn mark_all_dead(&self, changes: &mut Changes, objects: &[Pointer]) {
        for step in objects.chunks(STEP) {
            self.mark_dead(changes, step);
            self.handle.give_way().await;
        }
    }

    /// The same of a few objects.
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

    /// What was written for these changes is durable when this is ready. Submitted by the call.
    ///
    /// # Errors
    /// [`EngineError::Medium`]: nobody knows what of it is durable.
    pub fn sync_placed(
        &self,
        changes: &Changes,
    ) -> impl Future<Output = Result<(), EngineError>> + use<M> {
        let placed = changes.extents.values().filter(|change| !change.placed.is_empty());
        let streams: BTreeSet<Stream> = placed.map(|change| change.stream).collect();
        self.sync_streams(&streams.into_iter().collect::<Vec<_>>())
    }

    /// All that can be read now, and is not of the journal, is durable when this is ready: what a checkpoint may say
    /// something of. Besides what edits have placed these are pages that nothing will refer to. Submitted by the call.
    ///
    /// # Errors
    /// As [`Self::sync_placed`].
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

    /// A planted bug: an edit does not wait for what was written in this stream.
    pub(crate) fn goes_early(&self, stream: Stream) -> bool {
        let of_stream = match stream {
            Stream::Index => self.planted.has(Fault::CommitBeforeSegments),
            Stream::Tables => self.planted.has(Fault::CommitBeforeTables),
            Stream::Objects | Stream::Log | Stream::Manifest => false,
        };
        of_stream || stream != Stream::Tables && self.planted.has(Fault::PublishBeforeDurable)
    }

    /// Makes the changes: what was written for them is in use from now on. A store that has recovered
    /// counts that cannot be right takes no more writes.
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
