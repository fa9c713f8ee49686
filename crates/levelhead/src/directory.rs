//! The files of a store: `data`, and `LEVELHEAD`, which says in a few lines of text what it is.
//!
//! `LEVELHEAD` is written last when a store is made and never again, so that a directory has a whole store or none.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::store::Store;

/// The version of the directory's form. What is in pages has one of its own.
const FORMAT: u32 = 1;
const NAME: &str = "LEVELHEAD";
const DATA: &str = "data";

/// What a directory says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    pub format: u32,
    /// Of the store; the same in all its directories.
    pub id: u32,
    /// Directories that the store is over, and which of them this is, from 0.
    pub members: u16,
    pub member: u16,
    pub page_bytes: u32,
    pub extent_bytes: u64,
    pub capacity_bytes: u64,
}

impl Identity {
    /// A new store of so many bytes in each directory.
    pub(crate) fn new(id: u32, members: u16, capacity_bytes: u64) -> Self {
        // Some hundred extents, so that collecting one is a small part of the work, and none so small that its
        // appends are.
        let extent_bytes = (capacity_bytes / 512).next_power_of_two().clamp(1 << 20, 16 << 20);
        let capacity_bytes = capacity_bytes / extent_bytes * extent_bytes;
        let page_bytes = block::BLOCK_BYTES;
        Self { format: FORMAT, id, members, member: 0, page_bytes, extent_bytes, capacity_bytes }
    }

    pub(crate) fn extents(&self) -> u32 {
        (self.capacity_bytes / self.extent_bytes) as u32
    }

    pub(crate) fn pages_per_extent(&self) -> u32 {
        (self.extent_bytes / u64::from(self.page_bytes)) as u32
    }

    /// Whether the two are of one store.
    fn is_of(&self, other: &Self) -> bool {
        Self { member: 0, ..self.clone() } == Self { member: 0, ..other.clone() }
    }
}

/// The file with a store's pages.
pub(crate) fn data_file(directory: &Path) -> PathBuf {
    directory.join(DATA)
}

/// What a directory says; nothing if it is not a store's.
pub(crate) fn read(directory: &Path) -> Result<Option<Identity>, Error> {
    let path = directory.join(NAME);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| system(&path, "read", &error))?,
    };
    let damaged = |what: String| Error::Damaged { path: path.clone(), offset: None, what };
    let identity: Identity = toml::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if identity.format != FORMAT {
        let found = identity.format;
        return Err(damaged(format!(
            "the store has format {found}, this program reads format {FORMAT}: use the one that made it"
        )));
    }
    let is_sound = identity.extent_bytes >= u64::from(identity.page_bytes)
        && identity.page_bytes == block::BLOCK_BYTES
        && identity.extent_bytes.is_multiple_of(u64::from(identity.page_bytes))
        && identity.capacity_bytes.is_multiple_of(identity.extent_bytes)
        && identity.member < identity.members;
    if !is_sound {
        return Err(damaged("its numbers contradict each other".to_owned()));
    }
    Ok(Some(identity))
}

/// What all directories say, which must be of one store. `None` if none of them is one's.
pub(crate) fn read_all(directories: &[PathBuf]) -> Result<Option<Identity>, Error> {
    let mut first: Option<Identity> = None;
    let mut is_missing = 0;
    for (member, directory) in directories.iter().enumerate() {
        let Some(identity) = read(directory)? else {
            is_missing += 1;
            continue;
        };
        let path = directory.join(NAME);
        let wrong = |what: &str| Error::Damaged { path, offset: None, what: what.to_owned() };
        if usize::from(identity.members) != directories.len() {
            let (members, given) = (identity.members, directories.len());
            return Err(wrong(&format!("the store is over {members} directories, not {given}")));
        }
        if usize::from(identity.member) != member {
            return Err(wrong("the directories are given in another order than before"));
        }
        if first.as_ref().is_some_and(|first| !first.is_of(&identity)) {
            return Err(wrong("it is of another store than the first directory"));
        }
        first.get_or_insert(Identity { member: 0, ..identity });
    }
    match first {
        Some(_) if is_missing > 1 => Err(Error::Missing(format!(
            "{is_missing} of {} directories are lost or empty; one may be",
            directories.len()
        ))),
        first => Ok(first),
    }
}

impl Store {
    /// Whether there is a store in these directories, or what was left of one.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is one, or parts of several, that cannot be opened so; [`Error::Missing`] if too many are lost.
    pub fn is_in(directories: &[impl AsRef<Path>]) -> Result<bool, Error> {
        let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
        Ok(read_all(&paths)?.is_some())
    }
}

/// Makes a directory, if there is none.
pub(crate) fn make(directory: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory).map_err(|error| system(directory, "made", &error))
}

/// Says what a directory is, durably.
pub(crate) fn write(directory: &Path, identity: &Identity) -> Result<(), Error> {
    let (path, part) = (directory.join(NAME), directory.join(".LEVELHEAD.part"));
    let text = toml::to_string(identity).expect("numbers can be written");
    let written = fs::File::create(&part).and_then(|mut file| {
        file.write_all(b"# A Levelhead store. Do not edit.\n")?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, &path)?;
        fs::File::open(directory)?.sync_all()
    });
    written.map_err(|error| system(&path, "written", &error))
}

fn system(path: &Path, doing: &str, error: &std::io::Error) -> Error {
    Error::System(format!("{} cannot be {doing}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_cut_into_some_hundred_extents_of_whole_pages() {
        for (capacity, extent, count) in
            [(64 << 20, 1 << 20, 64), (1 << 30, 2 << 20, 512), (16 << 30, 16 << 20, 1024)]
        {
            let identity = Identity::new(1, 1, capacity);
            assert_eq!((identity.extent_bytes, identity.extents()), (extent, count), "{capacity}");
            assert_eq!(u64::from(identity.pages_per_extent()) * 4096, extent);
        }
    }
}
