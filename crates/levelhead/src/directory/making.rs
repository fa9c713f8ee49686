//! Places for new stores: checks that a store may be created there, and locks meanwhile.

use std::fs::{self, TryLockError};
use std::path::{Path, PathBuf};

use super::files::{NAME, data_file};
use super::identity::Identity;
use super::names::whole_path;
use super::record::read;
use crate::drive;
use crate::error::Error;

/// Locks on the directories and drives in which a store is being created. They keep other processes
/// from creating a store there.
pub(crate) struct Making {
    held: Vec<(fs::File, bool)>,
}

impl Making {
    /// Takes the locks.
    ///
    /// # Errors
    /// Returns [`Error::InUse`] if another process creates a store there, or if a directory is
    /// given twice.
    pub(crate) fn begin(directories: &[PathBuf]) -> Result<Self, Error> {
        let held = directories.iter().map(|path| {
            let file =
                fs::File::open(path).map_err(|error| Error::of_path(path, "opened", &error))?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => Err(Error::InUse(path.clone())),
                // Some file systems do not support locks on directories; `data` has a lock of its
                // own.
                Ok(()) | Err(TryLockError::Error(_)) => Ok((file, drive::is_drive(path))),
            }
        });
        Ok(Self { held: held.collect::<Result<_, _>>()? })
    }

    /// Releases the locks on drives. A drive has only one lock, which the device of its pages needs
    /// now. [`check_drives`] detects another process that took the drive in between.
    pub(crate) fn leave_drives(&mut self) {
        self.held.retain(|(_, is_drive)| !is_drive);
    }
}

/// Checks that the identity on each drive is still the one that this process wrote.
///
/// # Errors
/// Returns [`Error::InUse`] if another process is creating a store on one of the drives.
pub(crate) fn check_drives(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    for path in directories.iter().filter(|path| drive::is_drive(path)) {
        if !read(path)?.is_some_and(|said| said.is_of(identity)) {
            return Err(Error::InUse(path.clone()));
        }
    }
    Ok(())
}

/// Checks that a store may be created in a directory. A file of pages beside an incomplete
/// `LEVELHEAD` is left over from a creation that was interrupted.
///
/// # Errors
/// Returns [`Error::Invalid`] if the file belongs to another program or to a store that lost its
/// `LEVELHEAD`.
pub(crate) fn check_is_free(directory: &Path, data: &Path) -> Result<(), Error> {
    if read(directory)?.is_some() || !data.exists() {
        return Ok(());
    }
    if drive::is_drive(directory) {
        return drive::check_is_blank(directory);
    }
    Err(Error::Invalid(format!(
        "{} is there without the {NAME} that a store has beside it, and making a store would overwrite it: name another \
         directory, or move it away; if it was a store, put its {NAME} back or save it with `levelhead repair`",
        data.display()
    )))
}

/// Checks that a directory holds no store, so that a new one may be created.
///
/// # Errors
/// Returns [`Error::Invalid`] if it holds a store.
fn check_holds_none(directory: &Path) -> Result<(), Error> {
    if read(directory)?.is_some_and(|said| !said.is_being_made) {
        return Err(holds_one(directory));
    }
    Ok(())
}

/// Checks that a copy of the store in the directories `own` may be created in a directory.
///
/// # Errors
/// Returns [`Error::Invalid`] if the directory is one of `own` or inside one, or if it holds a
/// store or other files that are in the way.
pub(crate) fn check_takes_copy(directory: &Path, own: &[PathBuf]) -> Result<(), Error> {
    let whole = whole_path(directory);
    if let Some(own) = own.iter().find(|own| whole.starts_with(whole_path(own))) {
        return Err(Error::Invalid(format!(
            "{} is within {}, which is the store's own: name a directory elsewhere",
            directory.display(),
            own.display()
        )));
    }
    check_holds_none(directory)?;
    check_is_free(directory, &data_file(directory))
}

/// Returns the error for a directory that holds a store.
pub(crate) fn holds_one(directory: &Path) -> Error {
    Error::Invalid(format!("{} holds a store; name another directory", directory.display()))
}
