//! Windows and what a window is good for.

use super::DecodeError;
use super::layout::field;

/// A window that the host selects (feature 14h, Window Select).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WindowSelect {
    /// Deterministic: reads are not disturbed.
    Dtwin = 1,
    /// Non-deterministic: the drive does its background work.
    Ndwin = 2,
}

impl WindowSelect {
    /// The number.
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

/// What a set is in (log page 0Ah, Status).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum WindowStatus {
    /// In no window: Predictable Latency Mode is not enabled.
    #[default]
    NotEnabled = 0,
    /// In its deterministic window.
    Dtwin = 1,
    /// In its non-deterministic window.
    Ndwin = 2,
}

impl WindowStatus {
    /// The number.
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

/// What fits into a deterministic window: all of it, what is left, or a threshold on what is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// Random reads of 4 KiB.
    pub reads: u64,
    /// Writes of the set's Optimal Write Size.
    pub writes: u64,
    /// Time in milliseconds.
    pub time_ms: u64,
}

impl Budget {
    /// Its length in every structure.
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
