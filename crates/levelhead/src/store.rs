//! What callers hold.

use std::ops::RangeBounds;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use engine::Look;
use pages::{EngineError, LogSync, MediumError, UsedUp, Value};
use runtime::{ForkMark, Handle, IoChoice, IoEngine, RealOptions, Shared};

use crate::batch::Batch;
use crate::error::{Error, Place};
use crate::options::{Durability, Io, Options, check};
use crate::range::Range;
use crate::root::{Is, Outside, Root};

/// Keys that a multi-get looks for at a time: what a drive has use for, and few enough that the lock is not held long.
const GETS_AT_A_TIME: usize = 16;

/// A store. Clones are handles to the same one, for any thread.
///
/// When the last handle is dropped, what was acknowledged is made durable and the store is closed; [`Self::close`] does the same and
/// says whether it went well.
///
/// A store belongs to the process that opened it. In a copy of that process made by `fork` all methods panic, and dropping it does nothing:
/// the copy has none of the threads, and shares the rest with its parent. What was inherited keeps the store's lock, so nobody else can
/// open the store ([`Error::InUse`]) before the copy has ended or runs another program, also if the parent has closed it. Programs that are run
/// ([`std::process::Command`]) inherit nothing.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    /// Nothing once it has ended.
    shared: Option<Arc<Shared<Result<Root, Error>>>>,
    driver: Option<JoinHandle<()>>,
    outside: Outside,
    /// How files are read and written.
    io: Option<IoEngine>,
    /// Of the process that opened it.
    mark: ForkMark,
}

/// What a handle was closed for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// It was the last one: the store is closed, and its files may be opened by others.
    Store,
    /// Others keep the store open, and may write: clones, snapshots, ranges.
    Handle,
}

impl Store {
    /// The store in a directory, or on a drive (a block device without a file system, of which it takes
    /// [`Options::capacity_bytes`] at most); if there is none, and the options say so, a new one. Directories above it that are not there are made. Other
    /// files in it are left alone, but it is best to give a store a directory of its own.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has it; [`Error::Damaged`] with the file and the place; what else stands in
    /// the way.
    pub fn open(directory: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        Self::open_over(&[directory], options)
    }

