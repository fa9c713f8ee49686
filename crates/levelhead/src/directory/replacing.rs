//! Restoring a member that lacks one or both of its files.

use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use volume::header;

use super::files::{clear, data_file, lost, make, open_to_read, sync_directory};
use super::identity::Identity;
use super::names::in_words;
use super::record::{read, write};
use crate::error::Error;
use crate::options::Options;

/// Whether [`complete`] may have something to restore.
pub(crate) fn may_complete(directories: &[PathBuf], options: &Options) -> bool {
    !options.read_only && !lost(directories).is_empty()
}

/// Locks the existing files of a store until the result is dropped.
///
/// # Errors
/// Returns [`Error::InUse`] if another process has locked one of them.
pub(crate) fn hold(directories: &[PathBuf]) -> Result<Vec<fs::File>, Error> {
    let files = directories.iter().map(|directory| data_file(directory));
    let held = files.filter_map(|path| Some((open_to_read(&path).ok()?, path)));
    let held = held.map(|(file, path)| match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::InUse(path)),
        // The code that opens the file reports any problem with it.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    });
    held.collect()
}

/// Restores missing files, as far as the options ask for it.
///
/// # Errors
/// Returns [`Error::Invalid`] if another file is in the way, and [`Error::Missing`] if more than
/// one directory is lost.
pub(crate) fn complete(
    directories: &[PathBuf],
    identity: &Identity,
    options: &Options,
) -> Result<(), Error> {
    say_again(directories, identity)?;
    if options.replace_lost { replace_lost(directories, identity) } else { Ok(()) }
}

/// Rewrites the missing `LEVELHEAD` of a directory that still has its pages; the other directories
/// have all of its contents.
///
/// # Errors
/// Returns [`Error::Invalid`] if the file of pages is not the store's file for this member: it
/// would be overwritten.
fn say_again(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    let lost = lost(directories);
    for (member, directory) in (0..).zip(directories).filter(|(_, it)| lost.contains(it)) {
        let data = data_file(directory);
        if !data.is_file() {
            continue;
        }
        if !has_header(&data, member, identity)? {
            return Err(Error::Invalid(format!(
                "{} is there without a LEVELHEAD beside it, and is not what the store had there: move it away, or bring back what was there",
                data.display()
            )));
        }
        write(directory, &Identity { member, ..identity.clone() })?;
    }
    Ok(())
}

/// Whether a file has pages of this member of the store.
fn has_header(data: &Path, member: u16, identity: &Identity) -> Result<bool, Error> {
    let failed = |error| Error::of_path(data, "read", &error);
    let file = open_to_read(data).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let mut start = [0; header::MOST_BYTES];
    for at in (0..bytes.saturating_sub(start.len() as u64)).step_by(identity.extent_bytes as usize)
    {
        file.read_exact_at(&mut start, at).map_err(failed)?;
        let is_its = header::decode(&start).is_some_and(|header| {
            header.volume == u64::from(identity.id) && u16::from(header.member) == member
        });
        if is_its {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Recreates the lost directory without any pages. The volume fills it.
///
/// # Errors
/// Returns [`Error::Invalid`] if another file is in the way, and [`Error::Missing`] if more than
/// one directory is lost.
fn replace_lost(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    let lost = lost(directories);
    if lost.len() > 1 {
        return Err(Error::Missing(format!("{} are lost, and one may be", in_words(&lost))));
    }
    for (member, directory) in (0..).zip(directories).filter(|(_, it)| lost.contains(it)) {
        let data = data_file(directory);
        make(directory)?;
        check_has_none(&data)?;
        if read(directory)?.is_none() {
            write(directory, &Identity { member, ..identity.clone() })?;
        }
        let part = directory.join(".data.part");
        let made = clear(&part).and_then(|()| {
            let file = fs::File::create_new(&part)?;
            file.set_len(identity.capacity_bytes)?;
            file.sync_all()?;
            fs::rename(&part, &data)?;
            sync_directory(directory)
        });
        made.map_err(|error| Error::of_path(&data, "made", &error))?;
    }
    Ok(())
}

/// Checks that nothing has this name, not even a link to a disk that is not mounted.
///
/// # Errors
/// Returns [`Error::Invalid`] if it exists, or another error if that cannot be determined.
fn check_has_none(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(_) => Err(Error::Invalid(format!(
            "{} is there, and would be overwritten: move it away",
            path.display()
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::of_path(path, "looked at", &error)),
    }
}

/// Adds advice to an error of one of several directories: the store opens without the damaged one.
pub(crate) fn with_a_way_out(directories: &[PathBuf], error: Error) -> Error {
    match error {
        Error::Damaged { path, offset, what } if directories.len() > 1 => {
            let whose = directories.iter().find(|directory| path.starts_with(directory));
            let what = match whose {
                Some(directory) => format!(
                    "{what}. If that is so of this directory alone, move {} away: the store opens with the others, which have all that it had",
                    directory.display()
                ),
                None => what,
            };
            Error::Damaged { path, offset, what }
        }
        other => other,
    }
}
