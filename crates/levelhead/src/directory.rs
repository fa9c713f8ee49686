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
//!
//! ```text
//!   files ...... the two files and their names on the disk
//!   record ..... the text of LEVELHEAD
//!   identity ... the identity that it records
//!   capacity ... sizes of files, and their limits
//!   names ...... the names by which the directories know each other
//!   making ..... checks and locks while a store is created
//!   growth ..... growth of the files
//!   replacing .. restoring a member that lacks a file
//!   state ...... the state of a directory of an open store
//! ```

pub(crate) mod capacity;
mod files;
pub(crate) mod growth;
pub(crate) mod identity;
pub(crate) mod making;
mod names;
mod record;
mod replacing;
pub(crate) mod state;

use std::path::PathBuf;

use crate::drive;
use crate::error::Error;
use files::identity_file;
pub(crate) use files::{
    check_files, data_file, keep_names, lost, make, of_file, open_to_read, read_only,
};
use identity::Identity;
pub(crate) use making::{check_drives, check_is_free, check_takes_copy, holds_one};
use names::in_words;
pub(crate) use names::{check_names, known_as, note_names};
pub(crate) use record::read;
use record::write;
pub(crate) use replacing::{complete, hold, may_complete, with_a_way_out};

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

/// Writes the store's identity to blank drives that replace lost ones. The volume fills them.
pub(crate) fn adopt_drives(directories: &[PathBuf], identity: &Identity) -> Result<(), Error> {
    for (member, path) in (0..).zip(directories) {
        if drive::is_drive(path) && read(path)?.is_none() {
            write(path, &Identity { member, ..identity.clone() })?;
        }
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
