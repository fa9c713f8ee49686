//! What went wrong, where, and what to do.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use files::{FileError, Trouble};
use pages::{EngineError, Expired, MediumError, OpenError, PageNo, WantOf};

use volume::VolumeError;

use crate::drive;

/// Why something could not be done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A key, a value or an option that no store takes; nothing was done.
    Invalid(String),
    /// There is no room: delete something, or give the store more.
    Full(String),
    /// Something is not what was once written there, or cannot be read. Everything else can.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it, in bytes; absent where a whole file is meant.
        offset: Option<u64>,
        /// What is wrong.
        what: String,
    },
    /// Another process has the store open, or this one does.
    InUse(PathBuf),
    /// There is no store, or not all of it.
    Missing(String),
    /// The store takes no more writes, because the ones before could not be made durable, or does not open, because its files take none. Close it,
    /// see to the cause ([`Statistics::troubles`](crate::Statistics::troubles) says in which file it was), and open it again.
    ReadOnly(String),
    /// A snapshot or a range read an instant that is too long ago to be kept. Begin it anew.
    /// [`Statistics`](crate::Statistics) say how near the oldest one is to that.
    TooOld {
        /// How old it was when it was given up.
        age: Duration,
        /// What there was too little of.
        for_want_of: WantOf,
    },
    /// A range has stepped over so many deletions, more than it was to ([`Range::over_at_most`](crate::Range::over_at_most)).
    Deletions(u64),
    /// The system refused something.
    System {
        /// What, and what it said.
        what: String,
        /// What kind of refusal that is; [`ErrorKind::Other`] where the system said nothing.
        kind: ErrorKind,
    },
}

impl Error {
    /// The same for a file or a set of options that no store can be made of. The last of the `troubles` of its files says which one takes no writes.
    pub(crate) fn of_opening(error: &OpenError, place: &Place, troubles: &[Trouble]) -> Self {
        let words = || troubles.last().map_or_else(|| error.to_string(), Trouble::to_string);
        match error {
            OpenError::Medium(MediumError::NoSpace) => Self::Full(format!(
                "{}; make room there, and open the store again; to be read only it opens as it is",
                words()
            )),
            OpenError::Medium(MediumError::ReadOnly | MediumError::Io(_)) => {
                Self::ReadOnly(words())
            }
            OpenError::Damaged(page, fault) => place.damaged(*page, fault),
            OpenError::DoesNotFit { .. } | OpenError::CachesDoNotFit { .. } => {
                Self::Invalid(error.to_string())
            }
            OpenError::TooFewExtents { needed, available } => Self::Invalid(format!(
                "the store has {available} extents, and its memtables, log and background work need {needed}: make it with \
                 some {} times the capacity_bytes, or open it with a smaller memtable_bytes",
                needed.div_ceil(*available)
            )),
            other => Self::Damaged {
                path: place.files[0].clone(),
                offset: None,
                what: other.to_string(),
            },
        }
    }

    /// Files that a store's pages cannot be on together.
    pub(crate) fn of_volume(error: &VolumeError, place: &Place) -> Self {
        match error {
            VolumeError::Foreign { member } => Self::Damaged {
                path: place.files[*member].clone(),
                offset: None,
                what: "it has pages of another store, or of this one in another form".to_owned(),
            },
            VolumeError::Swapped { member, says } => Self::Invalid(format!(
                "{} is number {} of the store's directories: give them in the order in which it was made",
                place.files[*member].display(),
                says + 1
            )),
            other => Self::system(other, ErrorKind::Other),
        }
    }

    /// A file with the pages of a store that is there.
    pub(crate) fn lost(path: PathBuf, what: &str) -> Self {
        let what = format!("{what}, and LEVELHEAD beside it says that it has a store's pages");
        Self::Damaged { path, offset: None, what }
    }

    /// A file of a store whose end is missing.
    pub(crate) fn too_short(path: &Path, found: u64, had: u64) -> Self {
        let what = format!("the file ends here, it had {had} bytes");
        Self::Damaged { path: path.to_owned(), offset: Some(found), what }
    }

