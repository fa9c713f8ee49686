//! The hash engine: the drive that `PinK` is compared with, a flat hash table on flash.
//!
//! One table of slots (pointer and signature) in bucket pages; a directory in memory says where each
//! bucket page is, and the pages used last are cached. One Put: wait for room, insert in the
//! memtable; a full memtable is written to data pages, and then each of its keys is searched for in
//! the table and entered (`flush`). One Get: memtables, then slot after slot; a bucket page that is
//! not cached is read, and before that a dirty one may have to be written (`buckets`); where the
//! signature is the key's, the object is read and its key compared (`reads`). There is no bound on
//! the flash reads of a Get, which is the point of the comparison (docs/decisions/0012).
//!
//! Invariants:
//! - only the flush changes slots, so a key's slot stays where it is until the key is deleted;
//! - a slot whose extent was collected and is free, or filled with something else, is *stale*: its
//!   key is in a memtable, and `uprooted` has its pointer until the flush has replaced it;
//! - no two objects in use with one signature begin in one piece (`apart`), so pointer and signature
//!   of a slot name one object;
//! - what the medium does not have (memtables, changed bucket pages, directory) is in memory that a
//!   power cut dumps, or in log and manifest (`edit`).
//!
//! Who waits for whom when space runs out: docs/decisions/0012.

pub(crate) mod apart;
pub(crate) mod bucket;
pub(crate) mod buckets;
pub(crate) mod cache;
pub(crate) mod collect;
pub(crate) mod collect_buckets;
pub(crate) mod dump;
pub(crate) mod edit;
pub(crate) mod edit_codec;
pub(crate) mod flush;
#[cfg(test)]
mod fuzz_tests;
pub(crate) mod key_hash;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod page_set;
pub(crate) mod parallel;
pub(crate) mod parked;
pub(crate) mod publish;
pub(crate) mod reads;
pub(crate) mod reopen;
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
use crate::hash::edit::Gathered;
use crate::hash::options::HashOptions;
use crate::hash::page_set::PageSet;
use crate::hash::reads::Located;
use crate::hash::stats::HashStats;
use crate::hash::table::Table;
use crate::manifest::Manifest;
use crate::medium::{ExtentId, Medium, PageNo, Stream};
use crate::operations::{Lookup, WriteOptions, check_key};
use crate::planted::Planted;
use crate::space::PageStore;
use crate::stats::{EngineStats, MemoryUse};
use crate::wal::Flushed;
use crate::write::Front;

/// The directory keeps the address of each bucket page.
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
    /// Where each bucket page is; nowhere as long as nothing was written to it.
    pub directory: RefCell<Vec<Option<PageNo>>>,
    pub cache: RefCell<Cache>,
    /// Bucket pages that are being read.
    pub loading: RefCell<BTreeSet<u32>>,
    /// Bucket pages that are being written.
    pub writing: RefCell<PageSet>,
    /// A bucket page was read or written.
    pub settled: Notify,
    /// Number of the last search that ever found room for a key.
    pub longest_search: Cell<u32>,
    /// Slots in use.
    pub keys: Cell<u64>,
    /// Where edits go, if memory does not survive, and the one that is gathered.
    pub manifest: Option<Manifest>,
    pub gathered: Gathered,
    /// Bytes of a checkpoint when every page in memory is dirty, and a memtable's slots are gathered.
    pub longest_checkpoint: u64,
    /// Slots changed so far.
    pub slot_changes: Cell<u64>,
    /// What of the log is in the table.
    pub flushed: Cell<Flushed>,
    /// By key: the pointer in its slot, whose object garbage collection has taken away.
    pub uprooted: RefCell<BTreeMap<Box<[u8]>, Pointer>>,
    /// Extents with objects that the flush is entering in the table.
    pub placing: RefCell<BTreeSet<ExtentId>>,
    /// A bucket page waits for space.
    pub index_is_starved: Cell<bool>,
    pub stats: RefCell<EngineStats>,
    pub hash_stats: RefCell<HashStats>,
}

impl<M: Medium> HashEngine<M> {
    /// The value of `key`. `work` is processor time that the caller owes for this operation.
    ///
    /// Takes a flash read for each bucket page on the way that is not cached, one for each object
    /// that only looks like the key's, and those of the value. There is no bound.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`]; [`EngineError::Corrupt`] if a page on the way is damaged.
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

    /// Whether `key` has a value. Reads the object to compare keys, but no further pages of it.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        check_key(key)?;
        Ok(self.inner.locate(key, work, false, &mut 0).await?.exists())
    }

    /// Stores `value` under `key` if the condition in `options` holds; returns whether it did. It
    /// is acknowledged when `options` or the design say so ([`LogSync`](crate::wal::LogSync)).
    ///
    /// # Errors
    /// [`EngineError::KeyLength`], [`EngineError::ValueTooLarge`], [`EngineError::ReadOnly`],
    /// [`EngineError::Full`] also when the table has no slot left; with a condition also those of
    /// [`Self::get`].
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

    /// Removes `key` if the condition in `options` holds; returns whether it did. See [`Self::put`].
    ///
    /// # Errors
    /// As [`Self::put`], but a store without room still takes deletes.
    pub async fn delete(
        &self,
        key: &[u8],
        options: WriteOptions,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        check_key(key)?;
        self.inner.front.write(&*self.inner, key, None, options, work).await
    }

    /// The longest value this store takes, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        self.inner.store.max_value_bytes()
    }

    /// Counters so far.
    pub fn stats(&self) -> EngineStats {
        let stats = self.inner.front.add_to(self.inner.stats.borrow().clone());
        let shared_reads = stats.shared_reads + self.inner.store.shared_reads();
        let rebuilt_reads = self.inner.store.rebuilt_reads();
        EngineStats { shared_reads, rebuilt_reads, ..stats }
    }

    /// Counters of the table so far.
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

    /// The epoch of the manifest, which grows with each checkpoint and each recovery; 0 if there is none.
    pub fn epoch(&self) -> u32 {
        self.inner.manifest.as_ref().map_or(0, Manifest::epoch)
    }

    /// Memory in use now.
    pub fn memory(&self) -> MemoryUse {
        self.inner.memory()
    }

    /// Where background work stands, in a line for a person who wonders why nothing moves.
    pub fn background(&self) -> String {
        let inner = &*self.inner;
        let extents = inner.store.extents.borrow();
        let memtables = inner.front.memtables.borrow();
        format!(
            "{} extents: {} free, {} releasing, {:?} by stream (set aside {:?}); promised pages {:?}; \
             memtable {} B and {} frozen; {} of {} slots; bucket pages: {} cached, {} dirty, {:?} \
             being read, {:?} written; {:?}, flush starved {}, index starved {}; {}",
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
            inner.front.log.borrow().as_ref().map_or("no log".to_owned(), |log| log.background()),
        )
    }

    /// Waits until no memtable waits for its flush. Ends early where background work goes no further.
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

impl Located {
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Memory(entry) => entry.is_some(),
            Self::Stored(_) => true,
            Self::Absent => false,
        }
    }

    fn into_value(self) -> Option<Value> {
        match self {
            Self::Memory(entry) => entry,
            Self::Stored(value) => value,
            Self::Absent => None,
        }
    }
}
