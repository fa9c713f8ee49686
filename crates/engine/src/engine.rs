//! The engine: its state and its public operations.
//!
//! One Put: charge the processor, wait for room, insert into the active memtable; a full memtable
//! is frozen and flushed by a task (`flush`). One Get: memtables, then the levels in memory, then
//! at most one meta segment per level that is not pinned, then the page with the value. Compaction
//! and garbage collection are separate tasks (`compaction`, `gc`).
//!
//! Invariants: a key's newest entry is the first one found in top-down order (active memtable,
//! frozen ones newest first, L1, L2, ...); a page is released only when no version in use and no
//! reader in progress can refer to it; the data of every acknowledged write is either in memory
//! that a power cut dumps, or durable on the medium.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use runtime::{IoClass, Nanos};

use crate::compaction::columns::ColumnForm;
use crate::compaction::groups::GroupForm;
use crate::compaction::leveled::Tables;
use crate::compaction::manual::Manual;
use crate::compaction::sliced::accelerator::{Accelerator, MergeUnit};
use crate::error::EngineError;
use crate::format::inlining::Inlining;
use crate::format::pointer::PointerFormat;
use crate::format::value::Value;
use crate::iterate::snapshot::Snapshots;
use crate::manifest::Manifest;
use crate::manifest::publish::Uncommitted;
use crate::medium::{Medium, Shape};
use crate::memory::{checkpoint_growth, index_growth};
use crate::memtable::MemtableLimits;
use crate::operations::{BatchOptions, Lookup, Reads, WriteOptions, check_key};
use crate::options::surroundings::Surroundings;
use crate::options::{IteratorOptions, Options};
use crate::planted::Planted;
use crate::read::caches::Caches;
use crate::read::get_outside::Done;
use crate::read::locate::Located;
use crate::sizing::pair::Pair;
use crate::sizing::{LevelPlan, Room, SizingInput, input_for};
use crate::space::{Lack, PageStore};
use crate::stats::EngineStats;
use crate::version::Version;
use crate::version::pool::Pool;
use crate::wal::{Durability, Flushed};
use crate::write::batch::BatchWrite;
use crate::write::{Front, Index};

/// An LSM engine on a medium. Clones are handles to the same store.
pub struct Engine<M: Medium> {
    pub(crate) inner: Rc<Inner<M>>,
}

impl<M: Medium> Clone for Engine<M> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

pub(crate) struct Inner<M> {
    pub store: Rc<PageStore<M>>,
    pub front: Front<M>,
    pub options: Options,
    pub surroundings: Surroundings,
    /// Memory budget of the index without caches, which have a separate budget, in bytes.
    pub index_budget: u64,
    pub planted: Planted,
    /// The rule by which values are stored inline.
    pub inlining: Inlining,
    /// The size of groups in the last level, if the design has groups.
    pub groups: Option<GroupForm>,
    /// Whether merges write groups. They do not while the list has memory for one entry per segment
    /// of a full store.
    pub writes_groups: Cell<bool>,
    /// The size of columnar tables in L1, if levels are made of columnar tables.
    pub columns: Option<ColumnForm>,
    pub plan: RefCell<LevelPlan>,
    pub version: RefCell<Rc<Version>>,
    /// The minimum and maximum of `most_index_reads` since `watch_read_bound` was called.
    pub index_reads_seen: Cell<(u32, u32)>,
    /// The tables, if levels are made of tables.
    pub tables: Option<Tables>,
    /// Descriptors of the segments of all versions.
    pub pool: Rc<Pool>,
    pub snapshots: Snapshots,
    /// The read options of iterators created from now on.
    pub iterator_options: Cell<IteratorOptions>,
    /// The key at which partial compaction continues in each level.
    pub cursors: RefCell<Vec<Box<[u8]>>>,
    /// Levels that a background task is changing.
    pub busy: RefCell<Vec<bool>>,
    /// The manual compaction request.
    pub manual: Manual,
    /// Whether everything is being compacted down, to find garbage that upper levels hide.
    pub is_squeezing: Cell<bool>,
    /// Whether extents of objects could be collected if writes did not use up the space for it.
    pub is_crowded_out: Cell<bool>,
    /// The number of writes when background work last ran out of work.
    pub rested_after: Cell<u64>,
    /// The time at which background work will be woken because a snapshot's grace period ends.
    pub wakes_at: Cell<Nanos>,
    /// Pages of the last slice that lacked space; 0 if the last slice had space.
    pub short_of: Cell<u32>,
    pub compaction_buffers: Cell<u64>,
    /// The read caches.
    pub caches: Caches,
    /// Gets that were read outside of the runtime and are not recorded yet.
    pub done: Arc<Done>,
    /// The number of Gets left that are not read outside, if pointers do not contain lengths.
    pub asks_left: Cell<u32>,
    /// The accelerator that merges into unpinned levels, if the processor does not.
    pub merge_unit: Option<MergeUnit>,
    /// The manifest, if memory does not survive a power cut.
    pub manifest: Option<Manifest>,
    /// Edits that are not in the manifest yet.
    pub uncommitted: RefCell<Uncommitted>,
    /// Bytes of the last checkpoint without the levels.
    pub checkpoint_rest: Cell<u64>,
    /// The part of the log that is in the levels.
    pub flushed: Cell<Flushed>,
    pub stats: RefCell<EngineStats>,
}

