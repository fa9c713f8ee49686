//! Completion status of commands.

use std::fmt;

use super::DecodeError;

/// The status of a completed command: a status code type and a status code. Only the statuses that
/// the drive uses are listed.
///
/// Command Sequence Error is not used: by the specification, selecting a window while the mode is
/// disabled, the only possible sequence error here, is Invalid Field in Command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The command succeeded.
    Success,
    /// A field has an invalid value, or a window was selected while the mode is disabled.
    InvalidField,
    /// The command extends past the end of the namespace.
    LbaOutOfRange,
    /// The drive has no such log page.
    InvalidLogPage,
    /// Save was requested for a feature that does not persist across a reset.
    FeatureNotSaveable,
    /// The data could not be written.
    WriteFault,
    /// The data cannot be read back as written.
    UnrecoveredReadError,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::InvalidField,
        Self::LbaOutOfRange,
        Self::InvalidLogPage,
        Self::FeatureNotSaveable,
        Self::WriteFault,
        Self::UnrecoveredReadError,
    ];

    /// Returns the status code type (0h generic, 1h command specific, 2h media) and the status
    /// code.
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

    /// Returns the status code type.
    pub const fn code_type(self) -> u8 {
        self.numbers().0
    }

    /// Returns the status code.
    pub const fn code(self) -> u8 {
        self.numbers().1
    }

    /// Returns the status with these numbers; `None` for a status that is not listed here.
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
