//! The files of a store's directory: `data`, and `LEVELHEAD`, a few lines of text that identify the
//! store.
//!
//! When a store is created, `LEVELHEAD` is written first, marked as incomplete, and last, marked as
//! complete. Later it is rewritten only when the directories have moved and all of them are
//! present. If one of several directories is marked as complete, all of them have their pages; if
//! none is, the store does not exist yet and nothing is lost. A `data` file without a `LEVELHEAD`
//! belongs to another program and is not touched.
//!
//! A directory that does not exist counts as lost only if the others know its name, or if
//! [`Options::degraded`] is set. Else the name is probably mistyped, and the intended directory
//! would miss all writes made without it.

pub(crate) mod growth;
mod identity;
mod names;
mod replacing;

use std::fs::{self, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::drive;
use crate::error::Error;
use crate::options::PAGE_BYTES;
use crate::store::Store;
pub(crate) use identity::Identity;
pub(crate) use names::{check_names, known_as, note_names};
use names::{in_words, whole_path};
pub(crate) use replacing::{complete, hold, may_complete, with_a_way_out};

/// Versions of the directory format that this program reads. Version 2 is for stores whose files
/// can grow. The format of pages has a version of its own.
const FORMATS: RangeInclusive<u32> = 1..=2;
const NAME: &str = "LEVELHEAD";
const DATA: &str = "data";
/// The start of the text.
const MARK: &str = "# A Levelhead store.";
/// The maximum length of the text in bytes: enough for 64 of the longest paths.
const MOST_TEXT: u64 = 1 << 20;
/// The start of the last line.
const CHECKSUM: &str = "# checksum ";

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
fn identity_file(directory: &Path) -> PathBuf {
    if drive::is_drive(directory) { directory.to_owned() } else { directory.join(NAME) }
}

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

/// Opens a regular file or a drive for reading, and nothing else: opening a pipe would block until
/// a writer opens it, and a character device may have no end.
pub(crate) fn open_to_read(path: &Path) -> io::Result<fs::File> {
    if path.metadata()?.is_file() || drive::is_drive(path) {
        return fs::File::open(path);
    }
    Err(io::Error::other("it is no file"))
}

/// Returns the contents of a `LEVELHEAD`; `None` if it does not exist.
fn read_text(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let found = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| Error::of_path(path, "read", &error))?,
    };
    let damaged =
        |what: &str| Error::Damaged { path: path.to_owned(), offset: None, what: what.to_owned() };
    if !found.is_file() {
        return Err(damaged("it is no file"));
    }
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MOST_TEXT).read_to_end(&mut text));
    read.map_err(|error| Error::of_path(path, "read", &error))?;
    Ok(Some(text))
}

/// The part of the text that is the same in all versions.
#[derive(Deserialize)]
struct Form {
    format: u32,
}

/// Reads the identity in a directory; `None` if it has none.
pub(crate) fn read(directory: &Path) -> Result<Option<Identity>, Error> {
    let path = identity_file(directory);
    let text = if drive::is_drive(directory) {
        let Some(text) = drive::read(directory, MARK)? else { return Ok(None) };
        text
    } else {
        let Some(text) = read_text(&path)? else { return Ok(None) };
        text
    };
    let damaged = |what: String| Error::Damaged { path: path.clone(), offset: None, what };
    let text = String::from_utf8(text).map_err(|error| damaged(error.to_string()))?;
    let Some(at) = text.rfind(CHECKSUM) else {
        return Err(damaged("it ends before its checksum, or is no store's".to_owned()));
    };
    let (body, checksum) = text.split_at(at);
    if checksum != checksum_of(body) {
        return Err(damaged("it is not what was written: its checksum is another one".to_owned()));
    }
    let Form { format } = toml::from_str(body).map_err(|error| damaged(error.to_string()))?;
    if !FORMATS.contains(&format) {
        let (least, most) = FORMATS.into_inner();
        return Err(Error::Invalid(format!(
            "{}: the store has format {format}, this program reads formats {least} to {most}: use the one that made it",
            path.display()
        )));
    }
    let identity: Identity = toml::from_str(body).map_err(|error| damaged(error.to_string()))?;
    let is_sound = identity.extent_bytes >= u64::from(identity.page_bytes)
        && PAGE_BYTES.contains(&identity.page_bytes)
        && identity.page_bytes.is_power_of_two()
        && identity.extent_bytes.is_multiple_of(u64::from(identity.page_bytes))
        && identity.capacity_bytes.is_multiple_of(identity.extent_bytes)
        && identity.grows_to_bytes.is_multiple_of(identity.extent_bytes)
        && identity.member < identity.members;
    if !is_sound {
        return Err(damaged("its numbers contradict each other".to_owned()));
    }
    Ok(Some(identity))
}

