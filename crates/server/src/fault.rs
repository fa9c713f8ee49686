//! Errors of commands, in the wording of Redis.

use std::fmt;

/// An error reply; its first word is the error's kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault(String);

/// The result of a command.
pub(crate) type Outcome = Result<(), Fault>;

impl Fault {
    /// Returns an error of the general kind, `ERR`.
    pub(crate) fn error(what: impl fmt::Display) -> Self {
        Self(format!("ERR {what}"))
    }

    /// Returns an error whose message begins with its kind.
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

    /// Returns the first word of the message.
    pub(crate) fn kind(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// Returns the whole message.
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
