//! Errors of decoding commands and structures.

use std::fmt;

/// The reason why a command or a structure could not be decoded: the field, its value, the allowed
/// values. A drive completes the command with the [`Status`](super::Status) that this error
/// converts into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The NVM set identifier is 0.
    SetIdZero,
    /// The feature is not one of this module.
    FeatureId {
        /// The feature identifier of the command.
        found: u8,
    },
    /// The Select field of Get Features is reserved.
    Select {
        /// The value of the field.
        found: u8,
    },
    /// The Window Select field is reserved.
    WindowSelect {
        /// The value of the field.
        found: u8,
    },
    /// Reserved bits of a command dword are set.
    ReservedBits {
        /// The number of the command dword.
        dword: u8,
        /// The reserved bits, at their positions in the dword.
        bits: u32,
    },
    /// A feature's data has the wrong length.
    DataLength {
        /// Actual length in bytes.
        found: usize,
        /// Required length in bytes.
        wanted: usize,
    },
    /// The log page is not one of this module.
    LogId {
        /// The log page identifier of the command.
        found: u8,
    },
    /// The offset into a log page is not a multiple of 4.
    LogOffset {
        /// The offset in bytes.
        found: u64,
    },
    /// The length of a log read is zero, not a multiple of 4, or above 16 GiB.
    LogLength {
        /// The length in bytes.
        found: u64,
    },
    /// The status of log page 0Ah is reserved.
    WindowStatus {
        /// The value of the 3-bit field.
        found: u8,
    },
    /// Log page 0Bh is longer than the part that was read. Read it again with `wanted` bytes.
    AggregateLength {
        /// Bytes read.
        found: usize,
        /// The length of the page by its header, in bytes.
        wanted: u64,
    },
    /// The NVM Set List claims more entries than it can hold.
    SetCount {
        /// The claimed number of entries.
        found: u8,
    },
    /// The set numbers do not ascend strictly.
    SetOrder {
        /// The first number that is not greater than its predecessor.
        found: u16,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::SetIdZero => write!(f, "NVM set identifier is 0; sets are numbered from 1"),
            Self::FeatureId { found } => {
                write!(f, "feature identifier is {found:02X}h; 0Bh, 13h and 14h are known")
            }
            Self::Select { found } => {
                write!(f, "select is {found}; 0 (current) to 3 (supported) are allowed")
            }
            Self::WindowSelect { found } => {
                write!(f, "window select is {found}; 1 (DTWIN) and 2 (NDWIN) are allowed")
            }
            Self::ReservedBits { dword, bits } => {
                write!(f, "command dword {dword} has reserved bits {bits:#010x}; clear them")
            }
            Self::DataLength { found, wanted } => {
                write!(f, "the feature's data is {found} bytes long; it takes {wanted}")
            }
            Self::LogId { found } => {
                write!(f, "log page identifier is {found:02X}h; 0Ah and 0Bh are known")
            }
            Self::LogOffset { found } => {
                write!(f, "log page offset is {found} bytes; it takes a multiple of 4")
            }
            Self::LogLength { found } => {
                write!(
                    f,
                    "log page length is {found} bytes; it takes a multiple of 4, up to 16 GiB"
                )
            }
            Self::WindowStatus { found } => write!(
                f,
                "status of the set is {found}; 0 (not enabled), 1 (DTWIN), 2 (NDWIN) are known"
            ),
            Self::AggregateLength { found, wanted } => {
                write!(f, "the event aggregate has {wanted} bytes, {found} were read; read all")
            }
            Self::SetCount { found } => {
                write!(f, "the NVM set list claims {found} entries; it has room for 31")
            }
            Self::SetOrder { found } => {
                write!(f, "NVM set {found} is listed out of order; numbers ascend")
            }
        }
    }
}

impl std::error::Error for DecodeError {}
