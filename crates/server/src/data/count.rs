//! How many keys there are. Whoever writes counts, with its keys locked. A server that is stopped leaves the number behind; after one that was not,
//! the keys of one instant are counted, and what is written behind it counts itself.
//!
//! Until that is done, or if it cannot be, because something is damaged, who asks for the number walks over the keys itself: a part would be taken for
//! all, and what cannot be read for nothing.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use levelhead::{Error, Snapshot};

use super::batch::Batch;
use super::database::{Access, Database};
use super::keys::{self, Space};
use super::overlay::{Gives, Overlay};
use crate::fault::Fault;

/// Instants that the store does not keep at which keys are counted.
const TRIES: u32 = 16;

/// Counts keys, as they were when it began.
pub(crate) struct Count {
    instant: Snapshot,
}

impl Count {
    /// Begins while nobody writes.
    pub(super) fn begin(database: &Database) -> Result<Self, Error> {
        Ok(Self { instant: database.store.snapshot()? })
    }

    /// Begins anew: all keys are locked for a moment, so that each change is before the instant, or counts itself behind it.
    pub(super) fn begin_anew(database: &Database) -> Result<Self, Error> {
        let _locks = database.locks.all();
        let count = Self::begin(database)?;
        database.keys.store(0, Ordering::SeqCst);
        Ok(count)
    }

    /// Counts to the end, unless it `is_over` before. Where the store could not keep the instant it begins at a later one, so many times; a store that
    /// others write to so fast stays uncounted.
    ///
    /// # Errors
    /// Something cannot be read: keys stay uncounted.
    pub(crate) fn run(
        mut self,
        database: &Database,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        for _ in 0..TRIES {
            if is_over() {
                break;
            }
            match self.walk(database, is_over) {
                Err(Error::TooOld { .. }) => self = Self::begin_anew(database)?,
                Ok(true) => {
                    let in_doubt = database.is_in_doubt.load(Ordering::SeqCst);
                    database.is_counting.store(in_doubt, Ordering::SeqCst);
                    return Ok(());
                }
                Ok(false) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// False if it was over before the end.
    fn walk(&self, database: &Database, is_over: &dyn Fn() -> bool) -> Result<bool, Error> {
        for space in [Space::String, Space::Head] {
            let (from, to) = keys::all(space);
            for key in self.instant.range(&from[..]..&to[..]).keys() {
                key?;
                if is_over() {
                    return Ok(false);
                }
                database.keys.fetch_add(1, Ordering::SeqCst);
            }
        }
        Ok(true)
    }
}

impl Access<'_> {
    /// Keys, those that a transaction has added or removed among them, and those that have expired and were not swept yet.
    pub(crate) fn count(&self) -> Result<u64, Fault> {
        if !self.database.is_counting.load(Ordering::SeqCst) {
            let changed = self.overlay.as_ref().map_or(0, Overlay::keys);
            return Ok(self.database.count().saturating_add_signed(changed));
        }
        self.steps.take_all()?;
        let instant = self.database.store.snapshot()?;
        let mut count = 0;
        for place in self.places(&instant, (Bound::Unbounded, Bound::Unbounded), Gives::Keys) {
            self.steps.take(1)?;
            place?;
            count += 1;
        }
        Ok(count)
    }

    /// Counts what a batch has changed that could not be written, or not be made durable: some of these are in the store all the same.
    pub(super) fn count_in_doubt(&self, batch: &Batch) {
        let database = self.database;
        match batch.is_in(&database.store) {
            Ok(true) => drop(database.keys.fetch_add(batch.keys, Ordering::SeqCst)),
            Ok(false) => {}
            Err(_) => {
                database.is_in_doubt.store(true, Ordering::SeqCst);
                database.is_counting.store(true, Ordering::SeqCst);
            }
        }
    }
}
