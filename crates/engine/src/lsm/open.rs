//! Opening a store: fresh, or from a dump.

use std::fmt;
use std::rc::Rc;

use runtime::Handle;

use crate::lsm::accelerator::Accelerator;
use crate::lsm::{Engine, dump, sizing_input};
use crate::options::{MergeBy, Options, Surroundings};
use crate::planted::Planted;
use crate::sizing::plan;
use crate::store::extents::State;
use crate::store::medium::{Medium, PageNo};
use crate::store::{Cpu, PageStore};

/// What an engine is opened with.
pub struct Setup<M> {
    /// Clock, tasks, randomness.
    pub handle: Handle,
    /// Where pages go.
    pub medium: M,
    /// The design.
    pub options: Options,
    /// Memory and expected sizes.
    pub surroundings: Surroundings,
    /// The processor.
    pub cpu: Cpu,
    /// The device's merge accelerator, if it has one.
    pub accelerator: Option<Accelerator>,
    /// A deliberate bug, for tests of the tests.
    pub planted: Planted,
}

/// Why a store could not be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The design needs more memory for its index than there is, in bytes.
    DoesNotFit {
        /// What level lists, prefixes, range pointers and pinned segments take.
        needed: u64,
        /// What there is.
        available: u64,
        /// Levels it was asked to pin, if it was.
        pinned_levels: Option<u32>,
    },
    /// The design merges with an accelerator, and the device has none.
    NoAccelerator,
    /// The dump does not have the form this program writes.
    BadDump,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, available, pinned_levels) = match self {
            Self::DoesNotFit { needed, available, pinned_levels } => {
                (needed, available, pinned_levels)
            }
            Self::NoAccelerator => {
                return f.write_str(
                    "the design merges with an accelerator and the device has none: set merge to \
                     \"cpu\", or give the device an [accelerator]",
                );
            }
            Self::BadDump => {
                return f.write_str("the dump of the drive's memory has an unexpected form");
            }
        };
        write!(f, "the index needs {needed} bytes of memory and the drive has {available}: ")?;
        match pinned_levels {
            Some(0) | None => f.write_str("use longer values, shorter keys or more memory"),
            Some(levels) => {
                write!(f, "pin fewer than {levels} levels, or leave pinned_levels out")
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl<M: Medium> Engine<M> {
    /// A fresh store on an empty medium. Background tasks start at once.
    ///
    /// # Errors
    /// [`OpenError::DoesNotFit`].
    pub fn create(setup: Setup<M>) -> Result<Self, OpenError> {
        let engine = Self::build(setup)?;
        engine.start_tasks();
        Ok(engine)
    }

    /// The store that `dump` (see [`Self::dump`]) and the medium hold. Nothing runs and nothing is
    /// written before [`Self::resume`] and [`Self::start`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn recover(setup: Setup<M>, dump: &[u8]) -> Result<Self, OpenError> {
        let engine = Self::build(setup)?;
        let inner = &engine.inner;
        let empty = Rc::clone(&inner.version.borrow());
        let restored = dump::restore(dump, inner.store.shape, &empty, &inner.pool);
        let restored = restored.ok_or(OpenError::BadDump)?;
        restored.version.assert_consistent();
        inner.sequence.set(restored.sequence);
        *inner.plan.borrow_mut() = restored.plan;
        *inner.memtables.borrow().active.borrow_mut() = restored.memtable;
        inner.account(&restored.version);
        *inner.version.borrow_mut() = Rc::new(restored.version);
        *inner.store.extents.borrow_mut() = restored.extents;
        *inner.cursors.borrow_mut() = restored.cursors;
        Ok(engine)
    }

    /// Makes the extents that were being filled ready to be filled further. They are not closed
    /// instead, because a drive that loses power over and over would run out of free ones.
    pub async fn resume(&self) {
        let units = self.inner.store.extents.borrow().units_to_skip();
        for unit in units {
            self.inner.store.medium.skip(unit).await;
        }
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

    /// The first page of each extent that is free: nothing may have been written there.
    pub fn first_pages_of_free_extents(&self) -> Vec<PageNo> {
        let extents = self.inner.store.extents.borrow();
        let free = extents.iter().filter(|(_, extent)| extent.state == State::Free);
        free.map(|(id, _)| self.inner.store.shape.page(id, 0)).collect()
    }

    fn build(setup: Setup<M>) -> Result<Self, OpenError> {
        let Setup { handle, medium, options, surroundings, cpu, accelerator, planted } = setup;
        let problems = options.problems();
        assert!(problems.is_empty(), "options were not checked: {}", problems.join("; "));
        let accelerator = match options.merge {
            MergeBy::Cpu => None,
            MergeBy::Accelerator => Some(accelerator.ok_or(OpenError::NoAccelerator)?),
        };
        let store = PageStore::new(handle, medium, cpu, planted);
        let input = sizing_input(&options, &surroundings, &store.shape, store.format);
        let plan = plan(&input, options.level_sizing, options.pinned_levels);
        let (needed, available) = (plan.memory.total(), surroundings.index_dram_bytes);
        if needed > available {
            let pinned_levels = options.pinned_levels;
            return Err(OpenError::DoesNotFit { needed, available, pinned_levels });
        }
        Ok(Self::from_parts(store, options, surroundings, plan, accelerator))
    }

    fn start_tasks(&self) {
        let inner = &self.inner;
        let handle = &inner.store.handle;
        handle.spawn("flush", Rc::clone(inner).flush_forever());
        for _ in 0..inner.options.compaction_workers {
            handle.spawn("compaction", Rc::clone(inner).compact_forever());
        }
        handle.spawn("garbage collection", Rc::clone(inner).collect_forever());
    }
}
