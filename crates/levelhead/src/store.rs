//! The store's handle and its operations. `opening.rs` opens it, `reading.rs` has the calls of
//! snapshots and ranges.

mod opening;
mod reading;

use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use engine::{EngineError, LogSync, Look, MediumError, UsedUp, Value};
use runtime::{ForkMark, IoEngine, Shared};

use crate::batch::Batch;
use crate::error::Error;
use crate::error::place::Place;
use crate::options::Durability;
use crate::root::{Outside, Root};
use crate::store_runtime::seed;

/// Keys that a multi-get looks up concurrently: enough to keep a drive busy, and few enough that
/// the lock is held only briefly.
const GETS_AT_A_TIME: usize = 16;

/// A handle to an open store. Clones are handles to the same store and can be used from any thread.
///
/// Dropping the last handle makes all acknowledged writes durable and closes the store.
/// [`Self::close`] does the same and returns the error if one occurs.
///
/// # Fork
/// A store belongs to the process that opened it. In a child process made by `fork`, all methods
/// panic and dropping a handle does nothing, because the child has none of the store's threads and
/// shares the rest with its parent. The file descriptors that the child inherits keep the store
/// locked, even after the parent has closed it: the store cannot be opened again ([`Error::InUse`])
/// until the child exits or executes another program. Programs that are started with
/// [`std::process::Command`] inherit nothing.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    /// The runtime; `None` once it has ended.
    shared: Option<Arc<Shared<Result<Root, Error>>>>,
    driver: Option<JoinHandle<()>>,
    outside: Outside,
    /// The I/O engine in use.
    io: Option<IoEngine>,
    /// Detects a process made by `fork`.
    mark: ForkMark,
}

/// The result of closing a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// This was the last handle. The store is closed, and its files can be opened again.
    Store,
    /// Other handles (clones, snapshots, ranges) keep the store open, and may still write to it.
    Handle,
}

