//! Errors: cause, place and remedy.

pub(crate) mod place;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use engine::WantOf;
use files::FileError;

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
