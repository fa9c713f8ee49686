//! How a command ended.

use std::fmt;

use super::DecodeError;

/// The outcome of a command: a status code type and a status code. Only what the drive uses.
///
/// Command Sequence Error is not among them: choosing a window while the mode is off, the one
/// sequence that can be wrong here, is Invalid Field in Command by the specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The command did what it was asked.
    Success,
    /// A field holds what it may not, or a window was selected while the mode is off.
    InvalidField,
    /// The command reaches beyond the end of the namespace.
    LbaOutOfRange,
    /// The drive has no such log page.
    InvalidLogPage,
    /// Save was asked for a feature that does not survive a reset.
    FeatureNotSaveable,
    /// The data could not be written.
    WriteFault,
    /// The data cannot be read back as it was written.
    UnrecoveredReadError,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::InvalidField,
        Self::LbaOutOfRange,
        Self::InvalidLogPage,
        Self::FeatureNotSaveable,
        Self::WriteFault,
        Self::UnrecoveredReadError,
    ];

    /// Status code type and status code. The type: 0h generic, 1h of the command, 2h media.
    pub const fn numbers(self) -> (u8, u8) {
        match self {
            Self::Success => (0, 0x00),
            Self::InvalidField => (0, 0x02),
            Self::LbaOutOfRange => (0, 0x80),
            Self::InvalidLogPage => (1, 0x09),
            Self::FeatureNotSaveable => (1, 0x0D),
            Self::WriteFault => (2, 0x80),
            Self::UnrecoveredReadError => (2, 0x81),
        }
    }

    /// The status code type.
    pub const fn code_type(self) -> u8 {
        self.numbers().0
    }

    /// The status code.
    pub const fn code(self) -> u8 {
        self.numbers().1
    }

    /// The outcome with these numbers, if it is one of these.
    pub fn from_numbers(code_type: u8, code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.numbers() == (code_type, code))
    }
}

impl From<DecodeError> for Status {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::LogId { .. } => Self::InvalidLogPage,
            _ => Self::InvalidField,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Success => "success",
            Self::InvalidField => "invalid field in command: look at its dwords and its data",
            Self::LbaOutOfRange => "LBA out of range: the namespace ends before that",
            Self::InvalidLogPage => "invalid log page: the drive does not keep it",
            Self::FeatureNotSaveable => "feature not saveable: set it again after each reset",
            Self::WriteFault => "write fault: the data was not stored",
            Self::UnrecoveredReadError => "unrecovered read error: the stored data is damaged",
        };
        write!(f, "{text} (status type {:X}h, code {:02X}h)", self.code_type(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_tell_the_outcome() {
        for status in Status::ALL {
            assert_eq!(Status::from_numbers(status.code_type(), status.code()), Some(status));
        }
        assert_eq!(Status::from_numbers(1, 0x80), None);
    }

    #[test]
    fn what_cannot_be_decoded_is_an_invalid_field_or_an_unknown_log_page() {
        assert_eq!(Status::from(DecodeError::LogId { found: 2 }), Status::InvalidLogPage);
        assert_eq!(Status::from(DecodeError::WindowSelect { found: 0 }), Status::InvalidField);
        let text = Status::InvalidLogPage.to_string();
        assert!(text.ends_with("(status type 1h, code 09h)"), "{text}");
    }
}
