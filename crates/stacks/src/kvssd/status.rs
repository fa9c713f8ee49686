//! Outcome of a command, in the terms of the NVMe Key Value Command Set.

use std::fmt;

use engine::EngineError;

/// Why a command did not succeed. The numbers are status codes: generic ones (status code type 0h),
/// which from 80h on are those of the Key Value Command Set; from C0h on this drive's own codes for
/// iterators (status code type 7h, vendor specific).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// The drive has no such command: iterators need an index in key order.
    InvalidOpcode = 0x01,
    /// A flash operation failed.
    InternalError = 0x06,
    /// The drive found damage during background work and accepts no more writes.
    WriteProtected = 0x20,
    /// No free space, and no garbage left to collect.
    CapacityExceeded = 0x81,
    /// The value is longer than the drive accepts.
    InvalidValueSize = 0x85,
    /// The key is empty or longer than the drive accepts.
    InvalidKeySize = 0x86,
    /// No value is stored under the key.
    KeyDoesNotExist = 0x87,
    /// Stored data cannot be read back as they were written.
    UnrecoveredError = 0x88,
    /// A value is stored under the key, and the command required that none exists.
    KeyExists = 0x89,
    /// The handle is not open: the iterator was destroyed, or never created.
    InvalidIterator = 0xC0,
    /// The maximum number of iterators is open.
    TooManyIterators = 0xC1,
    /// No pair follows. Seek is still possible.
    EndOfRange = 0xC2,
    /// The iterator has no position yet: Seek first.
    NotPositioned = 0xC3,
    /// More deleted keys follow than one command skips; the position is kept: repeat the command.
    AskAgain = 0xC4,
    /// The snapshot has expired. Create a new iterator.
    SnapshotTooOld = 0xC5,
    /// Not enough memory for another iterator.
    IteratorMemory = 0xC6,
}

impl Status {
    /// Returns the status code type: 0h generic, 7h vendor specific.
    pub const fn code_type(self) -> u8 {
        if self.code() >= 0xC0 { 7 } else { 0 }
    }

    /// Returns the status code.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<EngineError> for Status {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::KeyLength(_) => Self::InvalidKeySize,
            EngineError::ValueTooLarge { .. } | EngineError::BatchTooLarge { .. } => {
                Self::InvalidValueSize
            }
            EngineError::Full(_) => Self::CapacityExceeded,
            EngineError::Corrupt(..) => Self::UnrecoveredError,
            EngineError::Medium(_) => Self::InternalError,
            EngineError::ReadOnly(_) => Self::WriteProtected,
            EngineError::SnapshotTooOld(_) => Self::SnapshotTooOld,
            EngineError::IteratorMemory => Self::IteratorMemory,
            EngineError::NotPositioned => Self::NotPositioned,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::InvalidOpcode => "invalid opcode: the drive's index keeps no key order",
            Self::InternalError => "internal error: the flash failed",
            Self::WriteProtected => "write protected: the drive found damage in the background",
            Self::CapacityExceeded => "capacity exceeded: delete something and try again",
            Self::InvalidValueSize => "invalid value size",
            Self::InvalidKeySize => "invalid key size",
            Self::KeyDoesNotExist => "the key does not exist",
            Self::UnrecoveredError => "unrecovered error: the stored data is damaged",
            Self::KeyExists => "the key exists",
            Self::InvalidIterator => "there is no such iterator",
            Self::TooManyIterators => "too many iterators are open: have fewer at a time",
            Self::EndOfRange => "there is no pair from here on",
            Self::NotPositioned => "the iterator stands nowhere yet: seek first",
            Self::AskAgain => "among deleted keys: ask again to go on",
            Self::SnapshotTooOld => "the snapshot was too old to be kept: make a new iterator",
            Self::IteratorMemory => {
                "no memory for another iterator: have fewer at a time, or a drive with more for them (dram.iterator_bytes)"
            }
        };
        write!(f, "{text} (status {:02X}h)", self.code())
    }
}

impl std::error::Error for Status {}
