//! The store as it was at one instant.

use std::ops::RangeBounds;
use std::sync::Arc;

use crate::error::Error;
use crate::range::Range;
use crate::store::Store;

/// The store as it was at one instant, for any thread; clones are handles to the same instant.
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
/// Taking one copies nothing. What it costs is what changes while it lives: values that were replaced or deleted keep their room in the files,
/// parts of them that hold any are not collected, and replaced parts of the index and flushed memtables stay in memory, up to
/// 64 MiB for all snapshots and ranges together. Beyond that, or where writers are out of space, the oldest one goes: its reads say
/// [`Error::TooOld`] from then on ([`Statistics`](crate::Statistics) say how near that is). Dropping the last handle, and the ranges made of it, gives all of that back.
#[derive(Clone)]
pub struct Snapshot {
    held: Arc<Held>,
}

/// The number under which the store's runtime keeps it.
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
    /// The store as it is now, to be read for as long as the snapshot lives.
    ///
    /// # Errors
    /// [`Error::System`], of the kind [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), if snapshots and ranges have used up their memory.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let number = self.begin_snapshot()?;
        Ok(Snapshot { held: Arc::new(Held { store: self.clone(), number }) })
    }
}

impl Snapshot {
    /// The value that `key` had, if it had one.
    ///
    /// # Errors
    /// As [`Store::get`]; [`Error::TooOld`] if the store could not keep the instant.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.held.store.get_of_snapshot(self.held.number, key)
    }

    /// Whether `key` had a value.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn exists(&self, key: &[u8]) -> Result<bool, Error> {
        self.held.store.exists_in_snapshot(self.held.number, key)
    }

    /// Pairs in key order whose keys are within `bounds`, from both ends. It keeps the instant, too.
    pub fn range<'a>(&self, bounds: impl RangeBounds<&'a [u8]>) -> Range {
        Range::of_snapshot(self, &bounds)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.held.store
    }

    pub(crate) fn number(&self) -> u64 {
        self.held.number
    }
}
