//! Errors of saving a drive and opening it again.

use std::{fmt, io};

use engine::{NotAtRest, OpenError};

use crate::kvssd::setup::SetupError;

/// Version of the format; increases when the format of the saved data changes.
pub(super) const VERSION: u32 = 4;

/// Why a drive was not saved.
#[derive(Debug)]
pub enum SaveError {
    /// An operation is in flight on it, or its design cannot be saved.
    NotAtRest(NotAtRest),
    /// The file could not be written.
    Io(io::Error),
}

impl SaveError {
    pub(super) const TOO_LARGE: Self =
        Self::NotAtRest(NotAtRest("it has more than can be counted"));
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAtRest(why) => write!(f, "the drive cannot be saved: {why}"),
            Self::Io(error) => write!(f, "the drive could not be saved: {error}"),
        }
    }
}

impl std::error::Error for SaveError {}

impl From<NotAtRest> for SaveError {
    fn from(why: NotAtRest) -> Self {
        Self::NotAtRest(why)
    }
}

impl From<io::Error> for SaveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why a saved drive was not opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SavedError {
    /// The file is not a saved drive.
    NoDrive,
    /// The file has another version.
    OtherVersion {
        /// Version of the file.
        found: u32,
    },
    /// The file is truncated.
    TooShort,
    /// The file is damaged.
    Damaged,
    /// The file could not be read.
    Io(io::ErrorKind),
    /// The drive was created with another geometry, memory, design or expected lengths.
    OtherDrive,
    /// The drive would not continue as it was.
    NotAtRest(NotAtRest),
    /// The drive cannot be set up.
    Setup(SetupError),
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDrive => f.write_str("this is no file of a saved drive"),
            Self::OtherVersion { found } => write!(
                f,
                "the drive was saved in form {found}, and this program reads form {VERSION}: load it again"
            ),
            Self::TooShort => f.write_str("the file of the saved drive ends too soon: load it again"),
            Self::Damaged => f.write_str("the file of the saved drive is damaged: load it again"),
            Self::Io(kind) => write!(f, "the file of the saved drive could not be read: {kind}"),
            Self::OtherDrive => f.write_str(
                "the drive was saved with another geometry, memory, design or lengths of keys and values than it is \
                 to be opened with",
            ),
            Self::NotAtRest(why) => write!(f, "the saved drive cannot be opened: {why}"),
            Self::Setup(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SavedError {}

impl From<NotAtRest> for SavedError {
    fn from(why: NotAtRest) -> Self {
        Self::NotAtRest(why)
    }
}

impl From<SetupError> for SavedError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<OpenError> for SavedError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::BadDump => Self::Damaged,
            other => Self::Setup(other.into()),
        }
    }
}
