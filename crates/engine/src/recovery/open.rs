//! Opening of a store: new, or from a dump.

use std::rc::Rc;

use runtime::Handle;

use super::tree_dump;
use crate::compaction::leveled::Worker;
use crate::compaction::sliced::accelerator::Accelerator;
use crate::engine::{Engine, Inner, sizing_input};
use crate::error::OpenError;
use crate::format::page::StoreId;
use crate::gc;
use crate::medium::Medium;
use crate::options::surroundings::Surroundings;
use crate::options::{MergeBy, Options};
use crate::planted::Planted;
use crate::sizing::{LevelPlan, first_plan};
use crate::space::{Cpu, PageStore};
use crate::wal::Durability;

/// The parameters for opening an engine.
pub struct Setup<M> {
    /// Clock, tasks, randomness.
    pub handle: Handle,
    /// The medium on which pages are stored.
    pub medium: M,
    /// The design.
    pub options: Options,
    /// Memory and expected sizes.
    pub surroundings: Surroundings,
    /// The processor.
    pub cpu: Cpu,
    /// The device's merge accelerator, if it has one.
    pub accelerator: Option<Accelerator>,
    /// Deliberate bugs, for tests of the tests.
    pub planted: Planted,
    /// The identity of a new store, which is stored in each of its pages. A recovered store keeps
    /// its original identity.
    pub id: StoreId,
}

impl<M: Medium> Engine<M> {
    /// Creates a store on an empty medium and starts its background tasks.
    ///
    /// # Errors
    /// [`OpenError::DoesNotFit`], [`OpenError::CachesDoNotFit`], [`OpenError::TooFewExtents`].
    pub fn create(setup: Setup<M>) -> Result<Self, OpenError> {
        Self::create_on(setup, None)
    }

    /// Like [`Self::create`], with log and manifest on the empty medium `journal`. `journal` may
    /// have a different shape and must not be used for anything else. From then on the store must
    /// be opened with both media.
    ///
    /// # Errors
    /// As [`Self::create`].
    ///
    /// # Panics
    /// Panics if the design has no log.
    pub fn create_with_journal(setup: Setup<M>, journal: M) -> Result<Self, OpenError> {
        Self::create_on(setup, Some(journal))
    }

    fn create_on(setup: Setup<M>, journal: Option<M>) -> Result<Self, OpenError> {
        let engine = Self::build_on(setup, journal)?;
        engine.inner.check_extents()?;
        engine.start_tasks();
        Ok(engine)
    }

