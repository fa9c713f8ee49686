//! What a drive got wrong, by kind: a planted fault counts as caught only by the kind it must cause.

use std::fmt;

use kvssd::{RecoverError, Status};
use pages::Value;

/// Kinds of wrong answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A key that must have a value has none.
    Lost,
    /// A value that was overwritten or deleted before came back.
    Stale,
    /// A value that the key never had.
    Foreign,
    /// A page that nobody damaged was reported as damaged.
    Corrupt,
    /// Damage was not reported.
    Unnoticed,
    /// A command was refused that must go ahead.
    Refused,
    /// An iterator returned what its snapshot cannot hold, or left something out.
    Iterator,
    /// A client waited for ever.
    Hung,
    /// The index holds more than it was given.
    Leak,
    /// A drive did not come back from a power cut.
    Unopened,
}

/// The first thing that a trial found wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Complaint {
    pub kind: Kind,
    pub text: String,
}

impl Complaint {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// A drive did not come back from a power cut.
    pub(crate) fn of_recovery(error: &RecoverError) -> Self {
        Self::new(Kind::Unopened, format!("recovery failed: {error}"))
    }

    /// A command that must not fail did.
    pub(crate) fn of_status(status: Status, command: &str) -> Self {
        let kind = match status {
            Status::UnrecoveredError => Kind::Corrupt,
            Status::KeyDoesNotExist => Kind::Lost,
            _ => Kind::Refused,
        };
        Self::new(kind, format!("{command}: {status}"))
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

/// A synthetic value and its bytes are the same value.
pub(crate) fn is_same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a == b || a.len() == b.len() && a.to_bytes() == b.to_bytes(),
        _ => false,
    }
}
