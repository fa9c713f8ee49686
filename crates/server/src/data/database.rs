//! The user keys and their values.

use std::cell::Cell;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, RwLockReadGuard, RwLockWriteGuard};

use levelhead::{Durability, Snapshot, Store};

use super::batch::Batch;
use super::count::Count;
use super::frontier::Frontier;
use super::keys::{self, CollectionId, Space};
use super::locks::{Locks, Watched, Writing};
use super::names::Bounds;
use super::overlay::{Direction, Gives, Overlay, Pairs};
use super::records::{self, Expiry, Head, Kind};
use super::steps::Steps;
use crate::clock::Clock;
use crate::fault::Fault;

/// Collection ids reserved at a time.
const NUMBERS_AT_A_TIME: u64 = 1 << 12;
/// The version of the layout of the data in the store.
const VERSION: u64 = 1;

/// See the module's documentation.
pub(crate) struct Database {
    pub store: Store,
    pub locks: Locks,
    pub clock: Clock,
    durability: Durability,
    /// The longest string or field value, in bytes.
    pub longest_value: usize,
    /// The number of user keys, as far as they are counted.
    pub(super) keys: AtomicI64,
    /// Whether keys are still being counted after an unclean stop, or cannot be counted.
    pub is_counting: AtomicBool,
    /// Whether a failed write may have changed the number of keys without being counted. Then the
    /// number stays unknown.
    pub is_in_doubt: AtomicBool,
    /// Whether a key that is not a string may exist. If not, lookups skip the heads of collections.
    pub(super) has_heads: AtomicBool,
    numbers: Mutex<Numbers>,
    /// Whether the server is stopping: long walks have to end.
    pub stops: AtomicBool,
    /// Whether the server has stopped and nothing may be written any more. Changed only with all
    /// keys locked.
    is_closed: AtomicBool,
    /// Sweep position in the expiry notes.
    pub expiring: Frontier,
    /// Sweep position in the notes of dropped collections.
    pub dropped: Frontier,
}

/// Collection ids: the next one to assign, and the end of the reserved ones.
struct Numbers {
    next: u64,
    end: u64,
}

/// Whether a server has written to the store. Its keys then differ from those of programs that
/// embed the store.
///
/// # Errors
/// As [`Store::exists`].
pub fn is_served(store: &Store) -> Result<bool, levelhead::Error> {
    store.exists(&keys::VERSION)
}

impl Database {
    /// Opens the data in a store. Also returns the walk that counts the keys, if their number is
    /// unknown.
    pub(crate) fn open(
        store: Store,
        clock: Clock,
        durability: Durability,
    ) -> Result<(Self, Option<Count>), Fault> {
        match store.get(&keys::VERSION)? {
            Some(version) if records::decode_number(&version)? != VERSION => {
                return Err(Fault::error(
                    "the store was written by another version of this server",
                ));
            }
            Some(_) => {}
            None if store.range(..).keys().next().transpose()?.is_none() => {
                store.put(&keys::VERSION, &VERSION.to_le_bytes())?;
            }
            None => {
                let what = "the store has pairs that no server wrote, whose keys have another form: serve an empty \
                            directory, and put them there through a client";
                return Err(Fault::error(what));
            }
        }
        let end = store.get(&keys::NUMBERS)?.map_or(Ok(1), |end| records::decode_number(&end))?;
        let counted = store.get(&keys::COUNT)?.map(|count| records::decode_number(&count));
        let counted = counted.transpose()?;
        let (from, to) = keys::all(Space::Head);
        let has_heads = store.range(&from[..]..&to[..]).keys().next().transpose()?.is_some();
        // Deleted so that the count is found again only after a clean stop.
        store.delete(&keys::COUNT)?;
        let database = Self {
            locks: Locks::new(),
            clock,
            durability,
            longest_value: (store.max_value_bytes() as usize).saturating_sub(records::BESIDE),
            keys: AtomicI64::new(counted.map_or(0, |count| count as i64)),
            is_counting: AtomicBool::new(counted.is_none()),
            is_in_doubt: AtomicBool::new(false),
            has_heads: AtomicBool::new(has_heads),
            numbers: Mutex::new(Numbers { next: end, end }),
            stops: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            expiring: Frontier::new(Space::Expiry),
            dropped: Frontier::new(Space::Dropped),
            store,
        };
        let count = counted.is_none().then(|| Count::begin(&database)).transpose()?;
        Ok((database, count))
    }

    /// Records the number of keys and closes the store. If the store is too full for the record,
    /// the next server counts the keys. A command that is still running after this writes nothing,
    /// because the recorded number would become wrong.
    pub(crate) fn close(&self) -> Result<(), Fault> {
        let _locks = self.locks.all();
        self.is_closed.store(true, Ordering::SeqCst);
        if !self.is_counting.load(Ordering::SeqCst) {
            let mut batch = Batch::that_makes_room();
            batch.put(&keys::COUNT, self.count().to_le_bytes());
            match batch.write(&self.store, Durability::None) {
                Ok(()) | Err(levelhead::Error::Full(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.store.sync()?)
    }

    /// Returns the number of keys, including expired keys that are not swept yet.
    pub(crate) fn count(&self) -> u64 {
        u64::try_from(self.keys.load(Ordering::SeqCst)).unwrap_or(0)
    }

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

    /// Notifies the frontiers of the notes in a batch, which the sweeper has to visit.
    fn hear_of_notes(&self, batch: &Batch) {
        for at in batch.put_keys() {
            match at[0] {
                space if space == Space::Expiry as u8 => self.expiring.note(at),
                space if space == Space::Dropped as u8 => self.dropped.note(at),
                _ => {}
            }
        }
    }

    /// Whether writes become durable only with a later sync, for which the connection waits before
    /// it replies.
    pub(crate) fn is_deferred(&self) -> bool {
        self.durability == Durability::Group
    }
}

/// The value of a key.
#[derive(Debug)]
pub(crate) enum Entry {
    String { value: Vec<u8>, expiry: Expiry },
    Head(Head),
}

impl Entry {
    pub(crate) fn expiry(&self) -> Expiry {
        match self {
            Self::String { expiry, .. } => *expiry,
            Self::Head(head) => head.expiry,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::String { .. } => Kind::String,
            Self::Head(head) => head.kind,
        }
    }
}

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
        Ok(Head { kind, id: self.next_number()?, count: 0, expiry: None })
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

    pub(super) fn next_number(&self) -> Result<CollectionId, Fault> {
        let mut numbers = self.database.numbers.lock().expect("nothing panics with it locked");
        if numbers.next == numbers.end {
            let end = numbers.end + NUMBERS_AT_A_TIME;
            // In the log before any write that uses the new ids.
            self.database.store.put_with(&keys::NUMBERS, &end.to_le_bytes(), Durability::None)?;
            numbers.end = end;
        }
        numbers.next += 1;
        Ok(CollectionId(numbers.next - 1))
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
            Err(_) if keys != 0 => self.count_in_doubt(batch),
            Err(_) => {}
        }
        Ok(written?)
    }
}
