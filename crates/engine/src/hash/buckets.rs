//! Transfer of bucket pages between medium and memory.
//!
//! A task that needs a page that is not in memory reads it; other tasks that need the page wait for
//! that read. First a place in the cache is reserved: the least recently used page is evicted. If
//! it is dirty, it is written before that, and the task that needs the place waits for the program.
//! The modelled drive does the same, and this is one cause of the tail of its Gets. If a medium
//! appends several pages at a time, further dirty pages that were not used recently fill up the
//! append unit.
//!
//! A task that waits for space here holds no epoch, because the extents that would provide the
//! space are released only after readers have left their epochs.

use runtime::IoClass;

use super::Inner;
use super::bucket::{BucketFormat, Slot};
use super::table::SlotNo;
use crate::error::EngineError;
use crate::format::page::PageFault;
use crate::manifest::changes::Changes;
use crate::medium::{Medium, PageNo, Stream};
use crate::planted::Fault;
use crate::space::epochs::Guard;
use crate::space::priority::Claimant;
use crate::space::promise::Promise;

/// The number of least recently used pages in which dirty ones are sought to fill up an append
/// unit. Pages that are being written do not count.
const LOOK_FOR_DIRTY: usize = 64;

/// A bucket page that is about to be written.
pub(crate) struct BucketImage {
    pub page: u32,
    pub bytes: Vec<u8>,
}

/// A read of a page in progress. When it is dropped, the tasks that wait for the page look again.
struct Loading<'a, M> {
    inner: &'a Inner<M>,
    page: u32,
    has_place: bool,
}

impl<M> Drop for Loading<'_, M> {
    fn drop(&mut self) {
        self.inner.loading.borrow_mut().remove(&self.page);
        if self.has_place {
            self.inner.cache.borrow_mut().unreserve();
        }
        self.inner.settled.notify_all();
    }
}

impl<M: Medium> Inner<M> {
    /// Brings a bucket page into memory. On return the page is in memory until the next await.
    pub(crate) async fn load(
        &self,
        page: u32,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<(), EngineError> {
        let is_hit = self.cache.borrow_mut().touch(page).is_some();
        self.hash_stats.borrow_mut().count_load(class, is_hit);
        if is_hit {
            return Ok(());
        }
        let mut has_waited = false;
        while self.loading.borrow().contains(&page) {
            has_waited = true;
            self.settled.notified().await;
            if self.cache.borrow_mut().touch(page).is_some() {
                break;
            }
        }
        if has_waited && self.cache.borrow().holds(page) {
            *flash_reads += 1;
            self.stats.borrow_mut().shared_reads += u64::from(class == IoClass::ClientRead);
            return Ok(());
        }
        let is_first = self.loading.borrow_mut().insert(page);
        assert!(is_first, "bucket page {page} is read twice at a time");
        let mut loading = Loading { inner: self, page, has_place: false };
        self.make_place(class).await?;
        loading.has_place = true;
        let at = self.directory.borrow()[page as usize];
        let slots = match at {
            None => self.buckets.blank(),
            Some(at) => {
                *flash_reads += 1;
                self.read_bucket(page, at, class).await?
            }
        };
        self.cache.borrow_mut().install(page, slots, false);
        loading.has_place = false;
        self.count_memory();
        Ok(())
    }

    /// Reads a bucket page that is not in memory.
    pub(crate) async fn read_bucket(
        &self,
        page: u32,
        at: PageNo,
        class: IoClass,
    ) -> Result<Box<[u8]>, EngineError> {
        let _guard = self.enter();
        let image = self.store.read_page(at, class).await?;
        let slots = self
            .buckets
            .decode(&image, page)
            .ok_or(EngineError::Corrupt(at, PageFault::Contents))?;
        Ok(slots.into())
    }

    /// Begins a read of a page that a pointer or the directory refers to.
    pub(crate) fn enter(&self) -> Option<Guard> {
        (!self.store.planted.has(Fault::ReadWithoutEpoch)).then(|| self.store.epochs.enter())
    }

    /// Reserves a place in the cache. Waits until there is one.
    async fn make_place(&self, class: IoClass) -> Result<(), EngineError> {
        loop {
            if self.cache.borrow_mut().reserve() {
                return Ok(());
            }
            let Some(oldest) = self.oldest_page() else {
                // All places are in use for reads and writes. A page that could not be written
                // stays in memory.
                if let Some(failure) = self.store.failure() {
                    return Err(EngineError::ReadOnly(failure));
                }
                self.settled.notified().await;
                continue;
            };
            if self.cache.borrow().is_dirty(oldest) {
                self.write_oldest(class).await?;
            } else {
                self.cache.borrow_mut().evict(oldest);
            }
        }
    }

    /// Returns the least recently used page that may be evicted.
    fn oldest_page(&self) -> Option<u32> {
        let writing = self.writing.borrow();
        self.cache.borrow().by_age().find(|page| !writing.contains(*page))
    }

    /// Waits for space, and then writes the least recently used page if it is still dirty, together
    /// with further dirty pages that fill up the append unit.
    async fn write_oldest(&self, class: IoClass) -> Result<(), EngineError> {
        let promise = self.promise_for_eviction().await;
        if !self.oldest_page().is_some_and(|page| self.cache.borrow().is_dirty(page)) {
            return Ok(());
        }
        let pages: Vec<u32> = {
            let (cache, writing) = (self.cache.borrow(), self.writing.borrow());
            let may_go = |page: &u32| cache.is_dirty(*page) && !writing.contains(*page);
            let old = cache.by_age().take(writing.len() + LOOK_FOR_DIRTY);
            old.filter(may_go).take(self.store.shape.append_unit as usize).collect()
        };
        self.hash_stats.borrow_mut().count_evictions(class, pages.len());
        for page in &pages {
            self.begin_writing(*page);
        }
        let images = pages.iter().map(|page| self.image_of(*page)).collect();
        // For the flash this is background work of the index, even if a client waits for it.
        self.write_buckets(images, promise, IoClass::CompactionWrite).await
    }

    /// Marks a page as being written. Until the write is published, the page is not evicted and its
    /// address does not change.
    pub(crate) fn begin_writing(&self, page: u32) {
        let is_first = self.writing.borrow_mut().insert(page);
        assert!(is_first, "bucket page {page} is written twice at a time");
    }

    /// Returns the current contents of a page in memory for a write. Marks the page as clean.
    pub(crate) fn image_of(&self, page: u32) -> BucketImage {
        let mut cache = self.cache.borrow_mut();
        let bytes = BucketFormat::encode(cache.clean(page).expect("it is in memory"), page);
        BucketImage { page, bytes }
    }

    /// Writes pages that are marked as being written, and enters their addresses in the directory.
    pub(crate) async fn write_buckets(
        &self,
        images: Vec<BucketImage>,
        promise: Promise<'_>,
        class: IoClass,
    ) -> Result<(), EngineError> {
        let written = self.write_and_publish(images, promise, class).await;
        self.settled.notify_all();
        written.inspect_err(|error| {
            self.store.fail(error.clone());
            self.settled.notify_all();
        })
    }

    async fn write_and_publish(
        &self,
        mut images: Vec<BucketImage>,
        promise: Promise<'_>,
        class: IoClass,
    ) -> Result<(), EngineError> {
        let bytes = images.iter_mut().map(|image| std::mem::take(&mut image.bytes)).collect();
        let places = self.store.write_segments(bytes, promise, class, || 1.0).await?;
        assert_eq!(places.len(), images.len(), "a bucket page was written to no page, or to two");
        let mut changes = Changes::default();
        for (BucketImage { page, .. }, at) in images.into_iter().zip(places) {
            self.store.publish_page(&mut changes, at);
            let old = self.directory.borrow_mut()[page as usize].replace(at);
            if let Some(old) = old {
                self.store.mark_page_dead(&mut changes, old);
            }
            let was_marked = self.writing.borrow_mut().remove(page);
            assert!(was_marked, "bucket page {page} was written while others could write it");
        }
        self.store.apply(&changes);
        Ok(())
    }

    async fn promise_for_eviction(&self) -> Promise<'_> {
        loop {
            if let Some(promise) = self.try_promise_for_eviction() {
                self.index_is_starved.set(false);
                return promise;
            }
            if !self.index_is_starved.replace(true) {
                self.store.work.notify_all();
                continue; // a starved index may use more space
            }
            self.store.work.notified().await;
        }
    }

