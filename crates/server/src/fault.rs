//! What a command may fail with, in the words that clients of Redis know.

use std::fmt;

/// An error for a client: its first word says of which kind it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault(String);

impl Fault {
    /// An error without a kind of its own.
    pub(crate) fn error(what: impl fmt::Display) -> Self {
        Self(format!("ERR {what}"))
    }

    /// An error whose first word is its kind.
    pub(crate) fn of_kind(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(crate) fn wrong_type() -> Self {
        Self("WRONGTYPE Operation against a key holding the wrong kind of value".to_owned())
    }

    pub(crate) fn syntax() -> Self {
        Self::error("syntax error")
    }

    pub(crate) fn not_an_integer() -> Self {
        Self::error("value is not an integer or out of range")
    }

    pub(crate) fn not_a_float() -> Self {
        Self::error("value is not a valid float")
    }

    /// Its first word.
    pub(crate) fn kind(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// The line.
    pub(crate) fn message(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<levelhead::Error> for Fault {
    fn from(error: levelhead::Error) -> Self {
        match error {
            levelhead::Error::Full(_) => Self(format!("OOM {error}")),
            levelhead::Error::ReadOnly(_) => Self(format!("MISCONF writes are refused: {error}")),
            other => Self::error(other),
        }
    }
}
