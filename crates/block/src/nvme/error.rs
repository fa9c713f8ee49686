//! What is wrong with a command or a structure.

use std::fmt;

/// Why a command or a structure was not decoded: which field, what it held, what it may hold. A
/// drive ends the command with the [`Status`](super::Status) that this converts into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The NVM set identifier is 0.
    SetIdZero,
    /// The feature is none of this module.
    FeatureId {
        /// The feature identifier of the command.
        found: u8,
    },
    /// The Select field of Get Features is reserved.
    Select {
        /// The field.
        found: u8,
    },
    /// The Window Select field is reserved.
    WindowSelect {
        /// The field.
        found: u8,
    },
    /// Bits of a command's dword are set that have no meaning.
    ReservedBits {
        /// The number of the command dword.
        dword: u8,
        /// The bits, in place.
        bits: u32,
    },
    /// A feature's data has the wrong length.
    DataLength {
        /// Bytes given.
        found: usize,
        /// Bytes wanted.
        wanted: usize,
    },
    /// The log page is none of this module.
    LogId {
        /// The log page identifier of the command.
        found: u8,
    },
    /// The offset into a log page is no multiple of 4.
    LogOffset {
        /// The offset in bytes.
        found: u64,
    },
    /// The length of a log read is no multiple of 4, zero, or above 16 GiB.
    LogLength {
        /// The length in bytes.
        found: u64,
    },
    /// The status of log page 0Ah is reserved.
    WindowStatus {
        /// The three bits.
        found: u8,
    },
    /// Log page 0Bh is longer than what was read of it. Read it again with room for `wanted`.
    AggregateLength {
        /// Bytes given.
        found: usize,
        /// Bytes that its header asks for.
        wanted: u64,
    },
    /// The NVM Set List claims more entries than it has room for.
    SetCount {
        /// Its number of entries.
        found: u8,
    },
    /// Sets are listed out of order, or twice.
    SetOrder {
        /// The first number that is not above the one before it.
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
