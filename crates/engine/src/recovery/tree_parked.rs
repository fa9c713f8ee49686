//! Saving and restoring a tree at rest: see [`super::parked`].
//!
//! Besides its dump a tree has counters, findings of background work (`short_of`, the space set
//! aside), the division of its lists into chunks, which determines the number of comparisons of a
//! search, and the order in which its tasks will be woken.

use std::rc::Rc;

use runtime::{Carrier, Runtime};

use super::open::Setup;
use super::parked::{NotAtRest, carry_tasks, first_unrest};
use crate::engine::{Engine, Inner};
use crate::error::OpenError;
use crate::medium::Medium;

impl<M: Medium> Engine<M> {
    /// Returns the complete state that is not on the medium, for [`Self::unpark`].
    ///
    /// # Errors
    /// [`NotAtRest`] if background work is pending.
    pub fn park(&self) -> Result<Vec<u8>, NotAtRest> {
        let inner = &self.inner;
        inner.unrest()?;
        let dump = inner.dump();
        let mut bytes = Vec::with_capacity(dump.len() + 4096);
        let by = &mut Carrier::out(&mut bytes);
        let carried = by.string(&dump).and_then(|_| inner.carry(by));
        let carried = carried.and_then(|()| carry_tasks(&inner.store, &inner.tasks(), by));
        carried.map(|_| bytes).ok_or(NotAtRest("it has more tasks than its own"))
    }

    /// Restores the tree that [`Self::park`] saved, on a medium with the same contents as then. Its
    /// tasks continue at once, at this instant, and find nothing to do.
    ///
    /// # Errors
    /// [`OpenError::BadDump`] if `bytes` are not those of such a tree; otherwise as
    /// [`Self::create`].
    pub fn unpark(setup: Setup<M>, bytes: &[u8], runtime: &Runtime) -> Result<Self, OpenError> {
        let by = &mut Carrier::back(bytes);
        let dump = by.string(&[]).ok_or(OpenError::BadDump)?;
        let engine = Self::recover(setup, dump)?;
        let inner = &engine.inner;
        inner.carry(by).ok_or(OpenError::BadDump)?;
        let tasks = carry_tasks(&inner.store, &inner.tasks(), by).ok_or(OpenError::BadDump)?;
        if !by.is_at_end() {
            return Err(OpenError::BadDump);
        }
        for task in tasks {
            engine.start_task(task);
            runtime.run_ready();
        }
        Ok(engine)
    }
}

impl<M: Medium> Inner<M> {
    fn unrest(&self) -> Result<(), NotAtRest> {
        self.store.unrest()?;
        self.front.unrest()?;
        first_unrest(&[
            (self.caches.are_there(), "it has caches, whose contents are not carried"),
            (self.tables.is_some(), "its levels are made of tables"),
            (self.busy.borrow().iter().any(|busy| *busy), "a level is being compacted"),
            (!self.is_settled(), "a level is due for compaction"),
            (self.manual.is_asked(), "a compaction was asked for"),
        ])
    }

    fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        self.carry_chunks(by)?;
        by.cell(&self.writes_groups, Carrier::bool)?;
        by.cell(&self.is_squeezing, Carrier::bool)?;
        by.cell(&self.wakes_at, Carrier::nanos)?;
        by.cell(&self.short_of, Carrier::u32)?;
        self.stats.borrow_mut().carry(by)?;
        self.front.carry(by)?;
        self.store.carry(by)?;
        self.merge_unit.as_ref().map_or(Some(()), |unit| unit.carry(by))
    }

    /// Saves or restores the division of the levels' lists into chunks.
    fn carry_chunks(&self, by: &mut Carrier<'_>) -> Option<()> {
        let version = Rc::clone(&self.version.borrow());
        let mut chunks: Vec<Vec<u32>> =
            version.levels().iter().map(|level| level.chunk_lens()).collect();
        by.list(&mut chunks, |by, lens| by.list(lens, Carrier::u32))?;
        if by.is_back() {
            *self.version.borrow_mut() = Rc::new(version.cut_into(&chunks)?);
        }
        Some(())
    }
}
