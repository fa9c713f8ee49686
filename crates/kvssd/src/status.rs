//! How a command ended, in the terms of the NVMe Key Value Command Set.

use std::fmt;

use engine::EngineError;

/// Why a command did not succeed. The numbers are generic command status codes (status code type
/// 0h); those from 80h on belong to the Key Value command set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
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
}

impl Status {
    /// The status code.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<EngineError> for Status {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::KeyLength(_) => Self::InvalidKeySize,
            EngineError::ValueTooLarge { .. } => Self::InvalidValueSize,
            EngineError::Full => Self::CapacityExceeded,
            EngineError::Corrupt(_) => Self::UnrecoveredError,
            EngineError::ReadOnly(_) => Self::WriteProtected,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::WriteProtected => "write protected: the drive found damage in the background",
            Self::CapacityExceeded => "capacity exceeded: delete something and try again",
            Self::InvalidValueSize => "invalid value size",
            Self::InvalidKeySize => "invalid key size",
            Self::KeyDoesNotExist => "the key does not exist",
            Self::UnrecoveredError => "unrecovered error: the stored data is damaged",
            Self::KeyExists => "the key exists",
        };
        write!(f, "{text} (status {:02X}h)", self.code())
    }
}

impl std::error::Error for Status {}
