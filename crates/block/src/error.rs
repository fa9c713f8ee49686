//! The errors of a block device.

use std::fmt;
use std::io;

use crate::nvme::{SetId, Status};

/// The reason why a command failed, and the possible remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// The device has no such set. [`crate::BlockDevice::sets`] lists its sets.
    NoSuchSet(SetId),
    /// The blocks extend past the end of the set.
    OutOfRange {
        /// The set.
        set: SetId,
        /// The first requested block.
        first: u64,
        /// The number of requested blocks.
        blocks: u64,
        /// Capacity of the set in blocks.
        capacity: u64,
    },
    /// The medium lost the block. A write or a discard makes it readable again.
    Unreadable {
        /// The set.
        set: SetId,
        /// The block.
        block: u64,
    },
    /// The set and all its data are permanently lost. A retry cannot succeed; the data must come
    /// from another copy.
    Gone(SetId),
    /// No space was left for a write, as on a full file system. Earlier contents are unchanged.
    /// Remedy: discard blocks, or give the device more space.
    NoSpace(SetId),
    /// The set refuses writes and discards but is still readable. Remedy: move its data elsewhere.
    ReadOnly(SetId),
    /// The operating system failed the command. A write may have been applied in part. A retry may
    /// succeed.
    Io {
        /// The set.
        set: SetId,
        /// The error number (`errno`).
        code: i32,
    },
    /// The device refused a window command.
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