/// Checks that a directory holds no store, so that a new one may be created.
///
/// # Errors
/// Returns [`Error::Invalid`] if it holds a store.
pub(crate) fn check_holds_none(directory: &Path) -> Result<(), Error> {
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

pub(crate) fn holds_one(directory: &Path) -> Error {
    Error::Invalid(format!("{} holds a store; name another directory", directory.display()))
}

/// Reads the identities of all directories and checks that they belong to one store. Returns `None`
/// if no directory has a complete store.
///
/// The process that created the store may have ended before it marked all directories as complete;
/// [`say_whole`] completes that.
pub(crate) fn read_all(directories: &[PathBuf]) -> Result<Option<Identity>, Error> {
    let mut first: Option<Identity> = None;
    let mut missing = Vec::new();
    let said: Vec<_> =
        directories.iter().map(|directory| read(directory)).collect::<Result<_, _>>()?;
    let is_whole = |said: &Option<Identity>| said.as_ref().is_some_and(|said| !said.is_being_made);
    if !said.iter().any(is_whole) {
        return Ok(None);
    }
    for ((member, directory), said) in directories.iter().enumerate().zip(said) {
        let Some(identity) = said else {
            missing.push(directory.clone());
            // Another drive in the place of a lost one: it will be overwritten.
            if drive::is_drive(directory) {
                drive::check_is_blank(directory)?;
            }
            continue;
        };
        let path = identity_file(directory);
        let wrong = |what: &str| Error::Invalid(format!("{}: {what}", path.display()));
        if usize::from(identity.members) != directories.len() {
            let (members, given) = (identity.members, directories.len());
            return Err(wrong(&format!("the store is over {members} directories, not {given}")));
        }
        if usize::from(identity.member) != member {
            let before = match identity.directories.as_slice() {
                [] => String::new(),
                known => format!(": {}", known.join(", ")),
            };
            return Err(wrong(&format!(
                "the directories are given in another order than before{before}"
            )));
        }
        if first.as_ref().is_some_and(|first| !first.is_of(&identity)) {
            return Err(wrong("it is of another store than the first directory"));
        }
        let capacity_bytes = first.map_or(0, |first| first.capacity_bytes);
        let capacity_bytes = capacity_bytes.max(identity.capacity_bytes);
        first = Some(Identity { member: 0, is_being_made: false, capacity_bytes, ..identity });
    }
    match first {
        Some(_) if missing.len() > 1 => Err(Error::Missing(format!(
            "{} of {} directories are lost or empty, {}; one may be: bring back the others, or see whether these are their names",
            missing.len(),
            directories.len(),
            in_words(&missing)
        ))),
        first => Ok(first),
    }
}

/// Marks the remaining directories as complete, if the process that created the store ended before
/// it did so.
pub(crate) fn say_whole(directories: &[PathBuf]) -> Result<(), Error> {
    for directory in directories {
        if let Some(said) = read(directory)?.filter(|said| said.is_being_made) {
            write(directory, &Identity { is_being_made: false, ..said })?;
        }
    }
    Ok(())
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

/// Writes the store's identity to blank drives that replace lost ones. The volume fills them.
pub(crate) fn adopt_drives(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    for (member, path) in (0..).zip(directories) {
        if drive::is_drive(path) && read(path)?.is_none() {
            write(path, &Identity { member, ..identity.clone() })?;
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

impl Store {
    /// Returns whether these directories contain a store, or the remains of one.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if a `LEVELHEAD` is damaged, [`Error::Invalid`] if the
    /// directories belong to several stores or are given in another order, and [`Error::Missing`]
    /// if too many are lost.
    pub fn is_in(directories: &[impl AsRef<Path>]) -> Result<bool, Error> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        Ok(read_all(&paths)?.is_some())
    }

    /// Returns the directories of a store that are lost at present: those that lack its files or
    /// are on a read-only file system. To only read such a store, open it with
    /// [`Options::read_only`](crate::Options::read_only), so that the lost directories do not fall
    /// further behind.
    pub fn lost_in(directories: &[impl AsRef<Path>]) -> Vec<PathBuf> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        [lost(&paths), read_only(&paths)].concat()
    }
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

fn sync_directory(directory: &Path) -> io::Result<()> {
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

/// Writes the identity of each member, durably.
pub(crate) fn write_all(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    let mut members = (0..).zip(directories);
    members.try_for_each(|(member, directory)| {
        write(directory, &Identity { member, ..identity.clone() })
    })
}

/// Marks a new store as complete, durably.
pub(crate) fn finish(directories: &[PathBuf]) -> Result<(), Error> {
    directories.iter().try_for_each(|directory| match read(directory)? {
        Some(said) => write(directory, &Identity { is_being_made: false, ..said }),
        None => Err(Error::Missing(format!("{} is no store any more", directory.display()))),
    })
}

/// Writes the identity of a member, durably.
fn write(directory: &Path, identity: &Identity) -> Result<(), Error> {
    let (path, part) = (identity_file(directory), directory.join(".LEVELHEAD.part"));
    let is_drive = drive::is_drive(directory);
    let directories = if is_drive { Vec::new() } else { identity.directories.clone() };
    let identity = Identity { directories, ..identity.clone() };
    let text = toml::to_string(&identity).expect("numbers and text can be written");
    let body = format!("{MARK} Do not edit.\n{text}");
    if is_drive {
        let written = drive::write(directory, &format!("{body}{}", checksum_of(&body)));
        return written.map_err(|error| Error::of_path(&path, "written", &error));
    }
    clear(&part).map_err(|error| Error::of_path(&part, "removed", &error))?;
    let written = fs::File::create_new(&part).and_then(|mut file| {
        file.write_all(body.as_bytes())?;
        file.write_all(checksum_of(&body).as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, &path)?;
        fs::File::open(directory)?.sync_all()
    });
    written.map_err(|error| Error::of_path(&path, "written", &error))
}

/// Removes the remains of an interrupted write. Removing the file, of whatever type, ensures that
/// nothing is written through a link.
fn clear(part: &Path) -> io::Result<()> {
    match fs::remove_file(part) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns the last line: the checksum of everything before it.
fn checksum_of(body: &str) -> String {
    format!("{CHECKSUM}{:08x}\n", crc32c::crc32c(body.as_bytes()))
}
