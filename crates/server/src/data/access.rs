//! The database as one command sees it: reads and writes of user keys.

use std::cell::Cell;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{RwLockReadGuard, RwLockWriteGuard};

use levelhead::{Durability, Snapshot};

use super::batch::Batch;
use super::database::Database;
use super::keys;
use super::locks::{Watched, Writing};
use super::overlay::{Bounds, Direction, Gives, Overlay, Pairs};
use super::records::{self, Entry, Expiry, Head, Kind};
use super::steps::Steps;
use crate::fault::Fault;

/// The time of a read.
#[derive(Clone, Copy)]
enum When<'a> {
    Now,
    At(&'a Snapshot),
}

/// The database as one command sees it, at one time.
pub(crate) struct Access<'a> {
    pub database: &'a Database,
    pub now: u64,
    /// The durability that each write waits for itself.
    pub durability: Durability,
    /// Whether the command has written data that may not be durable yet.
    pub has_written: Cell<bool>,
    /// The step budget of the command.
    pub steps: Steps<'a>,
    /// The pending writes of a transaction; `None` outside of transactions.
    pub overlay: Option<Overlay>,
}

impl Database {
    pub(crate) fn access(&self) -> Access<'_> {
        let durability = match self.durability {
            // The connection waits for the group commit before it replies.
            Durability::Group => Durability::None,
            other => other,
        };
        let now = self.clock.now_ms();
        let (has_written, steps) = (Cell::new(false), Steps::new(&self.stops));
        Access { database: self, now, durability, has_written, steps, overlay: None }
    }

    /// Returns the view of a transaction that has locked its keys. Writes stay in the overlay until
    /// `commit`.
    pub(crate) fn transaction(&self) -> Access<'_> {
        Access { overlay: Some(Overlay::default()), ..self.access() }
    }
}

