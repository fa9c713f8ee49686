//! One file operation with all that it needs. It can be executed by a ring, by any thread, or by
//! the caller.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::{Errno, ReadWriteFlags};

use crate::PageImage;

/// The flags of a write that is durable when it completes.
pub(crate) const DURABLE: ReadWriteFlags = ReadWriteFlags::DSYNC;

/// A change of the space allocated to a range of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Allocates space; unallocated parts read as zeros. Extends the file if necessary.
    Give,
    /// Returns the space to the file system; the range reads as zeros.
    Punch,
    /// Zeroes the range, which keeps its space.
    Zero,
}

impl Room {
    pub(crate) fn flags(self) -> FallocateFlags {
        match self {
            Self::Give => FallocateFlags::empty(),
            Self::Punch => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            Self::Zero => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
        }
    }
}

/// The kind of operation.
#[derive(Clone, Copy)]
pub(crate) enum What {
    Read,
    Write { is_durable: bool },
    SyncData,
    SyncAll,
    Allocate { mode: Room, bytes: u64 },
}

/// See the module's documentation.
pub(crate) struct Op {
    pub(crate) file: Arc<File>,
    pub(crate) what: What,
    pub(crate) offset: u64,
    /// The buffer of a read or write; empty for other operations.
    pub(crate) buffer: PageImage,
    /// Bytes transferred so far.
    pub(crate) done: usize,
}

/// The progress of an operation.
pub(crate) enum Progress {
    /// The operation has ended.
    Ended(io::Result<usize>),
    /// The operation must continue from its present position.
    GoesOn,
}

impl Op {
    /// Processes the result of one attempt.
    pub(crate) fn advance(&mut self, came: Result<usize, Errno>) -> Progress {
        let whole = match self.what {
            What::Read | What::Write { .. } => self.buffer.bytes().len(),
            What::SyncData | What::SyncAll | What::Allocate { .. } => 0,
        };
        match came {
            // Interrupted, or the submitting thread has ended: the kernel does the rest when asked
            // again.
            Err(Errno::INTR | Errno::AGAIN | Errno::CANCELED) => Progress::GoesOn,
            Err(error) => Progress::Ended(Err(error.into())),
            Ok(bytes) => {
                self.done += bytes;
                // Zero bytes mean the end of the file; a write of zero bytes would repeat forever.
                let is_over = bytes == 0 || self.done >= whole;
                if is_over { Progress::Ended(Ok(self.done)) } else { Progress::GoesOn }
            }
        }
    }

    /// Executes the operation on this thread, and blocks until it ends.
    pub(crate) fn perform(&mut self) -> io::Result<usize> {
        loop {
            let came = self.attempt();
            if let Progress::Ended(result) = self.advance(came) {
                return result;
            }
        }
    }

    fn attempt(&mut self) -> Result<usize, Errno> {
        let (file, done, at) = (&*self.file, self.done, self.offset + self.done as u64);
        match self.what {
            What::Read => {
                let bytes = self.buffer.bytes_mut().expect("nobody shares what is read into");
                rustix::io::pread(file, &mut bytes[done..], at)
            }
            What::Write { is_durable: false } => {
                rustix::io::pwrite(file, &self.buffer.bytes()[done..], at)
            }
            What::Write { is_durable: true } => {
                let bytes = [IoSlice::new(&self.buffer.bytes()[done..])];
                rustix::io::pwritev2(file, &bytes, at, DURABLE)
            }
            What::SyncData => rustix::fs::fdatasync(file).map(|()| 0),
            What::SyncAll => rustix::fs::fsync(file).map(|()| 0),
            What::Allocate { mode, bytes } => {
                rustix::fs::fallocate(file, mode.flags(), at, bytes).map(|()| 0)
            }
        }
    }
}
