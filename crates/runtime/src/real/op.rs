//! One operation on a file, with all that it needs: it can be carried out by a ring, by any thread, or by
//! the one that asked for it.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::{Errno, ReadWriteFlags};

use crate::PageImage;

/// A write with these flags is on the medium when it has ended.
pub(crate) const DURABLE: ReadWriteFlags = ReadWriteFlags::DSYNC;

/// What happens to the room of a range of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// It is given to the file, and reads as zeros where there was none. The file grows if it has to.
    Give,
    /// It is given back to the file system; the range reads as zeros.
    Punch,
    /// The range reads as zeros, and keeps its room.
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

/// What is done.
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
    /// What is read into or written; without bytes where nothing is.
    pub(crate) buffer: PageImage,
    /// Bytes that were transferred so far.
    pub(crate) done: usize,
}

/// How far an operation has come.
pub(crate) enum Progress {
    /// It ended.
    Ended(io::Result<usize>),
    /// It has to go on from where it is.
    GoesOn,
}

impl Op {
    /// Takes in what came of one attempt.
    pub(crate) fn advance(&mut self, came: Result<usize, Errno>) -> Progress {
        let whole = match self.what {
            What::Read | What::Write { .. } => self.buffer.bytes().len(),
            What::SyncData | What::SyncAll | What::Allocate { .. } => 0,
        };
        match came {
            // Disturbed, or the thread that handed it in is gone: the kernel does the rest when it is asked again.
            Err(Errno::INTR | Errno::AGAIN | Errno::CANCELED) => Progress::GoesOn,
            Err(error) => Progress::Ended(Err(error.into())),
            Ok(bytes) => {
                self.done += bytes;
                // Nothing more to come is the end of a file; of a write it would never change.
                let is_over = bytes == 0 || self.done >= whole;
                if is_over { Progress::Ended(Ok(self.done)) } else { Progress::GoesOn }
            }
        }
    }

    /// Carries the operation out on this thread, which waits for it.
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
