//! Snapshots: the store as it was at one instant.

use std::sync::Arc;

use crate::error::Error;
use crate::store::Store;

/// The store as it was at one instant. Can be used from any thread; clones are handles to the same
/// instant.
///
/// ```
/// # fn main() -> Result<(), levelhead::Error> {
/// # let directory = std::env::temp_dir().join(format!("levelhead-snapshot-{}", std::process::id()));
/// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
/// store.put(b"balance", b"90")?;
/// let before = store.snapshot()?;
/// store.put(b"balance", b"110")?;
/// assert_eq!(before.get(b"balance")?.as_deref(), Some(&b"90"[..]));
/// let pairs: Vec<_> = before.range(..).collect::<Result<_, _>>()?;
/// assert_eq!(pairs.len(), 1);
/// drop(before);
/// # store.close()?;
/// # std::fs::remove_dir_all(&directory).expect("it is ours");
/// # Ok(())
/// # }
/// ```
///
/// Creating a snapshot copies nothing. Its cost depends on the changes while it lives: replaced and
/// deleted values keep their space in the files, extents that hold such values are not collected,
/// and replaced parts of the index and flushed memtables stay in memory, up to 64 MiB for all
/// snapshots and ranges together. Beyond that, or if writers run out of space, the oldest snapshot
/// is dropped, and reads of it return [`Error::TooOld`] ([`Statistics`](crate::Statistics) show how
/// close that is). All of this is released when the last handle and the ranges created from it are
/// dropped.
#[derive(Clone)]
pub struct Snapshot {
    held: Arc<Held>,
}

/// A snapshot of a store, identified by its number in the store's runtime.
struct Held {
    store: Store,
    number: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.store.end_snapshot(self.number);
    }
}

impl Store {
    /// Returns a snapshot of the store as it is now.
    ///
    /// # Errors
    /// Returns [`Error::System`] of kind [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) if
    /// snapshots and ranges have used up their memory.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let number = self.begin_snapshot()?;
        Ok(Snapshot { held: Arc::new(Held { store: self.clone(), number }) })
    }
}

impl Snapshot {
    /// Returns the value of `key` in this snapshot, or `None` if it had none.
    ///
    /// # Errors
    /// As [`Store::get`]; [`Error::TooOld`] if the store could not keep the snapshot.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.held.store.get_of_snapshot(self.held.number, key)
    }

    /// Returns whether `key` has a value in this snapshot.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn exists(&self, key: &[u8]) -> Result<bool, Error> {
        self.held.store.exists_in_snapshot(self.held.number, key)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.held.store
    }

    pub(crate) fn number(&self) -> u64 {
        self.held.number
    }
}