    /// The store over several directories, in the order in which it was made: with three and more, one may be lost, and what was
    /// there is rebuilt from the others. They had better be on different drives.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_over(directories: &[impl AsRef<Path>], options: &Options) -> Result<Self, Error> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        let directories = paths.len();
        Self::with_root(directories, options, |handle, options| Root::open(handle, paths, options))
    }

    /// The same for who only reads it: with [`Options::read_only`] where a directory is lost ([`Self::lost_in`]), which is left no further behind, or
    /// where it cannot be opened otherwise because a disk is full or takes no writes.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_read(
        directories: &[impl AsRef<Path>],
        options: &Options,
    ) -> Result<Self, Error> {
        let open = |read_only: bool| {
            let replace_lost = options.replace_lost && !read_only;
            Self::open_over(directories, &Options { read_only, replace_lost, ..options.clone() })
        };
        match open(options.read_only || !Self::lost_in(directories).is_empty()) {
            Err(Error::Full(_) | Error::ReadOnly(_)) => open(true),
            opened => opened,
        }
    }

    /// A new store, which does not say that it is whole until `directory::finish` has it say so.
    pub(crate) fn unfinished(directory: &Path, options: &Options) -> Result<Self, Error> {
        let paths = vec![directory.to_owned()];
        Self::with_root(1, options, |handle, options| {
            Root::create(handle, paths, options, Is::Unfinished)
        })
    }

    pub(crate) fn with_root<F: Future<Output = Result<Root, Error>> + 'static>(
        directories: usize,
        options: &Options,
        root: impl FnOnce(Handle, Options) -> F + Send,
    ) -> Result<Self, Error> {
        check(directories, options)?;
        let (real, options, mut io) = (real_options(options), options.clone(), None);
        let shared = Shared::new(real, |handle| {
            io = handle.io_engine().cloned();
            root(handle.clone(), options)
        });
        let shared = shared.map_err(|error| Error::no_runtime(&error))?;
        let opened = shared.call(|root| {
            let opened = root.as_ref().map(Outside::of).map_err(Clone::clone);
            async move { opened }
        });
        let outside = opened?;
        let shared = Arc::new(shared);
        let driver = drive(&shared)?;
        let mark = ForkMark::new();
        let inner = Inner { shared: Some(shared), driver: Some(driver), outside, io, mark };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The value of `key`, if it has one. One read of the drive, if the index is in memory and the value is not.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key that is empty or longer than 255 bytes; [`Error::Damaged`].
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

    /// The values of several keys, in the order of `keys`, with up to 16 of them being looked for at a time: as many reads of the drive are under
    /// way then. Each is what [`Self::get`] would find; a [`Snapshot`](crate::Snapshot) has all of one instant.
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
    /// As [`Self::get`], for the first key that has one; the values of others are not returned then.
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

    /// Whether `key` has a value. No value is read: where the index is in memory, nothing is.
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

    /// The longest value it takes, in bytes; of a store in small files it is less than of others.
    pub fn max_value_bytes(&self) -> u32 {
        self.call(|root| {
            let most = root.engine.max_value_bytes();
            async move { most }
        })
    }

    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key or value that is too long; [`Error::Full`]; [`Error::ReadOnly`]: whether this write is durable
    /// is not known then.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write_one(key, Some(value), self.inner.outside.default_sync)
    }

    /// As [`Self::put`], acknowledged as `durability` says.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn put_with(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error> {
        self.write_one(key, Some(value), durability.into())
    }

    /// Takes the value of `key` away, if it has one.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn delete(&self, key: &[u8]) -> Result<(), Error> {
        self.write_one(key, None, self.inner.outside.default_sync)
    }

    /// As [`Self::delete`], acknowledged as `durability` says.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn delete_with(&self, key: &[u8], durability: Durability) -> Result<(), Error> {
        self.write_one(key, None, durability.into())
    }

    /// Writes all of `batch` at one instant: no reader sees a part of it, and neither a killed process nor a power cut leaves one.
    /// Later writes of a key go over earlier ones. An empty one is no write.
    ///
    /// # Errors
    /// As [`Self::put`], for all of it; [`Error::Invalid`] if it holds more than half of what
    /// [`Options::memtable_bytes`] gives.
    pub fn write(&self, batch: &Batch) -> Result<(), Error> {
        self.write_all(batch, self.inner.outside.default_sync)
    }

    /// As [`Self::write`], acknowledged as `durability` says.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_with(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.write_all(batch, durability.into())
    }

    fn write_all(&self, batch: &Batch, sync: LogSync) -> Result<(), Error> {
        self.check_takes_writes()?;
        // What is the caller's is copied before the store is locked: others would wait for it.
        let (batch, options) = (batch.to_writes(), batch.options(sync));
        let written = self.call(|root| {
            let engine = root.engine.clone();
            async move { engine.write_batch(batch, options).await }
        });
        written.map_err(|error| self.error(&error))
    }

    /// Not if it was opened to be read only.
    fn check_takes_writes(&self) -> Result<(), Error> {
        if self.inner.outside.is_read_only {
            return Err(Error::Invalid("the store was opened to be read only".to_owned()));
        }
        Ok(())
    }

    fn write_one(&self, key: &[u8], value: Option<&[u8]>, sync: LogSync) -> Result<(), Error> {
        self.check_takes_writes()?;
        // What is the caller's is copied before the store is locked: others would wait for it.
        let (key, value) = (Box::<[u8]>::from(key), value.map(Value::from_bytes));
        let written = self.call(|root| {
            let engine = root.engine.clone();
            async move { engine.write(&key, value, sync).await }
        });
        written.map_err(|error| self.error(&error))
    }

    /// Pairs in key order whose keys are within `bounds`, as they are when the first of them is asked for, from both ends. Each item is a
    /// `Result<(Box<[u8]>, Vec<u8>), Error>`, a key and its value.
    ///
    /// Bounds are slices: `..`, `&b"a"[..]..&b"b"[..]`, or, where the first one is not to be included, a pair of [`Bound`](std::ops::Bound)s. Keys that begin with
    /// a prefix are [`Self::prefix`]'s.
    ///
    /// # What deletions cost
    /// A key that was deleted stays in the index until compactions have taken the deletion down to the last level, and a range steps over it. So the first
    /// pair of a queue whose head is taken again and again costs all that was taken before: 2 million deletions took half a second. Begin behind the key that
    /// was taken last: what is before a bound costs nothing.
    ///
    /// ```
    /// # fn main() -> Result<(), levelhead::Error> {
    /// # use std::ops::Bound;
    /// # let directory = std::env::temp_dir().join(format!("levelhead-queue-{}", std::process::id()));
    /// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
    /// # for job in 0..9 {
    /// #     store.put(format!("job {job}").as_bytes(), b"")?;
    /// # }
    /// let mut taken: Box<[u8]> = Box::from(&b"job "[..]);
    /// for _ in 0..5 {
    ///     let queue = (Bound::Excluded(&taken[..]), Bound::Excluded(&b"job!"[..]));
    ///     let Some((job, _)) = store.range(queue).next().transpose()? else { break };
    ///     store.delete(&job)?;
    ///     taken = job;
    /// }
    /// assert_eq!(*taken, *b"job 4");
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&directory).expect("it is ours");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Where nobody knows that key, [`Self::compact`] takes deletions away; [`Self::settle`] does not. Others have the store while a range steps over deletions;
    /// [`Range::over_at_most`] ends one that comes to too many.
    pub fn range<'a>(&self, bounds: impl RangeBounds<&'a [u8]>) -> Range {
        Range::new(self, &bounds)
    }

    /// Makes everything durable that was acknowledged before.
    ///
    /// # Errors
    /// [`Error::ReadOnly`].
    pub fn sync(&self) -> Result<(), Error> {
        let synced = self.call(|root| {
            let engine = root.engine.clone();
            async move { engine.sync().await }
        });
        synced.map_err(|error| self.error(&error))
    }

    /// Flushes what is in memtables, and waits until no flush and no compaction is due. Beside threads that write flat out that may be long.
    /// Garbage may be collected still: a store that was full takes puts again a little later ([`Self::compact`] waits for that).
    pub fn settle(&self) {
        self.call(|root| {
            let engine = root.engine.clone();
            async move { engine.settle().await }
        });
    }

    /// Brings the store into the shape that it would settle in at last: flushes what is in memory, compacts all levels into the
    /// last one, so that older versions and deletions are gone, and collects those parts of the files of which at least a
    /// quarter is garbage, as far as snapshots and ranges let it. It is `RocksDB`'s `CompactRange` without bounds; redb calls it
    /// `compact`.
    ///
    /// It returns when that is done, which takes as long as to write the index once for each level, and what is in use of those parts.
    /// Other threads go on, readers and writers; what they write meanwhile is left to compactions as they come. A second caller
    /// waits for the first one, and then does the same. Files do not get shorter: what is free in them is written again. A store that is short of
    /// room collects also what has less garbage, until it is short no more; if it was full, and garbage was there, it takes puts again when this
    /// returns. While it lacks the room to collect, deletes of others wait.
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
    /// [`Error::Full`] if there is no room for what a compaction writes, and none to be had; [`Error::Damaged`] if the index is; [`Error::ReadOnly`].
    pub fn compact(&self) -> Result<(), Error> {
        self.check_takes_writes()?;
        let compacted = self.call(|root| {
            let engine = root.engine.clone();
            async move { Box::pin(engine.compact()).await }
        });
        compacted.map_err(|error| self.error(&error))
    }

    /// Of a store over several directories, those that were lost or took no writes when it was opened, one at most: it goes on without, and bears no other loss.
    pub fn lost(&self) -> Vec<PathBuf> {
        self.call(|root| {
            let lost = root.lost.clone();
            async move { lost }
        })
    }

    /// Why the system refuses `io_uring`, so that threads which wait for files stand in for it and take longer; `None` if it does not, or was not
    /// asked ([`Options::io`]).
    pub fn io_uring_refused(&self) -> Option<&str> {
        match &self.inner.io {
            Some(IoEngine::Threads { why, .. }) => why.as_deref(),
            _ => None,
        }
    }

    /// Makes everything durable and, if this is the last handle, closes the store: its files may be opened by others then.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn close(self) -> Result<Closed, Error> {
        self.sync()?;
        // Of several that are closed at a time one is the last.
        let last = Arc::into_inner(self.inner);
        Ok(if last.is_some() { Closed::Store } else { Closed::Handle })
    }

    /// Runs a future in the store's runtime, on this thread.
    pub(crate) fn call<R: Send, F: Future<Output = R>>(
        &self,
        make: impl FnOnce(&Root) -> F + Send,
    ) -> R {
        self.inner.call(make)
    }

    /// Looks at what is in the store's memory.
    pub(crate) fn look<R: Send>(&self, at: impl FnOnce(&Root) -> R + Send) -> R {
        self.inner.look(at)
    }

    /// Whether something panicked within, or this is a copy of the process: whoever lets go of what it has there has nothing to do then.
    pub(crate) fn is_broken(&self) -> bool {
        self.inner.shared().is_broken() || self.inner.is_copied()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.inner.outside.place
    }

    /// Where it takes no more writes, or has no room on the disk, the file that the last trouble was with says why. Where it is full itself, how large it is.
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
    /// Whether this process is a copy, made by `fork`, of the one that opened the store.
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

    /// The last handle goes. A caller that panics, and takes it along, says nothing of the store.
    fn make_whole(&self) {
        if self.shared().is_broken() {
            return;
        }
        // Who wants to know whether it worked calls `close`. Nobody waits for room any more.
        let _ = self.call(|root| {
            root.device.wait_for_room(false);
            let (engine, unused) = (root.engine.clone(), [seed(), seed()].map(u64::to_le_bytes));
            async move { engine.close(unused.as_flattened()).await }
        });
        // Drives whose windows nobody keeps any more go on without.
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
            // There is no thread to wait for, nor is there one that would give the rest back.
            std::mem::forget(self.driver.take());
            return;
        }
        // Of one in which something panicked nobody knows what is whole: the log brings back what is durable. So if something
        // does now.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| self.make_whole()));
        self.shared().stop();
        if let Some(driver) = self.driver.take() {
            let _ = driver.join();
        }
        if self.shared().is_broken() {
            // With it all I/O. Calls that were under way are left where they are, and hold on to the files.
            self.shared = None;
            self.outside.locks.give_up();
        }
    }
}

/// The runtime that a store lives in.
pub(crate) fn real_options(options: &Options) -> RealOptions {
    let io = match options.io {
        Io::Probe => IoChoice::Probe,
        Io::Ring => IoChoice::Ring,
        Io::Threads => IoChoice::Threads,
    };
    RealOptions { seed: seed(), io, trims_heap: options.trim_heap, ..RealOptions::default() }
}

/// The thread that drives background work.
pub(crate) fn drive<T: 'static>(shared: &Arc<Shared<T>>) -> Result<JoinHandle<()>, Error> {
    let driven = Arc::clone(shared);
    let thread = thread::Builder::new().name("levelhead".to_owned());
    let spawned = thread.spawn(move || driven.drive());
    spawned.map_err(|error| {
        Error::system(format_args!("no thread for background work: {error}"), error.kind())
    })
}

/// Tells stores that are made apart. Nothing else follows from it.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
