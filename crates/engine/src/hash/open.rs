//! Opening a hash table: fresh, or from a dump.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use runtime::{Handle, Notify};

use super::bucket::BucketFormat;
use super::cache::Cache;
use super::dump::{DIRTY_PAGE_BYTES, Restored};
use super::edit::{Edit, Gathered};
use super::options::HashOptions;
use super::table::Table;
use super::{HashEngine, Inner, PAGE_ADDRESS_BYTES, dump, edit_codec};
use crate::error::OpenError;
use crate::format::page::StoreId;
use crate::gc;
use crate::manifest::Manifest;
use crate::manifest::fields::EXTENT_CHANGE_BYTES;
use crate::medium::{Medium, Stream};
use crate::options::surroundings::Surroundings;
use crate::planted::Planted;
use crate::recovery::dump::RUNS_BYTES;
use crate::space::{Cpu, PageStore};
use crate::wal::Durability;
use crate::write::{Front, MemtableLimits};

/// What a hash table is opened with.
pub struct HashSetup<M> {
    /// Clock, tasks, randomness.
    pub handle: Handle,
    /// Where pages go.
    pub medium: M,
    /// The design.
    pub options: HashOptions,
    /// Memory and expected sizes: the table has a slot for each pair that fits on the medium.
    pub surroundings: Surroundings,
    /// The processor.
    pub cpu: Cpu,
    /// Deliberate bugs, for tests of the tests.
    pub planted: Planted,
    /// The identity of a new store, which stands in each of its pages. A store that is recovered has
    /// the one it was made with.
    pub id: StoreId,
}

impl<M: Medium> HashEngine<M> {
    /// A fresh store on an empty medium. Background tasks start at once.
    ///
    /// # Errors
    /// [`OpenError::DoesNotFit`]: the memory holds not even the directory and one bucket page;
    /// [`OpenError::TooFewExtents`].
    pub fn create(setup: HashSetup<M>) -> Result<Self, OpenError> {
        let engine = Self::build(setup)?;
        engine.inner.check_extents()?;
        engine.start_tasks();
        Ok(engine)
    }

    /// The store that `dump` (see [`Self::dump`]) and the medium hold. Nothing runs and nothing is
    /// written before [`Self::resume`] and [`Self::start`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn recover(setup: HashSetup<M>, dump: &[u8]) -> Result<Self, OpenError> {
        let engine = Self::build(setup)?;
        let inner = &engine.inner;
        let (shape, format) = (inner.store.shape, inner.store.format);
        let restored = dump::restore(dump, shape, format, inner.table.pages);
        let is_sound = |restored: &Restored| {
            restored.counts_its_pages() && restored.keys <= inner.table.slots()
        };
        let restored = restored.filter(is_sound).ok_or(OpenError::BadDump)?;
        inner.store.id.set(restored.id);
        inner.front.sequence.set(restored.sequence);
        *inner.front.memtables.borrow_mut() = restored.memtables;
        *inner.uprooted.borrow_mut() = restored.uprooted;
        inner.longest_search.set(restored.longest_search);
        inner.keys.set(restored.keys);
        *inner.directory.borrow_mut() = restored.directory;
        for (page, (_, slots)) in restored.dirty {
            inner.install_dirty(page, slots).ok_or(OpenError::BadDump)?;
        }
        inner.store.restore_extents(restored.extents);
        inner.count_memory();
        Ok(engine)
    }

    /// Makes the extents that were being filled ready to be filled further.
    ///
    /// # Errors
    /// [`OpenError::LostMemory`], [`OpenError::Medium`].
    pub async fn resume(&self) -> Result<(), OpenError> {
        self.inner.store.resume().await
    }

    /// Starts the background tasks of a recovered store, and releases extents again whose release
    /// was cut short.
    pub fn start(&self) {
        self.inner.store.release_again();
        self.start_tasks();
    }

    /// The state that must survive a power cut besides durable pages. Call it when nothing runs
    /// any more.
    pub fn dump(&self) -> Vec<u8> {
        self.inner.dump()
    }

    pub(crate) fn build(setup: HashSetup<M>) -> Result<Self, OpenError> {
        let HashSetup { handle, medium, options, surroundings, cpu, planted, id } = setup;
        let problems = options.problems();
        assert!(problems.is_empty(), "options were not checked: {}", problems.join("; "));
        let store = PageStore::new(handle, medium, cpu, planted, id);
        let shape = store.shape;
        let buckets = BucketFormat::new(&shape, store.format);
        let pair = surroundings.expected_key_bytes + surroundings.expected_value_bytes;
        let table = Table::new(shape.capacity_bytes(), u64::from(pair), buckets.slots);
        let directory = u64::from(table.pages) * PAGE_ADDRESS_BYTES;
        let (page_bytes, available) = (u64::from(shape.page_bytes), surroundings.index_dram_bytes);
        let cached = available.saturating_sub(directory) / page_bytes;
        if cached == 0 {
            let needed = directory + page_bytes;
            return Err(OpenError::DoesNotFit { needed, available, pinned_levels: None });
        }
        // All of the table, one extent more to copy from, one that is being filled. Copying gains
        // nothing where the pages in use fill the last append unit of an extent, if only with one.
        let fewest_in_full = shape.pages_per_extent - shape.append_unit + 1;
        let full = table.pages.div_ceil(fewest_in_full) as usize;
        store.set_aside[Stream::Index as usize].set(full + 2);
        let store = Rc::new(store);
        let limits = MemtableLimits {
            entries: options.buffer_entries,
            bytes: options.buffer_bytes,
            // The table has its size from the start.
            index_pages: 0,
            checkpoint_bytes: 0,
            frozen: options.frozen_buffers,
            leaves_room: false,
        };
        let has_log = options.durability == Durability::Log;
        let mut inner = Inner {
            longest_checkpoint: 0,
            manifest: has_log.then(|| Manifest::new(Vec::new())),
            gathered: Gathered::default(),
            slot_changes: Cell::new(0),
            flushed: Cell::default(),
            front: Front::new(Rc::clone(&store), limits),
            store,
            options,
            planted,
            table,
            buckets,
            directory: RefCell::new(vec![None; table.pages as usize]),
            cache: RefCell::new(Cache::new(cached as usize, table.pages)),
            loading: RefCell::default(),
            writing: RefCell::default(),
            settled: Notify::default(),
            longest_search: Cell::new(0),
            keys: Cell::new(0),
            uprooted: RefCell::default(),
            placing: RefCell::new(BTreeSet::new()),
            index_is_starved: Cell::new(false),
            stats: RefCell::default(),
            hash_stats: RefCell::default(),
        };
        if has_log {
            inner.longest_checkpoint = inner.reckon_longest_checkpoint();
        }
        Ok(Self { inner: Rc::new(inner) })
    }

    pub(crate) fn start_tasks(&self) {
        let inner = &self.inner;
        let handle = &inner.store.handle;
        if let Some(manifest) = &inner.manifest {
            if inner.front.log.borrow().is_none() {
                inner.front.begin(manifest, inner.options.log_sync);
            }
            handle.spawn("journal", Rc::clone(inner).write_journal());
        }
        for task in TASKS {
            self.start_task(task);
        }
    }

    /// Starts one of [`TASKS`].
    pub(crate) fn start_task(&self, task: &'static str) {
        let (inner, handle) = (Rc::clone(&self.inner), &self.inner.store.handle);
        drop(match task {
            FLUSH => handle.spawn(task, inner.flush_forever()),
            BUCKETS => handle.spawn(task, inner.collect_buckets_forever()),
            COLLECTION => handle.spawn(task, gc::collect_forever(inner)),
            other => unreachable!("there is no task {other}"),
        });
    }
}