impl<M: Medium> Inner<M> {
    /// Returns the expected number of entries in a meta segment, or per page of a columnar table.
    pub(crate) fn entries_per_segment(&self) -> u64 {
        let store = &self.store;
        let pair = expected_pair(&self.options, &self.surroundings, &store.shape);
        let columns = self.options.columns.filter(|_| self.columns.is_some());
        let (pointer_bytes, levels) = (store.format.bytes, self.options.levels);
        let entries = columns.map_or_else(
            || pair.entries_per_segment(pointer_bytes),
            |columns| columns.entries_per_page(&pair, pointer_bytes, levels),
        );
        entries.into()
    }

    /// Returns the parameters of this store's level sizes.
    pub(crate) fn sizing_input(&self) -> SizingInput {
        let store = &self.store;
        sizing_input(&self.options, &self.surroundings, &store.shape, store.format)
    }
}

impl<M: Medium> Engine<M> {
    pub(crate) fn from_parts(
        store: PageStore<M>,
        options: Options,
        surroundings: Surroundings,
        plan: LevelPlan,
        accelerator: Option<Accelerator>,
        planted: Planted,
    ) -> Self {
        let levels = options.levels as usize;
        let version = Version::new(levels, options.prefix_bytes, options.range_pointers);
        // Trees of tables also have L0, and merge small neighbours in the last level.
        let compactions = vec![0; levels + usize::from(options.is_leveled())];
        let handle = store.handle.clone();
        let store = Rc::new(store);
        let has_log = options.durability == Durability::Log;
        let bytes = options.memtable_bytes;
        let inlining = Inlining::new(options.inline_up_to, store.shape.payload_bytes);
        let growth = || checkpoint_growth(&options, &inlining, &store.shape);
        let limits = MemtableLimits {
            entries: usize::MAX,
            bytes,
            index_pages: index_growth(&options, &inlining, &store.shape),
            checkpoint_bytes: if has_log { growth() } else { 0 },
            frozen: options.frozen_memtables,
            leaves_room: options.leaves_room,
        };
        let input = sizing_input(&options, &surroundings, &store.shape, store.format);
        let writes_groups = input.group_segments > 1;
        let tables = options.is_leveled().then(|| Tables::new(&options, &inlining, &store.shape));
        let inner = Inner {
            manifest: has_log.then(|| Manifest::new(Vec::new())),
            uncommitted: RefCell::default(),
            checkpoint_rest: Cell::new(0),
            flushed: Cell::default(),
            merge_unit: accelerator.map(|device| MergeUnit::new(handle, device)),
            front: Front::new(Rc::clone(&store), limits),
            inlining,
            groups: GroupForm::new(&options, &store.shape),
            writes_groups: Cell::new(writes_groups),
            columns: ColumnForm::new(&options, &store.shape),
            store,
            plan: RefCell::new(plan),
            version: RefCell::new(Rc::new(version)),
            tables,
            pool: Rc::default(),
            snapshots: Snapshots::default(),
            iterator_options: Cell::new(options.iterators),
            cursors: RefCell::new(vec![Box::default(); levels]),
            busy: RefCell::new(vec![false; levels]),
            caches: Caches::new(&options),
            index_budget: surroundings.index_dram_bytes - options.cache_bytes(),
            stats: RefCell::new(EngineStats { compactions, ..EngineStats::default() }),
            options,
            surroundings,
            planted,
            manual: Manual::new(),
            is_squeezing: Cell::new(false),
            is_crowded_out: Cell::new(false),
            rested_after: Cell::new(u64::MAX),
            index_reads_seen: Cell::default(),
            wakes_at: Cell::new(Nanos::ZERO),
            short_of: Cell::new(0),
            compaction_buffers: Cell::new(0),
            done: Arc::default(),
            asks_left: Cell::new(0),
        };
        Self { inner: Rc::new(inner) }
    }