    /// Promises one append unit to an eviction, if there is space. The index uses its own extents
    /// first. It uses others under the same condition as clients, so that it takes no space that a
    /// flush relies on.
    fn try_promise_for_eviction(&self) -> Option<Promise<'_>> {
        let pages = self.store.shape.append_unit;
        let promised = self.store.promised_pages()[Stream::Index as usize];
        let may_take = {
            let extents = self.store.extents.borrow();
            promised + pages <= extents.room(Stream::Index)
                || extents.in_use(Stream::Index)
                    < self.store.set_aside[Stream::Index as usize].get()
                || extents.free() > self.front.client_reserve(&extents)
        };
        let is_last_resort = self.index_is_starved.get() && self.only_a_flush_gives_space();
        let claimant = if is_last_resort { Claimant::Collection } else { Claimant::Compaction };
        may_take.then(|| self.store.try_promise(Stream::Index, pages, claimant))?
    }

    /// Whether only a flush can free space: extents wait for the flush of the objects that were
    /// moved out of them, the flush waits for evictions, and no extent of bucket pages can be
    /// collected before.
    fn only_a_flush_gives_space(&self) -> bool {
        let may_move = |id| self.can_move_buckets(id);
        !self.store.moved.borrow().is_empty() && !self.bucket_victim().is_some_and(may_move)
    }

    /// Returns the contents of a slot. Requires: the slot's page is in memory.
    pub(crate) fn slot(&self, at: SlotNo) -> Slot {
        let mut cache = self.cache.borrow_mut();
        let slots = cache.touch(at.page).expect("the page was loaded and nobody has waited since");
        self.buckets.get(slots, at.index)
    }

    /// Changes a slot. Requires: the slot's page is in memory.
    pub(crate) fn set_slot(&self, at: SlotNo, slot: Slot) {
        self.buckets.set(self.cache.borrow_mut().change(at.page), at.index, slot);
    }
}
