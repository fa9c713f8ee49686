//! The place of pages in a store's files, and the conversions of errors that name it.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::{EngineError, Expired, MediumError, OpenError, PageNo};
use files::Trouble;
use volume::VolumeError;

use super::Error;
use crate::drive;

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
}