    /// Returns the value of `key`. `work` is processor time that the caller owes for this
    /// operation; it is charged together with the search.
    ///
    /// Takes at most one flash read per level that is not pinned (two in a level with groups, the
    /// pages of a table in a level of columnar tables), and one per page of the value.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`] if the length of `key` is invalid; [`EngineError::Corrupt`] if a
    /// page that was read is damaged.
    pub async fn get(&self, key: &[u8], work: Nanos) -> Result<Lookup, EngineError> {
        check_key(key)?;
        let inner = &*self.inner;
        let _guard = (!inner.store.planted.has(crate::planted::Fault::ReadWithoutEpoch))
            .then(|| inner.store.epochs.enter());
        let of_index = inner.most_index_reads();
        let mut reads = Reads::default();
        let mut located = inner.locate(key, work, &mut reads).await?;
        if inner.caches.has_values() {
            located = inner.look_for_value(key, located).await;
        }
        let is_apart = matches!(located, Located::At(_));
        let value = match located {
            Located::Absent => None,
            Located::Known(entry) => entry,
            Located::At(pointer) => {
                let (before, begun) = (reads.count, inner.store.handle.now());
                let value = if inner.caches.has_value_pages() {
                    // Boxed so that the Get futures of other stores do not grow.
                    Box::pin(inner.read_and_keep(key, pointer, &mut reads.count)).await?
                } else {
                    let class = IoClass::ClientRead;
                    let value = inner.store.read_value(key, pointer, class, &mut reads.count);
                    let value = value.await?;
                    inner.keep_value(key, pointer, &value, None);
                    value
                };
                reads.time += inner.store.handle.now() - begun;
                // Avoids an async call without effect on the path of every Get.
                if inner.store.cpu.costs.page_read_ns > 0.0 {
                    inner.take_in(reads.count - before).await;
                }
                Some(value)
            }
        };
        inner.count_get(key, value.as_ref(), is_apart, reads.count, of_index);
        Ok(Lookup { value, flash_reads: reads.count, reading: Some(reads.time) })
    }

