//! The data of a server in its store: what all commands share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use levelhead::{Durability, Store};

use super::batch::Batch;
use super::frontier::Frontier;
use super::keys::{self, CollectionId, Space};
use super::locks::Locks;
use super::records;
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
    pub(super) durability: Durability,
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
    pub(super) is_closed: AtomicBool,
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
    /// Opens the data in a store.
    pub(crate) fn open(store: Store, clock: Clock, durability: Durability) -> Result<Self, Fault> {
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
        Ok(Self {
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
        })
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

    /// Notifies the frontiers of the notes in a batch, which the sweeper has to visit.
    pub(super) fn hear_of_notes(&self, batch: &Batch) {
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

    /// Updates the number after a failed write or sync: the batch may be in the store nevertheless.
    pub(super) fn count_in_doubt(&self, batch: &Batch) {
        match batch.is_in(&self.store) {
            Ok(true) => drop(self.keys.fetch_add(batch.keys, Ordering::SeqCst)),
            Ok(false) => {}
            Err(_) => {
                self.is_in_doubt.store(true, Ordering::SeqCst);
                self.is_counting.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Returns a new collection id.
    pub(super) fn next_number(&self) -> Result<CollectionId, Fault> {
        let mut numbers = self.numbers.lock().expect("nothing panics with it locked");
        if numbers.next == numbers.end {
            let end = numbers.end + NUMBERS_AT_A_TIME;
            // In the log before any write that uses the new ids.
            self.store.put_with(&keys::NUMBERS, &end.to_le_bytes(), Durability::None)?;
            numbers.end = end;
        }
        numbers.next += 1;
        Ok(CollectionId(numbers.next - 1))
    }
}
