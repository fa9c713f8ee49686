//! The files of a store: `data`, and `LEVELHEAD`, which says in a few lines of text what it is.
//!
//! `LEVELHEAD` is written first when a store is made, to say that it is being made, and last, to say that it is whole; and never
//! again, but for the directories' names, if all of them are found elsewhere. Where one of several directories says that it is whole, the pages of all of them are there; where
//! none does, there is no store yet, and none was lost. A `data` without it is somebody's, and not touched.
//!
//! A directory that does not exist is lost only if the others know it by that name, or whoever opens the store says so
//! ([`Options::degraded`]): else it is a name mistyped, and the directory that was meant would lack what is written without it.

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

/// Versions of the directory's form that this program reads: the second one is that of stores whose files may grow. What is in pages has one of its own.
const FORMATS: RangeInclusive<u32> = 1..=2;
const NAME: &str = "LEVELHEAD";
const DATA: &str = "data";
/// What the text begins with.
const MARK: &str = "# A Levelhead store.";
/// No text is longer: 64 names of the longest paths fit.
const MOST_TEXT: u64 = 1 << 20;
/// What the last line begins with.
const CHECKSUM: &str = "# checksum ";

/// The file with a store's pages.
pub(crate) fn data_file(directory: &Path) -> PathBuf {
    if drive::is_drive(directory) { directory.to_owned() } else { directory.join(DATA) }
}

/// The directory, or the drive, that has this file of pages.
pub(crate) fn of_file(data: &Path) -> PathBuf {
    let parent = data.parent().filter(|_| !drive::is_drive(data));
    parent.unwrap_or(data).to_owned()
}

/// Where a member says what it is.
fn identity_file(directory: &Path) -> PathBuf {
    if drive::is_drive(directory) { directory.to_owned() } else { directory.join(NAME) }
}

/// Somebody makes a store in these directories, and on these drives: others who would wait until this goes.
pub(crate) struct Making {
    held: Vec<(fs::File, bool)>,
}

impl Making {
    /// # Errors
    /// [`Error::InUse`]: somebody else does, or one of them is named twice.
    pub(crate) fn begin(directories: &[PathBuf]) -> Result<Self, Error> {
        let held = directories.iter().map(|path| {
            let file =
                fs::File::open(path).map_err(|error| Error::of_path(path, "opened", &error))?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => Err(Error::InUse(path.clone())),
                // Some file systems have no locks of directories; `data` has one of its own.
                Ok(()) | Err(TryLockError::Error(_)) => Ok((file, drive::is_drive(path))),
            }
        });
        Ok(Self { held: held.collect::<Result<_, _>>()? })
    }

    /// Drives have one lock each, which is needed for their pages now: [`check_drives`] says whether somebody was faster.
    pub(crate) fn leave_drives(&mut self) {
        self.held.retain(|(_, is_drive)| !is_drive);
    }
}

/// What drives say of themselves is still what was written last, by who has them now.
///
/// # Errors
/// [`Error::InUse`]: somebody else makes a store on one of them.
pub(crate) fn check_drives(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    for path in directories.iter().filter(|path| drive::is_drive(path)) {
        if !read(path)?.is_some_and(|said| said.is_of(identity)) {
            return Err(Error::InUse(path.clone()));
        }
    }
    Ok(())
}

/// A store may be made in a directory: a file of pages that is there was left by somebody who was ended while it made one.
///
/// # Errors
/// [`Error::Invalid`]: it is somebody's, or a store's that lost its `LEVELHEAD`.
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

/// Opens a file to be read, and nothing else that may have its name: opening a pipe would wait for a writer, and a device may have no end. What a drive has
/// is opened as well.
pub(crate) fn open_to_read(path: &Path) -> io::Result<fs::File> {
    if path.metadata()?.is_file() || drive::is_drive(path) {
        return fs::File::open(path);
    }
    Err(io::Error::other("it is no file"))
}

/// What stands in a `LEVELHEAD`; nothing if there is none.
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

/// What of a text is the same in all its versions.
#[derive(Deserialize)]
struct Form {
    format: u32,
}

/// What a directory says; nothing if it is not a store's.
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

/// A new store is made where none is.
///
/// # Errors
/// [`Error::Invalid`]: there is one.
pub(crate) fn check_holds_none(directory: &Path) -> Result<(), Error> {
    if read(directory)?.is_some_and(|said| !said.is_being_made) {
        return Err(holds_one(directory));
    }
    Ok(())
}

/// A copy of the store in the directories `own` may be made in a directory: it is none of them, nor within one, and there is nothing in its way.
///
/// # Errors
/// [`Error::Invalid`]: it is, or there is.
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

/// What all directories say, which must be of one store. `None` if none of them is one's.
///
/// Whoever made it may have ended before all of them said that it is whole: [`say_whole`].
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
            // Another drive in the place of one that was lost: it will be written to.
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

