//! The files of a store's directory, and their names on the disk.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::drive;
use crate::error::Error;

/// The name of the text that identifies the store.
pub(super) const NAME: &str = "LEVELHEAD";
/// The name of the file with the pages.
const DATA: &str = "data";

/// Returns the file or drive with the pages of a member.
pub(crate) fn data_file(directory: &Path) -> PathBuf {
    if drive::is_drive(directory) { directory.to_owned() } else { directory.join(DATA) }
}

/// Returns the directory or drive that has this file of pages.
pub(crate) fn of_file(data: &Path) -> PathBuf {
    let parent = data.parent().filter(|_| !drive::is_drive(data));
    parent.unwrap_or(data).to_owned()
}

/// Returns the file or drive with the identity of a member.
pub(super) fn identity_file(directory: &Path) -> PathBuf {
    if drive::is_drive(directory) { directory.to_owned() } else { directory.join(NAME) }
}

/// Opens a regular file or a drive for reading, and nothing else: opening a pipe would block until
/// a writer opens it, and a character device may have no end.
pub(crate) fn open_to_read(path: &Path) -> io::Result<fs::File> {
    if path.metadata()?.is_file() || drive::is_drive(path) {
        return fs::File::open(path);
    }
    Err(io::Error::other("it is no file"))
}

/// Checks that the pages of each directory are in a regular file. A drive under that name belongs
/// to another user, and would be written to if it were taken for a replacement.
///
/// # Errors
/// Returns [`Error::Damaged`] if there is a drive.
pub(crate) fn check_files(directories: &[PathBuf]) -> Result<(), Error> {
    for directory in directories.iter().filter(|directory| !drive::is_drive(directory)) {
        let path = directory.join(DATA);
        if drive::is_drive(&path) {
            return Err(Error::lost(path, "it is a drive, not a file"));
        }
    }
    Ok(())
}

/// Returns the lost directories of a store: those that lack one of its two files. The store can
/// open without one of them. Drives are not checked here, because they hold their identity
/// themselves.
pub(crate) fn lost(directories: &[PathBuf]) -> Vec<PathBuf> {
    let is_lost = |directory: &&PathBuf| {
        let has_files = [NAME, DATA].iter().all(|name| directory.join(name).exists());
        !drive::is_drive(directory) && !has_files
    };
    directories.iter().filter(is_lost).cloned().collect()
}

/// Returns the directories whose pages can be read but are on a read-only file system.
pub(crate) fn read_only(directories: &[PathBuf]) -> Vec<PathBuf> {
    let is_read_only = |directory: &&PathBuf| {
        let file = data_file(directory);
        // Opening a pipe in its place would block until a reader opens it.
        if !file.is_file() {
            return false;
        }
        let opened = fs::OpenOptions::new().write(true).open(file);
        opened.is_err_and(|error| error.kind() == ErrorKind::ReadOnlyFilesystem)
    };
    directories.iter().filter(is_read_only).cloned().collect()
}

/// Creates a directory and its missing parents durably, because a store is lost if its directory is
/// lost. An existing directory is synced as well: the process that created it may have ended before
/// its name was durable.
pub(crate) fn make(directory: &Path) -> Result<(), Error> {
    if directory.as_os_str().is_empty() || drive::is_drive(directory) {
        return Ok(());
    }
    if directory.is_dir() {
        return keep_name(directory);
    }
    let parent = directory.parent().unwrap_or(Path::new(""));
    make(parent)?;
    let made = match fs::create_dir(directory) {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        made => made,
    };
    let synced = made.and_then(|()| sync_directory(parent));
    synced.map_err(|error| Error::of_path(directory, "made", &error))
}

pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    let here = directory.as_os_str().is_empty();
    fs::File::open(if here { Path::new(".") } else { directory })?.sync_all()
}

/// Makes the name of an existing directory durable, as far as its parent can be read and synced.
fn keep_name(directory: &Path) -> Result<(), Error> {
    let is_its_own = |error: &io::Error| {
        let kinds = [
            ErrorKind::PermissionDenied,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::InvalidInput,
            ErrorKind::Unsupported,
        ];
        kinds.contains(&error.kind())
    };
    let parent = directory.parent().unwrap_or(Path::new(""));
    match sync_directory(parent) {
        Err(error) if !is_its_own(&error) => Err(Error::of_path(parent, "synced", &error)),
        _ => Ok(()),
    }
}

/// Makes the names of an existing store durable. The process that created them may have ended
/// before they were durable, or may have received an error. Without this, later writes could be
/// lost together with the names.
pub(crate) fn keep_names(directories: &[PathBuf]) -> Result<(), Error> {
    let there = directories.iter().filter(|it| it.is_dir() && !drive::is_drive(it));
    for directory in there {
        keep_name(&identity_file(directory))?;
        keep_name(directory)?;
    }
    Ok(())
}

/// Removes the remains of an interrupted write. Removing the file, of whatever type, ensures that
/// nothing is written through a link.
pub(super) fn clear(part: &Path) -> io::Result<()> {
    match fs::remove_file(part) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
