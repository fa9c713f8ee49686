//! Opening and creating a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime::{ForkMark, Handle, Shared};

use super::{Inner, Store};
use crate::directory;
use crate::error::Error;
use crate::options::{Options, check};
use crate::root::open::Is;
use crate::root::{Outside, Root};
use crate::store_runtime::{drive, real_options};

impl Store {
    /// Opens the store in a directory or on a drive. If no store exists, creates one, provided that
    /// [`Options::create_if_missing`] is set.
    ///
    /// Missing parent directories are created. Other files in the directory are left alone, but a
    /// store should have a directory of its own. A drive is a block device without a file system;
    /// the store uses at most [`Options::capacity_bytes`] of it.
    ///
    /// # Errors
    /// Returns [`Error::InUse`] if the store is already open, [`Error::Damaged`] with the file and
    /// the offset if it is damaged, and other errors if the files cannot be used.
    pub fn open(directory: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        Self::open_over(&[directory], options)
    }

    /// Opens a store over several directories, which should be on different drives. They must be
    /// given in the same order each time. With three directories or more, one may be lost: its
    /// contents are rebuilt from the others.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_over(directories: &[impl AsRef<Path>], options: &Options) -> Result<Self, Error> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        let directories = paths.len();
        Self::with_root(directories, options, |handle, options| Root::open(handle, paths, options))
    }

    /// Opens a store only for reading. Sets [`Options::read_only`] if a directory is lost
    /// ([`Self::lost_in`]), so that the lost directory does not fall further behind, or if the
    /// store cannot be opened otherwise because a disk is full or read-only. Else opens it as
    /// [`Self::open_over`] does.
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

    /// Returns whether these directories contain a store, or the remains of one.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if a `LEVELHEAD` is damaged, [`Error::Invalid`] if the
    /// directories belong to several stores or are given in another order, and [`Error::Missing`]
    /// if too many are lost.
    pub fn is_in(directories: &[impl AsRef<Path>]) -> Result<bool, Error> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        Ok(directory::read_all(&paths)?.is_some())
    }

    /// Returns the directories of a store that are lost at present: those that lack its files or
    /// are on a read-only file system. To only read such a store, open it with
    /// [`Options::read_only`](crate::Options::read_only), so that the lost directories do not fall
    /// further behind.
    pub fn lost_in(directories: &[impl AsRef<Path>]) -> Vec<PathBuf> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        [directory::lost(&paths), directory::read_only(&paths)].concat()
    }

    /// Creates a new store that is marked as incomplete until `directory::finish` marks it as
    /// complete.
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
}