/// Has those say that the store is whole whose maker had ended before they did.
pub(crate) fn say_whole(directories: &[PathBuf]) -> Result<(), Error> {
    for directory in directories {
        if let Some(said) = read(directory)?.filter(|said| said.is_being_made) {
            write(directory, &Identity { is_being_made: false, ..said })?;
        }
    }
    Ok(())
}

/// The pages of a directory are in a file of it: a drive that has its name is somebody's, and may be written to where it is taken for a fresh one.
///
/// # Errors
/// [`Error::Damaged`]: one is there.
pub(crate) fn check_files(directories: &[PathBuf]) -> Result<(), Error> {
    for directory in directories.iter().filter(|directory| !drive::is_drive(directory)) {
        let path = directory.join(DATA);
        if drive::is_drive(&path) {
            return Err(Error::lost(path, "it is a drive, not a file"));
        }
    }
    Ok(())
}

/// Has fresh drives that stand in the place of lost ones say what they are from now on: the volume fills them.
pub(crate) fn adopt_drives(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    for (member, path) in (0..).zip(directories) {
        if drive::is_drive(path) && read(path)?.is_none() {
            write(path, &Identity { member, ..identity.clone() })?;
        }
    }
    Ok(())
}

/// Directories of a store that are lost: they have not both of its files. The store goes on without one of them. What is on a drive, it says
/// itself.
pub(crate) fn lost(directories: &[PathBuf]) -> Vec<PathBuf> {
    let is_lost = |directory: &&PathBuf| {
        let has_files = [NAME, DATA].iter().all(|name| directory.join(name).exists());
        !drive::is_drive(directory) && !has_files
    };
    directories.iter().filter(is_lost).cloned().collect()
}

/// Directories of a store whose pages are on a file system that takes no writes, and can be read.
pub(crate) fn read_only(directories: &[PathBuf]) -> Vec<PathBuf> {
    let is_read_only = |directory: &&PathBuf| {
        let file = data_file(directory);
        // A pipe in its place would wait for a reader.
        if !file.is_file() {
            return false;
        }
        let opened = fs::OpenOptions::new().write(true).open(file);
        opened.is_err_and(|error| error.kind() == ErrorKind::ReadOnlyFilesystem)
    };
    directories.iter().filter(is_read_only).cloned().collect()
}

impl Store {
    /// Whether there is a store in these directories, or what was left of one.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is one that cannot be opened so; [`Error::Invalid`] if there are parts of several, or in another order;
    /// [`Error::Missing`] if too many are lost.
    pub fn is_in(directories: &[impl AsRef<Path>]) -> Result<bool, Error> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        Ok(read_all(&paths)?.is_some())
    }

    /// Which of a store's directories are lost as things stand: they have not the files of one, or are on a file system that takes no writes. Who
    /// only reads may open it with [`Options::read_only`](crate::Options::read_only) then, so that it is no further behind when they are back.
    pub fn lost_in(directories: &[impl AsRef<Path>]) -> Vec<PathBuf> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        [lost(&paths), read_only(&paths)].concat()
    }
}

/// Makes a directory and those that it is in, if there are none, durably: a store whose directory is lost is lost. One that is there may have been made by somebody
/// who ended before its name was durable.
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
        // Somebody else was faster.
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

/// Makes the name of a directory durable that is there, as far as its parent may be read, and takes writes.
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

/// Makes the names of a store durable that are found: whoever gave them may have ended before they were, or heard that they could not be. Were they taken for
/// durable, what is written from now on would go with them.
pub(crate) fn keep_names(directories: &[PathBuf]) -> Result<(), Error> {
    let there = directories.iter().filter(|it| it.is_dir() && !drive::is_drive(it));
    for directory in there {
        keep_name(&identity_file(directory))?;
        keep_name(directory)?;
    }
    Ok(())
}

/// Says what each of them is, durably.
pub(crate) fn write_all(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    let mut members = (0..).zip(directories);
    members.try_for_each(|(member, directory)| {
        write(directory, &Identity { member, ..identity.clone() })
    })
}

/// Says of a store that was made that it is whole, durably.
pub(crate) fn finish(directories: &[PathBuf]) -> Result<(), Error> {
    directories.iter().try_for_each(|directory| match read(directory)? {
        Some(said) => write(directory, &Identity { is_being_made: false, ..said }),
        None => Err(Error::Missing(format!("{} is no store any more", directory.display()))),
    })
}

/// Says what a directory is, durably.
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

/// Removes what was left by somebody who was ended while it wrote; whatever it is, nothing is written through it.
fn clear(part: &Path) -> io::Result<()> {
    match fs::remove_file(part) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The last line, which holds for all before it.
fn checksum_of(body: &str) -> String {
    format!("{CHECKSUM}{:08x}\n", crc32c::crc32c(body.as_bytes()))
}
