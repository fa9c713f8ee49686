//! Garbage collection of meta extents: bucket pages that the directory still refers to are copied.
//!
//! This is a task of its own, because the collection of data depends on it. The collection of data
//! waits for the table, the table waits for space for bucket pages, and this task frees that space.
//! The task itself waits only for the flash.

use std::rc::Rc;

use runtime::{IoClass, PageImage};

use super::Inner;
use super::bucket::BucketFormat;
use super::buckets::BucketImage;
use crate::gc::Collected;
use crate::medium::{ExtentId, Medium, MediumError, PageNo, Stream};
use crate::space::extent::{Extent, State};
use crate::space::priority::Claimant;
use crate::space::promise::Promise;

/// The largest live share of an extent that is worth copying, as long as no task lacks space.
/// Bucket pages are written again soon, so that fuller extents become empty by themselves.
const WORTH_COLLECTING: f64 = 0.5;

impl<M: Medium> Inner<M> {
    /// Runs the task that collects extents of bucket pages, forever.
    pub(crate) async fn collect_buckets_forever(self: Rc<Self>) {
        loop {
            let is_own =
                |id, extent: &Extent| extent.stream == Stream::Index && self.may_be_collected(id);
            let empty = self.store.empty_extent(is_own);
            if let Some(id) = empty {
                self.stats.borrow_mut().gc_empty_extents += 1;
                self.retire(id);
                continue;
            }
            if let Some(id) = self.bucket_victim()
                && let Some(promise) = self.promise_to_move(id)
            {
                self.collect_buckets(id, promise).await;
                continue;
            }
            self.store.work.notified().await;
        }
    }

    /// Returns the meta extent with the fewest live pages, if it is worth copying. Returns `None`
    /// while free extents are not short.
    pub(crate) fn bucket_victim(&self) -> Option<ExtentId> {
        if !self.is_short_of_extents() && !self.index_is_starved.get() {
            return None;
        }
        let per_extent = self.store.shape.pages_per_extent;
        let is_urgent = self.index_is_starved.get() || !self.front.has_extents_for_clients();
        let share = if is_urgent { 1.0 } else { WORTH_COLLECTING };
        let most = (share * f64::from(per_extent)) as u32;
        let extents = self.store.extents.borrow();
        let may_go = |id, extent: &Extent| {
            let is_meta = extent.state == State::Closed && extent.stream == Stream::Index;
            let pages = self.pages_to_move(extent.live);
            is_meta && pages <= most && pages < per_extent && self.store.is_published(id)
        };
        let candidates = extents.iter().filter(|(id, extent)| may_go(*id, extent));
        candidates.min_by_key(|(_, extent)| (extent.live, extent.age)).map(|(id, _)| id)
    }

    /// Returns the number of pages that copies of the live pages of an extent take.
    fn pages_to_empty(&self, id: ExtentId) -> u32 {
        self.pages_to_move(self.store.extents.borrow().get(id).live)
    }

    /// Returns the number of pages that copies of `live` bucket pages take. All batches but the
    /// last are whole append units.
    fn pages_to_move(&self, live: u32) -> u32 {
        self.store.in_units(live)
    }

    fn promise_to_move(&self, id: ExtentId) -> Option<Promise<'_>> {
        self.store.try_promise(Stream::Index, self.pages_to_empty(id), Claimant::Collection)
    }

    /// Whether there is space for copies of the live bucket pages of an extent.
    pub(crate) fn can_move_buckets(&self, id: ExtentId) -> bool {
        self.store.can_promise(Stream::Index, self.pages_to_empty(id), Claimant::Collection)
    }

    async fn collect_buckets(self: &Rc<Self>, id: ExtentId, mut promise: Promise<'_>) {
        self.store.extents.borrow_mut().set_state(id, State::Collecting);
        let pages = self.pages_in(id);
        let mut is_damaged = false;
        let batch_pages = self.store.in_units(self.store.batch_pages()) as usize;
        for batch in pages.chunks(batch_pages) {
            let share = promise.split(self.store.in_units(batch.len() as u32));
            is_damaged |= !self.move_buckets(id, batch, share).await;
        }
        // The directory must not lose a page, whatever the counts say.
        is_damaged |= !self.pages_in(id).is_empty();
        let mut stats = self.stats.borrow_mut();
        if is_damaged {
            stats.gc_quarantined_extents += 1;
            self.store.extents.borrow_mut().set_state(id, State::Quarantined);
        } else {
            stats.gc_meta_extents += 1;
            let live = self.store.extents.borrow().get(id).live;
            assert_eq!(live, 0, "no bucket page is in extent {}, and {live} count", id.0);
            self.retire(id);
        }
    }

    /// Returns the bucket pages whose address is in an extent.
    fn pages_in(&self, id: ExtentId) -> Vec<u32> {
        let directory = self.directory.borrow();
        let is_there = |page: u32| {
            let at = directory[page as usize];
            at.is_some_and(|at| self.store.shape.extent_of(at) == id)
        };
        (0..self.table.pages).filter(|page| is_there(*page)).collect()
    }

    /// Copies those of `pages` that are still in the extent. Returns `false` if a page could not be
    /// read, or the copies could not be written.
    async fn move_buckets(&self, id: ExtentId, pages: &[u32], promise: Promise<'_>) -> bool {
        let mut claimed = Vec::with_capacity(pages.len());
        for page in pages {
            // A task that is writing the page has space already and will finish soon.
            self.settled.wait_until(|| !self.writing.borrow().contains(*page)).await;
            let at = self.directory.borrow()[*page as usize];
            if let Some(at) = at.filter(|at| self.store.shape.extent_of(*at) == id) {
                self.begin_writing(*page);
                claimed.push((*page, at));
            }
        }
        let guard = self.enter();
        // A page in memory stays there as long as it is marked as being written.
        let is_cached = |page: u32| self.cache.borrow().holds(page);
        let reads: Vec<_> = claimed
            .into_iter()
            .map(|(page, at)| {
                let read = || self.store.medium.read(at, IoClass::GcRead);
                (page, at, (!is_cached(page)).then(read))
            })
            .collect();
        let mut images = Vec::new();
        let claimed = reads.len();
        for (page, at, read) in reads {
            let image = match read {
                None => Some(self.image_of(page)),
                // A task that loads and changes the page meanwhile leaves it dirty in memory.
                Some(read) => {
                    let copy = self.checked_copy(page, at, read.await).await;
                    copy.map(|bytes| BucketImage { page, bytes })
                }
            };
            if let Some(image) = image {
                images.push(image);
            } else {
                self.writing.borrow_mut().remove(page);
            }
        }
        drop(guard);
        let moved = images.len();
        self.stats.borrow_mut().gc_pages_moved += moved as u64;
        let written = self.write_buckets(images, promise, IoClass::GcWrite).await;
        written.is_ok() && moved == claimed
    }

    /// Returns a bucket page, unsealed, as it was read or rebuilt; `None` if it is damaged.
    async fn checked_copy(
        &self,
        page: u32,
        at: PageNo,
        read: Result<PageImage, MediumError>,
    ) -> Option<Vec<u8>> {
        let image = self.store.check_or_rebuild(at, read, IoClass::GcRead).await.ok()?;
        let slots = self.buckets.decode(&image, page)?;
        Some(BucketFormat::encode(slots, page))
    }
}