    /// Returns whether `key` has a value. Reads no value. For `work` see [`Self::get`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        check_key(key)?;
        Index::exists(&*self.inner, key, work).await
    }

    /// Stores `value` under `key` if the condition in `options` holds; returns whether it did.
    ///
    /// An acknowledged write survives a power cut if it is in memory that is dumped, or in the log
    /// if `options` or the design make the write wait for the log
    /// ([`LogSync`](crate::wal::LogSync)).
    /// Waits while the memtable is full and its flush lags.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`], [`EngineError::ValueTooLarge`], [`EngineError::Full`],
    /// [`EngineError::ReadOnly`]; with a condition also those of [`Self::get`].
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

    /// Writes all of `batch` at one instant: no reader sees a part of it, and no power cut leaves a
    /// part of it. Later writes of a key replace earlier ones.
    ///
    /// # Errors
    /// [`EngineError::BatchTooLarge`] if it does not fit; otherwise as [`Self::put`], for the whole
    /// batch.
    pub async fn write_batch(
        &self,
        batch: Vec<BatchWrite>,
        options: BatchOptions,
        work: Nanos,
    ) -> Result<(), EngineError> {
        for (key, entry) in &batch {
            check_key(key)?;
            entry.iter().try_for_each(|value| self.inner.store.check_value(key, value))?;
        }
        self.inner.front.write_batch(&*self.inner, batch, options, work).await
    }

    /// Returns the longest value that this store accepts, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        self.inner.store.max_value_bytes()
    }

    /// Returns the maximum number of flash reads of a Get of a value of `value_len` bytes.
    pub fn read_bound(&self, key_len: usize, value_len: u32) -> u32 {
        self.inner.read_bound(key_len, value_len)
    }

    /// Starts recording the range of [`Self::read_bound`].
    pub fn watch_read_bound(&self) {
        let now = self.inner.most_index_reads();
        self.inner.index_reads_seen.set((now, now));
    }

    /// Returns the minimum and maximum of [`Self::read_bound`] since [`Self::watch_read_bound`].
    pub fn read_bounds(&self, key_len: usize, value_len: u32) -> (u32, u32) {
        self.inner.read_bounds(key_len, value_len)
    }

    /// Sets the read options of iterators created from now on.
    pub fn set_iterator_options(&self, options: IteratorOptions) {
        self.inner.iterator_options.set(options);
    }

    /// Flushes until memtables are empty, including concurrent writes. Returns early if background
    /// work cannot make progress.
    pub async fn flush(&self) {
        let inner = &*self.inner;
        let is_over =
            || inner.front.memtables.borrow().is_empty() && inner.uncommitted.borrow().is_empty();
        while !inner.front.is_halted() && !is_over() {
            inner.front.freeze_active();
            inner.store.work.notified().await;
        }
    }

    /// Waits until a new store has its first checkpoint. Before that the medium contains no store,
    /// even if a sync has returned.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], [`EngineError::Medium`].
    pub async fn begun(&self) -> Result<(), EngineError> {
        let inner = &*self.inner;
        let Some(manifest) = inner.manifest.as_ref().filter(|it| !it.has_begun()) else {
            return Ok(());
        };
        let _turn = manifest.turn(&inner.store).await?;
        if manifest.has_begun() { Ok(()) } else { inner.write_checkpoint(manifest).await }
    }

    /// Makes all acknowledged writes durable, if a power cut could lose them.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the log could not be written.
    pub async fn sync(&self) -> Result<(), EngineError> {
        let log = self.inner.front.log.borrow().clone();
        match log {
            Some(log) => log.sync().await,
            None => Ok(()),
        }
    }

    /// Waits until no memtable waits for its flush and no level is due for compaction. Returns
    /// early if background work cannot make progress: the medium lacks room, or nothing can be
    /// flushed any more.
    pub async fn settle(&self) {
        let inner = &*self.inner;
        inner.store.work.wait_until(|| inner.is_settled() || inner.front.is_halted()).await;
    }

    /// Reports that a task waits for room that the medium lacks, or no longer does. Meanwhile
    /// clients get an error instead of waiting.
    pub fn tell_of_lack(&self, lack: Lack) {
        self.inner.front.set_lack(lack);
    }

    /// Whether background work continues: none of its reads and writes has failed.
    pub fn is_healthy(&self) -> bool {
        self.inner.store.is_healthy()
    }
}

/// Returns a pair of the expected lengths.
fn expected_pair(options: &Options, surroundings: &Surroundings, shape: &Shape) -> Pair {
    Pair {
        page_bytes: shape.payload_bytes,
        key_bytes: surroundings.expected_key_bytes,
        value_bytes: surroundings.expected_value_bytes,
        inline_up_to: options.inline_up_to,
    }
}

/// Returns the parameters of a store's level sizes.
pub(crate) fn sizing_input(
    options: &Options,
    surroundings: &Surroundings,
    shape: &Shape,
    format: PointerFormat,
) -> SizingInput {
    let room = Room {
        capacity_bytes: shape.capacity_bytes(),
        page_bytes: shape.page_bytes,
        pointer_bytes: format.bytes,
        dram_bytes: surroundings.index_dram_bytes,
    };
    let group_pages = GroupForm::new(options, shape).map_or(0, |groups| groups.largest());
    let columns = options.columns.filter(|_| ColumnForm::new(options, shape).is_some());
    let options = Options { group_pages, columns, ..options.clone() };
    input_for(&options, &expected_pair(&options, surroundings, shape), &room)
}
