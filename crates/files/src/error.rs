//! Errors of creating and opening a device.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use block::BLOCK_BYTES;
use rustix::io::Errno;

use crate::trouble::Trouble;

/// The reason why a device cannot be created or opened.
#[derive(Debug)]
pub enum FileError {
    /// The file does not exist.
    Missing(PathBuf),
    /// The file exists already.
    Exists(PathBuf),
    /// Another device, in this process or another, has the file open.
    InUse(PathBuf),
    /// The file is too small for one block.
    TooSmall(PathBuf),
    /// The path is neither a file nor a drive.
    NoFile(PathBuf),
    /// The file system has too little free space.
    NoRoom {
        /// The file.
        path: PathBuf,
        /// The size of the file in bytes.
        bytes: u64,
    },
    /// Direct I/O was required, and the file system does not support it.
    NotDirect(PathBuf),
    /// Another operation of the operating system failed.
    System {
        /// The file.
        path: PathBuf,
        /// The failed operation.
        doing: &'static str,
        /// The operating system's error.
        error: io::Error,
    },
}

impl FileError {
    /// Converts an error of the operating system.
    pub(crate) fn system(path: &Path, doing: &'static str, error: io::Error) -> Self {
        let path = path.to_owned();
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Self::Missing(path),
            Some(Errno::EXIST) => Self::Exists(path),
            // A drive with a mounted file system.
            Some(Errno::BUSY) => Self::InUse(path),
            _ => Self::System { path, doing, error },
        }
    }

    /// Whether the file system is read-only.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::System { error, .. } if error.kind() == io::ErrorKind::ReadOnlyFilesystem)
    }

    /// Converts the last of the `troubles` of a discard.
    pub(crate) fn of_trouble(path: &Path, troubles: &[Trouble]) -> Self {
        let error = troubles.last().map_or_else(String::new, Trouble::to_string);
        Self::System { path: path.to_owned(), doing: "discarded", error: io::Error::other(error) }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => {
                write!(f, "{} is not there; make it first, or name another", path.display())
            }
            Self::Exists(path) => {
                write!(f, "{} is there already; open it, or name another", path.display())
            }
            Self::InUse(path) => {
                write!(f, "{} is in use by another process, or twice by this one", path.display())
            }
            Self::TooSmall(path) => write!(
                f,
                "{} is smaller than a block of {BLOCK_BYTES} bytes; give it more",
                path.display()
            ),
            Self::NoFile(path) => write!(f, "{} is neither a file nor a drive", path.display()),
            Self::NoRoom { path, bytes } => write!(
                f,
                "there is no room for {bytes} bytes at {}; take fewer, or another file system",
                path.display()
            ),
            Self::NotDirect(path) => write!(
                f,
                "the file system of {} takes no direct I/O; open it without",
                path.display()
            ),
            Self::System { path, doing, error } => {
                write!(f, "{} cannot be {doing}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Converts the error of a failed allocation.
pub(crate) fn of_room(path: &Path, bytes: u64, error: io::Error) -> FileError {
    let is_room =
        matches!(Errno::from_io_error(&error), Some(Errno::NOSPC | Errno::FBIG | Errno::DQUOT));
    if is_room {
        FileError::NoRoom { path: path.to_owned(), bytes }
    } else {
        FileError::system(path, "made", error)
    }
}

/// Whether the error means that the file system or drive does not support the operation.
pub(crate) fn is_unknown(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::NOSYS))
}