impl Access<'_> {
    /// Returns the value of a key of the store.
    pub(crate) fn get(&self, at: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.get_from(When::Now, at)
    }

    fn get_from(&self, when: When<'_>, at: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.steps.go_on()?;
        let in_store = || {
            Ok(match when {
                When::Now => self.database.store.get(at)?,
                When::At(instant) => instant.get(at)?,
            })
        };
        match &self.overlay {
            Some(overlay) => overlay.get_or(at, in_store),
            None => in_store(),
        }
    }

    /// Whether a key of the store exists.
    pub(crate) fn is_there(&self, at: &[u8]) -> Result<bool, Fault> {
        self.steps.go_on()?;
        match self.overlay.as_ref().and_then(|overlay| overlay.is_put(at)) {
            Some(is_put) => Ok(is_put),
            None => Ok(self.database.store.exists(at)?),
        }
    }

    /// Returns pairs or keys of the store in key order.
    pub(crate) fn range(&self, bounds: Bounds<'_>, gives: Gives) -> Pairs<'_> {
        self.walk(bounds, Direction::Up, gives)
    }

    /// Like [`range`](Self::range), at a snapshot, so that several ranges read together are
    /// consistent.
    pub(crate) fn range_at(
        &self,
        instant: &Snapshot,
        bounds: Bounds<'_>,
        gives: Gives,
    ) -> Pairs<'_> {
        Pairs::of_snapshot(instant, self.overlay.as_ref(), &self.steps, bounds, gives)
    }

    /// Like [`range`](Self::range), in either direction.
    fn walk(&self, bounds: Bounds<'_>, direction: Direction, gives: Gives) -> Pairs<'_> {
        let store = &self.database.store;
        Pairs::of_store(store, self.overlay.as_ref(), &self.steps, bounds, direction, gives)
    }

    /// Returns the pairs of the store from `from` up to but excluding `to`.
    pub(crate) fn between(&self, from: &[u8], to: &[u8]) -> Pairs<'_> {
        self.range((Bound::Included(from), Bound::Excluded(to)), Gives::Pairs)
    }

    /// Like [`between`](Self::between), with keys only; values are empty.
    pub(crate) fn names_between(&self, from: &[u8], to: &[u8]) -> Pairs<'_> {
        self.walk_names_between(from, to, Direction::Up)
    }

    /// Like [`names_between`](Self::names_between), in either direction.
    pub(crate) fn walk_names_between(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
    ) -> Pairs<'_> {
        self.walk((Bound::Included(from), Bound::Excluded(to)), direction, Gives::Keys)
    }

    /// Locks a key for writing. Returns `None` in a transaction, whose keys are locked already; so
    /// do the functions below.
    pub(crate) fn lock(&self, key: &[u8]) -> Option<RwLockWriteGuard<'_, ()>> {
        self.overlay.is_none().then(|| self.database.locks.write_one(key))
    }

    /// Locks a key for reading several of its records consistently.
    pub(crate) fn lock_to_read(&self, key: &[u8]) -> Option<RwLockReadGuard<'_, ()>> {
        self.overlay.is_none().then(|| self.database.locks.read(key))
    }

    /// Starts watching a key: the transaction will require it to be unchanged.
    pub(crate) fn watch(&self, key: &[u8]) -> Result<Watched, Fault> {
        let expiry = || Ok(self.find(key)?.and_then(|entry| entry.expiry()));
        self.database.locks.watch(key, expiry)
    }

    /// Locks several keys for writing.
    pub(crate) fn lock_several(&self, keys: &[&[u8]]) -> Option<Writing<'_>> {
        self.overlay.is_none().then(|| self.database.locks.write(keys))
    }

    pub(crate) fn has_expired(&self, expiry: Expiry) -> bool {
        expiry.is_some_and(|at| at <= self.now)
    }

    /// Returns the entry of a locked key, unless it has expired.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<Entry>, Fault> {
        Ok(self.find_any(key)?.filter(|entry| self.is_alive(entry)))
    }

    fn is_alive(&self, entry: &Entry) -> bool {
        !self.has_expired(entry.expiry())
    }

    /// Returns the entry of a locked key, even if it has expired. A key that is too long has no
    /// entry; only writes under it are errors.
    pub(crate) fn find_any(&self, key: &[u8]) -> Result<Option<Entry>, Fault> {
        self.find_from(When::Now, key)
    }

    /// Returns the entry of a key that is not locked, unless it has expired.
    pub(crate) fn look(&self, key: &[u8]) -> Result<Option<Entry>, Fault> {
        if self.overlay.is_some() || !self.database.has_heads.load(Ordering::SeqCst) {
            return self.find(key);
        }
        let glance = self.database.locks.glance(key);
        if let Some(entry) = self.find_any(key)? {
            return Ok(Some(entry).filter(|entry| self.is_alive(entry)));
        }
        if glance.is_some_and(|glance| self.database.locks.is_as_it_was(glance)) {
            return Ok(None);
        }
        // A string may have replaced a collection after the lookup of the string and before that of
        // the collection's head. A snapshot decides; it costs more than both lookups.
        self.look_at(&self.database.store.snapshot()?, key)
    }

    /// Returns the entry of a key at a snapshot, unless it has expired.
    pub(super) fn look_at(&self, instant: &Snapshot, key: &[u8]) -> Result<Option<Entry>, Fault> {
        Ok(self.find_from(When::At(instant), key)?.filter(|entry| self.is_alive(entry)))
    }

    fn find_from(&self, when: When<'_>, key: &[u8]) -> Result<Option<Entry>, Fault> {
        if !keys::fits(key) {
            return Ok(None);
        }
        if let Some(mut record) = self.get_from(when, &keys::string(key))? {
            let (expiry, from) = records::decode_string(&record)?;
            record.drain(..from);
            return Ok(Some(Entry::String { value: record, expiry }));
        }
        Ok(self.head_from(when, key)?.map(Entry::Head))
    }

    pub(super) fn find_head(&self, key: &[u8]) -> Result<Option<Head>, Fault> {
        self.head_from(When::Now, key)
    }

    fn head_from(&self, when: When<'_>, key: &[u8]) -> Result<Option<Head>, Fault> {
        if !self.database.has_heads.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let record = self.get_from(when, &keys::head(key))?;
        record.map(|record| Head::decode(&record)).transpose()
    }

    /// Returns the head of the collection under a key, unless it has expired. Returns an error if
    /// the key holds another kind of value.
    pub(crate) fn collection(&self, key: &[u8], kind: Kind) -> Result<Option<Head>, Fault> {
        if !keys::fits(key) {
            return Ok(None);
        }
        let head = self.find_head(key)?.filter(|head| !self.has_expired(head.expiry));
        match head {
            Some(head) if head.kind == kind => Ok(Some(head)),
            Some(_) => Err(Fault::wrong_type()),
            None => match self.find(key)? {
                Some(Entry::String { .. }) => Err(Fault::wrong_type()),
                _ => Ok(None),
            },
        }
    }

    /// Puts a string under a locked key and replaces any previous value.
    pub(crate) fn put_string(
        &self,
        batch: &mut Batch,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
    ) -> Result<(), Fault> {
        keys::check(key)?;
        let at = keys::string(key);
        // Checks existence only, which the index answers without reading the value.
        if !self.is_there(&at)? {
            match self.find_head(key)? {
                Some(head) => Self::drop_collection(batch, key, &head),
                None => batch.keys += 1,
            }
        }
        if let Some(at) = expiry {
            batch.put(&keys::expiry(at, key), []);
        }
        batch.put(&at, records::encode_string(value, expiry));
        Ok(())
    }

    /// Puts the head of a collection under a locked key. Does not change the number of keys.
    pub(crate) fn put_head(batch: &mut Batch, key: &[u8], head: &Head) {
        if let Some(at) = head.expiry {
            batch.put(&keys::expiry(at, key), []);
        }
        batch.put(&keys::head(key), head.encode());
    }

    /// Starts a collection under a locked key that holds nothing alive. Removes an expired value.
    pub(crate) fn begin_collection(
        &self,
        batch: &mut Batch,
        key: &[u8],
        kind: Kind,
    ) -> Result<Head, Fault> {
        keys::check(key)?;
        if let Some(expired) = self.find_any(key)? {
            Self::remove(batch, key, &expired);
        }
        batch.keys += 1;
        self.database.has_heads.store(true, Ordering::SeqCst);
        Ok(Head { kind, id: self.database.next_number()?, count: 0, expiry: None })
    }

    /// Removes the entry of a locked key.
    pub(crate) fn remove(batch: &mut Batch, key: &[u8], entry: &Entry) {
        batch.keys -= 1;
        match entry {
            Entry::String { expiry, .. } => {
                Self::forget_expiry(batch, key, *expiry);
                batch.delete(&keys::string(key));
            }
            Entry::Head(head) => Self::drop_collection(batch, key, head),
        }
    }

    /// Deletes the expiry note of a key that loses its expiry; otherwise the note would remain
    /// until that time. A plain SET over a string leaves the note because it does not read the old
    /// value.
    pub(super) fn forget_expiry(batch: &mut Batch, key: &[u8], expiry: Expiry) {
        if let Some(at) = expiry {
            batch.delete(&keys::expiry(at, key));
        }
    }

    /// Removes the head of a collection and writes a note with its id and key, by which the sweeper
    /// removes its parts later.
    fn drop_collection(batch: &mut Batch, key: &[u8], head: &Head) {
        Self::forget_expiry(batch, key, head.expiry);
        batch.put(&keys::dropped(head.id), key);
        batch.delete(&keys::head(key));
    }

    /// Writes a command's batch; in a transaction adds it to the overlay until `commit`.
    pub(crate) fn write(&self, batch: Batch) -> Result<(), Fault> {
        match &self.overlay {
            Some(overlay) => {
                overlay.add(batch);
                Ok(())
            }
            None => self.write_now(&batch),
        }
    }

    /// Writes the changes of a transaction, all or nothing.
    pub(crate) fn commit(&self) -> Result<(), Fault> {
        self.overlay.as_ref().map_or(Ok(()), |overlay| self.write_now(&overlay.take()))
    }

    fn write_now(&self, batch: &Batch) -> Result<(), Fault> {
        if batch.is_empty() {
            return Ok(());
        }
        if self.database.is_closed.load(Ordering::SeqCst) {
            return Err(Fault::of_kind("MISCONF the server has stopped"));
        }
        self.has_written.set(true);
        let keys = batch.keys;
        let written = batch.write(&self.database.store, self.durability);
        // Also after an error, when the batch may be in the store or not.
        self.database.hear_of_notes(batch);
        match written {
            Ok(()) => drop(self.database.keys.fetch_add(keys, Ordering::SeqCst)),
            Err(_) if keys != 0 => self.database.count_in_doubt(batch),
            Err(_) => {}
        }
        Ok(written?)
    }
}
