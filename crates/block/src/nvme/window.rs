//! Windows and their budgets.

use super::DecodeError;
use super::layout::field;

/// A window that the host selects (feature 14h, Window Select).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WindowSelect {
    /// Deterministic: no background work disturbs reads.
    Dtwin = 1,
    /// Non-deterministic: the drive does its background work.
    Ndwin = 2,
}

impl WindowSelect {
    /// Returns the code.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl TryFrom<u8> for WindowSelect {
    type Error = DecodeError;

    fn try_from(code: u8) -> Result<Self, DecodeError> {
        match code {
            1 => Ok(Self::Dtwin),
            2 => Ok(Self::Ndwin),
            found => Err(DecodeError::WindowSelect { found }),
        }
    }
}

/// The current window of a set (log page 0Ah, Status).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum WindowStatus {
    /// No window: Predictable Latency Mode is not enabled.
    #[default]
    NotEnabled = 0,
    /// The deterministic window.
    Dtwin = 1,
    /// The non-deterministic window.
    Ndwin = 2,
}

impl WindowStatus {
    /// Returns the code.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<WindowSelect> for WindowStatus {
    fn from(window: WindowSelect) -> Self {
        match window {
            WindowSelect::Dtwin => Self::Dtwin,
            WindowSelect::Ndwin => Self::Ndwin,
        }
    }
}

impl TryFrom<u8> for WindowStatus {
    type Error = DecodeError;

    fn try_from(code: u8) -> Result<Self, DecodeError> {
        match code {
            0 => Ok(Self::NotEnabled),
            1 => Ok(Self::Dtwin),
            2 => Ok(Self::Ndwin),
            found => Err(DecodeError::WindowStatus { found }),
        }
    }
}

/// A budget of a deterministic window: its limits, the remaining budget, or a threshold on the
/// remaining budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// Random reads of 4 KiB.
    pub reads: u64,
    /// Writes of the set's Optimal Write Size.
    pub writes: u64,
    /// Time, in milliseconds.
    pub time_ms: u64,
}

impl Budget {
    /// Length in every structure, in bytes.
    pub(super) const BYTES: usize = 24;

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..8].copy_from_slice(&self.reads.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.writes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.time_ms.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            reads: u64::from_le_bytes(field(bytes, 0..8)),
            writes: u64::from_le_bytes(field(bytes, 8..16)),
            time_ms: u64::from_le_bytes(field(bytes, 16..24)),
        }
    }
}