const FLUSH: &str = "flush";
const BUCKETS: &str = "bucket collection";
const COLLECTION: &str = "garbage collection";
/// The background tasks, in the order in which they are started.
pub(crate) const TASKS: [&str; 3] = [FLUSH, BUCKETS, COLLECTION];

impl<M: Medium> Inner<M> {
    /// Puts a bucket page in memory that differs from the medium. `None` if there is no place for it,
    /// or it is no such page.
    pub(crate) fn install_dirty(&self, page: u32, slots: Box<[u8]>) -> Option<()> {
        let mut cache = self.cache.borrow_mut();
        (self.buckets.are_sound(&slots) && cache.reserve())
            .then(|| cache.install(page, slots, true))
    }

    /// Whether there are as many extents as an empty store needs to get going.
    fn check_extents(&self) -> Result<(), OpenError> {
        self.front.check_extents(self.manifest.as_ref().map(|_| self.longest_checkpoint))
    }

    /// Asked of an empty table: with nothing dirty, and nothing gathered. Each extent may have holes, runs
    /// that filled it, and changes in the edit.
    fn reckon_longest_checkpoint(&self) -> u64 {
        let shape = &self.store.shape;
        let empty = self.checkpoint(&self.encode(&Edit::default())).len();
        let per_page = self.buckets.blank().len() + DIRTY_PAGE_BYTES + edit_codec::PAGE_BYTES;
        let pages = self.cache.borrow().most() * per_page;
        let slots = self.options.buffer_entries * edit_codec::slot_bytes(self.store.format);
        let runs = if self.store.medium.is_written_anywhere() { RUNS_BYTES } else { 0 };
        let holes = shape.pages_per_extent.div_ceil(8) as usize;
        let per_extent = EXTENT_CHANGE_BYTES + holes + runs;
        (empty + pages + slots + shape.extents as usize * per_extent) as u64
    }

    /// The task that writes the log, for ever. A new store has a checkpoint before anything else.
    async fn write_journal(self: Rc<Self>) {
        let manifest = self.manifest.as_ref().expect("the store has a journal");
        // If there cannot be one, the log says so to those who wait for it.
        if let Ok(_turn) = manifest.turn(&self.store).await
            && !manifest.has_begun()
            && let Err(error) = self.commit_gathered(manifest).await
        {
            self.store.fail(error);
        }
        let log = self.front.log.borrow().clone();
        log.expect("a store with a manifest has a log").write_forever().await;
    }
}
