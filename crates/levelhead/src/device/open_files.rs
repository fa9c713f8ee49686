//! The files of a store, as they are opened.

use std::path::PathBuf;

use files::{Discards, FileDevice, FileError, FileOptions, RoomOf};
use runtime::{Handle, Nanos};

use crate::directory::identity::Identity;
use crate::error::Error;
use crate::options::Options;

/// How long to wait for files or locks that another process holds.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// Returns the options with which each store's files are opened.
pub(crate) fn file_options() -> FileOptions {
    FileOptions {
        discards: Discards::Ignore,
        room: RoomOf::Written,
        bears_missing: true,
        ..FileOptions::default()
    }
}

/// Calls `begin` again while it returns [`Error::InUse`], for up to [`PATIENCE`].
pub(crate) async fn patiently<T>(
    handle: &Handle,
    begin: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    let begun = handle.now();
    loop {
        match begin() {
            Err(Error::InUse(_)) if handle.now() - begun < PATIENCE => {
                handle.sleep(Nanos::from_millis(10)).await;
            }
            got => return got,
        }
    }
}

/// Opens the files of a store. A process that was just killed may hold them a little longer, until
/// the kernel has completed its I/O.
pub(crate) async fn open_files(
    handle: &Handle,
    files: &[PathBuf],
    options: FileOptions,
) -> Result<FileDevice, Error> {
    let begun = handle.now();
    loop {
        match FileDevice::open(handle, files, options).await {
            Err(FileError::InUse(_)) if handle.now() - begun < PATIENCE => {
                handle.sleep(Nanos::from_millis(10)).await;
            }
            Err(FileError::Missing(path)) => return Err(Error::lost(path, "it is not there")),
            Err(FileError::TooSmall(path)) => {
                return Err(Error::lost(path, "it is shorter than a page"));
            }
            opened => return opened.map_err(|error| Error::of_file(&error)),
        }
    }
}

/// Allocates all space of the files, if the options ask for it.
pub(crate) async fn preallocate(
    device: &FileDevice,
    options: &Options,
    identity: &Identity,
) -> Result<(), Error> {
    if !options.preallocate || options.read_only {
        return Ok(());
    }
    let given = device.preallocate(identity.capacity_bytes).await;
    given.map_err(|error| Error::of_file(&error))
}
