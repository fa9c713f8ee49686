//! The number of keys. Every write updates it while its keys are locked. A clean stop records the
//! number; after an unclean one, the keys of a snapshot are counted, and later writes update the
//! number themselves.
//!
//! Until the count is done, or if damage prevents it, commands that need the number walk over the
//! keys. A partial count would look like the total, and an unreadable key like a missing one.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use levelhead::{Error, Snapshot};

use super::access::Access;
use super::database::Database;
use super::keys::{self, Space};
use super::overlay::{Gives, Overlay};
use crate::fault::Fault;

/// Maximum number of snapshots that may be lost while counting.
const TRIES: u32 = 16;

/// Counts the keys of a snapshot.
pub(crate) struct Count {
    instant: Snapshot,
}

impl Count {
    /// Takes the snapshot of a database just opened, if the number of its keys is unknown.
    /// Requires: no write is under way.
    pub(crate) fn begin(database: &Database) -> Result<Option<Self>, Error> {
        let is_unknown = database.is_counting.load(Ordering::SeqCst);
        is_unknown.then(|| Self::of_now(database)).transpose()
    }

    fn of_now(database: &Database) -> Result<Self, Error> {
        Ok(Self { instant: database.store.snapshot()? })
    }

    /// Starts over: locks all keys for a moment, so that each write is either before the snapshot
    /// or updates the number after it.
    pub(super) fn begin_anew(database: &Database) -> Result<Self, Error> {
        let _locks = database.locks.all();
        let count = Self::of_now(database)?;
        database.keys.store(0, Ordering::SeqCst);
        Ok(count)
    }

    /// Counts to the end, unless `is_over` returns true before. If the store drops the snapshot,
    /// starts over at a newer one, a limited number of times; a store with too many writes stays
    /// uncounted.
    ///
    /// # Errors
    /// Returns an error if something cannot be read: keys stay uncounted.
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

    /// Returns false if `is_over` returned true before the end.
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
    /// Returns the number of keys, including expired keys that are not swept yet, and with the
    /// changes of the own transaction.
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
}
