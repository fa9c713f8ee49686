//! Failures of file operations, in words.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use block::DeviceError;
use block::nvme::SetId;
use rustix::io::Errno;

use crate::waiting::Waiting;

/// The operation that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    Reading,
    Writing,
    Flushing,
    Discarding,
    ChangingWindows,
}

/// A failed command, with the details that a [`DeviceError`] does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// The file or drive.
    pub path: PathBuf,
    /// The first requested byte.
    pub offset: u64,
    /// The number of requested bytes.
    pub bytes: u64,
    /// The operation and the operating system's error.
    pub what: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, bytes, what } = self;
        write!(f, "{}, {bytes} bytes at {offset}: {what}", path.display())
    }
}

/// The most recent failures; older failures are dropped.
#[derive(Default)]
pub(crate) struct Troubles {
    latest: RefCell<VecDeque<Trouble>>,
    /// Writes that wait and are retried.
    pub(crate) waiting: Rc<Waiting>,
}

const KEPT: usize = 64;

impl Troubles {
    pub(crate) fn note(&self, trouble: Trouble) {
        let mut latest = self.latest.borrow_mut();
        if latest.back() == Some(&trouble) {
            return; // a retry
        }
        if latest.len() == KEPT {
            latest.pop_front();
        }
        latest.push_back(trouble);
    }

    pub(crate) fn last(&self) -> Option<Trouble> {
        self.latest.borrow().back().cloned()
    }

    pub(crate) fn take(&self) -> Vec<Trouble> {
        self.latest.borrow_mut().drain(..).collect()
    }
}

/// The failure of an operation.
pub(crate) enum Failure {
    System(io::Error),
    /// The file ends after this many of the requested bytes.
    Ended(u64),
    /// Only this many of the bytes were written.
    CutShort(u64),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Ended(bytes) => {
                write!(f, "the file ends after {bytes} of these; it was cut since it was opened")
            }
            Self::CutShort(bytes) => {
                write!(f, "{bytes} of these were written, and the system took no more")
            }
        }
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reading => "reading",
            Self::Writing => "writing",
            Self::Flushing => "flushing",
            Self::Discarding => "discarding",
            Self::ChangingWindows => "a window command",
        })
    }
}

/// Converts a failure to a device error. `block` is the first requested block.
pub(crate) fn as_device_error(
    failure: &Failure,
    doing: Doing,
    set: SetId,
    block: u64,
) -> DeviceError {
    /// The error number of a failure without a number.
    const ANY: Errno = Errno::IO;
    let error = match failure {
        Failure::Ended(_) => return DeviceError::Unreadable { set, block },
        // A file size limit, or a disk that became full.
        Failure::CutShort(_) => Errno::NOSPC,
        Failure::System(error) => Errno::from_io_error(error).unwrap_or(ANY),
    };
    match error {
        Errno::NOSPC | Errno::DQUOT => DeviceError::NoSpace(set),
        Errno::ROFS => DeviceError::ReadOnly(set),
        Errno::NXIO | Errno::NODEV | Errno::STALE => DeviceError::Gone(set),
        // Errors that a drive returns for a lost sector, and a file system for a wrong checksum.
        Errno::IO | Errno::NODATA | Errno::ILSEQ | Errno::BADMSG | Errno::UCLEAN
            if doing == Doing::Reading =>
        {
            DeviceError::Unreadable { set, block }
        }
        other => DeviceError::Io { set, code: other.raw_os_error() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_can_be_done() {
        let set = SetId::new(2).expect("numbers begin with 1");
        let said =
            |errno: Errno, doing| as_device_error(&Failure::System(errno.into()), doing, set, 7);
        assert_eq!(said(Errno::NOSPC, Doing::Writing), DeviceError::NoSpace(set));
        assert_eq!(said(Errno::DQUOT, Doing::Writing), DeviceError::NoSpace(set));
        assert_eq!(said(Errno::ROFS, Doing::Discarding), DeviceError::ReadOnly(set));
        assert_eq!(said(Errno::NODEV, Doing::Reading), DeviceError::Gone(set));
        assert_eq!(said(Errno::IO, Doing::Reading), DeviceError::Unreadable { set, block: 7 });
        assert_eq!(said(Errno::IO, Doing::Writing), DeviceError::Io { set, code: 5 });
        let ended = as_device_error(&Failure::Ended(3), Doing::Reading, set, 7);
        assert_eq!(ended, DeviceError::Unreadable { set, block: 7 });
    }

    #[test]
    fn the_latest_troubles_are_kept() {
        let troubles = Troubles::default();
        for offset in 0..100 {
            let what = "reading: it is lost".to_owned();
            troubles.note(Trouble { path: "a/b".into(), offset, bytes: 4096, what });
        }
        let taken = troubles.take();
        assert_eq!((taken.len(), taken[0].offset), (KEPT, 36));
        assert_eq!(taken[0].to_string(), "a/b, 4096 bytes at 36: reading: it is lost");
        assert!(troubles.take().is_empty());
    }
}