    pub(crate) fn of_file(error: &FileError) -> Self {
        match error {
            FileError::InUse(path) => Self::InUse(path.clone()),
            FileError::Missing(_) => Self::Missing(error.to_string()),
            FileError::NoRoom { .. } => Self::Full(error.to_string()),
            FileError::System { error: why, .. } if why.kind() == ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly(error.to_string())
            }
            FileError::System { error: why, .. } => Self::system(error, why.kind()),
            other => Self::system(other, ErrorKind::Other),
        }
    }

    pub(crate) fn of_engine(error: &EngineError, place: &Place) -> Self {
        match error {
            EngineError::KeyLength(_)
            | EngineError::ValueTooLarge { .. }
            | EngineError::BatchTooLarge { .. } => Self::Invalid(error.to_string()),
            EngineError::Full(_) => Self::Full(error.to_string()),
            EngineError::Corrupt(page, fault) => place.damaged(*page, fault),
            EngineError::ReadOnly(_) => Self::ReadOnly(error.to_string()),
            EngineError::SnapshotTooOld(Expired { age, for_want_of }) => {
                Self::TooOld { age: Duration::from_nanos(age.0), for_want_of: *for_want_of }
            }
            EngineError::Medium(MediumError::NoSpace) => Self::Full(format!(
                "{error}: make room there, and the store goes on by itself; whether this is kept then is not known"
            )),
            EngineError::Medium(MediumError::Io(code)) => {
                Self::system(error, io::Error::from_raw_os_error(*code).kind())
            }
            EngineError::IteratorMemory => Self::system(error, ErrorKind::OutOfMemory),
            EngineError::Medium(_) | EngineError::NotPositioned => {
                Self::system(error, ErrorKind::Other)
            }
        }
    }

    /// The system refused something, of which `what` says all.
    pub(crate) fn system(what: impl fmt::Display, kind: ErrorKind) -> Self {
        Self::System { what: what.to_string(), kind }
    }

    pub(crate) fn no_runtime(error: &io::Error) -> Self {
        Self::system(format_args!("no runtime: {error}"), error.kind())
    }

    /// Something cannot be done with the file or directory at `path`.
    pub(crate) fn of_path(path: &Path, doing: &str, error: &io::Error) -> Self {
        let what = format!("{} cannot be {doing}: {error}", path.display());
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full(what),
            kind => Self::System { what, kind },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what)
            | Self::Full(what)
            | Self::Missing(what)
            | Self::System { what, .. } => f.write_str(what),
            Self::Damaged { path, offset: Some(offset), what } => {
                write!(f, "{}, at byte {offset}: {what}", path.display())
            }
            Self::Damaged { path, offset: None, what } => write!(f, "{}: {what}", path.display()),
            Self::InUse(path) => {
                write!(f, "{} is in use by another process, or twice by this one", path.display())
            }
            Self::ReadOnly(what) => write!(
                f,
                "{what}; close the store, see to the cause and open it again: what was acknowledged as durable is there"
            ),
            Self::Deletions(deletions) => {
                write!(f, "the range has {deletions} deletions so far, and was to step over fewer")
            }
            Self::TooOld { age, for_want_of } => {
                let why = match for_want_of {
                    WantOf::Memory => "snapshots and ranges had used up their memory",
                    WantOf::Space => "writers were out of space, and it kept some",
                };
                let age = age.as_secs_f64();
                write!(
                    f,
                    "the instant that is read is too long ago: it was given up after {age:.1} s, because {why}; begin anew"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// Where pages lie, for those who have to go and look.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The files of the store.
    pub files: Arc<[PathBuf]>,
    /// Bytes of a page.
    pub page_bytes: u64,
}

impl Place {
    pub(crate) fn damaged(&self, page: PageNo, fault: &dyn fmt::Display) -> Error {
        // Which file of several it is, the volume knows; it has tried the others already.
        let is_one = self.files.len() == 1;
        let first_byte = drive::first_byte(&self.files[0]);
        let offset = is_one.then(|| first_byte + u64::from(page.0) * self.page_bytes);
        let what = if is_one {
            fault.to_string()
        } else {
            format!("page {} of the store, and what it could be rebuilt from: {fault}", page.0)
        };
        Error::Damaged { path: self.files[0].clone(), offset, what }
    }
}
