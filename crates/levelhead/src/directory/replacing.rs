//! One of several directories that lacks one of its files, or both.

use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use volume::header;

use super::names::in_words;
use super::{Identity, clear, data_file, lost, make, open_to_read, read, sync_directory, write};
use crate::error::Error;
use crate::options::Options;

/// Whether [`complete`] may have something to do.
pub(crate) fn may_complete(directories: &[PathBuf], options: &Options) -> bool {
    !options.read_only && !lost(directories).is_empty()
}

/// Keeps others from the files of a store that are there, until this is dropped.
///
/// # Errors
/// [`Error::InUse`]: somebody has one of them.
pub(crate) fn hold(directories: &[PathBuf]) -> Result<Vec<fs::File>, Error> {
    let files = directories.iter().map(|directory| data_file(directory));
    let held = files.filter_map(|path| Some((open_to_read(&path).ok()?, path)));
    let held = held.map(|(file, path)| match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::InUse(path)),
        // Whoever opens the file says what is wrong with it.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    });
    held.collect()
}

/// Makes anew what is missing, as far as that is asked for.
///
/// # Errors
/// [`Error::Invalid`] if there is something in its place; [`Error::Missing`] if more than one directory is lost.
pub(crate) fn complete(
    directories: &[PathBuf],
    identity: &Identity,
    options: &Options,
) -> Result<(), Error> {
    say_again(directories, identity)?;
    if options.replace_lost { replace_lost(directories, identity) } else { Ok(()) }
}

/// Writes the `LEVELHEAD` of a directory again that has only the store's pages: the others have all that it said.
///
/// # Errors
/// [`Error::Invalid`]: the file of pages is none of the store's in this place, and would be overwritten.
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

/// Whether a file has pages of a member of the store.
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

/// Makes the directory anew that is lost, without a page in it: the volume fills it.
///
/// # Errors
/// [`Error::Invalid`] if there is something in its place; [`Error::Missing`] if more than one are lost.
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

/// There is nothing by the name of a file, not even a link that leads to a disk which is not mounted.
///
/// # Errors
/// [`Error::Invalid`]: there is; or nobody can tell.
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

/// What damages a file of one of several directories does not matter to the others.
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
