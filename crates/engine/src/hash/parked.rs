//! Saving and restoring a hash table at rest: see [`crate::recovery::parked`].
//!
//! Besides its dump a table has counters, the clean bucket pages in memory, the order in which all
//! bucket pages in memory were last used, and the order in which its tasks will be woken.

use runtime::{Carrier, Runtime};

use super::cache::{Cache, Kept};
use super::open::{HashSetup, TASKS};
use super::{HashEngine, Inner};
use crate::error::OpenError;
use crate::medium::Medium;
use crate::recovery::parked::{NotAtRest, carry_tasks, first_unrest};

impl<M: Medium> HashEngine<M> {
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
        let carried = carried.and_then(|()| carry_tasks(&inner.store, &TASKS, by));
        carried.map(|_| bytes).ok_or(NotAtRest("it has more tasks than its own"))
    }

    /// Restores the table that [`Self::park`] saved, on a medium with the same contents as then.
    /// Its tasks continue at once, at this instant, and find nothing to do.
    ///
    /// # Errors
    /// [`OpenError::BadDump`] if `bytes` are not those of such a table; otherwise as
    /// [`Self::recover`].
    pub fn unpark(setup: HashSetup<M>, bytes: &[u8], runtime: &Runtime) -> Result<Self, OpenError> {
        let by = &mut Carrier::back(bytes);
        let dump = by.string(&[]).ok_or(OpenError::BadDump)?;
        let engine = Self::recover(setup, dump)?;
        let inner = &engine.inner;
        inner.carry(by).ok_or(OpenError::BadDump)?;
        let tasks = carry_tasks(&inner.store, &TASKS, by).ok_or(OpenError::BadDump)?;
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
            (!self.loading.borrow().is_empty(), "bucket pages are being read"),
            (self.writing.borrow().len() > 0, "bucket pages are being written"),
            (!self.cache.borrow().is_at_rest(), "bucket pages are on their way to memory"),
            (!self.placing.borrow().is_empty(), "a flush is under way"),
        ])
    }

    fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        by.cell(&self.index_is_starved, Carrier::bool)?;
        self.carry_cache(by)?;
        self.stats.borrow_mut().carry(by)?;
        self.hash_stats.borrow_mut().carry(by)?;
        self.front.carry(by)?;
        self.store.carry(by)
    }

    /// Carries the bucket pages in memory, least recently used first. On the way back, the cache
    /// has the dirty pages of the dump in arbitrary order; a new cache replaces it.
    fn carry_cache(&self, by: &mut Carrier<'_>) -> Option<()> {
        let mut cache = self.cache.borrow_mut();
        let mut count = cache.len();
        by.usize(&mut count)?;
        if !by.is_back() {
            return cache.kept().try_for_each(|mut kept| carry_kept(&mut kept, by));
        }
        let mut fresh = Cache::new(cache.capacity(), self.table.pages);
        for _ in 0..count {
            let mut kept = Kept::default();
            carry_kept(&mut kept, by)?;
            self.buckets.are_sound(kept.slots).then_some(())?;
            fresh.keep(&kept)?;
        }
        *cache = fresh;
        Some(())
    }
}

fn carry_kept<'b, 'a: 'b>(kept: &mut Kept<'b>, by: &mut Carrier<'a>) -> Option<()> {
    by.u32(&mut kept.page)?;
    by.bool(&mut kept.is_dirty)?;
    kept.slots = by.string(kept.slots)?;
    Some(())
}