    /// Recovers the store from `dump` (see [`Self::dump`]) and the medium. No task runs and nothing
    /// is written before [`Self::resume`] and [`Self::start`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn recover(setup: Setup<M>, dump: &[u8]) -> Result<Self, OpenError> {
        let engine = Self::build(setup)?;
        let inner = &engine.inner;
        let empty = Rc::clone(&inner.version.borrow());
        let restored = tree_dump::restore(dump, &empty, &inner.home());
        let restored = restored.ok_or(OpenError::BadDump)?;
        if !restored.extents.count_index_pages(restored.version.pages()) {
            return Err(OpenError::BadDump);
        }
        restored.version.assert_consistent();
        inner.store.id.set(restored.id);
        inner.front.sequence.set(restored.sequence);
        let has_outgrown_its_plan = inner.restore_plan(restored.plan);
        *inner.front.memtables.borrow_mut() = restored.memtables;
        inner.account(&restored.version);
        if has_outgrown_its_plan {
            inner.set_index_aside(&restored.version);
        }
        *inner.version.borrow_mut() = Rc::new(restored.version);
        inner.store.restore_extents(restored.extents);
        *inner.cursors.borrow_mut() = restored.cursors;
        Ok(engine)
    }

    /// Prepares the extents that were being filled for further writes. They are not closed instead,
    /// because a drive that loses power repeatedly would run out of free extents.
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

    pub(crate) fn build(setup: Setup<M>) -> Result<Self, OpenError> {
        Self::build_on(setup, None)
    }

    pub(crate) fn build_on(setup: Setup<M>, journal: Option<M>) -> Result<Self, OpenError> {
        let Setup { handle, medium, options, surroundings, cpu, accelerator, planted, id } = setup;
        let problems = options.problems();
        assert!(problems.is_empty(), "options were not checked: {}", problems.join("; "));
        let accelerator = match options.merge {
            MergeBy::Cpu => None,
            MergeBy::Accelerator => Some(accelerator.ok_or(OpenError::NoAccelerator)?),
        };
        let (needed, available) = (options.cache_bytes(), surroundings.index_dram_bytes);
        if needed > available {
            return Err(OpenError::CachesDoNotFit { needed, available });
        }
        let store = PageStore::new(handle, medium, cpu, planted, id);
        if let Some(journal) = journal {
            assert!(options.durability == Durability::Log, "a design without a log has no journal");
            store.set_journal(journal);
        }
        let input = sizing_input(&options, &surroundings, &store.shape, store.format);
        let plan = if options.is_leveled() {
            LevelPlan::of_tables(options.levels)
        } else {
            first_plan(&input, options.level_sizing, options.pinned_levels)
        };
        let (needed, available) = (plan.memory.total(), available - options.cache_bytes());
        if needed > available {
            let pinned_levels = options.pinned_levels;
            return Err(OpenError::DoesNotFit { needed, available, pinned_levels });
        }
        Ok(Self::from_parts(store, options, surroundings, plan, accelerator, planted))
    }

    pub(crate) fn start_tasks(&self) {
        let inner = &self.inner;
        inner.reserve_step();
        let handle = &inner.store.handle;
        if let Some(manifest) = &inner.manifest {
            if inner.front.log.borrow().is_none() {
                inner.front.begin(manifest, inner.options.log_sync);
            }
            inner.store.edits_sync.set(true);
            handle.spawn("journal", Rc::clone(inner).write_journal());
            handle.spawn("manifest", Rc::clone(inner).commit_forever());
        }
        if let Some(tables) = &inner.tables {
            for _ in 0..inner.options.frozen_memtables {
                self.start_task(FLUSH);
            }
            for worker in 0..inner.options.compaction_workers {
                let worker = Worker::Any(worker);
                handle.spawn(COMPACTION, Rc::clone(inner).compact_tables_forever(worker));
            }
            for _ in 0..tables.options.l0_workers {
                handle
                    .spawn("compaction of L0", Rc::clone(inner).compact_tables_forever(Worker::L0));
            }
            self.start_task(COLLECTION);
        } else {
            for task in inner.tasks() {
                self.start_task(task);
            }
        }
    }

    /// Starts one of the tasks of [`Inner::tasks`].
    pub(crate) fn start_task(&self, task: &'static str) {
        let (inner, handle) = (Rc::clone(&self.inner), &self.inner.store.handle);
        drop(match task {
            FLUSH => handle.spawn(task, inner.flush_forever()),
            COMPACTION => handle.spawn(task, inner.compact_forever()),
            COLLECTION => handle.spawn(task, gc::collect_forever(inner)),
            other => unreachable!("there is no task {other}"),
        });
    }
}

const FLUSH: &str = "flush";
const COMPACTION: &str = "compaction";
const COLLECTION: &str = "garbage collection";

impl<M: Medium> Inner<M> {
    /// Returns the background tasks of a store whose levels are made of segments, in start order.
    pub(crate) fn tasks(&self) -> Vec<&'static str> {
        let mut tasks = vec![FLUSH; self.options.frozen_memtables];
        tasks.extend(vec![COMPACTION; self.options.compaction_workers]);
        tasks.push(COLLECTION);
        tasks
    }

    /// Checks that there are enough extents for an empty store to operate.
    fn check_extents(&self) -> Result<(), OpenError> {
        self.reserve_step();
        let input = self.sizing_input();
        // Level lists grow while memory lasts, and lists of short keys take twice their memory.
        let lists = || 2 * input.level_list_bytes().min(input.dram_bytes);
        let levels = || {
            self.tables
                .as_ref()
                .map_or_else(lists, |tables| tables.most_tree_bytes(&self.store.shape))
        };
        let checkpoint = || self.checkpoint().len() as u64 + levels();
        self.front.check_extents(self.manifest.as_ref().map(|_| checkpoint()))
    }

    /// Runs the task that writes the log, forever. A new store first writes a checkpoint.
    async fn write_journal(self: Rc<Self>) {
        let manifest = self.manifest.as_ref().expect("the store has a journal");
        // If the checkpoint fails, the log reports the failure to the waiting writers.
        if let Ok(_turn) = manifest.turn(&self.store).await
            && !manifest.has_begun()
            && let Err(error) = self.write_checkpoint(manifest).await
        {
            self.store.fail(error);
        }
        let log = self.front.log.borrow().clone();
        log.expect("a store with a manifest has a log").write_forever().await;
    }
}
