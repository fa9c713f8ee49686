//! The hash engine: a model of the drive that `PinK` is compared with, a flat hash table on flash.
//!
//! The table consists of slots (pointer and signature) in bucket pages. A directory in memory has
//! the address of each bucket page, and recently used bucket pages are cached. One Put: wait for
//! room, insert into the memtable; a full memtable is written to data pages, and then the table is
//! searched for each of its keys and the pointer is entered (`flush`). One Get: memtables, then one
//! slot after the other. A bucket page that is not cached is read, and a dirty page may have to be
//! written before that (`buckets`). If the signature of a slot is that of the key, the object is
//! read and its key compared (`reads`). The number of flash reads of a Get has no bound, which is
//! the point of the comparison (docs/decisions/0012).
//!
//! Invariants:
//! - Only the flush changes slots, so the slot of a key stays the same until the key is deleted.
//! - A slot is *stale* if the extent of its object was collected, and is being released, is free or
//!   is in use again. The key of a stale slot is in a memtable, and `uprooted` has its pointer
//!   until the flush has replaced it.
//! - No two objects in use with the same signature begin in the same piece of a page (`apart`), so
//!   pointer and signature of a slot identify one object.
//! - State that is not on the medium (memtables, dirty bucket pages, directory) is in memory that a
//!   power cut dumps: the table is an index for drives with capacitors.
//!
//! docs/decisions/0012 describes which task waits for which when space runs out.

pub(crate) mod apart;
pub(crate) mod bucket;
pub(crate) mod buckets;
pub(crate) mod cache;
pub(crate) mod collect;
pub(crate) mod collect_buckets;
pub(crate) mod dump;
pub(crate) mod flush;
#[cfg(test)]
mod fuzz_tests;
pub(crate) mod key_hash;
mod located;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod page_set;
pub(crate) mod parallel;
pub(crate) mod parked;
pub(crate) mod reads;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod writes;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use runtime::{Nanos, Notify};

use crate::error::EngineError;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::hash::bucket::BucketFormat;
use crate::hash::cache::Cache;
use crate::hash::options::HashOptions;
use crate::hash::page_set::PageSet;
use crate::hash::stats::HashStats;
use crate::hash::table::Table;
use crate::medium::{ExtentId, Medium, PageNo, Stream};
use crate::operations::{Lookup, WriteOptions, check_key};
use crate::planted::Planted;
use crate::space::PageStore;
use crate::stats::{EngineStats, MemoryUse};
use crate::write::Front;

/// Bytes of the address of a bucket page in the directory.
pub(crate) const PAGE_ADDRESS_BYTES: u64 = 4;

/// A hash table on a medium. Clones are handles to the same store.
pub struct HashEngine<M: Medium> {
    pub(crate) inner: Rc<Inner<M>>,
}

impl<M: Medium> Clone for HashEngine<M> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

pub(crate) struct Inner<M> {
    pub store: Rc<PageStore<M>>,
    pub front: Front<M>,
    pub options: HashOptions,
    pub planted: Planted,
    pub table: Table,
    pub buckets: BucketFormat,
    /// The address of each bucket page; `None` for a page that was never written.
    pub directory: RefCell<Vec<Option<PageNo>>>,
    pub cache: RefCell<Cache>,
    /// Bucket pages that are being read.
    pub loading: RefCell<BTreeSet<u32>>,
    /// Bucket pages that are being written.
    pub writing: RefCell<PageSet>,
    /// Notified when a read or write of a bucket page has ended.
    pub settled: Notify,
    /// The highest number of a probe that found room for a key.
    pub longest_search: Cell<u32>,
    /// Slots in use.
    pub keys: Cell<u64>,
    /// By key: the pointer in its slot, if garbage collection removes the object of that pointer.
    pub uprooted: RefCell<BTreeMap<Box<[u8]>, Pointer>>,
    /// Extents with objects that the flush is entering in the table.
    pub placing: RefCell<BTreeSet<ExtentId>>,
    /// Whether the write of a bucket page waits for space.
    pub index_is_starved: Cell<bool>,
    pub stats: RefCell<EngineStats>,
    pub hash_stats: RefCell<HashStats>,
}

impl<M: Medium> HashEngine<M> {
    /// Returns the value of `key`. `work` is processor time that the caller owes for this
    /// operation; it is charged together with the search.
    ///
    /// Takes one flash read for each bucket page of the search that is not cached, one for each
    /// object of another key with the same signature, and those of the value. There is no bound.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`] if the length of `key` is invalid; [`EngineError::Corrupt`] if a
    /// page that was read is damaged; [`EngineError::ReadOnly`] or [`EngineError::Medium`] if a
    /// dirty bucket page cannot be written to make room in memory.
    pub async fn get(&self, key: &[u8], work: Nanos) -> Result<Lookup, EngineError> {
        check_key(key)?;
        let mut flash_reads = 0;
        let located = self.inner.locate(key, work, true, &mut flash_reads).await?;
        let value = located.into_value();
        let mut stats = self.inner.stats.borrow_mut();
        stats.reads_per_get.add(flash_reads);
        match value {
            Some(_) => stats.gets_found += 1,
            None => stats.gets_missing += 1,
        }
        Ok(Lookup { value, flash_reads, reading: None })
    }

