//! Errors: cause, place and remedy.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use engine::{EngineError, Expired, MediumError, OpenError, PageNo, WantOf};
use files::{FileError, Trouble};
use volume::VolumeError;

use crate::drive;

/// The error of a store operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A key, a value or an option is not permitted. Nothing was done.
    Invalid(String),
    /// The store or the disk is full: delete pairs, or give the store more space.
    Full(String),
    /// A part of the store is damaged or cannot be read. The rest of the store can be read.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset in the file, in bytes; `None` for the file as a whole.
        offset: Option<u64>,
        /// A description of the damage.
        what: String,
    },
    /// The store is already open, in another process or in this one.
    InUse(PathBuf),
    /// No store exists, or parts of it are missing.
    Missing(String),
    /// The store takes no more writes because earlier writes could not be made durable, or it does
    /// not open because its files are read-only. Close the store, fix the cause
    /// ([`Statistics::troubles`](crate::Statistics::troubles) names the file), and open it again.
    ReadOnly(String),
    /// The store could not keep the instant of a snapshot or a range. Create a new one.
    /// [`Statistics`](crate::Statistics) show how close the oldest instant is to this.
    TooOld {
        /// The age of the instant when it was dropped.
        age: Duration,
        /// The resource that ran out.
        for_want_of: WantOf,
    },
    /// A range has stepped over this number of tombstones, which exceeds its limit
    /// ([`Range::over_at_most`](crate::Range::over_at_most)).
    Deletions(u64),
    /// The operating system returned an error.
    System {
        /// The operation and the system's message.
        what: String,
        /// The kind of error; [`ErrorKind::Other`] if the system gave none.
        kind: ErrorKind,
    },
}

impl Error {
    /// Converts the error of opening a store. The last of the files' `troubles` names the file that
    /// takes no writes.
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

    /// Converts an error of a volume: files that do not belong to one store in this order.
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

    /// Returns the error for a missing or unusable file of pages beside a valid `LEVELHEAD`.
    pub(crate) fn lost(path: PathBuf, what: &str) -> Self {
        let what = format!("{what}, and LEVELHEAD beside it says that it has a store's pages");
        Self::Damaged { path, offset: None, what }
    }

    /// Returns the error for a file that is shorter than the store's capacity.
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

    /// Returns an error of the system; `what` is its complete description.
    pub(crate) fn system(what: impl fmt::Display, kind: ErrorKind) -> Self {
        Self::System { what: what.to_string(), kind }
    }

    pub(crate) fn no_runtime(error: &io::Error) -> Self {
        Self::system(format_args!("no runtime: {error}"), error.kind())
    }

    /// Returns the error for an operation that failed on the file or directory at `path`.
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

/// The location of a store's pages, for error messages.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The files of the store.
    pub files: Arc<[PathBuf]>,
    /// The size of a page, in bytes.
    pub page_bytes: u64,
}

impl Place {
    pub(crate) fn damaged(&self, page: PageNo, fault: &dyn fmt::Display) -> Error {
        // With several files, only the volume knows the damaged file; it has already tried to
        // rebuild the page from the others.
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
