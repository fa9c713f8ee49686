//! Opening a store: fresh, or from a dump.

use std::rc::Rc;

use runtime::Handle;

use crate::dump::{self, DumpError};
use crate::engine::{Cpu, Engine};
use crate::extents::State;
use crate::medium::{Medium, PageNo};
use crate::options::{Options, Surroundings};
use crate::planted::Planted;

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
    /// A deliberate bug, for tests of the tests.
    pub planted: Planted,
}

impl<M: Medium> Engine<M> {
    /// A fresh store on an empty medium. Background tasks start at once.
    pub fn create(setup: Setup<M>) -> Self {
        let engine = Self::build(setup);
        engine.start_tasks();
        engine
    }

    /// The store that `dump` (see [`Self::dump`]) and the medium hold. Nothing runs and nothing is
    /// written before [`Self::start`]; then extents whose release was cut short are released again.
    ///
    /// # Errors
    /// [`DumpError`] if the image is of another form.
    pub fn recover(setup: Setup<M>, dump: &[u8]) -> Result<Self, DumpError> {
        let engine = Self::build(setup);
        let inner = &engine.inner;
        let empty = Rc::clone(&inner.version.borrow());
        let restored = dump::restore(dump, inner.shape, &empty)?;
        restored.version.assert_consistent();
        inner.sequence.set(restored.sequence);
        inner.memtables.borrow_mut().active = restored.memtable;
        inner.account(&restored.version);
        *inner.version.borrow_mut() = Rc::new(restored.version);
        *inner.extents.borrow_mut() = restored.extents;
        *inner.cursors.borrow_mut() = restored.cursors;
        Ok(engine)
    }

    /// Starts the background tasks of a recovered store.
    pub fn start(&self) {
        self.release_again();
        self.start_tasks();
    }

    /// The state that must survive a power cut besides durable pages. Call it when nothing runs
    /// any more.
    pub fn dump(&self) -> Vec<u8> {
        self.inner.dump()
    }

    /// The first page of each extent that is free: nothing may have been written there.
    pub fn first_pages_of_free_extents(&self) -> Vec<PageNo> {
        let extents = self.inner.extents.borrow();
        let free = extents.iter().filter(|(_, extent)| extent.state == State::Free);
        free.map(|(id, _)| self.inner.shape.page(id, 0)).collect()
    }

    fn build(setup: Setup<M>) -> Self {
        let Setup { handle, medium, options, surroundings, cpu, planted } = setup;
        let problems = options.problems();
        assert!(problems.is_empty(), "options were not checked: {}", problems.join("; "));
        Self::from_parts(handle, medium, options, surroundings, cpu, planted)
    }

    fn release_again(&self) {
        let extents = self.inner.extents.borrow();
        let cut_short = extents.iter().filter(|(_, extent)| extent.state == State::Releasing);
        for (id, _) in cut_short {
            let inner = Rc::clone(&self.inner);
            self.inner.handle.spawn("release", async move { inner.release(id).await });
        }
    }

    fn start_tasks(&self) {
        let inner = &self.inner;
        let handle = &inner.handle;
        handle.spawn("flush", Rc::clone(inner).flush_forever());
        for _ in 0..inner.options.compaction_workers {
            handle.spawn("compaction", Rc::clone(inner).compact_forever());
        }
        handle.spawn("garbage collection", Rc::clone(inner).collect_forever());
    }
}