    /// Returns whether `key` has a value. Reads the object to compare keys, but no further pages of
    /// a large object. For `work` see [`Self::get`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        check_key(key)?;
        Ok(self.inner.locate(key, work, false, &mut 0).await?.exists())
    }

    /// Stores `value` under `key` if the condition in `options` holds; returns whether it did.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`], [`EngineError::ValueTooLarge`], [`EngineError::ReadOnly`];
    /// [`EngineError::Full`] also if seven eighths of the slots are in use; with a condition also
    /// those of [`Self::get`].
    pub async fn put(
        &self,
        key: &[u8],
        value: Value,
        options: WriteOptions,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        check_key(key)?;
        self.inner.store.check_value(key, &value)?;
        self.inner.front.write(&*self.inner, key, Some(value), options, work).await
    }

    /// Removes `key` if the condition in `options` holds; returns whether it did. See
    /// [`Self::put`].
    ///
    /// # Errors
    /// As [`Self::put`], but a full store still accepts deletes.
    pub async fn delete(
        &self,
        key: &[u8],
        options: WriteOptions,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        check_key(key)?;
        self.inner.front.write(&*self.inner, key, None, options, work).await
    }

    /// Returns the longest value that this store accepts, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        self.inner.store.max_value_bytes()
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> EngineStats {
        let stats = self.inner.front.add_to(self.inner.stats.borrow().clone());
        let shared_reads = stats.shared_reads + self.inner.store.shared_reads();
        let rebuilt_reads = self.inner.store.rebuilt_reads();
        EngineStats { shared_reads, rebuilt_reads, ..stats }
    }

    /// Returns the counters of the table so far, and its current state.
    pub fn hash_stats(&self) -> HashStats {
        let inner = &*self.inner;
        let cache = inner.cache.borrow();
        HashStats {
            bucket_pages: inner.table.pages,
            slots: inner.table.slots(),
            keys: inner.keys.get(),
            cached_pages: cache.len() as u64,
            dirty_pages: cache.dirty() as u64,
            longest_search: inner.longest_search.get() + 1,
            ..inner.hash_stats.borrow().clone()
        }
    }

    /// Returns the memory in use now.
    pub fn memory(&self) -> MemoryUse {
        self.inner.memory()
    }

    /// Returns the state of background work as one line, for diagnosing a store that makes no
    /// progress.
    pub fn background(&self) -> String {
        let inner = &*self.inner;
        let extents = inner.store.extents.borrow();
        let memtables = inner.front.memtables.borrow();
        format!(
            "{} extents: {} free, {} releasing, {:?} by stream (set aside {:?}); promised pages {:?}; \
             memtable {} B and {} frozen; {} of {} slots; bucket pages: {} cached, {} dirty, {:?} \
             being read, {:?} written; {:?}, flush starved {}, index starved {}",
            inner.store.shape.extents,
            extents.free(),
            inner.store.releasing(),
            Stream::ALL.map(|stream| extents.in_use(stream)),
            Stream::ALL.map(|stream| inner.store.set_aside[stream as usize].get()),
            inner.store.promised_pages(),
            memtables.active_bytes(),
            memtables.frozen.len(),
            inner.keys.get(),
            inner.table.slots(),
            inner.cache.borrow().len(),
            inner.cache.borrow().dirty(),
            inner.loading.borrow(),
            inner.writing.borrow(),
            inner.front.fullness.get(),
            inner.front.flush_is_starved(),
            inner.index_is_starved.get(),
        )
    }

    /// Waits until no memtable waits for its flush. Returns early if background work cannot make
    /// progress.
    pub async fn settle(&self) {
        let front = &self.inner.front;
        let is_over = || front.memtables.borrow().frozen.is_empty() || front.is_halted();
        self.inner.store.work.wait_until(is_over).await;
    }
}

impl<M: Medium> Inner<M> {
    fn memory(&self) -> MemoryUse {
        MemoryUse {
            memtables: self.front.memtables.borrow().bytes(),
            directory: u64::from(self.table.pages) * PAGE_ADDRESS_BYTES,
            caches: self.cache.borrow().len() as u64 * u64::from(self.store.shape.page_bytes),
            ..MemoryUse::default()
        }
    }

    pub(crate) fn count_memory(&self) {
        let now = self.memory().index_bytes();
        let mut stats = self.stats.borrow_mut();
        stats.peak_index_bytes = stats.peak_index_bytes.max(now);
    }
}
