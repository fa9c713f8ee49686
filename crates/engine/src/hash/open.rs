//! Opening of a hash table: new, or from a dump.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use runtime::{Handle, Notify};

use super::bucket::BucketFormat;
use super::cache::Cache;
use super::dump::Restored;
use super::options::HashOptions;
use super::table::Table;
use super::{HashEngine, Inner, PAGE_ADDRESS_BYTES, dump};
use crate::error::OpenError;
use crate::format::page::StoreId;
use crate::gc;
use crate::medium::{Medium, Stream};
use crate::memtable::MemtableLimits;
use crate::options::surroundings::Surroundings;
use crate::planted::Planted;
use crate::space::{Cpu, PageStore};
use crate::write::Front;

/// The parameters for opening a hash table.
pub struct HashSetup<M> {
    /// Clock, tasks, randomness.
    pub handle: Handle,
    /// The medium on which pages are stored.
    pub medium: M,
    /// The design.
    pub options: HashOptions,
    /// Memory and expected sizes. The table has one slot for each pair that fits on the medium.
    pub surroundings: Surroundings,
    /// The processor.
    pub cpu: Cpu,
    /// Deliberate bugs, for tests of the tests.
    pub planted: Planted,
    /// The identity of a new store, which is stored in each of its pages. A recovered store keeps
    /// its original identity.
    pub id: StoreId,
}

impl<M: Medium> HashEngine<M> {
    /// Creates a store on an empty medium and starts its background tasks.
    ///
    /// # Errors
    /// [`OpenError::DoesNotFit`] if the memory is too small for the directory and one bucket page;
    /// [`OpenError::TooFewExtents`], [`OpenError::SingleUnit`].
    pub fn create(setup: HashSetup<M>) -> Result<Self, OpenError> {
        let engine = Self::build(setup)?;
        engine.inner.check_extents()?;
        engine.start_tasks();
        Ok(engine)
    }

    /// Recovers the store from `dump` (see [`Self::dump`]) and the medium. No task runs and nothing
    /// is written before [`Self::resume`] and [`Self::start`].
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
        for (page, slots) in restored.dirty {
            inner.install_dirty(page, slots).ok_or(OpenError::BadDump)?;
        }
        inner.store.restore_extents(restored.extents);
        inner.count_memory();
        Ok(engine)
    }

    /// Prepares the extents that were being filled for further writes.
    ///
    /// # Errors
    /// [`OpenError::LostMemory`], [`OpenError::Medium`].
    pub async fn resume(&self) -> Result<(), OpenError> {
        self.inner.store.resume().await
    }

    /// Starts the background tasks of a recovered store, and repeats releases of extents that were
    /// interrupted.
    pub fn start(&self) {
        self.inner.store.release_again();
        self.start_tasks();
    }

    /// Returns the state that must survive a power cut in addition to durable pages. Requires: no
    /// task runs any more.
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
        // The index reserves extents for the whole table, one more to copy from, and one that is
        // being filled. An extent counts as full if its live pages reach into its last append unit,
        // even with a single page: copying them would free nothing.
        let fewest_in_full = shape.pages_per_extent - shape.append_unit + 1;
        let full = table.pages.div_ceil(fewest_in_full) as usize;
        store.set_aside[Stream::Index as usize].set(full + 2);
        let store = Rc::new(store);
        let limits = MemtableLimits {
            entries: options.buffer_entries,
            bytes: options.buffer_bytes,
            // The size of the table is fixed.
            index_pages: 0,
            checkpoint_bytes: 0,
            frozen: options.frozen_buffers,
            leaves_room: false,
        };
        let inner = Inner {
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
        Ok(Self { inner: Rc::new(inner) })
    }

    pub(crate) fn start_tasks(&self) {
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
/// The background tasks in start order.
pub(crate) const TASKS: [&str; 3] = [FLUSH, BUCKETS, COLLECTION];

impl<M: Medium> Inner<M> {
    /// Adds a bucket page that differs from the medium to the cache. Returns `None` if the cache
    /// has no room for it, or if `slots` are not the valid slots of a page.
    pub(crate) fn install_dirty(&self, page: u32, slots: Box<[u8]>) -> Option<()> {
        let mut cache = self.cache.borrow_mut();
        (self.buckets.are_sound(&slots) && cache.reserve())
            .then(|| cache.install(page, slots, true))
    }

    /// Checks that there are enough extents for an empty store to operate.
    fn check_extents(&self) -> Result<(), OpenError> {
        self.front.check_extents(None)
    }
}
