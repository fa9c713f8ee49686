//! Why a command failed, and what the caller can do about it.

use std::fmt;
use std::io;

use crate::nvme::{SetId, Status};

/// Why a command failed, and what the caller can do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// The device has no such set. Its sets are listed by [`crate::BlockDevice::sets`].
    NoSuchSet(SetId),
    /// The blocks reach beyond the end of the set.
    OutOfRange {
        /// The set.
        set: SetId,
        /// The first block that was asked for.
        first: u64,
        /// How many.
        blocks: u64,
        /// Blocks that the set has.
        capacity: u64,
    },
    /// The medium has lost the block. Writing or discarding it makes it readable again.
    Unreadable {
        /// The set.
        set: SetId,
        /// The block.
        block: u64,
    },
    /// The set is lost with all it held, and stays so: nothing is to be had from trying again. What
    /// it held has to come from elsewhere.
    Gone(SetId),
    /// A write found no room left, as on a file system that is full. What was there before is as it
    /// was. Discarding blocks, or giving the device more room, helps.
    NoSpace(SetId),
    /// The set takes no writes and discards any more, but can still be read: time to move what it
    /// holds.
    ReadOnly(SetId),
    /// The operating system could not carry the command out, by its error number. A write may have
    /// been done in part. Trying again may help.
    Io {
        /// The set.
        set: SetId,
        /// The number of the error (`errno`).
        code: i32,
    },
    /// A window command was refused.
    Refused(Status),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchSet(set) => write!(f, "the drive has no NVM set {set}"),
            Self::OutOfRange { set, first, blocks, capacity } => write!(
                f,
                "blocks {first} to {} are asked for, NVM set {set} has {capacity}",
                first.saturating_add(*blocks).saturating_sub(1)
            ),
            Self::Unreadable { set, block } => {
                write!(f, "block {block} of NVM set {set} cannot be read back as it was written")
            }
            Self::Gone(set) => {
                write!(f, "NVM set {set} is lost; what it held has to come from elsewhere")
            }
            Self::NoSpace(set) => {
                write!(f, "NVM set {set} has no room left; discard blocks or give it more")
            }
            Self::ReadOnly(set) => {
                write!(f, "NVM set {set} can only be read any more; move what it holds")
            }
            Self::Io { set, code } => {
                write!(f, "I/O on NVM set {set} failed: {}", io::Error::from_raw_os_error(*code))
            }
            Self::Refused(status) => status.fmt(f),
        }
    }
}

impl std::error::Error for DeviceError {}