impl Store {
    /// Returns the value of `key`, or `None` if it has none. Costs one read of the drive if the
    /// index is in memory and the value is not.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the key is empty or longer than 255 bytes, and
    /// [`Error::Damaged`] if the value or its index cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if self.inner.outside.reads_values {
            let seen =
                self.look(|root| root.engine.look(key)).map_err(|error| self.error(&error))?;
            let found = match seen {
                Look::Known(value) => Some(value),
                Look::Read(read) => read.perform().map(Some),
                Look::Ask => None,
            };
            if let Some(value) = found {
                return Ok(value.map(Vec::from));
            }
        }
        let found = self.call(|root| {
            let (engine, key) = (root.engine.clone(), Box::<[u8]>::from(key));
            async move {
                let value = engine.get(&key).await?;
                Ok(value.map(Vec::from))
            }
        });
        found.map_err(|error| self.error(&error))
    }

    /// Returns the values of several keys, in the order of `keys`. Looks up as many as 16 keys
    /// concurrently, so that as many reads of the drive are in flight. Each value is the one that
    /// [`Self::get`] would return; for values of one instant use a [`Snapshot`](crate::Snapshot).
    ///
    /// ```
    /// # fn main() -> Result<(), levelhead::Error> {
    /// # let directory = std::env::temp_dir().join(format!("levelhead-multi-{}", std::process::id()));
    /// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
    /// store.put(b"apple", b"red")?;
    /// let found = store.multi_get(&["apple", "pear"])?;
    /// assert_eq!(found, [Some(b"red".to_vec()), None]);
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&directory).expect("it is ours");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Self::get`]. Returns the error of the first key that has one, and then no values.
    pub fn multi_get(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = Vec::with_capacity(keys.len());
        for some in keys.chunks(GETS_AT_A_TIME) {
            let some: Vec<Box<[u8]>> = some.iter().map(|key| key.as_ref().into()).collect();
            let found = self.call(|root| {
                let engine = root.engine.clone();
                async move {
                    let gets = some.iter().map(|key| engine.get(key));
                    let found = runtime::join_all(gets).await.into_iter();
                    found.map(|value| value.map(|value| value.map(Vec::from))).collect::<Vec<_>>()
                }
            });
            for value in found {
                values.push(value.map_err(|error| self.error(&error))?);
            }
        }
        Ok(values)
    }

    /// Returns whether `key` has a value. Does not read the value; if the index is in memory, reads
    /// nothing from the drive.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn exists(&self, key: &[u8]) -> Result<bool, Error> {
        let found = self.call(|root| {
            let (engine, key) = (root.engine.clone(), Box::<[u8]>::from(key));
            async move { engine.exists(&key).await }
        });
        found.map_err(|error| self.error(&error))
    }

    /// Returns the length of the longest value that the store accepts, in bytes. Stores in small
    /// files accept less than others.
    pub fn max_value_bytes(&self) -> u32 {
        self.call(|root| {
            let most = root.engine.max_value_bytes();
            async move { most }
        })
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the key or the value is too long or the store was opened
    /// read-only, [`Error::Full`] if there is no space, and [`Error::ReadOnly`] if the store takes
    /// no writes any more; in the last case the write may or may not be durable.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write_one(key, Some(value), self.inner.outside.default_sync)
    }

    /// Sets the value of `key`, with the given durability instead of
    /// [`Options::durability`](crate::Options::durability).
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn put_with(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error> {
        self.write_one(key, Some(value), durability.into())
    }

    /// Deletes `key`, if it has a value.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn delete(&self, key: &[u8]) -> Result<(), Error> {
        self.write_one(key, None, self.inner.outside.default_sync)
    }

    /// Deletes `key`, with the given durability instead of
    /// [`Options::durability`](crate::Options::durability).
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn delete_with(&self, key: &[u8], durability: Durability) -> Result<(), Error> {
        self.write_one(key, None, durability.into())
    }

    /// Applies all writes of `batch` atomically: readers see all or none of them, also after a
    /// crash or a power cut. A later write of a key in the batch overrides an earlier one. An empty
    /// batch writes nothing.
    ///
    /// # Errors
    /// As [`Self::put`], for the batch as a whole. Returns [`Error::Invalid`] if the batch is
    /// larger than half of [`Options::memtable_bytes`](crate::Options::memtable_bytes).
    pub fn write(&self, batch: &Batch) -> Result<(), Error> {
        self.write_all(batch, self.inner.outside.default_sync)
    }

    /// Applies all writes of `batch` atomically, with the given durability instead of
    /// [`Options::durability`](crate::Options::durability).
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_with(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.write_all(batch, durability.into())
    }

    fn write_all(&self, batch: &Batch, sync: LogSync) -> Result<(), Error> {
        self.check_takes_writes()?;
        // Copies the caller's data before locking the store, because other callers wait for the
        // lock.
        let (batch, options) = (batch.to_writes(), batch.options(sync));
        let written = self.call(|root| {
            let engine = root.engine.clone();
            async move { engine.write_batch(batch, options).await }
        });
        written.map_err(|error| self.error(&error))
    }

    /// Returns an error if the store was opened read-only.
    fn check_takes_writes(&self) -> Result<(), Error> {
        if self.inner.outside.is_read_only {
            return Err(Error::Invalid("the store was opened to be read only".to_owned()));
        }
        Ok(())
    }

    fn write_one(&self, key: &[u8], value: Option<&[u8]>, sync: LogSync) -> Result<(), Error> {
        self.check_takes_writes()?;
        // Copies the caller's data before locking the store, because other callers wait for the
        // lock.
        let (key, value) = (Box::<[u8]>::from(key), value.map(Value::from_bytes));
        let written = self.call(|root| {
            let engine = root.engine.clone();
            async move { engine.write(&key, value, sync).await }
        });
        written.map_err(|error| self.error(&error))
    }

    /// Makes all acknowledged writes durable.
    ///
    /// # Errors
    /// Returns [`Error::ReadOnly`] if the store takes no writes any more.
    pub fn sync(&self) -> Result<(), Error> {
        let synced = self.call(|root| {
            let engine = root.engine.clone();
            async move { engine.sync().await }
        });
        synced.map_err(|error| self.error(&error))
    }

    /// Flushes the memtables and waits until no flush and no compaction is due. This may take long
    /// while other threads write at full speed. Garbage collection may still be running on return:
    /// a store that was full may accept puts only a little later. [`Self::compact`] waits for
    /// garbage collection.
    pub fn settle(&self) {
        self.call(|root| {
            let engine = root.engine.clone();
            async move { engine.settle().await }
        });
    }

    /// Compacts the whole store: flushes the memtables, compacts all levels into the last one,
    /// which removes old versions and tombstones, and collects those extents of the files of which
    /// at least a quarter is garbage, as far as snapshots and ranges permit. Corresponds to
    /// `CompactRange` without bounds in `RocksDB`, and to `compact` in redb.
    ///
    /// Blocks until this is done. That takes as long as writing the index once per level, plus the
    /// live data of the collected extents. Other threads can read and write meanwhile; their new
    /// writes are left to regular compactions. A second concurrent call waits for the first one and
    /// then compacts again. Files do not shrink; free space in them is reused.
    ///
    /// If space is short, extents with less garbage are collected too, until it is no longer short.
    /// A store that was full accepts puts again on return, if it had garbage. While there is not
    /// enough space to collect, deletes by other threads wait.
    ///
    /// ```
    /// # fn main() -> Result<(), levelhead::Error> {
    /// # let directory = std::env::temp_dir().join(format!("levelhead-compact-{}", std::process::id()));
    /// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
    /// for round in 0..3 {
    ///     store.put(b"apple", format!("red {round}").as_bytes())?;
    /// }
    /// store.compact()?;
    /// assert_eq!(store.inside().entries(), 1);
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&directory).expect("it is ours");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Full`] if a compaction has no space for its output and none can be freed,
    /// [`Error::Damaged`] if the index is damaged, and [`Error::ReadOnly`] if the store takes no
    /// writes any more.
    pub fn compact(&self) -> Result<(), Error> {
        self.check_takes_writes()?;
        let compacted = self.call(|root| {
            let engine = root.engine.clone();
            async move { Box::pin(engine.compact()).await }
        });
        compacted.map_err(|error| self.error(&error))
    }

    /// Returns the directories that were lost or read-only when the store was opened: at most one.
    /// The store runs without it, and does not survive the loss of another.
    pub fn lost(&self) -> Vec<PathBuf> {
        self.call(|root| {
            let lost = root.lost.clone();
            async move { lost }
        })
    }

    /// Returns the reason why the system refuses `io_uring`. In that case threads do the file I/O
    /// instead, which is slower. Returns `None` if the system does not refuse it, or if `io_uring`
    /// was not tried ([`Options::io`](crate::Options::io)).
    pub fn io_uring_refused(&self) -> Option<&str> {
        match &self.inner.io {
            Some(IoEngine::Threads { why, .. }) => why.as_deref(),
            _ => None,
        }
    }

    /// Makes all acknowledged writes durable. If this is the last handle, also closes the store, so
    /// that its files can be opened again.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn close(self) -> Result<Closed, Error> {
        self.sync()?;
        // If several handles are closed concurrently, exactly one of them is the last.
        let last = Arc::into_inner(self.inner);
        Ok(if last.is_some() { Closed::Store } else { Closed::Handle })
    }

    /// Runs a future in the store's runtime, on the calling thread.
    pub(crate) fn call<R: Send, F: Future<Output = R>>(
        &self,
        make: impl FnOnce(&Root) -> F + Send,
    ) -> R {
        self.inner.call(make)
    }

    /// Reads the store's in-memory state, under the runtime's lock.
    pub(crate) fn look<R: Send>(&self, at: impl FnOnce(&Root) -> R + Send) -> R {
        self.inner.look(at)
    }

    /// Whether a panic occurred inside the store, or this process was forked from the one that
    /// opened it. In both cases there are no resources to release in the runtime.
    pub(crate) fn is_broken(&self) -> bool {
        self.inner.shared().is_broken() || self.inner.is_copied()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.inner.outside.place
    }

    /// Converts an engine error and adds its cause: the latest trouble of a file if the store takes
    /// no more writes or the disk is full, and the store's capacity if the store itself is full.
    pub(crate) fn error(&self, error: &EngineError) -> Error {
        let is_of_disk = matches!(error, EngineError::Medium(MediumError::NoSpace));
        match Error::of_engine(error, &self.inner.outside.place) {
            Error::ReadOnly(what) => Error::ReadOnly(self.with_trouble(&what)),
            Error::Full(what) if is_of_disk => Error::Full(self.with_trouble(&what)),
            Error::Full(what) if matches!(error, EngineError::Full(UsedUp::Space)) => {
                let bytes = self.look(Root::capacity_bytes);
                Error::Full(format!(
                    "{what}, or open it with more `capacity_bytes` than its {bytes}"
                ))
            }
            other => other,
        }
    }

    fn with_trouble(&self, what: &str) -> String {
        let trouble = self.call(|root| {
            let last = root.device.last_trouble();
            async move { last }
        });
        let trouble = trouble.map_or(String::new(), |last| format!("{last}; "));
        format!("{trouble}{what}")
    }
}

impl Inner {
    /// Whether this process was made by `fork` from the one that opened the store.
    fn is_copied(&self) -> bool {
        self.mark.is_lost()
    }

    fn shared(&self) -> &Shared<Result<Root, Error>> {
        self.shared.as_ref().expect("it ends with the last handle")
    }

    fn call<R: Send, F: Future<Output = R>>(&self, make: impl FnOnce(&Root) -> F + Send) -> R {
        self.assert_own();
        self.shared().call(|root| make(opened(root)))
    }

    fn look<R: Send>(&self, at: impl FnOnce(&Root) -> R + Send) -> R {
        self.assert_own();
        self.shared().look(|root| at(opened(root)))
    }

    /// Makes the store durable when the last handle is dropped. Does nothing if the runtime is
    /// broken by a panic.
    fn make_whole(&self) {
        if self.shared().is_broken() {
            return;
        }
        // Ignores the result: callers that need it use `close`. No write waits for disk space any
        // more.
        let _ = self.call(|root| {
            root.device.wait_for_room(false);
            let (engine, unused) = (root.engine.clone(), [seed(), seed()].map(u64::to_le_bytes));
            async move { engine.close(unused.as_flattened()).await }
        });
        // Turns the drives' windows off, because no process controls them from now on.
        self.call(Root::leave_windows);
    }

    fn assert_own(&self) {
        assert!(
            !self.is_copied(),
            "the store belongs to the process that this one was forked from"
        );
    }
}

fn opened(root: &Result<Root, Error>) -> &Root {
    root.as_ref().unwrap_or_else(|error| unreachable!("it was opened: {error}"))
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_copied() {
            // This process has no driver thread to join, and no thread that could release the rest.
            std::mem::forget(self.driver.take());
            return;
        }
        // After a panic inside the store, its in-memory state cannot be trusted: the log recovers
        // the durable writes. The same holds if a panic occurs now.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| self.make_whole()));
        self.shared().stop();
        if let Some(driver) = self.driver.take() {
            let _ = driver.join();
        }
        if self.shared().is_broken() {
            // Drops the runtime with all its I/O. Calls that were in progress are leaked and keep
            // the files open, so the locks are released explicitly.
            self.shared = None;
            self.outside.locks.give_up();
        }
    }
}
