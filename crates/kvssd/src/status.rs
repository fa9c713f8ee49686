//! How a command ended, in the terms of the NVMe Key Value Command Set.

use std::fmt;

use pages::EngineError;

/// Why a command did not succeed. The numbers are status codes: generic ones (status code type 0h),
/// of which those from 80h on belong to the Key Value command set, and from C0h on our own, for
/// iterators (status code type 7h, vendor specific).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// The drive has no such command: iterators need an index in key order.
    InvalidOpcode = 0x01,
    /// The flash did not do what it was asked to.
    InternalError = 0x06,
    /// The drive found damage in the background and takes no more writes.
    WriteProtected = 0x20,
    /// No room, and no garbage left to collect.
    CapacityExceeded = 0x81,
    /// The value is longer than the drive takes.
    InvalidValueSize = 0x85,
    /// The key is empty or longer than the drive takes.
    InvalidKeySize = 0x86,
    /// No value is stored under the key.
    KeyDoesNotExist = 0x87,
    /// What is stored cannot be read back as it was written.
    UnrecoveredError = 0x88,
    /// A value is stored under the key, and the command asked that there be none.
    KeyExists = 0x89,
    /// There is no such iterator: it was destroyed, or never made.
    InvalidIterator = 0xC0,
    /// As many iterators are open as there may be.
    TooManyIterators = 0xC1,
    /// There is no pair from here on. Seek is still possible.
    EndOfRange = 0xC2,
    /// The iterator stands nowhere yet: Seek first.
    NotPositioned = 0xC3,
    /// More deleted keys than one command passes lie here; the position is kept, ask again.
    AskAgain = 0xC4,
    /// The snapshot was too old to be kept. Make a new iterator.
    SnapshotTooOld = 0xC5,
    /// There is no memory for another iterator.
    IteratorMemory = 0xC6,
}

impl Status {
    /// The status code type: 0h generic, 7h vendor specific.
    pub const fn code_type(self) -> u8 {
        if self.code() >= 0xC0 { 7 } else { 0 }
    }

    /// The status code.
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
