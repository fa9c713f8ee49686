//! Growth of a store's files: first each file grows, then each directory records the new size.
//!
//! A file that is longer than its directory records is valid. So the largest size that any
//! directory records is the store's size, even after an interruption; the other directories are
//! updated at the next opening.

use std::path::{Path, PathBuf};

use super::files::{data_file, lost};
use super::identity::Identity;
use super::names::in_words;
use super::record::{read, write};
use crate::drive::is_drive;
use crate::error::Error;
use crate::options::Options;

/// Whether the size of a store's files is that of drives, which do not grow.
pub(crate) fn is_on_drives(directories: &[PathBuf]) -> bool {
    directories.iter().any(|path| is_drive(path))
}

/// Returns the size, in bytes, to which the options make each of a store's files grow, or `None` if
/// they need not grow. Files on drives do not grow.
///
/// # Errors
/// Returns [`Error::Invalid`] if the store cannot become so large, or if a directory is lost.
pub(crate) fn wanted(
    directories: &[PathBuf],
    options: &Options,
    identity: &Identity,
) -> Result<Option<u64>, Error> {
    let (asked, has) = (options.capacity_bytes, identity.capacity_bytes);
    if options.read_only
        || is_on_drives(directories)
        || asked / identity.extent_bytes <= has / identity.extent_bytes
    {
        return Ok(None);
    }
    let most = identity.grows_to_bytes.max(has);
    if asked > most {
        let whose = if identity.grows_to_bytes == 0 { " (an earlier version made it)" } else { "" };
        return Err(Error::Invalid(format!(
            "capacity_bytes is {asked}, and the store, which has {has}, can grow to {most} at most{whose}: copy it into a larger one \
             (Store::checkpoint, levelhead backup)"
        )));
    }
    let lost = lost(directories);
    if !lost.is_empty() {
        return Err(Error::Invalid(format!(
            "capacity_bytes is {asked}, the store has {has}, and it grows only with all of its directories: {} is lost; leave capacity_bytes as \
             it is until the store is whole again",
            in_words(&lost)
        )));
    }
    for path in directories.iter().map(|directory| data_file(directory)) {
        check_length(&path, has)?;
    }
    Ok(Some(asked / identity.extent_bytes * identity.extent_bytes))
}

/// Checks that a file was not truncated. Extending a truncated file would hide the loss.
fn check_length(path: &Path, has: u64) -> Result<(), Error> {
    let found = path.metadata().map_err(|error| Error::of_path(path, "measured", &error))?;
    if found.len() < has {
        return Err(Error::too_short(path, found.len(), has));
    }
    Ok(())
}

/// Records in all directories that their files have grown to `capacity_bytes`. Writes only to
/// directories that record less.
pub(crate) fn say_capacity(directories: &[PathBuf], capacity_bytes: u64) -> Result<(), Error> {
    for directory in directories {
        if let Some(said) = read(directory)?.filter(|said| said.capacity_bytes < capacity_bytes) {
            write(directory, &Identity { capacity_bytes, ..said })?;
        }
    }
    Ok(())
}
